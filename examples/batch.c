/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - several prompts answered at once: weights are read once for all of them.
 *
 *     cc batch.c $(pkg-config --cflags --libs tinygpt) -o batch
 *     ./batch SmolLM2-135M-Instruct.Q4_1.gguf "The sea is" "My cat is" "Rome is"
 *
 * Each text is the one that its session would write alone, to the bit.
 */
#define TG_ADVANCED
#include "tinygpt.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS = 40, BYTES = 2048 };
typedef char text[BYTES];

static int append(void *user, const char *bytes, size_t n_bytes) {
    strncat(user, bytes, n_bytes < BYTES - 1 - strlen(user) ? n_bytes : 0);
    return 0;
}

int main(int argc, char **argv) {
    static text texts[TG_BATCH_MAX];
    static tg_generation g[TG_BATCH_MAX];
    const tg_generation *what[TG_BATCH_MAX];
    tg_context *ctx = NULL;
    tg_model *model = NULL;
    tg_batch *batch = NULL;
    if (argc < 3 || argc - 2 > TG_BATCH_MAX)
        return fprintf(stderr, "usage: batch MODEL PROMPT..\n"), 2;
    const size_t n = (size_t)argc - 2;
    for (size_t i = 0; i < n; what[i] = &g[i], i++) {
        g[i] = tg_generation_default();
        g[i].prompt = argv[i + 2];
        g[i].prompt_bytes = strlen(argv[i + 2]);
        g[i].n_tokens = TOKENS;
        g[i].write = append;
        g[i].user = texts[i];
    }
    tg_status s = tg_context_new(NULL, &ctx);
    if (s == TG_OK) s = tg_model_open(ctx, argv[1], &model);
    if (s == TG_OK) s = tg_batch_new(ctx, model, n, 2048, TG_KV_F32, &batch);
    if (s == TG_OK) s = tg_batch_continue(batch, what, n, NULL, NULL);
    for (size_t i = 0; s == TG_OK && i < n; i++) printf("%s%s\n", argv[i + 2], texts[i]);
    if (s != TG_OK) fprintf(stderr, "batch: %s\n", tg_context_error(ctx));
    tg_batch_free(batch);
    tg_model_free(model);
    tg_context_free(ctx);
    return s != TG_OK;
}
