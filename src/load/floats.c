/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floats.c - a third-party file as a model that can be trained: the tensors of its family's table
 * (model/tensors.h), each row read where the file has it and put where the layout wants it.
 *
 *     file   rows in its types; heads that rotate may pair their rows (2i, 2i + 1)
 *     flat   f32 in one array; heads with their halves side by side, as ops/rope has them
 *
 * Numbers are only widened, so nothing is lost, and a save as f16 or bf16 of untouched weights
 * gives the file's own bits back. Metadata go into the model's keys (keys.h).
 */
#include "load/weights.h"

#include "base/time.h"
#include "io/hf/hf.h"
#include "io/tgpt/tgpt_v3_gguf.h"

/* Elements that are read between two looks at the clock. */
enum { PIECE_ELEMS = 1 << 18 };

struct tg_floats {
    tg_context *ctx;
    tg_arena arena;
    tg_gguf file;
    tg_tensors table;
    tg_model *model;
    tg_folder_checking members;
    size_t chunk;    /* of a file with checksums: those before it agree */
    size_t tensor;   /* of the table */
    uint64_t row;    /* of the tensor: rows before it are done */
    tg_block buffer; /* rows as the file has them */
};

static bool is_float(const tg_gguf_tensor *t) {
    return t->type == TG_F32 || t->type == TG_F16 || t->type == TG_BF16;
}

static tg_status want_floats(const tg_floats *f) {
    tg_ctx *err = &f->ctx->err;
    const char *family = f->table.config.family;
    if (!tg_family_trains(tg_family_find(family)))
        return tg_fail(err, TG_E_UNSUPPORTED,
                       "%s: training: want a family that can be trained, have %s", f->file.path,
                       family);
    for (size_t i = 0; i < f->table.n_tensors; i++) {
        const tg_tensor *t = &f->table.tensors[i];
        if (!tg_want_is_made(t->want, &f->table.config))
            return tg_fail(err, TG_E_UNSUPPORTED,
                           "%s: tensor %s: training wants models of %s without it, have it",
                           f->file.path, t->name, family);
        if (is_float(t->source)) continue;
        return tg_fail(err, TG_E_UNSUPPORTED,
                       "%s: tensor %s: training wants f32, f16 or bf16, have %s: take the model's "
                       "float files, or make floats of these: tinygpt convert FILE FLOATS.gguf "
                       "--dtype f32",
                       f->file.path, t->name, tg_dtype_table[t->source->type].name);
    }
    return TG_OK;
}

static tg_status begin(tg_floats *f, const char *path) {
    tg_ctx *err = &f->ctx->err;
    tg_keys *keys;
    const char *own = tg_arena_strdup(&f->arena, path);
    if (!own) return tg_fail_memory(err, "path", strlen(path));
    TG_TRY(tg_gguf_open_any(err, own, &f->file));
    TG_TRY(tg_tensors_read(&f->file, &f->arena, false, &f->table));
    TG_TRY(want_floats(f));
    TG_TRY(tg_keys_of_gguf(err, &f->file, false, &keys));
    TG_TRY(tg_weights_take(f->ctx, &f->table.config, keys, &f->model));
    f->model->format = tg_gguf_kind(&f->file);
    return TG_OK;
}

tg_status tg_floats_new(tg_context *ctx, const char *path, tg_floats **out) {
    tg_floats *f = *out = tg_alloc(&ctx->err.mem, sizeof *f);
    if (!f) return tg_fail_memory(&ctx->err, "model", sizeof *f);
    f->ctx = ctx;
    tg_arena_init(&f->arena, &ctx->err.mem);
    return begin(f, path);
}

/* Some rows of the tensor that is next. */
static tg_status read_rows(tg_floats *f, const tg_tensor *t, uint64_t n) {
    const tg_tensor_spec *to = tg_weights_find(f->model, t->name);
    const size_t bytes = tg_tensor_room_bytes(t, n);
    TG_ASSERT(to && to->rows == tg_tensor_rows(t) && to->cols == tg_tensor_cols(t));
    if (bytes > f->buffer.bytes) {
        tg_block_free(&f->buffer);
        TG_TRY(tg_block_new(&f->ctx->err, bytes, &f->buffer));
    }
    return tg_tensor_read(&f->file, &f->table.config, t, f->row, n, f->buffer.data,
                          f->model->weights + to->offset_elems, 0, to->row_stride_elems);
}

static tg_status check_chunks(tg_floats *f, double deadline_ms) {
    const size_t n = tg_tgpt3_gguf_chunks(&f->file);
    if (f->chunk == n) return TG_OK;
    if (!f->buffer.data) TG_TRY(tg_block_new(&f->ctx->err, f->file.checks.chunk_bytes, &f->buffer));
    while (f->chunk < n) {
        TG_TRY(tg_tgpt3_gguf_check_chunk(&f->ctx->err, &f->file, f->chunk++, f->buffer.data));
        if (f->chunk < n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

tg_status tg_floats_go_on(tg_floats *f, double deadline_ms, tg_model **out) {
    TG_TRY(tg_block_clear(&f->model->block, deadline_ms));
    TG_TRY(check_chunks(f, deadline_ms));
    f->members.tensors = true;
    if (f->file.hf) TG_TRY(tg_folder_check(&f->file.hf->folder, &f->members, deadline_ms));
    while (f->tensor < f->table.n_tensors) {
        const tg_tensor *t = &f->table.tensors[f->tensor];
        const uint64_t most = PIECE_ELEMS / tg_tensor_cols(t) + 1,
                       left = tg_tensor_rows(t) - f->row;
        const uint64_t n = left < most ? left : most;
        TG_TRY(read_rows(f, t, n));
        f->row = n == left ? 0 : f->row + n;
        f->tensor += n == left;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    *out = f->model;
    f->model = NULL;
    return TG_OK;
}

void tg_floats_free(tg_floats *f) {
    if (!f) return;
    const tg_mem mem = f->ctx->err.mem;
    tg_weights_free(f->model);
    tg_block_free(&f->buffer);
    tg_gguf_close(&f->file);
    tg_arena_deinit(&f->arena);
    tg_free(&mem, f, sizeof *f);
}
