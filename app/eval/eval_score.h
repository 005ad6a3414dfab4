/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_score.h - how likely a model finds tokens behind others: what eval --losses and --suite
 * print. A token at a time, with the bits of a session.
 */
#ifndef TG_APP_EVAL_SCORE_H
#define TG_APP_EVAL_SCORE_H

#include "app.h"

typedef struct tg_scorer {
    tg_app *app;
    const tg_tokenizer *tok;
    tg_session *session;
    size_t most;   /* tokens that the session has room for */
    bool begins;   /* texts begin with a token of their own, */
    int32_t begin; /* this one */
    int32_t *ids;  /* of the text that was encoded last */
    size_t n, room;
} tg_scorer;

/* A session of at most `most` tokens; free takes any. TG_ARGS_GO_ON, or an exit code after a
 * message. */
int tg_scorer_open(tg_scorer *s, tg_app *app, tg_model *model, size_t most);
void tg_scorer_free(tg_scorer *s);
/* The ids of a text, behind the token that texts begin with: into s->ids. */
tg_status tg_scorer_encode(tg_scorer *s, const char *text, size_t n_bytes);
/* logprob [n - from] of ids[from..n), each behind all before it; from is 1 or more, n at most
 * s->most + 1. likeliest: whether each of them was the likeliest; may be NULL. What the session has
 * in common with ids is not computed again. */
tg_status tg_scorer_run(tg_scorer *s, const int32_t *ids, size_t n, size_t from, double *logprob,
                        bool *likeliest);

#endif
