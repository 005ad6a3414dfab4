/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_losses.h - eval --losses: each token of a text and its loss, as JSON.
 */
#ifndef TG_APP_EVAL_LOSSES_H
#define TG_APP_EVAL_LOSSES_H

#include "app.h"

/* To standard output; returns the exit code. */
int tg_eval_losses(tg_app *app, tg_model *model, const char *bytes, size_t n_bytes);

#endif
