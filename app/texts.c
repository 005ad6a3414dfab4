/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts.c - texts from the command line, or one a line of a file.
 */
#include "texts.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_LIMIT = 64 << 20 };

int tg_texts_want(tg_app *app, const char *file, size_t first) {
    if ((app->args.n_pos > first) != (file != NULL)) return TG_ARGS_GO_ON;
    return tg_args_refuse(&app->args, "want TEXT or --file F, have %s", file ? "both" : "none");
}

/* An empty last line is the end of the one before it. */
static bool split_lines(tg_texts *t, const char *bytes, size_t n_bytes) {
    size_t room = 1;
    for (size_t i = 0; i < n_bytes; i++) room += bytes[i] == '\n';
    t->text = calloc(room, sizeof *t->text);
    if (!t->text) return false;
    for (size_t at = 0; at < n_bytes;) {
        const char *end = memchr(bytes + at, '\n', n_bytes - at);
        const size_t n = end ? (size_t)(end - (bytes + at)) : n_bytes - at;
        const bool cr = n > 0 && bytes[at + n - 1] == '\r';
        t->text[t->n++] = (tg_embed_text) { bytes + at, n - cr };
        at += n + 1;
    }
    return true;
}

int tg_texts_get(tg_app *app, const char *file, size_t first, tg_texts *t) {
    size_t n_bytes;
    if (file) {
        const int code = tg_app_read_file(app, file, TEXT_LIMIT, &t->owned, &n_bytes);
        if (code != TG_ARGS_GO_ON) return code;
        if (split_lines(t, t->owned, n_bytes)) return TG_ARGS_GO_ON;
    } else {
        t->n = app->args.n_pos - first;
        t->text = calloc(t->n, sizeof *t->text);
        for (size_t i = 0; t->text && i < t->n; i++)
            t->text[i] =
                (tg_embed_text) { app->args.pos[i + first], strlen(app->args.pos[i + first]) };
        if (t->text) return TG_ARGS_GO_ON;
    }
    tg_app_error(app, "not enough memory for the texts");
    return TG_EXIT_FAILED;
}

void tg_texts_free(tg_texts *t) {
    free(t->text);
    free(t->owned);
}
