/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooler.h - vectors of a text's tokens become one, token after token.
 *
 * By several ways there are several results (io/pooling.h), one behind the other.
 */
#ifndef TG_ENGINE_POOLER_H
#define TG_ENGINE_POOLER_H

#include "base/err.h"
#include "io/pooling.h"

typedef struct tg_pooler {
    tg_pooling_ways ways;
    size_t width;              /* C, of a token's vector */
    size_t n;                  /* tokens so far */
    double *sum, *weighted;    /* [C] */
    float *max, *first, *last; /* [C] */
    tg_mem mem;
    void *block;
} tg_pooler;

tg_status tg_pooler_init(tg_ctx *ctx, tg_pooler *p, tg_pooling_ways ways, size_t width);
void tg_pooler_deinit(tg_pooler *p);
/* The next n tokens of the text; rows [n,C]. */
void tg_pooler_add(tg_pooler *p, const float *rows, size_t n);
/* Of the text's end: out [tg_pooler_width], of length 1 unless raw. The next one begins. */
void tg_pooler_end(tg_pooler *p, bool raw, float *out);
/* C for each way. */
size_t tg_pooler_width(const tg_pooler *p);

#endif
