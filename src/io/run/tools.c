/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.c - compares runs, and converts them: for verify and convert, and for the page's downloads.
 *
 * They hold no tensor in memory, only pieces of PIECE_ELEMS elements, so they work on files that
 * are larger than memory. Text is built whole and handed out in one call: a receiver that stops in
 * the middle has nothing half-written to show.
 *
 * What compare looks at, in this order, until something differs:
 *
 *     config     sizes of the model; other sizes make every tensor another one
 *     tensors    weights, first moments, second moments, by the bits of their f32 values
 *     step, train, text     what the next step of a run depends on; train and text where both
 *                           files have them, since v1 and v2 have no place for most of it
 *     history    lossHistory, finalLoss, bestVal
 *     run        counters of the run, where both files have them
 *
 * Not looked at: format, element type, who wrote the file.
 */
#include "io/run/tools.h"

#include "base/buf.h"
#include "base/codec/json.h"
#include "base/math.h"
#include "base/str.h"
#include "io/output.h"
#include "io/run/file.h"
#include "io/run/meta.h"
#include "io/safetensors/safetensors.h"
#include "io/tgpt/tgpt.h"

/* 64 KiB of floats: large against the cost of a read, small against the second cache. */
#define PIECE_ELEMS 16384u

/* Hands a finished text out, if there was memory for all of it. A non-zero answer of the receiver
 * is a wish to stop. */
static tg_status deliver(tg_ctx *ctx, const tg_buf *text, tg_text_fn write, void *user) {
    TG_TRY(tg_buf_status(ctx, text, "text"));
    return write && write(user, tg_buf_text(text), text->length) ? tg_stopped(ctx, "text") : TG_OK;
}

/* -------------------------------------------------------------------------------------- compare */

/* The two sides, and the line that tells how they differ; empty while they do not. */
typedef struct comparison {
    tg_file *file[2];
    tg_meta meta[2];
    float *piece[2]; /* [PIECE_ELEMS] each */
    tg_buf line;
} comparison;

/* vocab and mlp follow from the limits of a configuration, so they are not worth a mention. */
static void compare_configs(comparison *c) {
    const tg_model_config *a = &c->file[0]->config, *b = &c->file[1]->config;
    const char *const family[] = { a->family ? a->family : TG_META_OWN,
                                   b->family ? b->family : TG_META_OWN };
    tg_model_config x = *a, y = *b;
    x.family = y.family = NULL; /* where each header has it */
    if (strcmp(family[0], family[1]) != 0) {
        tg_buf_printf(&c->line, "family differs: %s and %s", family[0], family[1]);
    } else if (memcmp(&x, &y, sizeof x) != 0) {
        tg_buf_printf(&c->line,
                      "config differs: layers %d, width %d, heads %d, ctx %d and "
                      "layers %d, width %d, heads %d, ctx %d",
                      a->layers, a->width, a->heads, a->ctx, b->layers, b->width, b->heads, b->ctx);
    }
}

/* Of files that both have a place for it. */
static void compare_keys(comparison *c) {
    const tg_file *a = c->file[0], *b = c->file[1];
    const bool same = a->keys_bytes == b->keys_bytes &&
                      (a->keys_bytes == 0 || memcmp(a->keys, b->keys, a->keys_bytes) == 0);
    if (c->line.length == 0 && !same) {
        tg_buf_printf(&c->line, "vocabulary or other metadata differ: %zu and %zu bytes",
                      a->keys_bytes, b->keys_bytes);
    }
}

/* By bits: what a run continues from is bits. So 0 differs from -0, and a NaN equals itself. Types
 * are not compared: an f16 file equals an f32 file of the same numbers. */
static tg_status compare_tensor(comparison *c, const tg_file_tensor *a, const tg_file_tensor *b) {
    for (uint64_t first = 0; first < a->elems;) {
        const uint64_t left = a->elems - first;
        const size_t n = left < PIECE_ELEMS ? (size_t)left : PIECE_ELEMS;
        TG_TRY(tg_file_read_f32(c->file[0], a, c->piece[0], first, n));
        TG_TRY(tg_file_read_f32(c->file[1], b, c->piece[1], first, n));
        for (size_t i = 0; i < n; i++) {
            const float x = c->piece[0][i], y = c->piece[1][i];
            if (tg_bits_from_float(x) != tg_bits_from_float(y)) {
                char xs[TG_NUMBER_BYTES], ys[TG_NUMBER_BYTES];
                tg_format_float(x, xs);
                tg_format_float(y, ys);
                tg_buf_printf(&c->line, "tensor %s: element %" PRIu64 " differs: %s and %s",
                              a->name, first + i, xs, ys);
                return TG_OK;
            }
        }
        first += n;
    }
    return TG_OK;
}

/* Both tables are in manifest order and complete (file_table.c), so place i is the same tensor in
 * both. Moments are there for all tensors or for none, and so is what an average is of. */
static tg_status compare_tensors(comparison *c) {
    const tg_file *a = c->file[0], *b = c->file[1];
    const size_t n = a->n_tensors < b->n_tensors ? a->n_tensors : b->n_tensors;
    for (size_t i = 0; i < n && c->line.length == 0; i++) { /* same config: same names and order */
        TG_TRY(compare_tensor(c, &a->tensor[i], &b->tensor[i]));
    }
    if (c->line.length == 0 && a->n_tensors != b->n_tensors) {
        const tg_file *more = a->n_tensors > n ? a : b;
        tg_buf_printf(&c->line, "tensor %s is in %s only", more->tensor[n].name, more->path);
    }
    return TG_OK;
}

/* Only the first difference is told, so these do nothing once there is a line. */
static void compare_numbers(comparison *c, const char *what, double a, double b) {
    if (c->line.length == 0 && tg_bits_from_double(a) != tg_bits_from_double(b) &&
        !(tg_isnan(a) && tg_isnan(b))) {
        char as[TG_NUMBER_BYTES], bs[TG_NUMBER_BYTES];
        tg_buf_printf(&c->line, "%s differs: %s and %s", what, tg_meta_loss_text(a, as),
                      tg_meta_loss_text(b, bs));
    }
}

static void compare_integers(comparison *c, const char *what, int64_t a, int64_t b) {
    if (c->line.length == 0 && a != b) {
        tg_buf_printf(&c->line, "%s differs: %" PRId64 " and %" PRId64, what, a, b);
    }
}

/* Options that both files know: v1 and v2 have a place for six of them, v3 for all. The values are
 * shown as they stand in a file. Called even when there is a line already, which then stays. */
static void compare_options(comparison *c) {
    tg_buf value[2];
    tg_buf_init(&value[0], &c->line.mem);
    tg_buf_init(&value[1], &c->line.mem);
    const char *key = tg_meta_train_difference(&c->meta[0].train, &c->meta[1].train,
                                               c->meta[0].train_known & c->meta[1].train_known,
                                               &value[0], &value[1]);
    if (key && c->line.length == 0) {
        tg_buf_printf(&c->line, "option %s differs: %s and %s", key, tg_buf_text(&value[0]),
                      tg_buf_text(&value[1]));
    }
    tg_buf_deinit(&value[0]);
    tg_buf_deinit(&value[1]);
}

/* Numbers are compared as they are written: both sides come from the same writer, which has one
 * form for each. Strings, too, are compared by their decoded text. No recursion: children are nodes
 * of their own, which compare_member walks. */
static bool same_node(const tg_json *a, const tg_json *b) {
    const bool has_text = tg_json_kind(a) == TG_JSON_STRING || tg_json_kind(a) == TG_JSON_NUMBER;
    return a->type == b->type && a->count == b->count && a->key_length == b->key_length &&
           (!a->key || memcmp(a->key, b->key, a->key_length) == 0) &&
           (!has_text || (a->length == b->length && memcmp(a->u.text, b->u.text, a->length) == 0));
}

/*
 * A member of the headers, node by node; only if both have it. The nodes of a value lie in one row
 * in the order of the text, children behind their parent, so two rows are walked in step and `left`
 * counts what is still to come: no recursion, whatever the depth.
 */
static void compare_member(comparison *c, const char *key) {
    const tg_json *a = tg_json_get(c->file[0]->header, key);
    const tg_json *b = tg_json_get(c->file[1]->header, key);
    if (!a || !b || c->line.length) {
        return;
    }
    for (uint64_t left = 1; left > 0; left--, a++, b++) {
        if (!same_node(a, b)) {
            const bool text =
                tg_json_kind(a) == tg_json_kind(b) &&
                (tg_json_kind(a) == TG_JSON_STRING || tg_json_kind(a) == TG_JSON_NUMBER);
            tg_buf_printf(&c->line, "header %s differs: %s%s%.40s and %.40s", key,
                          a->key ? a->key : "", a->key ? " " : "", text ? a->u.text : "one value",
                          text ? b->u.text : "another");
            return;
        }
        left += a->count;
    }
}

/* Point by point first: it says more than that one list is longer. */
static void compare_history(comparison *c) {
    const tg_meta *a = &c->meta[0], *b = &c->meta[1];
    const size_t n = a->n_history < b->n_history ? a->n_history : b->n_history;
    for (size_t i = 0; i < n && c->line.length == 0; i++) {
        char what[64];
        snprintf(what, sizeof what, "history point %zu: step", i);
        compare_integers(c, what, a->history[i].step, b->history[i].step);
        snprintf(what, sizeof what, "history point %zu: loss", i);
        compare_numbers(c, what, a->history[i].loss, b->history[i].loss);
        snprintf(what, sizeof what, "history point %zu: validation loss", i);
        compare_numbers(c, what, a->history[i].val_loss, b->history[i].val_loss);
    }
    compare_integers(c, "number of history points", (int64_t)a->n_history, (int64_t)b->n_history);
    compare_integers(c, "final loss: step", a->final.step, b->final.step);
    compare_numbers(c, "final loss", a->final.loss, b->final.loss);
    compare_numbers(c, "final validation loss", a->final.val_loss, b->final.val_loss);
    compare_integers(c, "best validation loss: step", a->best_step, b->best_step);
    compare_numbers(c, "best validation loss", a->best_val_loss, b->best_val_loss);
}

/* From what decides the next step of a run to what only tells of the past ones. */
static tg_status compare_all(tg_ctx *ctx, comparison *c) {
    for (size_t i = 0; i < 2; i++) {
        TG_TRY(tg_meta_read(c->file[i], &c->meta[i]));
        c->piece[i] = tg_alloc(&ctx->mem, PIECE_ELEMS * sizeof(float));
        if (!c->piece[i]) {
            return tg_fail_memory(ctx, c->file[i]->path, PIECE_ELEMS * sizeof(float));
        }
    }
    compare_configs(c);
    if (c->line.length == 0) {
        TG_TRY(compare_tensors(c));
    }
    compare_keys(c);
    compare_integers(c, "step", c->file[0]->step, c->file[1]->step);
    compare_options(c);
    compare_member(c, "text");
    compare_history(c);
    compare_member(c, "run");
    return TG_OK;
}

/* A line that found no memory must not pass for "no difference": failed is the buffer's own mark of
 * that, and deliver turns it into an error. */
static tg_status report(tg_ctx *ctx, comparison *c, bool *equal, tg_text_fn write, void *user) {
    *equal = c->line.length == 0 && !c->line.failed;
    if (*equal) {
        tg_buf_printf(&c->line, "equal: %zu tensors, step %" PRId64 ", options, history",
                      c->file[0]->n_tensors, c->file[0]->step);
    }
    tg_buf_putc(&c->line, '\n');
    return tg_fail_named(ctx, c->file[0]->path, deliver(ctx, &c->line, write, user));
}

/* What was not reached is NULL, and all of it is freed in one place. */
tg_status tg_io_compare(tg_ctx *ctx, const char *path_a, const char *path_b, bool *equal,
                        tg_text_fn write, void *user) {
    comparison c = { .file = { NULL, NULL } };
    *equal = false;
    tg_buf_init(&c.line, &ctx->mem);
    tg_status status = tg_fail_named(ctx, path_a, tg_file_open(ctx, path_a, &c.file[0]));
    if (status == TG_OK) {
        status = tg_fail_named(ctx, path_b, tg_file_open(ctx, path_b, &c.file[1]));
    }
    if (status == TG_OK) {
        status = compare_all(ctx, &c);
    }
    if (status == TG_OK) {
        status = report(ctx, &c, equal, write, user);
    }
    for (size_t i = 0; i < 2; i++) {
        tg_free(&ctx->mem, c.piece[i], PIECE_ELEMS * sizeof(float));
        tg_file_close(c.file[i]);
    }
    tg_buf_deinit(&c.line);
    return status;
}

/* -------------------------------------------------------------------------------------- convert */

/* The source of a conversion is an open file: tg_part is the order of its table. Values pass
 * through f32, which holds f16 exactly; so f16 to f16 keeps every bit, and int4 to int4 need
 * not. */
static tg_status read_weights(void *user, size_t tensor, tg_part part, uint64_t first_elem,
                              size_t n_elems, float *out) {
    tg_file *f = user;
    const size_t place = (size_t)part * f->manifest.n + tensor;
    return tg_file_read_f32(f, &f->tensor[place], out, first_elem, n_elems);
}

/* Both layouts hold a v3 header, one as a section, the other as a text in its metadata. */
static tg_status begin_with_json(tg_converting *c, const char *path, tg_file_kind kind,
                                 const char *json, size_t n_bytes, const tg_weights *weights) {
    tg_ctx *ctx = c->in->ctx;
    return kind == TG_FILE_V3
               ? tg_tgpt3_saving(ctx, path, json, n_bytes, weights, c->keep, &c->saving)
               : tg_safetensors_saving(ctx, path, &c->in->config, json, n_bytes, weights, c->keep,
                                       &c->saving);
}

/* A v3 header says more than a tg_meta does, and goes over as it is. */
static tg_status convert_with_json(tg_converting *c, const char *path, tg_file_kind kind,
                                   const tg_meta *meta, const tg_weights *weights) {
    const tg_file *in = c->in;
    if (in->version == 3)
        return begin_with_json(c, path, kind, in->header_text, in->header_bytes, weights);
    tg_buf json;
    tg_json_writer w;
    tg_buf_init(&json, &in->ctx->mem);
    tg_json_writer_init(&w, &json);
    tg_meta_begin_v3(&w, &in->config, in->step, meta);
    tg_meta_end_v3(&w);
    tg_status status = tg_buf_status(in->ctx, &json, path);
    if (status == TG_OK) status = begin_with_json(c, path, kind, json.data, json.length, weights);
    tg_buf_deinit(&json);
    return status;
}

/* Opens the input, and refuses an output that is a part of it, or that would replace a file of
 * another kind, before anything is written. */
static tg_status open_input(tg_converting *c, tg_ctx *ctx, const char *path_in,
                            const char *path_out, tg_file_kind kind) {
    tg_os_seen seen;
    const bool recorded = ctx->files.seen != NULL;
    if (!recorded) tg_os_seen_begin(ctx, &seen);
    tg_status s = tg_file_open(ctx, path_in, &c->in);
    if (s == TG_OK) s = tg_os_want_unseen(ctx, path_out);
    if (!recorded) tg_os_seen_end(ctx);
    if (s != TG_OK) return s;
    return tg_output_want_kind(
        ctx, path_out, kind == TG_FILE_SAFETENSORS ? TG_OUTPUT_SAFETENSORS : TG_OUTPUT_MODEL,
        &c->keep);
}

static tg_status begin_converting(tg_converting *c, tg_ctx *ctx, const char *path_in,
                                  const char *path_out, tg_file_kind kind) {
    tg_meta meta;
    TG_TRY(open_input(c, ctx, path_in, path_out, kind));
    tg_file *in = c->in;
    const bool has_json = kind == TG_FILE_V3 || kind == TG_FILE_SAFETENSORS;
    const tg_weights weights = { .read = read_weights,
                                 .user = in,
                                 .has_moments = in->has_moments,
                                 .has_raw = in->has_raw && has_json,
                                 .manifest = &in->manifest,
                                 .keys = in->keys,
                                 .keys_bytes = in->keys_bytes };
    TG_TRY(tg_meta_read(in, &meta));
    if (kind != TG_FILE_V3 && !tg_meta_is_own(&in->config))
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "%s: want a .tinygpt file of version 3, a GGUF file or a folder of "
                       "safetensors for a model of the family %s, have another kind",
                       path_out, in->config.family);
    if (has_json) return convert_with_json(c, path_out, kind, &meta, &weights);
    if (in->has_raw && (kind == TG_FILE_V1_F32 || kind == TG_FILE_V2_F32))
        return tg_fail(ctx, TG_E_UNSUPPORTED,
                       "%s: f32 of version 1 and 2 has moments, and no place for what is trained "
                       "beside its average: want version 3, or f16 or int4, which hold no run",
                       path_out);
    return tg_tgpt2_saving(ctx, path_out, kind, &in->config, in->step, &meta, &weights, c->keep,
                           &c->saving);
}

/* Read back from the disk's side of the write: sizes, checksums, and that all numbers are finite.
 */
static tg_status check_written(void *user, const char *temp) {
    tg_file *f;
    TG_TRY(tg_file_open(user, temp, &f));
    const tg_status s = tg_file_check_all(f);
    tg_file_close(f);
    return s;
}

tg_status tg_converting_go_on(tg_converting *c, tg_ctx *ctx, const char *path_in,
                              const char *path_out, tg_file_kind kind, double deadline_ms) {
    if (!c->saving) TG_TRY(begin_converting(c, ctx, path_in, path_out, kind));
    const tg_ctx_files before = ctx->files;
    ctx->files.check = check_written;
    ctx->files.check_user = ctx;
    const tg_status s = tg_saving_go_on(c->saving, deadline_ms);
    ctx->files = before;
    return s;
}

void tg_converting_deinit(tg_converting *c) {
    tg_saving_free(c->saving);
    tg_file_close(c->in);
    *c = (tg_converting) { .in = NULL };
}

tg_status tg_io_convert(tg_ctx *ctx, const char *path_in, const char *path_out, tg_file_kind kind) {
    tg_converting c = { .in = NULL };
    const tg_status status = tg_converting_go_on(&c, ctx, path_in, path_out, kind, 0);
    tg_converting_deinit(&c);
    return status;
}

/* One line: programs read it, and the few people who do have tools. */
tg_status tg_io_transformers_config(tg_ctx *ctx, const tg_model_config *config, tg_text_fn write,
                                    void *user) {
    tg_buf text;
    tg_json_writer w;
    TG_TRY(tg_gpt_config_check(ctx, "config", config));
    tg_buf_init(&text, &ctx->mem);
    tg_json_writer_init(&w, &text);
    tg_gpt2_put_config(&w, config);
    tg_buf_putc(&text, '\n');
    const tg_status status = deliver(ctx, &text, write, user);
    tg_buf_deinit(&text);
    return status;
}
