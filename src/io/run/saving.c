/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saving.c - the loop that all formats are written by. See saving.h.
 */
#include "io/run/saving.h"

#include "base/time.h"

void *tg_saving_new(tg_ctx *ctx, const char *path, const tg_saving_format *format, size_t bytes,
                    size_t piece_elems, const tg_weights *weights) {
    const size_t piece_bytes = piece_elems * sizeof(float);
    tg_saving *s = tg_alloc(&ctx->mem, bytes);
    float *piece = tg_alloc(&ctx->mem, piece_bytes);
    if (!s || !piece) {
        tg_free(&ctx->mem, s, bytes);
        tg_free(&ctx->mem, piece, piece_bytes);
        tg_fail_memory(ctx, path, bytes + piece_bytes);
        return NULL;
    }
    s->ctx = ctx;
    s->format = format;
    s->weights = *weights;
    s->bytes = bytes;
    s->piece = piece;
    s->piece_elems = piece_elems;
    s->status = TG_PENDING;
    return s;
}

/* Moments that the source does not have are zeros, which is how a run begins. */
tg_status tg_saving_read(tg_saving *s, size_t tensor, tg_part part, uint64_t *first, size_t *n) {
    const uint64_t left = s->manifest->entry[tensor].elems - s->first;
    *first = s->first;
    *n = left < s->piece_elems ? (size_t)left : s->piece_elems;
    if (part == TG_PART_WEIGHT || s->weights.has_moments) {
        TG_TRY(s->weights.read(s->weights.user, tensor, part, *first, *n, s->piece));
    } else {
        memset(s->piece, 0, *n * sizeof *s->piece);
    }
    s->turn += *n == left;
    s->first = *n == left ? 0 : *first + *n;
    return TG_OK;
}

static tg_status go_on(tg_saving *s, double deadline_ms) {
    tg_status status;
    while ((status = s->format->write(s)) == TG_PENDING) {
        if (tg_time_over(deadline_ms)) {
            return status;
        }
    }
    return status == TG_OK ? s->format->commit(s) : status;
}

tg_status tg_saving_go_on(tg_saving *s, double deadline_ms) {
    if (s->status == TG_PENDING) {
        s->status = go_on(s, deadline_ms);
    }
    return s->status;
}

void tg_saving_free(tg_saving *s) {
    if (!s) {
        return;
    }
    const tg_mem mem = s->ctx->mem;
    s->format->drop(s);
    tg_free(&mem, s->piece, s->piece_elems * sizeof *s->piece);
    tg_free(&mem, s, s->bytes);
}

tg_status tg_saving_finish(tg_saving *s) {
    const tg_status status = tg_saving_go_on(s, 0);
    tg_saving_free(s);
    return status;
}
