/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.c - what the modules are compared with, in C and with the scalar kernels, as JSON.
 *
 *   wasm_native                       the run of train.mjs
 *   wasm_native logits MODEL ID ..    the bits of the logits behind those ids
 *   wasm_native ids FILE TEXT         the ids of a text, by the tokenizer of a file
 */
#include "tinygpt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

static tg_status train(tg_context *ctx) {
    tg_train_options options = tg_train_options_default();
    options.steps = 50;
    options.batch = 16;
    options.lr = 2e-3;
    tg_text *text = NULL;
    tg_model *model = NULL;
    tg_trainer *trainer = NULL;
    tg_step_report report = { 0 };
    double ms = 0;

    tg_status s = tg_stories(42, 60000, keep, NULL);
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
    tg_trainer_free(trainer);
    tg_model_free(model);
    tg_text_free(text);
    return s;
}

static tg_status logits(tg_context *ctx, const char *path, char **words, size_t n) {
    tg_model *model = NULL;
    tg_session *session = NULL;
    tg_model_info info = { 0 };
    const float *out = NULL;
    int32_t ids[64] = { 0 };
    if (n > 64) n = 64;
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)strtol(words[i], NULL, 10);
    tg_status s = tg_model_open(ctx, path, &model);
    if (s == TG_OK) s = tg_model_get_info(model, &info);
    if (s == TG_OK) s = tg_session_new(ctx, model, 0, &session);
    if (s == TG_OK) s = tg_session_eval(session, ids, n, &out);
    for (int32_t i = 0; s == TG_OK && i < info.config.vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], sizeof bits);
        printf("%s%" PRIu32, i ? "," : "[", bits);
    }
    if (s == TG_OK) puts("]");
    tg_session_free(session);
    tg_model_free(model);
    return s;
}

static tg_status ids_of(tg_context *ctx, const char *path, const char *text) {
    tg_tokenizer *tokenizer = NULL;
    static int32_t ids[4096];
    size_t n = 0;
    tg_status s = tg_tokenizer_open(ctx, path, &tokenizer);
    if (s == TG_OK) s = tg_tokenizer_encode(ctx, tokenizer, text, strlen(text), 0, ids, 4096, &n);
    for (size_t i = 0; s == TG_OK && i < n; i++) printf("%s%" PRId32, i ? "," : "[", ids[i]);
    if (s == TG_OK) puts("]");
    tg_tokenizer_free(tokenizer);
    return s;
}

int main(int argc, char **argv) {
    tg_context_options where = tg_context_options_default();
    where.isa = "scalar";
    where.threads = 1;
    tg_context *ctx = NULL;
    tg_status s = tg_context_new(&where, &ctx);
    if (s == TG_OK && argc == 1) s = train(ctx);
    if (s == TG_OK && argc > 3 && strcmp(argv[1], "logits") == 0)
        s = logits(ctx, argv[2], argv + 3, (size_t)argc - 3);
    if (s == TG_OK && argc == 4 && strcmp(argv[1], "ids") == 0) s = ids_of(ctx, argv[2], argv[3]);
    if (s != TG_OK) fprintf(stderr, "native: %s\n", ctx ? tg_context_error(ctx) : "no context");
    tg_context_free(ctx);
    return s != TG_OK;
}
