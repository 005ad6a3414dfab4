/* SPDX-License-Identifier: Apache-2.0 */
/* train_tokens.c - a vocabulary for a run, made on the way. See train_tokens.h. */
#include "train/train_tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VOCABULARY = 4096 }; /* as of tokenize --train */

/* The kind, and the number behind it; false if that is none. What kinds there are is known to the
 * library, whose message lists them. */
static bool parse(const char *wanted, char kind[16], size_t *n) {
    const char *colon = strchr(wanted, ':');
    const size_t length = colon ? (size_t)(colon - wanted) : strlen(wanted);
    if (length >= 16) return false;
    memcpy(kind, wanted, length);
    kind[length] = '\0';
    *n = strcmp(kind, "chars") == 0 ? 0 : DEFAULT_VOCABULARY;
    if (!colon) return true;
    char *end;
    errno = 0;
    const unsigned long value = strtoul(colon + 1, &end, 10);
    *n = value;
    return colon[1] >= '1' && colon[1] <= '9' && *end == '\0' && errno == 0;
}

int tg_traintokens_make(tg_app *app, const char *wanted, tg_text *text, tg_traintokens *out) {
    char kind[16];
    size_t n;
    if (strcmp(wanted, "bytes") == 0) return TG_ARGS_GO_ON;
    if (!parse(wanted, kind, &n)) {
        tg_app_error(app,
                     "--tokens: want bytes, chars, or a kind and a number such as bpe:4096, "
                     "have %.40s",
                     wanted);
        return TG_EXIT_USAGE;
    }
    tg_status s = tg_tokenizer_train(text, kind, n, tg_app_buffer_add, &out->json);
    if (s == TG_OK)
        s = tg_memory_file_new(app->ctx, "tokens/tokenizer.json", out->json.bytes, out->json.n,
                               &out->file);
    if (s == TG_OK)
        s = tg_tokenizer_open(app->ctx, tg_memory_file_path(out->file), &out->tokenizer);
    return s == TG_OK ? TG_ARGS_GO_ON : tg_app_failed(app, app->ctx, s, TG_READING);
}

/* In the order of what borrows from what. */
void tg_traintokens_free(tg_traintokens *t) {
    tg_tokenizer_free(t->tokenizer);
    tg_memory_file_free(t->file);
    tg_app_buffer_free(&t->json);
}
