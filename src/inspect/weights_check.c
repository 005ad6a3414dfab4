/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights_check.c - is a file whole?
 *
 * Of a run io/run/file_check.c asks, after its history was read: in v3 a header that cannot be
 * understood is damage. Of all other files the same questions are asked here in the same order.
 * Checksums come first, where the file has them (chunks of a .tinygpt file, members of a zip file):
 * a flipped bit is told as that, and not as the number that it made of a weight. Then every weight
 * is looked at as a float.
 */
#include "base/math.h"
#include "base/time.h"
#include "inspect/inspect.h"
#include "io/run/meta.h"

/* A new buffer in the place of the old one; its content is lost. */
static tg_status want_buffer(tg_weights_checking *c, const char *what, size_t bytes) {
    tg_ctx *ctx = c->file.gguf.ctx;
    const tg_mem *mem = &ctx->mem;
    if (c->buffer_bytes == bytes) return TG_OK;
    tg_free(mem, c->buffer, c->buffer_bytes);
    c->buffer = tg_alloc(mem, bytes);
    c->buffer_bytes = c->buffer ? bytes : 0;
    return c->buffer ? TG_OK : tg_fail_memory(ctx, what, bytes);
}

/* x [n]: elements of a tensor from number `first` on. */
static tg_status check_piece(const tg_gguf *g, const tg_gguf_tensor *t, const float *x, size_t n,
                             uint64_t first) {
    for (size_t i = 0; i < n; i++)
        if (!tg_isfinite((double)x[i]))
            return tg_fail(g->ctx, TG_E_NUMBER,
                           "%s: tensor %s: element %" PRIu64 ": want a finite number, have %g",
                           g->path, t->name, first + i, (double)x[i]);
    return TG_OK;
}

/* Some rows of a tensor: a quantised type holds no infinity itself, but a scale of its blocks may
 * be one. The piece bounds memory and the length of a slice, whatever the tensor's size. */
static tg_status check_rows(tg_weights_checking *c) {
    enum { PIECE_ELEMS = 1 << 18 };
    const tg_gguf_tensor *t = &c->file.gguf.tensors[c->tensor];
    const uint64_t cols = t->dim[0], rows = t->elems / cols, left = rows - c->row;
    const uint64_t most = cols < PIECE_ELEMS ? PIECE_ELEMS / cols : 1;
    const size_t n = (size_t)(left < most ? left : most), row_bytes = (size_t)(t->bytes / rows);
    TG_TRY(want_buffer(c, t->name, (size_t)most * ((size_t)cols * sizeof(float) + row_bytes)));
    float *x = (float *)c->buffer;
    uint8_t *in = c->buffer + (size_t)(most * cols) * sizeof(float);
    TG_TRY(tg_gguf_read_rows(&c->file.gguf, t, c->row, n, in));
    tg_block_to_f32_n(t->type, x, in, n * (size_t)cols);
    TG_TRY(check_piece(&c->file.gguf, t, x, n * (size_t)cols, c->row * cols));
    c->row = n == left ? 0 : c->row + n;
    c->tensor += n == left;
    return TG_OK;
}

static tg_status check_model(tg_weights_checking *c, double deadline_ms) {
    tg_gguf *g = &c->file.gguf;
    if (!c->summed && g->checks.crc) {
        TG_TRY(want_buffer(c, g->path, g->checks.chunk_bytes));
        TG_TRY(tg_tgpt3_gguf_check(g, &c->chunks, c->buffer, deadline_ms));
    }
    c->summed = true;
    if (g->hf) TG_TRY(tg_folder_check(&g->hf->folder, &c->members, deadline_ms));
    while (c->tensor < g->n_tensors) {
        TG_TRY(check_rows(c));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

tg_status tg_weights_checking_go_on(tg_weights_checking *c, tg_ctx *ctx, const char *path,
                                    double deadline_ms) {
    if (!c->open) {
        tg_meta meta;
        TG_TRY(tg_model_file_open(ctx, path, &c->file));
        c->open = true;
        if (c->file.run) TG_TRY(tg_meta_read(c->file.run, &meta));
    }
    return c->file.run ? tg_checking_go_on(&c->run, c->file.run, TG_CHECKING_DONE, deadline_ms)
                       : check_model(c, deadline_ms);
}

/* What the checking of a run has read was allocated by the file's context, so it goes first. */
void tg_weights_checking_deinit(tg_weights_checking *c) {
    if (!c->open) return;
    if (c->file.run) tg_checking_deinit(&c->run, c->file.run);
    if (c->buffer) tg_free(&c->file.gguf.ctx->mem, c->buffer, c->buffer_bytes);
    tg_model_file_close(&c->file);
}
