/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lm_eval.h - how well a model out of a GGUF file predicts a text, in slices.
 */
#ifndef TG_TRAINING_LM_EVAL_H
#define TG_TRAINING_LM_EVAL_H

#include "engine/lm_rows.h"
#include "training/text.h"

/* Zero-initialised: not begun, and fine for deinit. */
typedef struct tg_lm_evaluating {
    tg_context *ctx;
    const tg_model *model;
    tg_ids ids;          /* of the text */
    size_t step;         /* tokens of the text in a window */
    bool begins;         /* with the token that texts begin with */
    size_t n_windows, n; /* of the text; of those, how many are looked at */
    tg_lm_rows rows;
    size_t window, pos; /* where it is: window of n, token of it that the piece begins with */
    size_t n_rows;      /* of the piece that is being run, with a successor each */
    double sum;
    uint64_t predicted;
} tg_lm_evaluating;

/* The text from byte `first` on. windows 0: all. */
tg_status tg_lm_evaluating_begin(tg_lm_evaluating *e, tg_context *ctx, const tg_model *model,
                                 tg_text *text, uint64_t first, int32_t windows);
/* loss: the mean over the tokens that were predicted, in nats. */
tg_status tg_lm_evaluating_go_on(tg_lm_evaluating *e, double deadline_ms, double *loss);
void tg_lm_evaluating_deinit(tg_lm_evaluating *e);

#endif
