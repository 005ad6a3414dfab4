/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights_check.c - are the files of a third-party model whole?
 *
 * The same questions as io/file_check.c has for runs, in the same order. Checksums come first,
 * where the file has them (chunks of a .tinygpt file, members of a zip file): a flipped bit is told
 * as that, and not as the number that it made of a weight. Then every weight is looked at as a
 * float.
 */
#include "base/math.h"
#include "base/time.h"
#include "inspect/inspect.h"

/* A new buffer in the place of the old one; its content is lost. */
static tg_status want_buffer(tg_weights_checking *c, const char *what, size_t bytes) {
    const tg_mem *mem = &c->g.ctx->mem;
    if (c->buffer_bytes == bytes) return TG_OK;
    tg_free(mem, c->buffer, c->buffer_bytes);
    c->buffer = tg_alloc(mem, bytes);
    c->buffer_bytes = c->buffer ? bytes : 0;
    return c->buffer ? TG_OK : tg_fail_memory(c->g.ctx, what, bytes);
}

/* A model follows from the head: sizes that its family knows, and their tensors. */
static tg_status check_table(tg_gguf *g) {
    tg_tensors table;
    tg_arena arena;
    tg_arena_init(&arena, &g->ctx->mem);
    const tg_status s = tg_tensors_read(g, &arena, false, &table);
    tg_arena_deinit(&arena);
    return s;
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
    const tg_gguf_tensor *t = &c->g.tensors[c->tensor];
    const uint64_t cols = t->dim[0], rows = t->elems / cols, left = rows - c->row;
    const uint64_t most = cols < PIECE_ELEMS ? PIECE_ELEMS / cols : 1;
    const size_t n = (size_t)(left < most ? left : most), row_bytes = (size_t)(t->bytes / rows);
    TG_TRY(want_buffer(c, t->name, (size_t)most * ((size_t)cols * sizeof(float) + row_bytes)));
    float *x = (float *)c->buffer;
    uint8_t *in = c->buffer + (size_t)(most * cols) * sizeof(float);
    TG_TRY(tg_gguf_read_rows(&c->g, t, c->row, n, in));
    tg_block_to_f32_n(t->type, x, in, n * (size_t)cols);
    TG_TRY(check_piece(&c->g, t, x, n * (size_t)cols, c->row * cols));
    c->row = n == left ? 0 : c->row + n;
    c->tensor += n == left;
    return TG_OK;
}

tg_status tg_weights_checking_go_on(tg_weights_checking *c, tg_ctx *ctx, const char *path,
                                    double deadline_ms) {
    if (!c->open) TG_TRY(tg_gguf_open_any(ctx, path, &c->g));
    c->open = true;
    if (!c->known && c->g.checks.crc) {
        TG_TRY(want_buffer(c, path, c->g.checks.chunk_bytes));
        TG_TRY(tg_tgpt3_gguf_check(&c->g, &c->chunks, c->buffer, deadline_ms));
    }
    if (!c->known) TG_TRY(check_table(&c->g));
    c->known = true;
    if (c->g.hf) TG_TRY(tg_folder_check(&c->g.hf->folder, &c->members, deadline_ms));
    while (c->tensor < c->g.n_tensors) {
        TG_TRY(check_rows(c));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

void tg_weights_checking_deinit(tg_weights_checking *c) {
    if (!c->open) return;
    tg_free(&c->g.ctx->mem, c->buffer, c->buffer_bytes);
    tg_gguf_close(&c->g);
}
