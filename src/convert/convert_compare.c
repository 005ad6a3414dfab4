/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_compare.c - are two files the same model, whatever their kinds?
 *
 * Both are brought into the form that conversions have, a tg_gguf with the table of its family, so
 * that a run, a GGUF file of it and a folder are asked in the same words. Where files have heads or
 * rows in other orders, tg_tensor_read gives all of them the order of layout.h.
 *
 *     config     of equal families, size by size
 *     tensors    in the order of the family's table, by bits; factors of frequencies last, which
 *                each file's maker has computed for himself
 *
 * One piece of each is in memory, or one tensor of those whose rows change places, which are no
 * larger than the queries of a layer; of a run all weights are.
 */
#include "base/buf.h"
#include "base/math.h"
#include "convert/convert.h"
#include "convert/own_gguf.h"
#include "io/hf/hf.h"
#include "io/run/meta.h"

/* 64 KiB of floats: large against the cost of a read, small against the second cache. */
enum { PIECE_ELEMS = 1 << 14 };

typedef struct side {
    tg_gguf g;
    tg_own_run run; /* if it is one */
    tg_tensors table;
    tg_arena arena;
    tg_block room, piece;
    char folder[TG_GGUF_PATH_BYTES];
} side;

static tg_status open_side(tg_ctx *ctx, const char *path, side *s) {
    TG_TRY(tg_any_gguf(ctx, path, s->folder, &s->run, &s->g));
    return tg_tensors_read(&s->g, &s->arena, false, &s->table);
}

static void close_side(side *s) {
    tg_gguf_close(&s->g);
    tg_own_run_close(&s->run);
    tg_block_free(&s->room);
    tg_block_free(&s->piece);
    tg_arena_deinit(&s->arena);
}

static void compare_configs(const side *s, tg_buf *line) {
    const tg_model_config *a = &s[0].table.config, *b = &s[1].table.config;
    char x[TG_NUMBER_BYTES], y[TG_NUMBER_BYTES];
    if (strcmp(a->family, b->family) != 0) {
        tg_buf_printf(line, "family differs: %s and %s", a->family, b->family);
        return;
    }
    const char *key = tg_meta_config_difference(a, b, x, y);
    if (key) tg_buf_printf(line, "config differs: %s is %s and %s", key, x, y);
}

/* A block that is too small is made anew; what was in it is lost. */
static tg_status want_block(tg_ctx *ctx, size_t bytes, tg_block *b) {
    if (b->bytes >= bytes) return TG_OK;
    tg_block_free(b);
    return tg_block_new(ctx, bytes, b);
}

/* Rows [first, first + n) in the order of layout.h, to the side's piece. */
static tg_status read_side(side *s, const tg_tensor *t, uint64_t first, uint64_t n) {
    tg_ctx *ctx = s->g.ctx;
    const size_t cols = (size_t)tg_tensor_cols(t);
    TG_TRY(want_block(ctx, tg_tensor_room_bytes(t, n), &s->room));
    TG_TRY(want_block(ctx, (size_t)n * cols * sizeof(float), &s->piece));
    tg_tensor plain = *t; /* GGUF's numbers stay what they are: same_number */
    plain.logs = false;
    return tg_tensor_read(&s->g, &s->table.config, &plain, first, n, s->room.data, s->piece.data,
                          first, cols);
}

/* What two programs compute of the same number with their own exp differs in the last places. */
static bool is_near(double a, double b, double scale) { return tg_fabs(a - b) <= 1e-6 * scale; }

/* A decay as GGUF has it, of the log that other files have. */
static float decay_of(float x, const tg_tensor *t) {
    const bool log = (t->want->flags & TG_WANT_LOGS) && !t->logs;
    return log ? (float)-tg_exp((double)x) : x;
}

static bool is_gain(const tg_tensor *t) { return t->source->place && t->source->place->plus_one; }

/* By bits: 0 differs from -0, and a NaN equals itself. But two files cannot have the same bits
 * where one has decays and the other their logs, or one gains and the other gains less 1. */
static bool same_number(float x, const tg_tensor *a, float y, const tg_tensor *b) {
    if (tg_bits_from_float(x) == tg_bits_from_float(y)) return true;
    if (a->logs != b->logs) {
        const double p = (double)decay_of(x, a), q = (double)decay_of(y, b), l = tg_log(tg_fabs(p));
        return is_near(p, q, tg_fabs(p) * (1 + tg_fabs(l)));
    }
    return is_gain(a) != is_gain(b) && is_near((double)x, (double)y, 1);
}

static void say_difference(const char *name, const tg_gguf_tensor *const of[2], uint64_t at,
                           float x, float y, tg_buf *line) {
    char xs[TG_NUMBER_BYTES], ys[TG_NUMBER_BYTES];
    tg_format_float(x, xs);
    tg_format_float(y, ys);
    tg_buf_printf(line, "tensor %s: element %" PRIu64 " differs: %s and %s", name, at, xs, ys);
    if (of[0]->type != of[1]->type)
        tg_buf_printf(line, ", stored as %s and %s", tg_dtype_table[of[0]->type].name,
                      tg_dtype_table[of[1]->type].name);
}

/* Tables of one configuration list the same tensors in one order, but for optional ones; sizes
 * that no configuration says, as of matrices behind the pooling, may differ. */
static tg_status compare_tensor(side *s, size_t i, tg_buf *line) {
    const tg_tensor *a = &s[0].table.tensors[i], *b = &s[1].table.tensors[i];
    const bool has_a = i < s[0].table.n_tensors, has_b = i < s[1].table.n_tensors;
    if (!has_a || !has_b || strcmp(a->name, b->name) != 0) {
        tg_buf_printf(line, "tensor %s is in %s alone", has_a ? a->name : b->name,
                      s[has_a ? 0 : 1].g.path);
        return TG_OK;
    }
    const uint64_t cols = tg_tensor_cols(a), rows = tg_tensor_rows(a);
    if (cols != tg_tensor_cols(b) || rows != tg_tensor_rows(b)) {
        tg_buf_printf(
            line, "tensor %s: shape differs: %" PRIu64 " x %" PRIu64 " and %" PRIu64 " x %" PRIu64,
            a->name, rows, cols, tg_tensor_rows(b), tg_tensor_cols(b));
        return TG_OK;
    }
    const bool moves = tg_tensor_moves(&s[0].g, a) || tg_tensor_moves(&s[1].g, b);
    const tg_gguf_tensor *const of[2] = { a->source, b->source };
    const uint64_t most = moves ? rows : PIECE_ELEMS / cols + 1;
    for (uint64_t first = 0; first < rows; first += most) {
        const uint64_t n = rows - first < most ? rows - first : most;
        if (tg_ctx_cancelled(s[0].g.ctx)) return tg_stopped(s[0].g.ctx, s[0].g.path);
        TG_TRY(tg_fail_named(s[0].g.ctx, s[0].g.path, read_side(&s[0], a, first, n)));
        TG_TRY(tg_fail_named(s[1].g.ctx, s[1].g.path, read_side(&s[1], b, first, n)));
        const float *x = s[0].piece.data, *y = s[1].piece.data;
        for (uint64_t k = 0; k < n * cols; k++)
            if (!same_number(x[k], a, y[k], b)) {
                say_difference(a->name, of, first * cols + k, decay_of(x[k], a), decay_of(y[k], b),
                               line);
                return TG_OK;
            }
    }
    return TG_OK;
}

static tg_status read_factors(side *s, const tg_gguf_tensor *t) {
    TG_TRY(want_block(s->g.ctx, (size_t)t->bytes, &s->room));
    TG_TRY(want_block(s->g.ctx, (size_t)t->elems * sizeof(float), &s->piece));
    return tg_gguf_read_floats(&s->g, t, s->room.data, s->piece.data);
}

/* Frequencies' factors are vectors beside the table, which a model may have or not. */
static tg_status compare_factors(side *s, const char *name, tg_buf *line) {
    const tg_gguf_tensor *const t[2] = { tg_gguf_tensor_find(&s[0].g, name),
                                         tg_gguf_tensor_find(&s[1].g, name) };
    if (!t[0] && !t[1]) return TG_OK;
    if (!t[0] || !t[1] || t[0]->elems != t[1]->elems) {
        tg_buf_printf(line, "tensor %s differs in its size, or is in one file alone", name);
        return TG_OK;
    }
    for (int k = 0; k < 2; k++)
        TG_TRY(tg_fail_named(s[k].g.ctx, s[k].g.path, read_factors(&s[k], t[k])));
    const float *x = s[0].piece.data, *y = s[1].piece.data;
    for (uint64_t i = 0; i < t[0]->elems && line->length == 0; i++)
        if (!is_near((double)x[i], (double)y[i], tg_fabs((double)x[i])))
            say_difference(name, t, i, x[i], y[i], line);
    return TG_OK;
}

static tg_status compare_all(side *s, tg_buf *line) {
    compare_configs(s, line);
    const size_t n[2] = { s[0].table.n_tensors, s[1].table.n_tensors };
    for (size_t i = 0; i < (n[0] > n[1] ? n[0] : n[1]) && line->length == 0; i++)
        TG_TRY(compare_tensor(s, i, line));
    for (size_t i = 0; i < TG_FACTORS && line->length == 0; i++)
        TG_TRY(compare_factors(s, tg_gguf_factors[i], line));
    return TG_OK;
}

/* A line that found no memory must not pass for "no difference". */
static tg_status report(tg_ctx *ctx, const side *s, tg_buf *line, bool *equal, tg_text_fn write,
                        void *user) {
    *equal = line->length == 0 && !line->failed;
    if (*equal)
        tg_buf_printf(line,
                      "equal: %s, %zu tensors, %" PRIu64
                      " parameters; sizes and weights alone are compared, since %s is no run",
                      s->table.config.family, s->table.n_tensors, s->table.elems,
                      s[s[0].run.file ? 1 : 0].g.path);
    tg_buf_putc(line, '\n');
    TG_TRY(tg_fail_named(ctx, s->g.path, tg_buf_status(ctx, line, "text")));
    return write && write(user, tg_buf_text(line), line->length) ? tg_stopped(ctx, s->g.path)
                                                                 : TG_OK;
}

/* Both are allocated together: their folders alone have 8 KB. */
tg_status tg_convert_compare(tg_ctx *ctx, const char *path_a, const char *path_b, bool *equal,
                             tg_text_fn write, void *user) {
    const char *const path[2] = { path_a, path_b };
    side *s = tg_alloc(&ctx->mem, 2 * sizeof *s);
    tg_buf line;
    *equal = false;
    if (!s) return tg_fail_memory(ctx, path_a, 2 * sizeof *s);
    tg_buf_init(&line, &ctx->mem);
    tg_status status = TG_OK;
    for (int i = 0; i < 2; i++) {
        tg_arena_init(&s[i].arena, &ctx->mem);
        if (status == TG_OK) status = tg_fail_named(ctx, path[i], open_side(ctx, path[i], &s[i]));
    }
    if (status == TG_OK) status = compare_all(s, &line);
    if (status == TG_OK) status = report(ctx, s, &line, equal, write, user);
    for (int i = 0; i < 2; i++) close_side(&s[i]);
    tg_buf_deinit(&line);
    tg_free(&ctx->mem, s, 2 * sizeof *s);
    return status;
}
