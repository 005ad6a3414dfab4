/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_batch.c - sessions that compute together have, to the bit, what each has alone.
 */
#include "engine/session.h"
#include "engine_util.h"
#include "load/weights.h"

#include <math.h>

enum { SESSIONS = 5, ROUNDS = 14, MOST = 9 };

/* Of test/golden/lm, in all packings there; NULL: bytes and fresh weights. */
static const char *const files[] = { "llama.gguf",
                                     "llama3",
                                     "qwen2.gguf",
                                     "qwen3.gguf",
                                     "gpt2_erf",
                                     "gemma3.gguf",
                                     "gemma2.gguf",
                                     "olmo2.gguf",
                                     "lfm2.gguf",
                                     "granite.gguf",
                                     "qwen3moe.gguf",
                                     "mlx4",
                                     "mlx8",
                                     "qwen35.gguf",
                                     "mistral.gguf",
                                     "smollm3.gguf",
                                     "phi3.gguf",
                                     "phi4.gguf",
                                     "yarn.gguf",
                                     "olmoe.gguf",
                                     "olmo3.gguf",
                                     "granitemoe.gguf",
                                     "biases.gguf",
                                     "falcon.gguf",
                                     "nemotron.gguf",
                                     "gemma4.gguf",
                                     NULL };

static tg_model *open_model(tg_context *ctx, const char *file) {
    static const tg_model_config bytes = { 2, 32, 2, 48, 256, 128 };
    char path[96];
    tg_model *m;
    if (!file) {
        assert_int_equal(tg_model_new(ctx, &bytes, 42, &m), TG_OK);
        return m;
    }
    snprintf(path, sizeof path, "test/golden/lm/%s", file);
    if (tg_model_open(ctx, path, &m) != TG_OK) fail_msg("%s", tg_context_error(ctx));
    return m;
}

static size_t vocab_of(const tg_model *m) {
    tg_model_info info;
    assert_int_equal(tg_model_get_info(m, &info), TG_OK);
    return (size_t)info.config.vocab;
}

/* A small generator, the same numbers for every thread count and type. */
static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Pairs of a session of the batch and a lone one, with the same tokens. */
typedef struct pairs {
    tg_context *ctx;
    tg_model *model;
    tg_batch *batch;
    tg_session *in[SESSIONS], *alone[SESSIONS];
    size_t V;
    bool stale[SESSIONS]; /* it went back, and has the logits of a longer text still */
} pairs;

static pairs open_pairs(tg_context *ctx, const char *file, tg_kv_type kv) {
    pairs p = { .ctx = ctx, .model = open_model(ctx, file) };
    p.V = vocab_of(p.model);
    assert_int_equal(tg_batch_new(ctx, p.model, SESSIONS, 0, kv, &p.batch), TG_OK);
    for (size_t i = 0; i < SESSIONS; i++) {
        p.in[i] = tg_batch_session(p.batch, i);
        assert_non_null(p.in[i]);
        assert_int_equal(tg_session_new_kv(ctx, p.model, 0, kv, &p.alone[i]), TG_OK);
    }
    assert_null(tg_batch_session(p.batch, SESSIONS));
    return p;
}

static void close_pairs(pairs *p) {
    for (size_t i = 0; i < SESSIONS; i++) tg_session_free(p->alone[i]);
    tg_batch_free(p->batch);
    tg_model_free(p->model);
}

static void want_same(const pairs *p, size_t i) {
    const float *a = tg_session_logits(p->in[i]), *b = tg_session_logits(p->alone[i]);
    assert_int_equal(tg_session_tokens(p->in[i]), tg_session_tokens(p->alone[i]));
    /* Which states stay to go back to follows from how calls are cut, which a batch does anew. */
    if (p->in[i]->d->cache.n_cols[TG_KEEPS_STATES] == 0)
        assert_int_equal(tg_session_held(p->in[i]), tg_session_held(p->alone[i]));
    if (a && b)
        assert_memory_equal(a, b, p->V * sizeof *a);
    else
        assert_true(!a && !b);
}

/* In slices, however small. */
static tg_status poll_to_end(tg_job *job, int *slices) {
    tg_status status;
    *slices = 0;
    do {
        status = tg_job_poll(job, 1e-6);
        ++*slices;
    } while (status == TG_PENDING);
    tg_job_free(job);
    return status;
}

static tg_status eval_in_slices(tg_batch *batch, tg_batch_entry *e, size_t n) {
    tg_job *job;
    int slices;
    const tg_status status = tg_batch_eval_job(batch, e, n, &job);
    return status == TG_OK ? poll_to_end(job, &slices) : status;
}

/* A session becomes another one's copy, and its pair reads the same tokens. */
static void copy_pair(const pairs *p, size_t to, size_t from) {
    const tg_session *s = p->in[from];
    if (s->n_tokens == 0 || p->stale[from]) return;
    assert_int_equal(tg_batch_copy(p->batch, to, from), TG_OK);
    assert_int_equal(tg_session_rewind(p->alone[to], 0), TG_OK);
    assert_int_equal(tg_session_eval(p->alone[to], s->fed, (size_t)s->n_tokens, NULL), TG_OK);
}

/* Some sessions, in any order, each by some tokens, after some of them were copied or went back. */
static void play_round(pairs *p, uint32_t *seed) {
    static int32_t tokens[SESSIONS][MOST];
    tg_batch_entry e[SESSIONS];
    size_t n = 0, first = next(seed) % SESSIONS;
    if (next(seed) % 3 == 0) copy_pair(p, first, (first + 1 + next(seed) % 4) % SESSIONS);
    for (size_t k = 0; k < SESSIONS; k++) {
        const size_t i = (first + 3 * k) % SESSIONS;
        const size_t have = tg_session_tokens(p->in[i]);
        if (next(seed) % 5 == 0 && have > 0) {
            const size_t back = next(seed) % (have + 1);
            assert_int_equal(tg_session_rewind(p->in[i], back), TG_OK);
            assert_int_equal(tg_session_rewind(p->alone[i], back), TG_OK);
            p->stale[i] = p->stale[i] || back < have;
        }
        const size_t room = tg_session_capacity(p->in[i]) - tg_session_tokens(p->in[i]);
        const size_t wish = next(seed) % 3 == 0 ? next(seed) % (MOST + 1) : 1;
        if (next(seed) % 4 == 0 || wish > room) continue;
        p->stale[i] = p->stale[i] && wish == 0;
        for (size_t t = 0; t < wish; t++) tokens[i][t] = (int32_t)(next(seed) % p->V);
        e[n++] = (tg_batch_entry) { p->in[i], tokens[i], wish, TG_E_MEMORY };
        assert_int_equal(tg_session_eval(p->alone[i], tokens[i], wish, NULL), TG_OK);
    }
    if (n == 1 && next(seed) % 2) /* by the session's own call */
        assert_int_equal(tg_session_eval(e[0].session, e[0].tokens, e[0].n, NULL), TG_OK);
    else if ((next(seed) % 2 ? tg_batch_eval : eval_in_slices)(p->batch, e, n) != TG_OK)
        fail_msg("%s", tg_context_error(p->ctx));
    else
        for (size_t k = 0; k < n; k++) assert_int_equal(e[k].status, TG_OK);
    for (size_t i = 0; i < SESSIONS; i++) want_same(p, i);
}

static void as_alone(void **state) {
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        tg_context *ctx = open_context(threads, NULL, NULL);
        for (size_t m = 0; m < sizeof files / sizeof *files; m++)
            for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++) {
                uint32_t seed = (uint32_t)(100 * m + 10 * (size_t)kv + threads);
                pairs p = open_pairs(ctx, files[m], (tg_kv_type)kv);
                for (int round = 0; round < ROUNDS; round++) play_round(&p, &seed);
                close_pairs(&p);
            }
        tg_context_free(ctx);
    }
}

/* A prompt of several hundred tokens beside single tokens, over windows that leave their rings. */
static void long_prompts(void **state) {
    (void)state;
    enum { LONG = 700 };
    static int32_t tokens[LONG];
    static const tg_model_config config = { .layers = 3,
                                            .width = 32,
                                            .heads = 2,
                                            .ctx = 2048,
                                            .vocab = 256,
                                            .family = "gemma3",
                                            .kv_heads = 1,
                                            .window = 40,
                                            .window_every = 3 };
    uint32_t seed = 5;
    tg_context *ctx = open_context(2, NULL, NULL);
    tg_model *m;
    tg_batch *b;
    tg_session *alone;
    if (tg_model_new(ctx, &config, 7, &m) != TG_OK) fail_msg("%s", tg_context_error(ctx));
    assert_int_equal(tg_batch_new(ctx, m, 2, 1500, TG_KV_F32, &b), TG_OK);
    assert_int_equal(tg_session_new(ctx, m, 1500, &alone), TG_OK);
    for (size_t i = 0; i < LONG; i++) tokens[i] = (int32_t)(next(&seed) % 256);
    assert_int_equal(tg_session_eval(alone, tokens, LONG, NULL), TG_OK);
    assert_int_equal(tg_session_eval(alone, tokens, LONG, NULL), TG_OK);
    for (int turn = 0; turn < 2; turn++) {
        tg_batch_entry e[] = { { tg_batch_session(b, 0), tokens, LONG, TG_OK },
                               { tg_batch_session(b, 1), tokens + 3, LONG - 3, TG_OK } };
        assert_int_equal(tg_batch_eval(b, e, 2), TG_OK);
    }
    assert_memory_equal(tg_session_logits(tg_batch_session(b, 0)), tg_session_logits(alone),
                        256 * sizeof(float));
    /* far back behind the window: all of it is computed again, beside another session */
    for (int turn = 0; turn < 2; turn++) {
        tg_session *s = turn ? alone : tg_batch_session(b, 0);
        assert_int_equal(tg_session_rewind(s, 600), TG_OK);
        assert_int_equal(tg_session_held(s), 0);
    }
    assert_int_equal(tg_session_eval(alone, tokens, 2, NULL), TG_OK);
    tg_batch_entry e[] = { { tg_batch_session(b, 1), tokens, 1, TG_OK },
                           { tg_batch_session(b, 0), tokens, 2, TG_OK } };
    assert_int_equal(tg_batch_eval(b, e, 2), TG_OK);
    assert_memory_equal(tg_session_logits(tg_batch_session(b, 0)), tg_session_logits(alone),
                        256 * sizeof(float));
    tg_session_free(alone);
    tg_batch_free(b);
    tg_model_free(m);
    tg_context_free(ctx);
}

/* One that is full, a bad token, a session of somebody else's: nothing happens to any. */
static void refused(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    pairs p = open_pairs(ctx, NULL, TG_KV_F32);
    static int32_t tokens[64];
    const size_t room = tg_session_capacity(p.in[0]);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tg_session_eval(p.in[i], tokens, 4 + i, NULL), TG_OK);
        assert_int_equal(tg_session_eval(p.alone[i], tokens, 4 + i, NULL), TG_OK);
    }
    static const int32_t bad[] = { 1, 256 };
    tg_batch_entry e[3] = { { p.in[2], tokens, 2, TG_OK }, { p.in[0], bad, 2, TG_OK } };
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_RANGE);
    assert_non_null(strstr(tg_context_error(ctx), "entry 1"));
    e[1] = (tg_batch_entry) { p.in[0], tokens, room - 3, TG_OK };
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_FULL);
    e[1].session = p.alone[0];
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_ARG);
    e[1].session = p.in[2];
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_ARG);
    e[1] = (tg_batch_entry) { p.in[0], NULL, 2, TG_OK };
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_ARG);
    assert_int_equal(tg_batch_eval(p.batch, e, SESSIONS + 1), TG_E_ARG);
    assert_int_equal(tg_batch_copy(p.batch, 0, SESSIONS), TG_E_RANGE);
    for (size_t i = 0; i < SESSIONS; i++) want_same(&p, i);
    tg_session_free(p.in[0]); /* is the batch's, and stays */
    want_same(&p, 0);
    tg_batch *none;
    assert_int_equal(tg_batch_new(ctx, p.model, 0, 0, TG_KV_F32, &none), TG_E_ARG);
    assert_int_equal(tg_batch_new(ctx, p.model, TG_BATCH_MAX + 1, 0, TG_KV_F32, &none), TG_E_ARG);
    tg_job *job;
    assert_int_equal(tg_session_eval_job(p.in[1], tokens, 1, &job), TG_OK);
    e[1] = (tg_batch_entry) { p.in[0], tokens, 1, TG_OK };
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_E_ARG); /* another one's job is pending */
    tg_job_free(job);
    assert_int_equal(tg_batch_eval(p.batch, e, 2), TG_OK);
    close_pairs(&p);
    tg_context_free(ctx);
}

/* Given up in the middle, between runs or within one: all sessions are as they were. */
static void abandoned(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    static int32_t tokens[24];
    for (int polls = 0;; polls++) {
        pairs p = open_pairs(ctx, "llama.gguf", TG_KV_F32);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(tg_session_eval(p.in[i], tokens, 3 + i, NULL), TG_OK);
            assert_int_equal(tg_session_eval(p.alone[i], tokens, 3 + i, NULL), TG_OK);
        }
        tg_batch_entry e[] = { { p.in[0], tokens, 9, TG_E_MEMORY },
                               { p.in[2], tokens, 1, TG_E_MEMORY },
                               { p.in[1], tokens, 24, TG_E_MEMORY } };
        tg_job *job;
        tg_status status = TG_PENDING;
        assert_int_equal(tg_batch_eval_job(p.batch, e, 3, &job), TG_OK);
        for (int k = 0; k < polls && status == TG_PENDING; k++) status = tg_job_poll(job, 1e-6);
        assert_int_equal(tg_session_eval(p.in[4], tokens, 1, NULL),
                         status == TG_PENDING ? TG_E_ARG : TG_OK);
        tg_job_free(job);
        for (size_t i = 0; i < 3 && status == TG_PENDING; i++) {
            assert_int_equal(e[i].status, TG_E_MEMORY); /* nothing was written */
            want_same(&p, i);
            assert_int_equal(tg_session_eval(p.in[i], tokens, 2, NULL), TG_OK);
            assert_int_equal(tg_session_eval(p.alone[i], tokens, 2, NULL), TG_OK);
            want_same(&p, i);
        }
        close_pairs(&p);
        if (status == TG_PENDING) continue;
        assert_int_equal(status, TG_OK);
        assert_true(polls > 3);
        break;
    }
    tg_context_free(ctx);
}

/* Position 9 has a NaN: who comes there stays before it, and the others go on. */
static void not_finite(void **state) {
    (void)state;
    tg_context *ctx = open_context(2, NULL, NULL);
    pairs p = open_pairs(ctx, NULL, TG_KV_F32);
    static const int32_t tokens[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
    const tg_layout *l = &p.model->layout;
    for (size_t i = 0; i < l->n_params; i++)
        if (strcmp(l->params[i].role, "position_embd.weight") == 0)
            p.model->weights[l->params[i].offset_elems + 9 * 32] = NAN;
    for (size_t i = 0; i < 3; i++) {
        const size_t n = i == 1 ? 9 : 4;
        assert_int_equal(tg_session_eval(p.in[i], tokens, n, NULL), TG_OK);
        assert_int_equal(tg_session_eval(p.alone[i], tokens, n, NULL), TG_OK);
        if (i != 1) assert_int_equal(tg_session_eval(p.alone[i], tokens, 2, NULL), TG_OK);
    }
    tg_batch_entry e[] = { { p.in[0], tokens, 2, TG_OK },
                           { p.in[1], tokens, 3, TG_OK },
                           { p.in[2], tokens, 2, TG_OK } };
    assert_int_equal(tg_batch_eval(p.batch, e, 3), TG_E_NUMBER);
    assert_non_null(strstr(tg_context_error(ctx), "entry 1"));
    assert_int_equal(e[0].status, TG_OK);
    assert_int_equal(e[1].status, TG_E_NUMBER);
    assert_int_equal(e[2].status, TG_OK);
    for (size_t i = 0; i < 3; i++) want_same(&p, i);
    close_pairs(&p);
    tg_context_free(ctx);
}

/* How many pages of a cache's first table two sessions have in common. */
static size_t common_pages(const tg_session *a, const tg_session *b) {
    const tg_cache *c = &a->d->cache;
    size_t n = 0;
    for (size_t k = 0; k < c->n_cols[0]; k++)
        n += c->pages[0][(size_t)a->sequence * c->n_cols[0] + k] ==
             c->pages[0][(size_t)b->sequence * c->n_cols[0] + k];
    return n;
}

/* What several texts begin with is kept once, in pages of 64 positions, until one of them writes
 * there: beyond the common part, or within it, after it went back. */
static void copies_share(const tg_model_config *config, size_t n, tg_kv_type kv) {
    static int32_t tokens[700];
    tg_context *ctx = open_context(2, NULL, NULL);
    pairs p = { .ctx = ctx, .V = 256 };
    uint32_t seed = 3;
    for (size_t i = 0; i < 700; i++) tokens[i] = (int32_t)(next(&seed) % 256);
    assert_int_equal(tg_model_new(ctx, config, 7, &p.model), TG_OK);
    assert_int_equal(tg_batch_new(ctx, p.model, SESSIONS, 0, kv, &p.batch), TG_OK);
    for (size_t i = 0; i < SESSIONS; i++) {
        p.in[i] = tg_batch_session(p.batch, i);
        assert_int_equal(tg_session_new_kv(ctx, p.model, 0, kv, &p.alone[i]), TG_OK);
    }
    assert_int_equal(tg_session_eval(p.in[3], tokens, n, NULL), TG_OK);
    assert_int_equal(tg_session_eval(p.alone[3], tokens, n, NULL), TG_OK);
    for (size_t i = 0; i < SESSIONS; i++)
        if (i != 3) copy_pair(&p, i, 3);
    const size_t whole = n / 64; /* pages; another one has the rest */
    assert_int_equal(common_pages(p.in[0], p.in[3]), whole + 1);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < SESSIONS; i++) {
            static const size_t back[SESSIONS] = { 0, 1, 80, 140, 0 };
            if (round == 1 && i != 4) {
                assert_int_equal(tg_session_rewind(p.in[i], n - back[i]), TG_OK);
                assert_int_equal(tg_session_rewind(p.alone[i], n - back[i]), TG_OK);
            }
            assert_int_equal(tg_session_eval(p.in[i], tokens + 7 * i, 1 + 5 * i, NULL), TG_OK);
            assert_int_equal(tg_session_eval(p.alone[i], tokens + 7 * i, 1 + 5 * i, NULL), TG_OK);
            for (size_t k = 0; k < SESSIONS; k++) want_same(&p, k);
            if (round == 1 && i == 4) copy_pair(&p, 3, 2), copy_pair(&p, 2, 0);
        }
    assert_int_equal(common_pages(p.in[0], p.in[1]), whole);
    assert_int_equal(common_pages(p.in[0], p.in[4]), whole);
    close_pairs(&p);
    tg_context_free(ctx);
}

static void copies(void **state) {
    (void)state;
    static const tg_model_config all = { .layers = 2,
                                         .width = 32,
                                         .heads = 2,
                                         .ctx = 256,
                                         .vocab = 256,
                                         .family = "llama",
                                         .kv_heads = 1 };
    static const tg_model_config windows = { .layers = 3,
                                             .width = 32,
                                             .heads = 2,
                                             .ctx = 1500,
                                             .vocab = 256,
                                             .family = "gemma3",
                                             .kv_heads = 1,
                                             .window = 40,
                                             .window_every = 3 };
    static const tg_model_config convolutions = { .layers = 3,
                                                  .width = 32,
                                                  .heads = 2,
                                                  .ctx = 1500,
                                                  .vocab = 256,
                                                  .family = "lfm2",
                                                  .kv_heads = 1 };
    for (int kv = TG_KV_F32; kv <= TG_KV_INT8; kv++) copies_share(&all, 150, (tg_kv_type)kv);
    copies_share(&windows, 700, TG_KV_F16); /* the ring of 576 has come round */
    copies_share(&convolutions, 700, TG_KV_INT8);
    tg_model_config states = convolutions;
    states.family = "granitehybrid";
    copies_share(&states, 700, TG_KV_F32);
    states.family = "qwen35";
    copies_share(&states, 700, TG_KV_F32);
    states.family = "falcon-h1";
    copies_share(&states, 700, TG_KV_F16);
    states.family = "nemotron_h";
    copies_share(&states, 700, TG_KV_F32);
}

typedef struct heard {
    char text[4096];
    size_t n;
    int32_t ids[64];
    tg_generate_stats stats;
    int calls;
} heard;

static int hear(void *user, const char *bytes, size_t n) {
    heard *h = user;
    assert_true(h->n + n < sizeof h->text);
    memcpy(h->text + h->n, bytes, n);
    h->n += n;
    return 0;
}

static int soon(void *user) { return ++((heard *)user)->calls > 5; }

/* Texts of several lengths and seeds, beyond the window, with drafts, one that is cancelled. */
static void texts_as_alone(void **state) {
    (void)state;
    static const char *const some[] = { "llama.gguf",   "gemma3.gguf", "lfm2.gguf",
                                        "granite.gguf", "falcon.gguf", NULL };
    static const int32_t prompts[SESSIONS][9] = {
        { 5, 6, 7, 5, 6, 7, 5, 6, 7 }, { 9 }, { 40, 41 }, { 11, 12, 13, 14 }, { 8, 9, 8, 9 }
    };
    static const size_t lengths[SESSIONS] = { 9, 1, 2, 4, 4 };
    static heard in[SESSIONS], alone[SESSIONS];
    tg_context *ctx = open_context(2, NULL, NULL);
    for (size_t m = 0; m < sizeof some / sizeof *some; m++) {
        pairs p = open_pairs(ctx, some[m], TG_KV_F32);
        tg_sample_options o[SESSIONS];
        tg_generation g[SESSIONS];
        const tg_generation *what[SESSIONS];
        tg_generate_stats stats[SESSIONS];
        tg_status status[SESSIONS];
        for (size_t i = 0; i < SESSIONS; i++) {
            in[i] = alone[i] = (heard) { .n = 0 };
            o[i] = tg_sample_options_default();
            o[i].seed = 40 + i;
            o[i].temperature = i == 1 ? 0 : 0.9;
            g[i] = tg_generation_default();
            g[i].ids = prompts[i];
            g[i].n_ids = lengths[i];
            g[i].sample = &o[i];
            g[i].n_tokens = 10 + 13 * i;
            g[i].write = hear;
            g[i].draft = i == 0 ? 4 : 0;
            g[i].cancel = i == 2 ? soon : NULL;
            g[i].user = &alone[i];
            g[i].new_ids = alone[i].ids;
            const tg_status s = tg_session_continue(p.alone[i], &g[i], &alone[i].stats);
            assert_int_equal(s, i == 2 ? TG_STOPPED : TG_OK);
            g[i].user = &in[i];
            g[i].new_ids = in[i].ids;
            what[i] = &g[i];
        }
        tg_job *job;
        int slices = 0;
        if (m == 1) /* a job may be given up, and another one begin */
            for (int polls = 0; polls < 12; polls++) {
                assert_int_equal(
                    tg_batch_continue_job(p.batch, what, SESSIONS, stats, status, &job), TG_OK);
                for (int k = 0; k < polls; k++) tg_job_poll(job, 1e-6);
                tg_job_free(job);
                for (size_t i = 0; i < SESSIONS; i++) in[i] = (heard) { .n = 0 };
            }
        if (m == 0) {
            assert_int_equal(tg_batch_continue(p.batch, what, SESSIONS, stats, status), TG_STOPPED);
        } else {
            assert_int_equal(tg_batch_continue_job(p.batch, what, SESSIONS, stats, status, &job),
                             TG_OK);
            assert_int_equal(poll_to_end(job, &slices), TG_STOPPED);
            assert_true(slices > 20);
        }
        for (size_t i = 0; i < SESSIONS; i++) {
            assert_int_equal(status[i], i == 2 ? TG_STOPPED : TG_OK);
            assert_int_equal(stats[i].end, alone[i].stats.end);
            assert_int_equal(stats[i].slides, alone[i].stats.slides);
            if (i == 2) continue; /* how often it is asked within a feed is another thing */
            assert_int_equal(stats[i].new_tokens, alone[i].stats.new_tokens);
            assert_memory_equal(in[i].ids, alone[i].ids, sizeof in[i].ids);
            assert_int_equal(in[i].n, alone[i].n);
            assert_memory_equal(in[i].text, alone[i].text, in[i].n);
            want_same(&p, i);
        }
        for (size_t i = 0; i < 2; i++) { /* both before their first tokens, within the prompt */
            in[i].calls = 100;
            g[i].cancel = soon;
            g[i].draft = 0;
            assert_int_equal(tg_session_rewind(p.in[i], 0), TG_OK);
        }
        assert_int_equal(tg_batch_continue(p.batch, what, 2, stats, status), TG_STOPPED);
        assert_int_equal(status[1], TG_STOPPED);
        assert_int_equal(stats[0].new_tokens + stats[1].new_tokens, 0);
        g[0].cancel = g[1].cancel = NULL;
        static const int32_t bad[] = { 1, 70000 };
        g[1].ids = bad;
        g[1].n_ids = 2;
        g[2].cancel = NULL;
        assert_int_equal(tg_batch_continue(p.batch, what, 3, stats, status), TG_E_RANGE);
        assert_int_equal(status[0], TG_OK);
        assert_int_equal(status[1], TG_E_RANGE);
        assert_int_equal(status[2], TG_OK);
        g[2].n_ends = 1000; /* refused before any of them begins, and told of all */
        assert_int_equal(tg_batch_continue(p.batch, what, 3, stats, status), TG_E_ARG);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(status[i], TG_E_ARG);
            assert_int_equal(stats[i].new_tokens, 0);
        }
        close_pairs(&p);
    }
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_alone),       cmocka_unit_test(long_prompts), cmocka_unit_test(refused),
        cmocka_unit_test(abandoned),      cmocka_unit_test(not_finite),   cmocka_unit_test(copies),
        cmocka_unit_test(texts_as_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
