/*
 * native.c - the run of train.mjs in C, with the scalar kernels, as one JSON object.
 */
#include "tinygpt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char story[70000];
static size_t story_bytes;

static int keep(void *user, const char *bytes, size_t n) {
    (void)user;
    if (n > sizeof story - story_bytes) return 1;
    memcpy(story + story_bytes, bytes, n);
    story_bytes += n;
    return 0;
}

static int print_hex(void *user, const char *bytes, size_t n) {
    (void)user;
    for (size_t i = 0; i < n; i++) printf("%02x", (unsigned char)bytes[i]);
    return 0;
}

int main(void) {
    tg_context_options where = tg_context_options_default();
    where.isa = "scalar";
    where.threads = 1;
    tg_train_options options = tg_train_options_default();
    options.steps = 50;
    options.batch = 16;
    options.lr = 2e-3;
    tg_context *ctx = NULL;
    tg_text *text = NULL;
    tg_model *model = NULL;
    tg_trainer *trainer = NULL;
    tg_step_report report = { 0 };
    double ms = 0;

    tg_status s = tg_context_new(&where, &ctx);
    if (s == TG_OK) s = tg_stories(42, 60000, keep, NULL);
    if (s == TG_OK) s = tg_text_from_memory(ctx, story, story_bytes, &text);
    if (s == TG_OK) s = tg_model_new(ctx, &tg_preset_find("tiny")->config, 42, &model);
    if (s == TG_OK) s = tg_trainer_new(ctx, model, text, &options, &trainer);
    for (int i = 0; s == TG_OK && i < 50; i++) {
        s = tg_trainer_step(trainer, &report);
        ms += report.ms / 50;
    }
    if (s == TG_OK) {
        printf("{\"hash\":\"%016" PRIx64 "\",\"loss\":%.17g,\"ms\":%.3f,\"text\":\"",
               report.loss_hash, report.loss, ms);
        s = tg_generate(ctx, model, "Once", 4, NULL, 100, print_hex, NULL);
        puts("\"}");
    }
    if (s != TG_OK) fprintf(stderr, "native: %s\n", ctx ? tg_context_error(ctx) : "no context");
    tg_trainer_free(trainer);
    tg_model_free(model);
    tg_text_free(text);
    tg_context_free(ctx);
    return s != TG_OK;
}
