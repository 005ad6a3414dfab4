/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_logits.c - what changes a draw, at the values where such functions go wrong: 0, 1, -1, NaN,
 * infinity, ids beyond the vocabulary; and what a session does with it.
 */
#include "engine_util.h"

#include "base/math.h"
#include "engine/session.h"

enum { V = 6 };
#define INF ((float)TG_INF)
#define NOT ((float)TG_NAN)

static void same(const float *have, const float *want) {
    for (int i = 0; i < V; i++) {
        if (!(have[i] == want[i] || (have[i] != have[i] && want[i] != want[i]))) {
            fail_msg("logit %d: want %g, have %g", i, (double)want[i], (double)have[i]);
        }
    }
}
#define SAME(have, ...) same(have, (const float[V]) { __VA_ARGS__ })

static void bias(void **state) {
    (void)state;
    float x[V] = { 0, 1, -1, NOT, INF, -INF };
    const tg_logit_bias b[] = { { 0, 0.5 }, { 1, -TG_INF }, { 2, 3 },   { 3, 1 },
                                { 4, -1 },  { 5, 1e30 },    { 0, 0.25 } };
    tg_logits_bias(x, b, sizeof b / sizeof b[0]);
    SAME(x, 0.75f, -INF, 2, -INF, FLT_MAX, -INF);
    tg_logits_bias(x, b, 0);
    SAME(x, 0.75f, -INF, 2, -INF, FLT_MAX, -INF);

    const struct {
        tg_logit_bias b;
        tg_status want;
    } cases[] = {
        { { 0, -TG_INF }, TG_OK },  { { V - 1, 0 }, TG_OK },     { { V, 0 }, TG_E_RANGE },
        { { -1, 0 }, TG_E_RANGE },  { { 0, TG_INF }, TG_E_ARG }, { { 0, TG_NAN }, TG_E_ARG },
        { { 0, 1e300 }, TG_E_ARG }, { { 0, -1e300 }, TG_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tg_logits_check_bias(NULL, &cases[i].b, 1, V), cases[i].want);
    }
}

static void penalties(void **state) {
    (void)state;
    const int32_t recent[] = { 0, 1, 0, 2, 0, V, -1, INT32_MAX, 3, 4, 5 };
    const size_t n = sizeof recent / sizeof recent[0];
    const float before[V] = { 4, -4, 0, NOT, INF, -INF };
    float x[V];
    memcpy(x, before, sizeof x);
    tg_logits_penalize(x, V, recent, n, &(tg_logits_penalties) { 2, 0, 0 });
    SAME(x, 2, -8, 0, -INF, FLT_MAX, -INF); /* as the op has it */
    memcpy(x, before, sizeof x);
    tg_logits_penalize(x, V, recent, n, &(tg_logits_penalties) { 1, 0.5, 0.25 });
    SAME(x, 2.25f, -4.75f, -0.75f, -INF, FLT_MAX, -INF);
    memcpy(x, before, sizeof x);
    tg_logits_penalize(x, V, recent, n, &(tg_logits_penalties) { 1, -1, -1 });
    SAME(x, 8, -2, 2, -INF, FLT_MAX, -INF);
    /* A penalty that is no positive number is none. */
    const double none[] = { 1, 0, -1, TG_NAN, TG_INF };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        memcpy(x, before, sizeof x);
        tg_logits_penalize(x, V, recent, n, &(tg_logits_penalties) { none[i], 0, 0 });
        SAME(x, 4, -4, 0, -INF, FLT_MAX, -INF);
    }
    memcpy(x, before, sizeof x);
    tg_logits_penalize(x, V, recent, 0, &(tg_logits_penalties) { 2, 1, 1 });
    same(x, before);
}

/* p = 1/2, 1/4, 1/8, 1/8: H = 1.75 ln 2, and the distances are 0.75, 0.25, 1.25, 1.25 ln 2. */
static void typical(void **state) {
    (void)state;
    const float ln2 = 0.69314718f;
    const float before[V] = { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF };
    uint32_t order[V];
    double distance[V];
    const struct {
        double mass, temperature;
        float want[V];
    } cases[] = {
        { 0.2, 1, { -INF, 2 * ln2, -INF, -INF, -INF, -INF } },
        { 0.3, 1, { 3 * ln2, 2 * ln2, -INF, -INF, -INF, -INF } },
        { 0.8, 1, { 3 * ln2, 2 * ln2, ln2, -INF, -INF, -INF } },
        { 0.999, 1, { 3 * ln2, 2 * ln2, ln2, ln2, -INF, -INF } },
        { 0.2, 1e-30, { 3 * ln2, -INF, -INF, -INF, -INF, -INF } },
        { 0, 1, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { 1, 1, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { -1, 1, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { TG_NAN, 1, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { TG_INF, 1, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { 0.2, 0, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
        { 0.2, TG_NAN, { 3 * ln2, 2 * ln2, ln2, ln2, NOT, -INF } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float x[V];
        memcpy(x, before, sizeof x);
        tg_logits_typical(x, V, cases[i].mass, cases[i].temperature, order, distance);
        same(x, cases[i].want);
    }
    float nothing[V] = { NOT, -INF, -INF, -INF, -INF, NOT };
    tg_logits_typical(nothing, V, 0.5, 1, order, distance);
    SAME(nothing, NOT, -INF, -INF, -INF, -INF, NOT);
    assert_false(tg_logits_possible(nothing, V));
    /* All four are needed for nine tenths of the mass, the last of them, too. */
    float even[4] = { 1, 1, 1, 1 };
    tg_logits_typical(even, 4, 0.9, 1, order, distance);
    for (size_t i = 0; i < 4; i++) assert_true(even[i] == 1);
    float one[1] = { INF };
    tg_logits_typical(one, 1, 0.5, 1, order, distance);
    assert_true(one[0] == INF);
    assert_true(tg_logits_possible(one, 1));
}

static void best(void **state) {
    (void)state;
    const float x[V] = { 0, 1, NOT, 1, -INF, -1 };
    int32_t ids[V + 1];
    double logprobs[V + 1];
    const double sum = 1 + 2 * tg_exp(1) + tg_exp(-1);
    assert_int_equal(tg_logits_best(x, V, 0, ids, logprobs), 0);
    for (size_t n = 1; n <= V + 1; n++) {
        static const int32_t want[V] = { 1, 3, 0, 5, 2, 4 };
        const size_t have = tg_logits_best(x, V, n, ids, logprobs);
        assert_int_equal(have, n < V ? n : V);
        for (size_t k = 0; k < have; k++) {
            assert_int_equal(ids[k], want[k]);
            const double exact = k < 4 ? (double)x[want[k]] - tg_log(sum) : -TG_INF;
            assert_true(logprobs[k] == exact || tg_fabs(logprobs[k] - exact) < 1e-12);
        }
    }
    const float nothing[2] = { NOT, -INF };
    assert_int_equal(tg_logits_best(nothing, 2, 2, ids, logprobs), 2);
    assert_true(ids[0] == 0 && logprobs[0] == -TG_INF && logprobs[1] == -TG_INF);
    const float sure[2] = { INF, -FLT_MAX };
    assert_int_equal(tg_logits_best(sure, 2, 1, ids, logprobs), 1);
    assert_true(ids[0] == 0 && logprobs[0] == 0);
}

/* ------------------------------------------------------------------------------------ texts */

static const char *word_of(const void *user, int32_t id, size_t *n) {
    (void)user;
    static const char *const words[V] = { "a", "b", "ab", "xabx", "", "ba" };
    *n = strlen(words[id]);
    return words[id];
}

static void banned_texts(void **state) {
    (void)state;
    const struct {
        const char *banned[2], *tail;
        float want[V];
    } cases[] = {
        { { "ab" }, "", { 0, 0, -INF, -INF, 0, 0 } },
        { { "ab" }, "xa", { 0, -INF, -INF, -INF, 0, -INF } },
        { { "ab", "b" }, "", { 0, -INF, -INF, -INF, 0, -INF } },
        { { "cab" }, "c", { 0, 0, -INF, 0, 0, 0 } },
        { { "aba" }, "ab", { -INF, 0, -INF, 0, 0, 0 } },
        { { "abab" }, "xxab", { 0, 0, -INF, 0, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static tg_logits_texts texts;
        float x[V] = { 0 };
        assert_int_equal(
            tg_logits_set_texts(NULL, cases[i].banned, cases[i].banned[1] ? 2 : 1, &texts), TG_OK);
        tg_logits_ban(x, V, &texts, cases[i].tail, strlen(cases[i].tail), word_of, NULL);
        same(x, cases[i].want);
    }
    static tg_logits_texts texts;
    char large[TG_LOGITS_TEXT_BYTES_MAX + 2];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = '\0';
    const char *const bad[] = { "", NULL, large, "\xff" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tg_logits_set_texts(NULL, &bad[i], 1, &texts), TG_E_ARG);
    }
    assert_int_equal(tg_logits_set_texts(NULL, NULL, TG_LOGITS_TEXTS_MAX + 1, &texts), TG_E_ARG);
}

typedef struct heard {
    char text[256];
    size_t n;
} heard;

static void hear(void *user, const char *text, size_t n) {
    heard *h = user;
    memcpy(h->text + h->n, text, n);
    h->n += n;
    h->text[h->n] = '\0';
}

static void stop_texts(void **state) {
    (void)state;
    const struct {
        const char *stops[3], *text, *out;
    } cases[] = {
        { { "END" }, "some text", "some text" },
        { { "END" }, "some END text", "some " },
        { { "END" }, "some EN", "some EN" },
        { { "END" }, "EEND", "E" },
        { { "aab" }, "aaab", "a" },
        { { "ab", "xab" }, "xab", "" },
        { { "b", "abc" }, "abc", "a" },
        { { "\n\n" }, "a\nb\n\nc", "a\nb" },
        { { "\xc3\xa9" }, "caf\xc3\xa8 caf\xc3\xa9!", "caf\xc3\xa8 caf" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static tg_logits_texts texts;
        size_t n = 0;
        while (cases[i].stops[n]) n++;
        assert_int_equal(tg_logits_set_texts(NULL, cases[i].stops, n, &texts), TG_OK);
        for (size_t piece = 1; piece <= 16; piece += 15) { /* by characters, and all at once */
            heard h = { .n = 0 };
            tg_stop_match match = { .n = 0 };
            const char *text = cases[i].text;
            for (size_t at = 0, length; at < strlen(text); at += length) {
                length = piece == 1 ? ((uint8_t)text[at] >= 0xc0 ? 2 : 1) : strlen(text);
                tg_stop_match_push(&match, &texts, text + at, length, hear, &h);
            }
            tg_stop_match_end(&match, hear, &h);
            assert_string_equal(h.text, cases[i].out);
        }
    }
}

/* --------------------------------------------------------------------------------- a session */

static int collect(void *user, const char *text, size_t n) {
    hear(user, text, n);
    return 0;
}

static tg_status generate(tg_session *s, const tg_sample_options *o, size_t n, heard *h) {
    h->n = 0;
    h->text[0] = '\0';
    tg_generation what = behind_text("abc", 3, n);
    what.sample = o;
    what.write = collect;
    what.user = h;
    return tg_session_continue(s, &what, NULL);
}

static void in_a_session(void **state) {
    (void)state;
    static const tg_model_config nano = { 2, 24, 3, 64, 256, 96 };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *m;
    tg_session *s;
    heard plain, changed;
    OK(ctx, tg_model_new(ctx, &nano, 42, &m));
    OK(ctx, tg_session_new(ctx, m, 0, &s));
    tg_sample_options o = tg_sample_options_default();
    OK(ctx, generate(s, &o, 40, &plain));

    /* Neutral values change nothing, and neither does an option that was taken back. */
    OK(ctx, tg_session_set_bias(s, &(tg_logit_bias) { 'e', 0 }, 1));
    OK(ctx, generate(s, &o, 40, &changed));
    assert_string_equal(changed.text, plain.text);
    /* Where another link runs, the repeat penalty is the chain's, and as the op's would be. */
    heard repeated;
    o.temperature = 0;
    OK(ctx, generate(s, &o, 40, &repeated));
    o.repeat_penalty = 3;
    OK(ctx, generate(s, &o, 40, &changed));
    assert_string_not_equal(changed.text, repeated.text);
    repeated = changed;
    OK(ctx, tg_session_set_bias(s, NULL, 0));
    OK(ctx, generate(s, &o, 40, &changed));
    assert_string_equal(changed.text, repeated.text);
    o = tg_sample_options_default();

    OK(ctx, tg_session_set_bias(s, &(tg_logit_bias) { 'e', 50 }, 1));
    OK(ctx, generate(s, &o, 40, &changed));
    for (size_t i = 0; i < changed.n; i++) assert_int_equal(changed.text[i], 'e');
    OK(ctx, tg_session_set_banned(s, (const char *const[]) { "eee" }, 1));
    OK(ctx, generate(s, &o, 40, &changed));
    assert_null(strstr(changed.text, "eee"));
    assert_non_null(strstr(changed.text, "ee"));
    OK(ctx, tg_session_set_banned(s, NULL, 0));
    o.presence_penalty = 100;
    o.temperature = 0;
    OK(ctx, generate(s, &o, 2, &changed));
    assert_true(changed.text[0] == 'e' && changed.text[1] != 'e');
    o = tg_sample_options_default();
    OK(ctx, tg_session_set_stops(s, (const char *const[]) { "ee" }, 1));
    OK(ctx, generate(s, &o, 40, &changed));
    assert_int_equal(changed.n, 0);
    OK(ctx, tg_session_set_stops(s, NULL, 0));
    OK(ctx, tg_session_set_bias(s, NULL, 0));
    o.typical_p = 1;
    OK(ctx, generate(s, &o, 40, &changed));
    assert_string_equal(changed.text, plain.text);

    /* The logits that are handed out stay what the model gave. */
    float before[256];
    int32_t token, ids[2];
    double logprobs[2];
    size_t have;
    memcpy(before, tg_session_logits(s), sizeof before);
    o.typical_p = 0.2;
    o.frequency_penalty = 1;
    OK(ctx, tg_session_sample(s, &o, 0, &token));
    assert_memory_equal(before, tg_session_logits(s), sizeof before);
    OK(ctx, tg_session_best(s, 2, ids, logprobs, &have));
    assert_int_equal(have, 2);
    assert_true(logprobs[0] >= logprobs[1] && logprobs[0] < 0);

    /* With everything forbidden there is no token, and the session goes on. */
    tg_logit_bias none[256];
    for (int32_t i = 0; i < 256; i++) none[i] = (tg_logit_bias) { i, -TG_INF };
    OK(ctx, tg_session_set_bias(s, none, 256));
    assert_int_equal(tg_session_sample(s, &o, 0, &token), TG_E_ARG);
    assert_memory_equal(before, tg_session_logits(s), sizeof before);
    none[0].id = 256;
    assert_int_equal(tg_session_set_bias(s, none, 256), TG_E_RANGE);
    OK(ctx, tg_session_set_bias(s, NULL, 0));
    OK(ctx, tg_session_sample(s, &o, 0, &token));

    const double bad[] = { -1, TG_NAN, TG_INF, 2 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o.typical_p = bad[i];
        assert_int_equal(tg_session_sample(s, &o, 0, &token), TG_E_ARG);
        o.typical_p = 0;
        o.frequency_penalty = i == 3 ? 101 : i == 0 ? -101 : bad[i];
        assert_int_equal(tg_session_sample(s, &o, 0, &token), TG_E_ARG);
        o.presence_penalty = o.frequency_penalty;
        o.frequency_penalty = 0;
        assert_int_equal(tg_session_sample(s, &o, 0, &token), TG_E_ARG);
        o.presence_penalty = 0;
    }
    tg_session_free(s);
    tg_model_free(m);
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bias),         cmocka_unit_test(penalties),
        cmocka_unit_test(typical),      cmocka_unit_test(best),
        cmocka_unit_test(banned_texts), cmocka_unit_test(stop_texts),
        cmocka_unit_test(in_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
