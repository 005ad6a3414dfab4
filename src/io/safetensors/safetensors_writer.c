/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_writer.c - a model as a .safetensors file that transformers opens as its GPT-2.
 *
 * The header is built first, since all sizes follow from the configuration; then the tensors in the
 * header's order. c_attn interleaves the rows of three of our tensors:
 *
 *     row r    | q row r | k row r | v row r |
 *
 * which are put together in a band of some rows at a time. A band and not a row, because the source
 * may be a file, of which each read of another tensor loads another chunk.
 */
#include "base/buf.h"
#include "io/run/saving.h"
#include "io/safetensors/safetensors.h"

#define PIECE_ELEMS 16384u     /* most that tg_weights is asked for at once */
#define BAND_ELEMS  (1u << 20) /* 4 MiB; the widest row has 65536 elements */

/* A turn is a tensor of the file; the piece is the band, rows of it as they stand there. */
typedef struct writer {
    tg_saving base;
    tg_arena arena; /* path, manifest */
    const char *path;
    tg_manifest manifest;
    tg_model_config config;
    tg_save *save; /* NULL once it is committed */
    bool keep_prev;
} writer;

static uint64_t elems_of(const tg_gpt2_tensor *t) { return t->dim[0] * t->dim[1]; }

/* Spaces behind the JSON, as the format allows, put the data on a multiple of 8. */
static void put_header(const writer *w, const char *meta_json, size_t meta_bytes, tg_buf *out) {
    tg_json_writer j;
    tg_json_writer_init(&j, out);
    tg_json_begin_object(&j);
    tg_json_key(&j, "__metadata__");
    tg_json_begin_object(&j);
    tg_json_key(&j, "format");
    tg_json_put_string(&j, "pt");
    tg_json_key(&j, "tinygpt");
    tg_json_put_string_n(&j, meta_json, meta_bytes);
    tg_json_end_object(&j);
    uint64_t end = 0;
    for (size_t i = 0; i < tg_gpt2_tensors(&w->config); i++) {
        const tg_gpt2_tensor t = tg_gpt2_tensor_at(&w->manifest, i);
        const uint64_t begin = end;
        end += elems_of(&t) * sizeof(float);
        tg_json_key(&j, t.name);
        tg_json_begin_object(&j);
        tg_json_key(&j, "dtype");
        tg_json_put_string(&j, "F32");
        tg_json_key(&j, "shape");
        tg_json_begin_array(&j);
        for (uint32_t d = 0; d < t.n_dims; d++) {
            tg_json_put_uint(&j, t.dim[d]);
        }
        tg_json_end_array(&j);
        tg_json_key(&j, "data_offsets");
        tg_json_begin_array(&j);
        tg_json_put_uint(&j, begin);
        tg_json_put_uint(&j, end);
        tg_json_end_array(&j);
        tg_json_end_object(&j);
    }
    tg_json_end_object(&j);
    while (out->length % 8 != 0 && !out->failed) {
        tg_buf_putc(out, ' ');
    }
}

static tg_status write_header(const writer *w, const char *meta_json, size_t meta_bytes) {
    tg_ctx *ctx = w->base.ctx;
    tg_buf json;
    tg_buf_init(&json, &ctx->mem);
    put_header(w, meta_json, meta_bytes, &json);
    tg_status status = tg_buf_status(ctx, &json, w->path);
    if (status == TG_OK && json.length > TG_SAFETENSORS_HEADER_MAX) {
        status = tg_fail(ctx, TG_E_RANGE, "%s: header: want at most %u bytes, have %zu", w->path,
                         TG_SAFETENSORS_HEADER_MAX, json.length);
    }
    if (status == TG_OK) {
        uint8_t length[8];
        tg_put_u64(length, json.length);
        tg_save_write(w->save, length, sizeof length); /* the first error sticks */
        status = tg_save_write(w->save, json.data, json.length);
    }
    tg_buf_deinit(&json);
    return status;
}

/* cols elements of n_rows rows of a tensor, from first_elem on, to the same rows of the band, which
 * are row_elems wide: to their columns from `at` on. */
static tg_status fill_columns(const writer *w, size_t tensor, uint64_t first_elem, size_t n_rows,
                              size_t cols, size_t at, size_t row_elems) {
    const tg_weights *from = &w->base.weights;
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t done = 0; done < cols;) {
            const size_t n = cols - done < PIECE_ELEMS ? cols - done : PIECE_ELEMS;
            TG_TRY(from->read(from->user, tensor, TG_PART_WEIGHT, first_elem + r * cols + done, n,
                              w->base.piece + r * row_elems + at + done));
            done += n;
        }
    }
    return TG_OK;
}

/* A vector is one row, of as many elements as the tensor has. Rows that nobody shares are one long
 * row. */
static tg_status write_band(tg_saving *s) {
    writer *w = (writer *)s;
    if (s->turn == tg_gpt2_tensors(&w->config)) {
        return TG_OK;
    }
    const tg_gpt2_tensor t = tg_gpt2_tensor_at(&w->manifest, s->turn);
    const uint64_t rows = t.n_dims == 2 ? t.dim[0] : 1, left = rows - s->first;
    const size_t row_elems = (size_t)t.dim[t.n_dims - 1], cols = row_elems / t.n_parts;
    const size_t band_rows = BAND_ELEMS / row_elems;
    const size_t n = left < band_rows ? (size_t)left : band_rows;
    for (size_t p = 0; p < t.n_parts && t.n_parts > 1; p++) {
        TG_TRY(fill_columns(w, t.first + 2 * p, s->first * cols, n, cols, p * cols, row_elems));
    }
    if (t.n_parts == 1) {
        TG_TRY(fill_columns(w, t.first, s->first * cols, 1, n * cols, 0, 0));
    }
    TG_TRY(tg_save_write(w->save, s->piece, n * row_elems * sizeof *s->piece));
    s->turn += n == left;
    s->first = n == left ? 0 : s->first + n;
    return TG_PENDING;
}

static tg_status commit(tg_saving *s) {
    writer *w = (writer *)s;
    tg_save *save = w->save;
    w->save = NULL;
    return tg_save_commit(save, w->keep_prev);
}

static void drop(tg_saving *s) {
    writer *w = (writer *)s;
    tg_save_abort(w->save);
    tg_arena_deinit(&w->arena);
}

static tg_status begin(writer *w, const char *path, const char *meta_json, size_t meta_bytes) {
    tg_ctx *ctx = w->base.ctx;
    w->path = tg_arena_strdup(&w->arena, path);
    if (!w->path) {
        return tg_fail_memory(ctx, path, strlen(path) + 1);
    }
    TG_TRY(tg_manifest_new(ctx, &w->arena, &w->config, &w->manifest));
    w->base.manifest = &w->manifest;
    TG_TRY(tg_save_begin(ctx, path, &w->save));
    return write_header(w, meta_json, meta_bytes);
}

tg_status tg_safetensors_saving(tg_ctx *ctx, const char *path, const tg_model_config *config,
                                const char *meta_json, size_t meta_bytes, const tg_weights *weights,
                                bool keep_prev, tg_saving **out) {
    static const tg_saving_format format = { write_band, commit, drop };
    *out = NULL;
    TG_TRY(tg_gpt_config_check(ctx, path, config));
    writer *w = tg_saving_new(ctx, path, &format, sizeof *w, BAND_ELEMS, weights);
    if (!w) {
        return TG_E_MEMORY;
    }
    tg_arena_init(&w->arena, &ctx->mem);
    w->config = *config;
    w->keep_prev = keep_prev;
    const tg_status status = begin(w, path, meta_json, meta_bytes);
    if (status != TG_OK) {
        tg_saving_free(&w->base);
        return status;
    }
    *out = &w->base;
    return TG_OK;
}

tg_status tg_safetensors_save(tg_ctx *ctx, const char *path, const tg_model_config *config,
                              const char *meta_json, size_t meta_bytes, const tg_weights *weights,
                              bool keep_prev) {
    tg_saving *s;
    TG_TRY(tg_safetensors_saving(ctx, path, config, meta_json, meta_bytes, weights, keep_prev, &s));
    return tg_saving_finish(s);
}
