/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.h - the head of a reranker: from the pooled vector of a query and a text, read as one, to
 * how well the text answers.
 *
 *     score = o . f(D x + d) + p        tg_rank_form says what f is
 *
 * Matrices are small (one row of x for each text), so they are floats on the host, whatever the
 * rest of the model has become.
 */
#ifndef TG_ENGINE_RANK_H
#define TG_ENGINE_RANK_H

#include "load/weights.h"

typedef struct tg_rank_head {
    const tg_model *model;
    size_t width;                    /* C */
    const float *dense, *dense_bias; /* D [C,C], d [C] or NULL */
    const float *norm;               /* [C] or NULL: gains of a norm within f */
    const float *out, *out_bias;     /* o [C], p [1] or NULL */
    float *pooled, *x;               /* [C] each: room for a text's */
} tg_rank_head;

/* Does the model's file have such a head? */
bool tg_rank_there(const tg_model *model);
/* What it wants x to be, where the file does not say. */
tg_pooling_ways tg_rank_ways(const tg_model *model);
/* Borrows the model. E_UNSUPPORTED: it has no head, or one of several labels. */
tg_status tg_rank_open(const tg_model *model, tg_rank_head *head);
void tg_rank_close(tg_rank_head *head); /* zeros are fine */
/* x [C] */
float tg_rank_score(const tg_rank_head *head, const float *x);

#endif
