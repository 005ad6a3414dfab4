/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_chats.h - train --data chats.jsonl: conversations, with a loss on answers alone.
 */
#ifndef TG_APP_TRAIN_CHATS_H
#define TG_APP_TRAIN_CHATS_H

#include "app.h"

/* Does the list name files of conversations, which end in .jsonl? */
bool tg_trainchats_named(const tg_args_list *data);

/*
 * The conversations of data (pairs, where beta is not 0), and of val those to validate on, by the
 * vocabulary of a file and its template, or by the one that is wanted (NULL: none is); date is that
 * of --date, or NULL: then a template that asks writes today's, or that of the run that is resumed.
 * A date for a template that writes none is refused. What there is of them, and today's date, is
 * said unless quiet. Returns TG_ARGS_GO_ON, or an exit code after a message.
 */
int tg_trainchats_open(tg_app *app, const char *vocabulary, bool resumed, const char *wanted,
                       const char *date, double beta, const tg_args_list *data,
                       const tg_args_list *val, bool quiet, tg_text **out);

#endif
