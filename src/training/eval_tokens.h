/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_tokens.h - how well a model predicts the tokens of a text, in slices: of a model whose
 * tokens are bytes and which can be trained, eval.c finds what its trainer would.
 */
#ifndef TG_TRAINING_EVAL_TOKENS_H
#define TG_TRAINING_EVAL_TOKENS_H

#include "engine/all_rows.h"
#include "training/data/text.h"

/* Zero-initialised: not begun, and fine for deinit. */
typedef struct tg_evaluating_tokens {
    tg_context *ctx;
    const tg_model *model;
    tg_ids ids;          /* of the text */
    size_t step;         /* tokens of the text in a window */
    bool begins;         /* with the token that texts begin with */
    size_t n_windows, n; /* of the text; of those, how many are looked at */
    tg_all_rows rows;
    size_t window, pos;     /* where it is: window of n, token of it that the piece begins with */
    size_t n_rows;          /* of the piece that is being run, with a successor each */
    unsigned generation;    /* of the context's device, that has the window */
    double sum, sum_before; /* of all tokens so far, and of those before the window */
    uint64_t predicted, predicted_before;
} tg_evaluating_tokens;

/* The text from byte `first` on. windows 0: all. */
tg_status tg_evaluating_tokens_begin(tg_evaluating_tokens *e, tg_context *ctx,
                                     const tg_model *model, tg_text *text, uint64_t first,
                                     int32_t windows);
/* loss: the mean over the tokens that were predicted, in nats. */
tg_status tg_evaluating_tokens_go_on(tg_evaluating_tokens *e, double deadline_ms, double *loss);
void tg_evaluating_tokens_deinit(tg_evaluating_tokens *e);

#endif
