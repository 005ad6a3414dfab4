/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_suite.h - eval --suite: questions with answers, a line each.
 *
 *     Two and two are\tfour                      exact: each token of the answer is the likeliest
 *     The sky is\tblue\tgreen\tmade of cheese    a choice: the first is right, by the likelihood
 *
 * A file that ends in .jsonl has the forms of suite_forms.h. Else fields are divided by tabs; \\t,
 * \\n and \\\\ stand for a tab, a line end and a backslash. A space stands between question and
 * answer, unless the question ends in white space of its own.
 */
#ifndef TG_APP_EVAL_SUITE_H
#define TG_APP_EVAL_SUITE_H

#include "app.h"

/* To standard output: a summary, or with --json an object a question and one at the end. name is
 * for messages; bytes [n_bytes] are changed. Returns the exit code; all lines are looked at before
 * the first one is asked. */
int tg_eval_suite(tg_app *app, tg_model *model, const char *name, char *bytes, size_t n_bytes);

#endif
