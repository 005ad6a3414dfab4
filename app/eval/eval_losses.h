/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_losses.h - eval --losses: each token of a text and its loss, as JSON.
 */
#ifndef TG_APP_EVAL_LOSSES_H
#define TG_APP_EVAL_LOSSES_H

#include "app.h"

/* Of the last part `val` of a text (0: all), to standard output. */
tg_status tg_eval_losses(tg_app *app, tg_model *model, tg_text *text, double val);

#endif
