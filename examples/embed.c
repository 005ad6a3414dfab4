/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - how near texts are in meaning to the first one.
 *
 *     cc embed.c $(pkg-config --cflags --libs tinygpt) -o embed
 *     ./embed minilm.zip "a cat on the mat" "a kitten on a rug" "stock markets fell"
 *
 * Vectors have length 1, so the sum of products is the cosine of their angle.
 */
#include "tinygpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 64 };

int main(int argc, char **argv) {
    tg_embed_text texts[TEXTS];
    const size_t n = argc > 2 && argc < TEXTS + 2 ? (size_t)argc - 2 : 0;
    tg_context *ctx = NULL;
    tg_model *model = NULL;
    tg_embedder *embedder = NULL;
    if (n == 0) return fprintf(stderr, "usage: embed MODEL TEXT...\n"), 2;
    for (size_t i = 0; i < n; i++) texts[i] = (tg_embed_text) { argv[i + 2], strlen(argv[i + 2]) };
    tg_status s = tg_context_new(NULL, &ctx);
    if (s == TG_OK) s = tg_model_open(ctx, argv[1], &model);
    if (s == TG_OK) s = tg_embedder_new(ctx, model, NULL, &embedder);
    const size_t width = tg_embedder_width(embedder);
    float *vectors = calloc(n * width + 1, sizeof *vectors); /* [n, width] */
    if (s == TG_OK) s = vectors ? tg_embedder_run(embedder, texts, n, vectors) : TG_E_MEMORY;
    for (size_t i = 0; s == TG_OK && i < n; i++) {
        double cosine = 0;
        for (size_t c = 0; c < width; c++) cosine += vectors[c] * vectors[i * width + c];
        printf("%6.3f  %s\n", cosine, argv[i + 2]);
    }
    if (s != TG_OK) fprintf(stderr, "embed: %s\n", tg_context_error(ctx));
    free(vectors);
    tg_embedder_free(embedder);
    tg_model_free(model);
    tg_context_free(ctx);
    return s != TG_OK;
}
