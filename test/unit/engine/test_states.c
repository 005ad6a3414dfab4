/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_states.c - which states of recurrent layers stay when more come than there are slots for,
 * and that what was lost is computed anew, to the same bits: alone, in copies, and behind a file.
 */
#include "engine/session.h"
#include "engine_util.h"

enum { V = 256, MOST = 640, ROWS = 3 };

#define SAVED "build/states.session"

static int32_t ids[MOST], others[MOST];

typedef struct opened {
    tg_context *ctx;
    tg_model *model;
} opened;

static const char *const families[] = { "granitehybrid", "qwen35", "falcon-h1", "nemotron_h" };
enum { N_FAMILIES = sizeof families / sizeof *families };

static opened open_model(size_t family) {
    const tg_model_config config = { .layers = 3,
                                     .width = 32,
                                     .heads = 2,
                                     .ctx = MOST,
                                     .vocab = V,
                                     .family = families[family],
                                     .kv_heads = 1 };
    opened o = { .ctx = open_context(2, NULL, NULL) };
    for (int i = 0; i < MOST; i++) {
        ids[i] = (7 * i * i + 3 * i + 1) % V;
        others[i] = (5 * i * i + i + 9) % V;
    }
    OK(o.ctx, tg_model_new(o.ctx, &config, 7, &o.model));
    return o;
}

static void close_model(opened *o) {
    tg_model_free(o->model);
    tg_context_free(o->ctx);
}

static tg_session *session_of(const opened *o) {
    tg_session *s;
    OK(o->ctx, tg_session_new(o->ctx, o->model, 0, &s));
    return s;
}

/* Tokens up to position `end`, in one call; returns the logits. */
static const float *feed(tg_session *s, const int32_t *tokens, int end) {
    const int n = (int)tg_session_tokens(s);
    const float *logits;
    assert_int_equal(tg_session_eval(s, tokens + n, (size_t)(end - n), &logits), TG_OK);
    return logits;
}

/* A session that goes on to `end` has the bits of one that reads all of it for the first time. */
static void want_bits(const opened *o, tg_session *s, int end) {
    tg_session *fresh = session_of(o);
    assert_memory_equal(feed(s, ids, end), feed(fresh, ids, end), V * sizeof(float));
    tg_session_free(fresh);
}

static int by_position(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The positions that a session has states behind, rising; 0: a slot has none. */
static void want_states(const tg_session *s, const int want[TG_STATE_SLOTS]) {
    const tg_cache *c = &s->d->cache;
    int have[TG_STATE_SLOTS];
    for (size_t k = 0; k < TG_STATE_SLOTS; k++)
        have[k] = c->slots[(size_t)s->sequence * TG_STATE_SLOTS + k].position;
    qsort(have, TG_STATE_SLOTS, sizeof *have, by_position);
    for (size_t k = 0; k < TG_STATE_SLOTS; k++)
        if (have[k] != want[k])
            fail_msg("at %zu: state %zu is behind %d, want %d", tg_session_tokens(s), k, have[k],
                     want[k]);
}

/* Each slot is counted as often as tables name it. */
static void want_counts(const tg_batch *b) {
    const tg_cache *c = &tg_batch_session((tg_batch *)b, 0)->d->cache;
    int named[ROWS * TG_STATE_SLOTS] = { 0 };
    for (size_t k = 0; k < ROWS * TG_STATE_SLOTS; k++) named[c->pages[TG_KEEPS_STATES][k]]++;
    for (size_t k = 0; k < ROWS * TG_STATE_SLOTS; k++)
        assert_int_equal(c->uses[TG_KEEPS_STATES][k], named[k]);
}

/* Long calls leave two states, that before their last token and that behind it. */
typedef struct call {
    int end, states[TG_STATE_SLOTS];
} call;
static const call prompts[] = {
    { 100, { 0, 0, 99, 100 } },     /* unused slots first */
    { 200, { 99, 100, 199, 200 } }, /* all are in use */
    { 300, { 99, 199, 299, 300 } }, /* then the newest of a short run, but for that gone on from */
    { 400, { 199, 299, 399, 400 } } /* then the oldest */
};
static const call answer[] = { { 401, { 299, 399, 400, 401 } },
                               { 402, { 299, 399, 401, 402 } },
                               { 403, { 299, 399, 402, 403 } },
                               { 419, { 299, 399, 403, 419 } }, /* 16 rows are short */
                               { 436, { 299, 399, 435, 436 } } };
static const call tokens[] = {
    { 1, { 0, 0, 0, 1 } }, { 2, { 0, 0, 1, 2 } }, { 3, { 0, 1, 2, 3 } },
    { 4, { 1, 2, 3, 4 } }, { 5, { 1, 2, 4, 5 } }, { 6, { 1, 2, 5, 6 } }
};

static void play(tg_session *s, const call *calls, size_t n) {
    for (size_t i = 0; i < n; i++) {
        feed(s, ids, calls[i].end);
        want_states(s, calls[i].states);
    }
}
#define PLAY(s, calls) play(s, calls, sizeof(calls) / sizeof *(calls))

static void which_is_lost_of(size_t family) {
    opened o = open_model(family);
    tg_session *s = session_of(&o), *brief = session_of(&o);
    PLAY(s, prompts);
    PLAY(s, answer);
    PLAY(brief, tokens);
    want_bits(&o, s, 500);
    tg_session_free(brief);
    tg_session_free(s);
    close_model(&o);
}

/* What is said before anything is allocated is what a cache then takes, states beside attention
 * among it. */
static void bytes_of(size_t family) {
    opened o = open_model(family);
    tg_session *s = session_of(&o);
    const tg_cache *c = &s->d->cache;
    uint64_t bytes = 0;
    for (int32_t i = 0; i < c->n_layers; i++)
        bytes += c->layers[i].n_pages * tg_layer_state_page_bytes(&c->layers[i]);
    assert_int_equal(bytes, tg_model_state_bytes(&o.model->layout.config, s->d->kv, MOST, 1));
    tg_session_free(s);
    close_model(&o);
}

/* Back to places whose states are there, whose are lost, and that never had one: all from the
 * newest state before them, and what lies beyond a place is forgotten. */
static void back_to_what_is_lost_of(size_t family) {
    static const struct {
        int to, held, then[TG_STATE_SLOTS]; /* states behind the next token */
    } backs[] = {
        { 400, 400, { 299, 399, 400, 401 } }, { 399, 399, { 199, 299, 399, 400 } },
        { 300, 299, { 199, 299, 300, 301 } }, { 250, 199, { 199, 249, 250, 251 } },
        { 200, 199, { 0, 199, 200, 201 } },   { 199, 199, { 0, 0, 199, 200 } },
        { 198, 0, { 0, 197, 198, 199 } },     { 100, 0, { 0, 99, 100, 101 } },
    };
    opened o = open_model(family);
    for (size_t i = 0; i < sizeof backs / sizeof *backs; i++) {
        tg_session *s = session_of(&o);
        PLAY(s, prompts);
        assert_int_equal(tg_session_rewind(s, (size_t)backs[i].to), TG_OK);
        assert_int_equal(tg_session_held(s), backs[i].held);
        want_bits(&o, s, backs[i].to + 1);
        want_states(s, backs[i].then);
        want_bits(&o, s, backs[i].to + 120);
        tg_session_free(s);
    }
    close_model(&o);
}

/* Two copies have the states of the first; whoever writes loses its own alone. */
static void copies_of(size_t family) {
    static const int to[][2] = { { 200, 200 }, { 199, 199 }, { 100, 99 }, { 99, 99 } };
    opened o = open_model(family);
    tg_batch *b;
    OK(o.ctx, tg_batch_new(o.ctx, o.model, ROWS, 0, TG_KV_F32, &b));
    tg_session *s[ROWS];
    for (size_t i = 0; i < ROWS; i++) s[i] = tg_batch_session(b, i);
    play(s[1], prompts, 2);
    OK(o.ctx, tg_batch_copy(b, 0, 1));
    OK(o.ctx, tg_batch_copy(b, 2, 1));
    want_counts(b);
    for (int end = 300; end <= 600; end += 100) {
        feed(s[0], others, end);
        want_counts(b);
    }
    want_states(s[0], (int[]) { 399, 499, 599, 600 });
    for (size_t i = 1; i < ROWS; i++) {
        want_states(s[i], prompts[1].states);
        for (size_t k = 0; k < sizeof to / sizeof *to; k++) {
            assert_int_equal(tg_session_rewind(s[i], (size_t)to[k][0]), TG_OK);
            assert_int_equal(tg_session_held(s[i]), to[k][1]);
            want_bits(&o, s[i], to[k][0] + 1);
            want_counts(b);
        }
    }
    OK(o.ctx, tg_batch_copy(b, 1, 0));
    want_states(s[1], (int[]) { 399, 499, 599, 600 });
    want_counts(b);
    tg_batch_free(b);
    close_model(&o);
}

/* A file has the state that its session goes on from, and nothing of what it could go back to; a
 * session whose state is lost is saved when it has one again. */
static void files_of(size_t family) {
    static const int to[] = { 400, 399, 350 };
    opened o = open_model(family);
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        tg_session *s = session_of(&o), *loaded = session_of(&o);
        int n = to[i];
        PLAY(s, prompts);
        assert_int_equal(tg_session_rewind(s, (size_t)n), TG_OK);
        if (n == 350) {
            assert_int_equal(tg_session_held(s), 299);
            assert_int_equal(tg_session_save(s, SAVED, NULL, 0), TG_E_ARG);
            feed(s, ids, ++n);
        }
        OK(o.ctx, tg_session_save(s, SAVED, NULL, 0));
        OK(o.ctx, tg_session_load(loaded, SAVED, NULL, NULL));
        assert_int_equal(tg_session_tokens(loaded), n);
        want_states(loaded, (int[]) { 0, 0, 0, n });
        want_bits(&o, loaded, n + 5);
        want_states(loaded, (int[]) { 0, 0, n, n + 5 });
        assert_int_equal(tg_session_rewind(loaded, (size_t)n - 1), TG_OK);
        assert_int_equal(tg_session_held(loaded), 0);
        want_bits(&o, loaded, n + 5);
        tg_session_free(loaded);
        tg_session_free(s);
    }
    remove(SAVED);
    close_model(&o);
}

static void which_is_lost(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FAMILIES; k++) which_is_lost_of(k);
}
static void back_to_what_is_lost(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FAMILIES; k++) back_to_what_is_lost_of(k);
}
static void copies(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FAMILIES; k++) copies_of(k);
}
static void bytes(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FAMILIES; k++) bytes_of(k);
}
static void files(void **state) {
    (void)state;
    for (size_t k = 0; k < N_FAMILIES; k++) files_of(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_is_lost), cmocka_unit_test(back_to_what_is_lost),
        cmocka_unit_test(copies),        cmocka_unit_test(bytes),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
