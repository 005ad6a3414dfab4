/* SPDX-License-Identifier: Apache-2.0 */
/*
 * all_rows.h - logits or hidden states of all tokens of a text, where a session keeps the logits of
 * the last one, in pieces over a cache of their own.
 */
#ifndef TG_ENGINE_ALL_ROWS_H
#define TG_ENGINE_ALL_ROWS_H

#include "engine/cache.h"

enum { TG_ALL_ROWS_PIECE = 64, TG_ALL_ROWS_HIDDEN_PIECE = 512 };

/* E_UNSUPPORTED, with what in front: a model whose logits mean nothing. */
tg_status tg_all_rows_want_writer(tg_context *ctx, const tg_model *model, const char *what);

/* Zero-initialised: not open, and fine for deinit. */
typedef struct tg_all_rows {
    tg_context *ctx;
    const tg_model *model;
    size_t window; /* tokens that the cache holds */
    size_t most;   /* of a piece: one of the above, or the window where that is shorter */
    tg_answers answers;
    void (*look)(void *user, tg_graph *g); /* set before open: is shown the graph; or NULL */
    void *look_user;
    tg_graph graph;
    tg_plan plan;
    bool built;
    tg_value *tokens, *targets, *logits, *lse, *hidden; /* of an answer, its own */
    tg_arena arena;                                     /* of the cache's tables */
    tg_cache cache;
    tg_cache_inputs rows_in;
    tg_block memory;
    tg_run run; /* of the piece that is on its way */
} tg_all_rows;

/* answers: TG_ANSWER_ROWS or TG_ANSWER_HIDDEN_STATES. */
tg_status tg_all_rows_open(tg_all_rows *r, tg_context *ctx, const tg_model *model, size_t window,
                           tg_answers answers);
void tg_all_rows_deinit(tg_all_rows *r);

/* [most] for the caller to fill before a piece begins; targets are what lse is not asked for
 * without, and 0 will do. */
int32_t *tg_all_rows_tokens(const tg_all_rows *r);
int32_t *tg_all_rows_targets(const tg_all_rows *r);
/* A piece of n tokens at position pos of the window, before which all positions are in the cache.
 * TG_PENDING: not done yet; deadline_ms 0: none. Where a lost device has taken the cache with it,
 * E_DEVICE, and the text begins anew: ctx->generation has changed. */
tg_status tg_all_rows_run(tg_all_rows *r, size_t n, size_t pos, double deadline_ms);
/* Of the piece that was run last: [n][V]; and [n] logarithms of the sums of their exponentials. */
const float *tg_all_rows_logits(const tg_all_rows *r);
const float *tg_all_rows_lse(const tg_all_rows *r);
/* [n][C] behind the final norm. */
const float *tg_all_rows_hidden(const tg_all_rows *r);

#endif
