/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c - what several threads may do at once: workers that train, sessions of several
 * contexts over one model, tokenizers. Short, since it is made for the thread sanitizer (make
 * tsan); that the bits are the same whatever the threads is asked here, too.
 */
#include "engine_util.h"

#include <pthread.h>

enum { THREADS = 4, TEXT_BYTES = 20000, MODEL_V = 256 };

static const tg_model_config nano = { 2, 24, 3, 16, MODEL_V, 96 };

static int add_text(void *user, const char *bytes, size_t n) {
    char **at = user;
    memcpy(*at, bytes, n);
    *at += n;
    return 0;
}

/* Steps with a validation and a save among them. */
static uint64_t train(unsigned threads) {
    static char bytes[TEXT_BYTES];
    char *at = bytes;
    tg_text *text;
    tg_context *ctx = open_context(threads, NULL, NULL);
    tg_train_options o = tg_train_options_default();
    o.steps = 6;
    o.batch = 5;
    o.accum = 2;
    o.eval_every = 3;
    o.eval_windows = 3;
    OK(ctx, tg_stories(1, TEXT_BYTES, add_text, &at));
    OK(ctx, tg_text_from_memory(ctx, bytes, TEXT_BYTES, &text));
    run_of r = start_run_on(ctx, text, &nano, &o);
    steps_until(&r, 4);
    OK(ctx, tg_trainer_save(r.trainer, "build/test_threads.tinygpt"));
    const uint64_t hash = steps_until(&r, 6).loss_hash;
    end_run(&r);
    remove("build/test_threads.tinygpt");
    return hash;
}

static void training_with_several_workers(void **state) {
    (void)state;
    const uint64_t alone = train(1);
    assert_int_equal(train(2), alone);
    assert_int_equal(train(3), alone);
}

/* ------------------------------------------------------------------------------------- sessions */

/* One thread: a context of its own with two workers, a session over the model that all share. */
typedef struct talker {
    tg_model *model;
    tg_kv_type kv;
    float logits[MODEL_V];
    bool whole;
} talker;

static void *talk(void *user) {
    static const int32_t ids[] = { 1, 7, 3, 9, 2, 11, 4, 5 };
    talker *t = user;
    tg_context_options o = tg_context_options_default();
    tg_context *ctx;
    tg_session *s = NULL;
    const float *logits = NULL;
    tg_model_info info;
    o.threads = 2;
    if (tg_context_new(&o, &ctx) == TG_OK && tg_model_get_info(t->model, &info) == TG_OK &&
        tg_session_new_kv(ctx, t->model, 0, t->kv, &s) == TG_OK &&
        tg_session_eval(s, ids, 5, NULL) == TG_OK &&
        tg_session_eval(s, ids + 5, 3, &logits) == TG_OK) {
        memcpy(t->logits, logits, (size_t)info.config.vocab * sizeof *logits);
        t->whole = true;
    }
    tg_session_free(s);
    tg_context_free(ctx);
    return NULL;
}

static void sessions_over(tg_model *model) {
    talker t[THREADS];
    pthread_t thread[THREADS];
    memset(t, 0, sizeof t);
    for (size_t i = 0; i < THREADS; i++) {
        t[i].model = model;
        t[i].kv = i % 2 ? TG_KV_F16 : TG_KV_F32;
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &t[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(t[i].whole);
    }
    for (size_t i = 2; i < THREADS; i++)
        assert_memory_equal(t[i].logits, t[i % 2].logits, sizeof t[i].logits);
}

static void sessions_of_several_contexts(void **state) {
    (void)state;
    static const char *const paths[] = { "test/golden/lm/llama3.gguf", "test/golden/lm/gemma3.gguf",
                                         "test/golden/lm/qwen3.gguf" };
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *model;
    OK(ctx, tg_model_new(ctx, &nano, 1, &model));
    sessions_over(model);
    tg_model_free(model);
    for (size_t i = 0; i < 3; i++) {
        OK(ctx, tg_model_open(ctx, paths[i], &model));
        sessions_over(model);
        tg_model_free(model);
    }
    tg_context_free(ctx);
}

/* ----------------------------------------------------------------------------------- tokenizers */

typedef struct reader {
    const tg_tokenizer *shared;
    size_t n, bytes;
    int32_t ids[64];
} reader;

/* Everything that asks the shared one, each thread with a context of its own. */
static void *read_text(void *user) {
    static const char text[] = "The quick brown fox, 12345 times. \xc3\xa9\xe6\x97\xa5";
    reader *r = user;
    tg_context *ctx;
    if (tg_context_new(NULL, &ctx) == TG_OK) {
        (void)tg_tokenizer_encode(ctx, r->shared, text, sizeof text - 1, 0, r->ids, 1, &r->n);
        (void)tg_tokenizer_encode(ctx, r->shared, text, sizeof text - 1, 0, r->ids, 64, &r->n);
    }
    for (size_t i = 0; i < tg_tokenizer_count(r->shared); i++) {
        size_t n;
        if (tg_tokenizer_bytes(r->shared, (int32_t)i, &n)) r->bytes += n;
        if (tg_tokenizer_piece(r->shared, (int32_t)i, &n)) r->bytes += n;
    }
    tg_context_free(ctx);
    return NULL;
}

static void tokenizers_of_several_contexts(void **state) {
    (void)state;
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_tokenizer *shared;
    OK(ctx, tg_tokenizer_open(ctx, "test/golden/tok/byte_bpe.json", &shared));
    reader r[THREADS];
    pthread_t thread[THREADS];
    memset(r, 0, sizeof r);
    for (size_t i = 0; i < THREADS; i++) {
        r[i].shared = shared;
        assert_int_equal(pthread_create(&thread[i], NULL, read_text, &r[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(r[i].n > 0 && r[i].bytes > 0);
        assert_memory_equal(r[i].ids, r[0].ids, sizeof r[i].ids);
        assert_int_equal(r[i].bytes, r[0].bytes);
    }
    tg_tokenizer_free(shared);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_with_several_workers),
        cmocka_unit_test(sessions_of_several_contexts),
        cmocka_unit_test(tokenizers_of_several_contexts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
