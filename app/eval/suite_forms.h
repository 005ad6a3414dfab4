/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite_forms.h - suites of questions as JSON Lines, in the forms that data sets have, as lines of
 * eval_suite.h.
 *
 *     question   question question_stem prompt ctx query goal input text; question.stem
 *     before it  article passage context, a line each
 *     answers    choices endings options, texts, or objects with "text" and "label", or one object
 *                of such lists; sol1 and sol2
 *     the right  answerKey label gold answer: a label, a place from 0, a letter, or the text
 * itself; a string that is the text of one and the place or letter of another is refused exact
 * where there are no answers: answer target completion response; of a text alone its last word
 *
 * So ARC, OpenBookQA, CommonsenseQA, HellaSwag, MMLU, PIQA and LAMBADA are read as they are.
 */
#ifndef TG_APP_SUITE_FORMS_H
#define TG_APP_SUITE_FORMS_H

#include "app.h"

/* Is a suite of this name JSON Lines? */
bool tg_suite_is_json(const char *name);
/* A line of out for each one of bytes [n_bytes], blank ones among them, so that numbers stay; the
 * right answer is the first one. tok is any tokenizer. TG_ARGS_GO_ON, or an exit code after a
 * message, which says the line. */
int tg_suite_from_json(tg_app *app, const tg_tokenizer *tok, const char *name, const char *bytes,
                       size_t n_bytes, tg_app_buffer *out);

#endif
