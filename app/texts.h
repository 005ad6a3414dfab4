/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.h - the texts of embed and rerank: arguments, or the lines of a file.
 */
#ifndef TG_APP_TEXTS_H
#define TG_APP_TEXTS_H

#include "app.h"

typedef struct tg_texts {
    tg_embed_text *text; /* [n] */
    size_t n;
    char *owned; /* what they point into, or NULL */
} tg_texts;

/* Refuses both, and neither; the texts are the arguments from number `first` on. */
int tg_texts_want(tg_app *app, const char *file, size_t first);
int tg_texts_get(tg_app *app, const char *file, size_t first, tg_texts *t);
void tg_texts_free(tg_texts *t); /* zeros are fine */

#endif
