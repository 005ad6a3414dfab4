/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_embed.c - embeddings of a tiny random BERT against transformers (test/golden/lm/bert.zip and
 * bert.txt, made by tools/oracle/lm.py): each way of pooling, texts together and alone, long ones;
 * and of tiny decoders against sentence-transformers (embed_*, made by tools/oracle/embed.py);
 * scores of tiny rerankers against transformers (rank_*, made by tools/oracle/rerank.py).
 */
#include "engine/embed.h"
#include "fail_alloc.h"

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
    close_bert(x);
}

/* ------------------------------------------------------------------------------------- decoders */

enum { D_WIDTH = 16, D_TEXTS = 5 };

static fixture open_decoder(const char *name, tg_log_fn log, void *user) {
    fixture x;
    char path[96];
    tg_context_options o = tg_context_options_default();
    o.threads = 2;
    o.log = log;
    o.log_user = user;
    snprintf(path, sizeof path, "test/golden/lm/%s.zip", name);
    assert_int_equal(tg_context_new(&o, &x.ctx), TG_OK);
    if (tg_model_open(x.ctx, path, &x.model) != TG_OK) fail_msg("%s", tg_context_error(x.ctx));
    return x;
}

static void keep_warning(void *user, int level, const char *text) {
    if (level == 1) snprintf(user, 200, "%s", text);
}

static void read_vector(FILE *f, const float *have, size_t n, const char *what) {
    for (size_t c = 0; c < n; c++) {
        double want;
        assert_int_equal(fscanf(f, "%lf", &want), 1);
        if (!(fabs((double)have[c] - want) <= 2e-5))
            fail_msg("%s, number %zu: want %g, have %g", what, c, want, (double)have[c]);
    }
    assert_int_equal(fgetc(f), '\n');
}

/* And encoders: what each family's folder says of pooling, ends, prompt and length. */
static void decoders_as_sentence_transformers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t ways;
    } families[] = { { "embed_qwen3", 1 },         { "embed_llama", 2 },      { "embed_gemma3", 1 },
                     { "embed_gpt2", 1 },          { "embed_modernbert", 1 }, { "embed_nomic", 1 },
                     { "embed_embeddinggemma", 1 } };
    for (size_t k = 0; k < sizeof families / sizeof families[0]; k++) {
        char path[96], line[256], warning[200] = "";
        fixture x = open_decoder(families[k].name, keep_warning, warning);
        tg_embed_options o = tg_embed_options_default();
        o.cut = true;
        snprintf(path, sizeof path, "test/golden/lm/%s.txt", families[k].name);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        for (int t = 0; t < D_TEXTS; t++) {
            float out[2 * D_WIDTH];
            tg_embedder *e;
            assert_non_null(fgets(line, sizeof line, f));
            const tg_embed_text text = { line, strcspn(line, "\n") };
            assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
            assert_int_equal(tg_embedder_width(e), families[k].ways * D_WIDTH);
            if (tg_embedder_run(e, &text, 1, out) != TG_OK) fail_msg("%s", tg_context_error(x.ctx));
            read_vector(f, out, families[k].ways * D_WIDTH, families[k].name);
            tg_embedder_free(e);
        }
        fclose(f);
        if (!strstr(warning, "text 1 of 1: ") || !strstr(warning, "at most 64 count"))
            fail_msg("%s: of a cut: '%s'", families[k].name, warning);
        close_bert(x);
    }
}

/* The last two vectors of a family's file are those of its first text with a prompt each, named and
 * as words. */
static void want_prompts(fixture x, const char *family, const char *const words[2]) {
    static const char *const names[] = { "query", "document" };
    char line[1024], path[96];
    snprintf(path, sizeof path, "test/golden/lm/%s.txt", family);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int t = 0; t < 2 * D_TEXTS; t++) assert_non_null(fgets(line, sizeof line, f));
    const tg_embed_text text = { "the cat", 7 };
    for (int k = 0; k < 2; k++) {
        tg_embed_options o = tg_embed_options_default();
        float named[D_WIDTH], own[D_WIDTH];
        o.prompt_name = names[k];
        embed(x, o, &text, 1, named);
        read_vector(f, named, D_WIDTH, names[k]);
        o.prompt_name = NULL;
        o.prompt = words[k];
        embed(x, o, &text, 1, own);
        assert_memory_equal(named, own, sizeof own);
    }
    fclose(f);
}

/* Qwen3-Embedding has an instruction in front of queries, and nothing in front of documents. */
static void prompts(void **state) {
    (void)state;
    fixture x = open_decoder("embed_qwen3", NULL, NULL);
    want_prompts(x, "embed_qwen3", (const char *const[2]) { "find the cat. ", "" });
    close_bert(x);
    x = open_decoder("embed_embeddinggemma", NULL, NULL);
    want_prompts(x, "embed_embeddinggemma", (const char *const[2]) { "the dog. ", "a cat: " });
    tg_embedder *e;
    tg_embed_options o = tg_embed_options_default();
    o.prompt_name = "task";
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(x.ctx), "'document' 'query', have 'task'"));
    o.prompt = "";
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(x.ctx), "have both"));
    o = tg_embed_options_default();
    o.pooling = TG_POOLING_MAX; /* two matrices stand behind it */
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_UNSUPPORTED);
    close_bert(x);
    x = open_decoder("embed_gpt2", NULL, NULL);
    o = tg_embed_options_default();
    o.prompt_name = "query";
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_ARG);
    assert_non_null(strstr(tg_context_error(x.ctx), "name none"));
    close_bert(x);
}

/* Encoders with windows and rotary positions: more texts than a run takes, bit for bit as alone. */
static void encoders_together_and_alone(void **state) {
    (void)state;
    enum { MANY = 40 };
    static const char *const names[] = { "embed_modernbert", "embed_nomic",
                                         "embed_embeddinggemma" };
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        char words[MANY][80];
        tg_embed_text texts[MANY];
        static float all[MANY * D_WIDTH];
        fixture x = open_decoder(names[k], NULL, NULL);
        const tg_embed_options o = tg_embed_options_default();
        for (int i = 0; i < MANY; i++) {
            snprintf(words[i], sizeof words[i], "%.*s cat the cat a b c d", i % 20 + i % 2,
                     "abcdefghijklmnopqrsta");
            texts[i] = (tg_embed_text) { words[i], strlen(words[i]) };
        }
        embed(x, o, texts, MANY, all);
        for (int i = 0; i < MANY; i += 3) {
            float one[D_WIDTH];
            embed(x, o, &texts[i], 1, one);
            assert_memory_equal(one, all + i * D_WIDTH, sizeof one);
        }
        close_bert(x);
    }
}

/* All ways, alone, raw, and several at once. */
static void ways_of_pooling(void **state) {
    (void)state;
    enum { WAYS_OF_OPTIONS = 6 };
    static const tg_pooling order[WAYS_OF_OPTIONS] = {
        TG_POOLING_MEAN, TG_POOLING_CLS,           TG_POOLING_LAST,
        TG_POOLING_MAX,  TG_POOLING_MEAN_SQRT_LEN, TG_POOLING_WEIGHTED_MEAN
    };
    char line[256];
    fixture x = open_decoder("embed_qwen3", NULL, NULL);
    FILE *f = fopen("test/golden/lm/embed_modes.txt", "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    const tg_embed_text text = { line, strcspn(line, "\n") };
    for (int k = 0; k < WAYS_OF_OPTIONS; k++) {
        tg_embed_options o = tg_embed_options_default();
        float out[D_WIDTH];
        o.pooling = order[k];
        o.raw = true;
        embed(x, o, &text, 1, out);
        snprintf(line + 200, 50, "pooling %d", order[k]);
        read_vector(f, out, D_WIDTH, line + 200);
    }
    fclose(f);
    close_bert(x);
}

/* Texts of one run know nothing of each other, and a text that comes again gives the same bits. */
static void decoders_together_and_alone(void **state) {
    (void)state;
    char text[60];
    fixture x;
    tg_context_options c = tg_context_options_default();
    tg_embed_options o = tg_embed_options_default();
    tg_embedder *e;
    float again[D_WIDTH], both[2 * D_WIDTH];
    assert_int_equal(tg_context_new(&c, &x.ctx), TG_OK);
    if (tg_model_open(x.ctx, "test/golden/lm/embed_gpt2.zip", &x.model) != TG_OK)
        fail_msg("%s", tg_context_error(x.ctx));
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 17);
    const tg_embed_text texts[2] = { { text, 3 }, { text, sizeof text } };
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    assert_int_equal(tg_embedder_run(e, texts, 2, both), TG_OK);
    assert_int_equal(tg_embedder_run(e, texts, 1, again), TG_OK);
    assert_memory_equal(again, both, D_WIDTH * sizeof(float));
    tg_embedder_free(e);
    embed(x, o, &texts[1], 1, again);
    assert_memory_equal(again, both + D_WIDTH, D_WIDTH * sizeof(float));
    close_bert(x);
}

/* A folder that embeds has no head: what it would write is not its own. */
static void no_head_no_text(void **state) {
    (void)state;
    tg_session *session;
    fixture x = open_decoder("embed_qwen3", NULL, NULL);
    assert_int_equal(tg_session_new(x.ctx, x.model, 0, &session), TG_E_UNSUPPORTED);
    assert_non_null(strstr(tg_context_error(x.ctx), "gives embeddings alone"));
    close_bert(x);
}

/* ------------------------------------------------------------------------------------ rerankers */

enum { R_TEXTS = 5 };

static void cut_line(char *line, size_t room, FILE *f) {
    assert_non_null(fgets(line, (int)room, f));
    line[strcspn(line, "\n")] = '\0';
}

/* Scores, together and alone, of BERT's head and of ModernBERT's behind either way of pooling; one
 * of the texts is empty. */
static void rerankers_as_transformers(void **state) {
    (void)state;
    static const char *const names[] = { "rank_bert", "rank_modernbert", "rank_modernbert_cls" };
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        char path[96], query[80], words[R_TEXTS][100], number[40];
        double want[R_TEXTS];
        float all[R_TEXTS], one;
        tg_embed_text texts[R_TEXTS];
        tg_embedder *e;
        fixture x = open_decoder(names[k], NULL, NULL);
        snprintf(path, sizeof path, "test/golden/lm/%s.txt", names[k]);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        cut_line(query, sizeof query, f);
        for (int t = 0; t < R_TEXTS; t++) {
            cut_line(words[t], sizeof words[t], f);
            cut_line(number, sizeof number, f);
            want[t] = strtod(number, NULL);
            texts[t] = (tg_embed_text) { words[t], strlen(words[t]) };
        }
        fclose(f);
        assert_true(tg_model_can(x.model, TG_CAN_RANK));
        assert_int_equal(tg_embedder_new(x.ctx, x.model, NULL, &e), TG_OK); /* the file says it */
        assert_int_equal(tg_embedder_width(e), 1);
        assert_int_equal(tg_embedder_run(e, texts, 1, &one), TG_E_ARG); /* nobody asked */
        assert_int_equal(tg_embedder_query(e, query), TG_OK);
        if (tg_embedder_run(e, texts, R_TEXTS, all) != TG_OK)
            fail_msg("%s", tg_context_error(x.ctx));
        for (int t = 0; t < R_TEXTS; t++) {
            if (!(fabs((double)all[t] - want[t]) <= 1e-5))
                fail_msg("%s, text %d: want %g, have %g", names[k], t, want[t], (double)all[t]);
            assert_int_equal(tg_embedder_run(e, &texts[t], 1, &one), TG_OK);
            assert_memory_equal(&one, &all[t], sizeof one);
        }
        tg_embedder_free(e);
        close_bert(x);
    }
}

/* A query and a text are read as one: a text is cut, the query never. */
static void long_pairs(void **state) {
    (void)state;
    char text[400];
    float whole, cut;
    tg_embedder *e;
    tg_embed_options o = tg_embed_options_default();
    fixture x = open_decoder("rank_bert", NULL, NULL); /* it sees 64 tokens */
    memset(text, 'a', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2) text[i] = ' ';
    const tg_embed_text large = { text, sizeof text }, fits = { text, 118 };
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    assert_int_equal(tg_embedder_query(e, "the cat"), TG_OK); /* [CLS] the cat [SEP] .. [SEP] */
    assert_int_equal(tg_embedder_run(e, &large, 1, &whole), TG_E_FULL);
    assert_int_equal(tg_embedder_run(e, &fits, 1, &whole), TG_OK);
    tg_embedder_free(e);
    o.cut = true;
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    assert_int_equal(tg_embedder_query(e, "the cat"), TG_OK);
    assert_int_equal(tg_embedder_run(e, &large, 1, &cut), TG_OK);
    assert_memory_equal(&cut, &whole, sizeof cut);
    text[140] = '\0'; /* 70 tokens */
    assert_int_equal(tg_embedder_query(e, text), TG_E_FULL);
    assert_non_null(strstr(tg_context_error(x.ctx), "at most 62 tokens"));
    assert_int_equal(tg_embedder_run(e, &fits, 1, &cut), TG_E_ARG); /* nobody has asked */
    tg_embedder_free(e);
    o.pooling = TG_POOLING_MEAN; /* its vectors are those of any encoder */
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
    assert_int_equal(tg_embedder_query(e, "a"), TG_E_ARG);
    tg_embedder_free(e);
    close_bert(x);
    x = open_bert(NULL);
    o.pooling = TG_POOLING_RANK;
    assert_false(tg_model_can(x.model, TG_CAN_RANK));
    assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_E_UNSUPPORTED);
    assert_non_null(strstr(tg_context_error(x.ctx), "cls.output.weight"));
    close_bert(x);
}

/* A plan that grows finds no memory: whatever is missing, the texts after it have their vectors. */
static void growth_without_memory(void **state) {
    (void)state;
    const tg_embed_text small = { "a cat", 5 }, large = { "the cat and the dog and the cat", 31 };
    const tg_embed_options o = tg_embed_options_default();
    fixture good = open_bert("scalar"), x = { NULL, NULL };
    float want[2][WIDTH], have[WIDTH];
    embed(good, o, &small, 1, want[0]);
    embed(good, o, &large, 1, want[1]);
    close_bert(good);
    test_alloc a = { .fail_at = 0 };
    tg_context_options c = tg_context_options_default();
    c.isa = "scalar";
    c.threads = 1;
    c.alloc = test_alloc_fn;
    c.alloc_user = &a;
    assert_int_equal(tg_context_new(&c, &x.ctx), TG_OK);
    assert_int_equal(tg_model_open(x.ctx, "test/golden/lm/bert.zip", &x.model), TG_OK);
    tg_status s = TG_E_MEMORY;
    size_t n = 0;
    while (s != TG_OK) {
        tg_embedder *e;
        assert_int_equal(tg_embedder_new(x.ctx, x.model, &o, &e), TG_OK);
        e->rows = 6; /* of 512 in its plan: the large text does not fit */
        a.fail_at = a.requests + ++n;
        s = tg_embedder_run(e, &large, 1, have);
        a.fail_at = 0;
        assert_true(s == TG_OK || s == TG_E_MEMORY);
        if (s != TG_OK) assert_int_equal(tg_embedder_run(e, &small, 1, have), TG_OK);
        assert_memory_equal(have, want[s == TG_OK], sizeof have);
        assert_int_equal(tg_embedder_run(e, &large, 1, have), TG_OK);
        assert_memory_equal(have, want[1], sizeof have);
        tg_embedder_free(e);
    }
    assert_true(n > 10);
    close_bert(x);
    assert_int_equal(a.live_pieces, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_transformers),
        cmocka_unit_test(together_and_alone),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(decoders_as_sentence_transformers),
        cmocka_unit_test(ways_of_pooling),
        cmocka_unit_test(decoders_together_and_alone),
        cmocka_unit_test(no_head_no_text),
        cmocka_unit_test(prompts),
        cmocka_unit_test(rerankers_as_transformers),
        cmocka_unit_test(long_pairs),
        cmocka_unit_test(growth_without_memory),
        cmocka_unit_test(encoders_together_and_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
