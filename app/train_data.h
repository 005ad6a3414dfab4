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
 * run's own files; empty ones are none. Returns TG_ARGS_GO_ON, or an exit code after a message.
 */
int tg_traindata_open(tg_app *app, const char *option, const tg_args_list *data,
                      const tg_args_list *val, const char *const *written, size_t n_written,
                      bool quiet, tg_text **out);

#endif
