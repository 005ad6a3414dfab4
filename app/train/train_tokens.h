/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_tokens.h - train --tokens: what a new model reads and writes. A vocabulary other than bytes
 * is trained on the text of the run, and kept in memory.
 */
#ifndef TG_APP_TRAIN_TOKENS_H
#define TG_APP_TRAIN_TOKENS_H

#include "app.h"

typedef struct tg_traintokens {
    tg_tokenizer *tokenizer; /* NULL: tokens are bytes */
    tg_memory_file *file;
    tg_app_buffer json;
} tg_traintokens;

/* wanted: "bytes", or a kind of tg_tokenizer_kind_at and how many there are to be, "bpe:4096";
 * without a number as many as the kind has by itself. The validation part is read, too. Returns
 * TG_ARGS_GO_ON, or an exit code after a message. Zero-initialised at first; free takes any. */
int tg_traintokens_make(tg_app *app, const char *wanted, tg_text *text, tg_traintokens *out);
void tg_traintokens_free(tg_traintokens *t);

#endif
