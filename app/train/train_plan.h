/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_plan.h - what train says before the first step: the text and what is odd about it, the
 * model, and how long it takes and what it needs.
 */
#ifndef TG_APP_TRAIN_PLAN_H
#define TG_APP_TRAIN_PLAN_H

#include "app.h"
#include "train/train_data.h"

/* The banner and the line about the text; held_apart: the validation has files of its own. mix is
 * that of data [data->n], or NULL. */
void tg_trainplan_text(tg_app *app, const tg_args_list *data, bool held_apart,
                       const tg_mix_part *mix, const tg_forecast *f);
/* Errors and warnings of a lint go out, and remarks unless quiet. TG_ARGS_GO_ON, or an exit code
 * behind a message if the text cannot be trained on. */
int tg_trainplan_lint(tg_app *app, tg_text *text, const tg_train_options *o, bool quiet);
/* What will be made, how long it takes and what it needs. source is the file that the model or run
 * comes from, or NULL; out "": nothing is saved; disk_free UINT64_MAX: unknown. */
void tg_trainplan_run(tg_app *app, const char *source, const tg_model_config *c,
                      const tg_train_options *o, const tg_forecast *f, const char *out,
                      uint64_t disk_free);

#endif
