/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - train a tiny model on a text, keep the run, let it write.
 *
 *     cc train.c $(pkg-config --cflags --libs tinygpt) -o train
 *     ./train book.txt
 *
 * Every call that can fail returns a status; the context keeps the message of the last failure.
 */
#include "tinygpt.h"

#include <stdio.h>

static void show_step(void *user, const tg_step_report *r) {
    (void)user;
    if (r->step % 50) return;
    printf("step %4lld  loss %.3f  %.0f tokens/s\n", (long long)r->step, r->loss, r->tok_per_s);
}

static int print_piece(void *user, const char *bytes, size_t n_bytes) {
    (void)user;
    return fwrite(bytes, 1, n_bytes, stdout) != n_bytes;
}

int main(int argc, char **argv) {
    tg_context *ctx = NULL;
    tg_text *text = NULL;
    tg_model *model = NULL;
    tg_trainer *trainer = NULL;
    tg_train_options options = tg_train_options_default();
    const tg_callbacks callbacks = { .progress = show_step };
    options.steps = 400;
    options.lr = 2e-3;
    if (argc != 2) return fprintf(stderr, "usage: train TEXT\n"), 2;
    tg_status s = tg_context_new(NULL, &ctx);
    if (s == TG_OK) s = tg_text_open(ctx, argv[1], &text);
    if (s == TG_OK) s = tg_model_new(ctx, &tg_preset_find("tiny")->config, 42, &model);
    if (s == TG_OK) s = tg_trainer_new(ctx, model, text, &options, &trainer);
    if (s == TG_OK) s = tg_trainer_run(trainer, &callbacks, "tiny.tinygpt");
    if (s == TG_OK) s = tg_generate(ctx, model, "The ", 4, NULL, 200, print_piece, NULL);
    if (s != TG_OK) fprintf(stderr, "train: %s\n", tg_context_error(ctx));
    tg_trainer_free(trainer);
    tg_model_free(model);
    tg_text_free(text);
    tg_context_free(ctx);
    return s != TG_OK;
}
