/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_llama_cpp.c - the same answers as llama.cpp gives, of real models (test/golden/llama_cpp,
 * made by tools/oracle/llama_cpp.cpp).
 *
 * Both sides round what goes into products to 8 bits, each in its own way, so where two tokens are
 * about as likely they may differ. The exact answers (in f64) differ from llama.cpp's by margins of
 * up to 0.22 at the sure prompts and 0.62 at the others: no right answer stays below 0.1
 * (tools/oracle/README.md). Of the ten prompts of a model the first five are such that it is sure
 * of most of its answers, the others are not.
 *
 * The files are those that tools/setup.sh fetches into .cache/models.
 */
#include "tinygpt.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#define GOLDEN "test/golden/llama_cpp/"
#define MODELS ".cache/models/"

enum { PROMPTS = 10, SURE = 5, TOKENS = 64, PROMPT_MAX = 128 };

typedef struct opened {
    tg_context *ctx;
    tg_model *model;
    size_t vocab;
} opened;

static opened open_model(const char *path) {
    opened o = { NULL, NULL, 0 };
    tg_model_info info;
    tg_context_options options = tg_context_options_default();
    if (access(path, R_OK) != 0) fail_msg("%s is missing: tools/setup.sh fetches it", path);
    assert_int_equal(tg_context_new(&options, &o.ctx), TG_OK);
    if (tg_model_open(o.ctx, path, &o.model) != TG_OK) fail_msg("%s", tg_context_error(o.ctx));
    assert_int_equal(tg_model_get_info(o.model, &info), TG_OK);
    o.vocab = (size_t)info.config.vocab;
    return o;
}

static void close_model(opened *o) {
    tg_model_free(o->model);
    tg_context_free(o->ctx);
}

/* ------------------------------------------------------------------------------- the next token */

typedef struct golden {
    int n;
    int32_t prompt[PROMPT_MAX], next[TOKENS];
    float margin[TOKENS]; /* between the two largest logits */
} golden;

static void read_golden(FILE *f, golden *g) {
    assert_int_equal(fscanf(f, "%d", &g->n), 1);
    assert_in_range(g->n, 1, PROMPT_MAX);
    for (int i = 0; i < g->n; i++) assert_int_equal(fscanf(f, "%d", &g->prompt[i]), 1);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(fscanf(f, "%d %f", &g->next[i], &g->margin[i]), 2);
}

/* Their tokens are fed whatever ours would have been. Returns how many are the same; *margin is the
 * largest of those that are not, on the side that is surer. */
static int agreement(const opened *o, const golden *g, float *margin) {
    tg_session *s;
    int same = 0;
    *margin = 0;
    assert_int_equal(tg_session_new(o->ctx, o->model, 512, &s), TG_OK);
    assert_int_equal(tg_session_eval(s, g->prompt, (size_t)g->n, NULL), TG_OK);
    for (int i = 0; i < TOKENS; i++) {
        const float *logits = tg_session_logits(s);
        size_t best = 0, second = 1;
        for (size_t j = 1; j < o->vocab; j++)
            if (logits[j] > logits[best]) best = j;
        if (best == 1) second = 0;
        for (size_t j = 0; j < o->vocab; j++)
            if (j != best && logits[j] > logits[second]) second = j;
        const float ours = logits[best] - logits[second];
        if (best == (size_t)g->next[i]) {
            same++;
        } else {
            print_message("  token %d: margin %.3f there, %.3f here\n", i, (double)g->margin[i],
                          (double)ours);
            if (g->margin[i] > *margin) *margin = g->margin[i];
            if (ours > *margin) *margin = ours;
        }
        if (i + 1 < TOKENS) assert_int_equal(tg_session_eval(s, &g->next[i], 1, NULL), TG_OK);
    }
    tg_session_free(s);
    return same;
}

/* How far llama.cpp's own margins are from the exact ones: at one position of a hundred by more
 * than 0.49 (SmolLM2) and 0.66 (Gemma 3). Where answers differ, neither side may be surer. */
#define MARGIN 0.49F

static void check_tokens(const char *path, const char *golden_path) {
    opened o = open_model(path);
    FILE *f = fopen(golden_path, "r");
    assert_non_null(f);
    for (int p = 0; p < PROMPTS; p++) {
        golden g;
        float margin;
        read_golden(f, &g);
        const int same = agreement(&o, &g, &margin);
        print_message("prompt %d: %d of %d\n", p, same, TOKENS);
        assert_in_range(same, p < SURE ? 62 : 60, TOKENS);
        assert_true(margin < MARGIN);
    }
    fclose(f);
    close_model(&o);
}

static void smollm2_tokens(void **state) {
    (void)state;
    check_tokens(MODELS "SmolLM2-135M-Instruct.Q4_1.gguf", GOLDEN "smollm2_greedy.txt");
}

static void gemma3_tokens(void **state) {
    (void)state;
    check_tokens(MODELS "gemma-3-270m-q4_k_m.gguf", GOLDEN "gemma3_greedy.txt");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_tokens),
        cmocka_unit_test(gemma3_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
