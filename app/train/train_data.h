/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_data.h - the text of a run: files, folders and standard input, joined in the order of the
 * command line with nothing between them.
 */
#ifndef TG_APP_TRAIN_DATA_H
#define TG_APP_TRAIN_DATA_H

#include "app.h"

/*
 * Of a folder all files are taken, those of its folders, too, by their names in byte order, but for
 * what is hidden, empty or binary, and for files that the run itself writes; what was passed over
 * is said unless quiet. "-" is standard input, which is kept in memory. val may be empty: else it
 * is the validation part. option names the data in messages. written [n_written]: names of the
 * run's own files; empty ones are none. mix: the weights of data's items, whose ends are filled in;
 * NULL: rows are drawn evenly. Returns TG_ARGS_GO_ON, or an exit code after a message.
 */
int tg_traindata_open(tg_app *app, const char *option, const tg_args_list *data,
                      const tg_args_list *val, tg_mix_part *mix, const char *const *written,
                      size_t n_written, bool quiet, tg_text **out);

/* "3,1": a weight above 0 for each item of data, to *out [data->n], which the caller frees. Refuses
 * other texts as wrong usage. */
int tg_traindata_mix(tg_app *app, const char *text, const tg_args_list *data, tg_mix_part **out);
/* The plan's line of a mix: each item's share of the rows, and how often it is seen in a run that
 * sees all of the text `epochs` times (0: not known). */
void tg_traindata_tell_mix(FILE *f, const tg_args_list *data, const tg_mix_part *mix,
                           double epochs);

#endif
