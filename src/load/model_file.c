/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_file.c - one way to ask any file what model it has.
 *
 * The two readers beneath stay two, since the bytes of a run and of a model's file have nothing in
 * common (io/detect.h says which it is). What they say of the model is brought together here: the
 * sizes by tg_tensors_read or from the header, complete either way, and metadata as a tg_gguf.
 */
#include "load/model_file.h"

#include "io/hf/hf.h"

static tg_status open_model(tg_ctx *ctx, tg_model_file *out) {
    TG_TRY(tg_gguf_open_any(ctx, out->folder, &out->gguf));
    return tg_tensors_read(&out->gguf, &out->arena, false, &out->table);
}

/* Without keys, metadata are those of a tg_gguf that has none. The name of the family in the
 * header is replaced by the library's own, which stays when the file is closed. */
static tg_status open_run(tg_ctx *ctx, const char *path, tg_model_file *out) {
    TG_TRY(tg_file_open(ctx, path, &out->run));
    const tg_file *run = out->run;
    out->table.config = run->config;
    TG_TRY(tg_config_complete(ctx, path, &out->table.config));
    out->table.elems = run->manifest.elems;
    out->table.bytes = (size_t)run->manifest.elems * sizeof(float);
    if (!run->keys) return TG_OK;
    TG_TRY(tg_keys_of_bytes(ctx, path, run->keys, run->keys_bytes, &out->keys));
    out->metadata = &out->keys->g;
    return TG_OK;
}

tg_status tg_model_file_open(tg_ctx *ctx, const char *path, tg_model_file *out) {
    bool takes;
    out->run = NULL;
    out->keys = NULL;
    out->gguf = (tg_gguf) { .ctx = NULL };
    out->metadata = &out->gguf;
    out->table = (tg_tensors) { .n_tensors = 0 };
    tg_arena_init(&out->arena, &ctx->mem);
    tg_status s = tg_gguf_takes(ctx, path, out->folder, &takes);
    if (s == TG_OK) s = takes ? open_model(ctx, out) : open_run(ctx, path, out);
    if (s != TG_OK) tg_model_file_close(out);
    return s;
}

void tg_model_file_close(tg_model_file *f) {
    if (f->run) tg_keys_free(f->run->ctx, f->keys);
    tg_file_close(f->run);
    f->run = NULL;
    f->keys = NULL;
    tg_gguf_close(&f->gguf);
    tg_arena_deinit(&f->arena);
}

const char *tg_model_file_format(const tg_model_file *f) {
    return f->run ? f->run->format : tg_gguf_format(&f->gguf);
}

const char *tg_model_file_kind(const tg_model_file *f) {
    return f->run ? f->run->format : tg_gguf_kind(&f->gguf);
}

const char *tg_model_file_dtype(const tg_model_file *f) {
    return f->run ? tg_file_dtype_name(f->run->dtype)
                  : tg_dtype_table[tg_tensors_type(&f->table)].name;
}

bool tg_model_file_checksummed(const tg_model_file *f) {
    return f->run ? f->run->checksummed : tg_gguf_checksummed(&f->gguf);
}
