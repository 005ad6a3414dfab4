/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_embed.c - embeddings of a tiny random BERT against transformers (test/golden/lm/bert.zip and
 * bert.txt, made by tools/oracle/lm.py): each way of pooling, texts together and alone, long ones.
 */
#include "tinygpt.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 32, TEXTS = 5, WAYS = 3 };

typedef struct golden {
    char text[TEXTS][128];
    double vector[TEXTS][WAYS][WIDTH]; /* mean, CLS, last */
} golden;

static void read_golden(golden *g) {
    FILE *f = fopen("test/golden/lm/bert.txt", "r");
    assert_non_null(f);
    for (int t = 0; t < TEXTS; t++) {
        assert_non_null(fgets(g->text[t], sizeof g->text[t], f));
        g->text[t][strcspn(g->text[t], "\n")] = '\0';
        for (int w = 0; w < WAYS; w++)
            for (int c = 0; c < WIDTH; c++)
                assert_int_equal(fscanf(f, "%lf", &g->vector[t][w][c]), 1);
        assert_int_equal(fgetc(f), '\n');
    }
    fclose(f);
}

typedef struct fixture {
    tg_context *ctx;
    tg_model *model;
} fixture;

static fixture open_bert(const char *isa) {
    fixture x;
    tg_context_options o = tg_context_options_default();
    o.isa = isa;
    o.threads = 2;
    assert_int_equal(tg_context_new(&o, &x.ctx), TG_OK);
    if (tg_model_open(x.ctx, "test/golden/lm/bert.zip", &x.model) != TG_OK)
        fail_msg("%s", tg_context_error(x.ctx));
    return x;
}

static void close_bert(fixture x) {
    tg_model_free(x.model);
    tg_context_free(x.ctx);
}

static void embed(fixture x, tg_embed_options o, const tg_embed_text *texts, size_t n, float *out) {
    tg_embedder *e;
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    if (tg_embedder_run(e, texts, n, out) != TG_OK) fail_msg("%s", tg_context_error(x.ctx));
    tg_embedder_free(e);
}

static void as_transformers(void **state) {
    (void)state;
    static golden g;
    read_golden(&g);
    static const char *const isas[] = { NULL, "scalar" };
    for (int k = 0; k < 2; k++) {
        fixture x = open_bert(isas[k]);
        tg_embed_text texts[TEXTS];
        for (int t = 0; t < TEXTS; t++) texts[t] = (tg_embed_text) { g.text[t], strlen(g.text[t]) };
        for (int w = 0; w < WAYS; w++) {
            tg_embed_options o = tg_embed_options_default();
            float out[TEXTS * WIDTH], model_way[TEXTS * WIDTH];
            o.pooling = (tg_pooling)(TG_POOLING_MEAN + w);
            embed(x, o, texts, TEXTS, out);
            for (int i = 0; i < TEXTS * WIDTH; i++) {
                const double want = g.vector[i / WIDTH][w][i % WIDTH];
                if (!(fabs((double)out[i] - want) <= 2e-5))
                    fail_msg("text %d, pooling %d: want %g, have %g", i / WIDTH, w, want,
                             (double)out[i]);
            }
            /* The zip says that it takes the mean. */
            o.pooling = TG_POOLING_MODEL;
            embed(x, o, texts, TEXTS, model_way);
            assert_int_equal(memcmp(out, model_way, sizeof out) == 0, w == 0);
        }
        close_bert(x);
    }
}

/* More texts than a run takes: bit for bit what each gives alone. */
static void together_and_alone(void **state) {
    (void)state;
    enum { MANY = 90 };
    fixture x = open_bert(NULL);
    tg_embed_text texts[MANY];
    char words[MANY][40];
    static float all[MANY * WIDTH];
    for (int i = 0; i < MANY; i++) {
        snprintf(words[i], sizeof words[i], "%.*s the cat %c", i % 17, "abcdefghijklmnopqrst",
                 'a' + i % 20);
        texts[i] = (tg_embed_text) { words[i], strlen(words[i]) };
    }
    tg_embed_options o = tg_embed_options_default();
    embed(x, o, texts, MANY, all);
    for (int i = 0; i < MANY; i++) {
        float one[WIDTH];
        double square = 0;
        embed(x, o, &texts[i], 1, one);
        assert_memory_equal(one, all + i * WIDTH, sizeof one);
        for (int c = 0; c < WIDTH; c++) square += (double)one[c] * (double)one[c];
        assert_true(fabs(square - 1) < 1e-6);
    }
    o.raw = true;
    float raw[WIDTH];
    double square = 0;
    embed(x, o, texts, 1, raw);
    for (int c = 0; c < WIDTH; c++) square += (double)raw[c] * (double)raw[c];
    assert_true(fabs(square - 1) > 1e-3);
    close_bert(x);
}

static void what_is_refused(void **state) {
    (void)state;
    fixture x = open_bert(NULL);
    tg_embedder *e;
    tg_session *session;
    tg_embed_options o = tg_embed_options_default();
    char text[400];
    float out[WIDTH], short_one[WIDTH];
    memset(text, 'a', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2) text[i] = ' '; /* 200 tokens; it sees 64 */
    const tg_embed_text large = { text, sizeof text };
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    assert_int_equal(tg_embedder_run(e, &large, 1, out), TG_E_FULL);
    assert_non_null(strstr(tg_context_error(x.ctx), "64 tokens, have 202"));
    tg_embedder_free(e);
    o.cut = true; /* [CLS], 62 tokens, [SEP] */
    embed(x, o, &large, 1, out);
    const tg_embed_text beginning = { text, 124 };
    embed(x, o, &beginning, 1, short_one);
    assert_memory_equal(out, short_one, sizeof out);
    o.pooling = (tg_pooling)9;
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_ARG);
    assert_int_equal(tg_session_new(x.ctx, x.model, 0, &session), TG_E_UNSUPPORTED);
    tg_model *writer;
    assert_int_equal(tg_model_open(x.ctx, "test/golden/lm/gpt2", &writer), TG_OK);
    assert_int_equal(tg_embedder_new(x.ctx, writer, NULL, &e), TG_E_UNSUPPORTED);
    tg_model_free(writer);
    close_bert(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_transformers),
        cmocka_unit_test(together_and_alone),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
