/* SPDX-License-Identifier: Apache-2.0 */
/*
 * saving.h - a model file that is written piece by piece, in slices of time.
 *
 *     tg_saving *s;
 *     TG_TRY(tg_tgpt3_saving(ctx, path, json, n, &weights, keep_prev, &s));
 *     while ((status = tg_saving_go_on(s, deadline_ms)) == TG_PENDING) ...
 *     tg_saving_free(s);
 *
 * A format writes the next piece whenever it is asked to, and has its file committed or, at any
 * time, dropped:
 *
 *     new -> piece -> piece -> .. -> piece -> commit -> drop
 *
 * The whole of it goes through tg_save of base/os/os.h: until commit has succeeded, path holds what
 * it held before.
 */
#ifndef TG_IO_SAVING_H
#define TG_IO_SAVING_H

#include "io/tgpt/tgpt.h"

/* 64 KiB of floats: large against the cost of a write, small against the second cache, and a
 * multiple of a block of int4. */
#define TG_SAVING_PIECE_ELEMS 16384u

typedef struct tg_saving_format {
    /* Some milliseconds of work at most. TG_PENDING: there are more; TG_OK: all are written. */
    tg_status (*write)(tg_saving *s);
    tg_status (*commit)(tg_saving *s); /* once, after the last piece */
    void (*drop)(tg_saving *s);        /* frees all that the format has made, at any stage */
} tg_saving_format;

/* The head of each format's own struct. */
struct tg_saving {
    tg_ctx *ctx;
    const tg_saving_format *format;
    const tg_manifest *manifest;
    tg_weights weights; /* its user is borrowed until the end */
    size_t bytes;       /* of the format's struct */
    float *piece;       /* [piece_elems] */
    size_t piece_elems;
    size_t turn;      /* which tensor is being written, as the format counts them */
    uint64_t first;   /* elements of it that are written */
    tg_status status; /* TG_PENDING until the file is there, or an error */
};

/* A zeroed struct of `bytes` with its head filled in, except for the manifest. NULL, with the error
 * recorded, if there is no memory; path is for the message. */
void *tg_saving_new(tg_ctx *ctx, const char *path, const tg_saving_format *format, size_t bytes,
                    size_t piece_elems, const tg_weights *weights);

/* The next piece of a tensor that is written as it is: elements [*first, *first + *n) lie in
 * s->piece, and the place is behind them, perhaps at the next turn. */
tg_status tg_saving_read(tg_saving *s, size_t tensor, tg_part part, uint64_t *first, size_t *n);

#endif
