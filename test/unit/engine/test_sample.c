/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sample.c - the draw of a token against a sampler that does every step to all tokens: a sort,
 * then each rule as its sentence in tinygpt.h has it. Logits are put where a session keeps them.
 */
#include "engine_util.h"

#include "base/rng.h"
#include "engine/session.h"

#include <float.h>
#include <math.h>

enum { V = 256, FED = 12 };

/* ------------------------------------------------------------------------------ plain sampler */

static float key[V];

static int likelier(const void *a, const void *b) {
    const int i = *(const int *)a, j = *(const int *)b;
    if (key[i] != key[j]) return key[i] > key[j] ? -1 : 1;
    return i - j;
}

static bool was_fed(const int32_t *fed, int n, int id) {
    for (int i = 0; i < n; i++)
        if (fed[i] == id) return true;
    return false;
}

static int32_t expected(const float *logits, const int32_t *fed, const tg_sample_options *o,
                        uint64_t index) {
    const int recent = o->repeat_last < FED ? o->repeat_last : FED;
    const float penalty = (float)o->repeat_penalty;
    int order[V], n = V;
    double weight[V], total = 0, sum = 0;
    for (int i = 0; i < V; i++) {
        double x = isnan(logits[i]) ? -INFINITY : (double)logits[i];
        if (was_fed(fed + FED - recent, recent, i))
            x = x > 0 ? x / (double)penalty : x * (double)penalty;
        key[i] = x > (double)FLT_MAX ? FLT_MAX : (float)x;
        order[i] = i;
    }
    qsort(order, V, sizeof *order, likelier);
    if (o->temperature == 0 || isinf(key[order[0]])) return order[0];
    if (o->top_k > 0 && o->top_k < n) n = o->top_k;
    for (int j = 0; j < n; j++) {
        const double far = (double)key[order[j]] - (double)key[order[0]];
        weight[j] = isinf(far) ? 0 : exp(far / (double)(float)o->temperature);
        total += weight[j];
    }
    /* The shortest beginning that makes up top_p, at least one; then what is likely enough. */
    int kept = n;
    if (o->top_p < 1)
        for (kept = 0; kept < n && (kept == 0 || sum < (double)(float)o->top_p * total);) {
            sum += weight[kept];
            kept++;
        }
    while (kept > 1 && weight[kept - 1] < (double)(float)o->min_p) kept--;
    double mass = 0;
    for (int j = 0; j < kept; j++) mass += weight[j];
    uint32_t x[4];
    tg_philox(o->seed, index, TG_RNG_SAMPLE, 0, x);
    const double target = ((double)x[0] + 0.5) / 4294967296.0 * mass;
    double upto = 0;
    for (int j = 0; j < kept; j++)
        if ((upto += weight[j]) > target) return order[j];
    return order[kept - 1];
}

/* --------------------------------------------------------------------------------------- tests */

typedef struct opened {
    tg_context *ctx;
    tg_model *model;
    tg_session *session;
    int32_t fed[FED];
} opened;

static opened open_session(void) {
    static const tg_model_config nano = { 1, 16, 2, 32, V, 64 };
    opened o;
    o.ctx = open_context(1, NULL, NULL);
    OK(o.ctx, tg_model_new(o.ctx, &nano, 42, &o.model));
    OK(o.ctx, tg_session_new(o.ctx, o.model, 0, &o.session));
    for (int i = 0; i < FED; i++) o.fed[i] = 3 * i % 24; /* some come twice */
    OK(o.ctx, tg_session_eval(o.session, o.fed, FED, NULL));
    return o;
}

static void close_session(opened *o) {
    tg_session_free(o->session);
    tg_model_free(o->model);
    tg_context_free(o->ctx);
}

/* Logits of several kinds: spread, near each other, with ties, and with what is no number. */
static void fill(float logits[V], int kind) {
    for (int i = 0; i < V; i++) {
        uint32_t x[4];
        tg_philox(7, (uint64_t)i, TG_RNG_INIT, (uint32_t)kind, x);
        const float u = (float)x[0] / 4294967296.0F;
        logits[i] = kind == 0 ? 12 * u - 6 : kind == 1 ? 0.1F * u : (float)(x[0] % 5) - 2;
        if (kind == 3 && i % 3 == 0) logits[i] = i % 2 ? NAN : -INFINITY;
        if (kind == 4) logits[i] = i == 9 || i == 200 ? INFINITY : i % 2 ? NAN : logits[i];
        if (kind == 5) logits[i] = i % 2 ? -INFINITY : NAN;
    }
}

static void every_rule(void **state) {
    (void)state;
    static const double temperatures[] = { 0, 1e-6, 0.7, 1, 30 },
                        top_ps[] = { 1, 0.999, 0.5, 1e-9 };
    static const double min_ps[] = { 0, 0.05, 1 }, penalties[] = { 1, 1.5, 0.5 };
    static const int32_t top_ks[] = { 0, 1, 7, V - 1, V, V + 1, INT32_MAX }, lasts[] = { 0, 5, 64 };
    opened o = open_session();
    size_t draws = 0;
    for (int kind = 0; kind < 6; kind++) {
        float logits[V];
        fill(logits, kind);
        memcpy(o.session->logits, logits, sizeof logits);
        for (size_t i = 0; i < 5 * 4 * 3 * 3 * 7 * 3; i++) {
            tg_sample_options s = tg_sample_options_default();
            size_t at = i;
            s.temperature = temperatures[at % 5], at /= 5;
            s.top_p = top_ps[at % 4], at /= 4;
            s.min_p = min_ps[at % 3], at /= 3;
            s.repeat_penalty = penalties[at % 3], at /= 3;
            s.top_k = top_ks[at % 7], at /= 7;
            s.repeat_last = lasts[at];
            s.seed = i / 9;
            for (uint64_t index = 0; index < 3; index++, draws++) {
                const int32_t want = expected(logits, o.fed, &s, index);
                int32_t have = -1;
                OK(o.ctx, tg_session_sample(o.session, &s, index, &have));
                if (have != want)
                    fail_msg("kind %d, temp %g top_k %d top_p %g min_p %g penalty %g of %d, draw "
                             "%d: want %d, have %d",
                             kind, s.temperature, (int)s.top_k, s.top_p, s.min_p, s.repeat_penalty,
                             (int)s.repeat_last, (int)index, (int)want, (int)have);
            }
        }
        assert_memory_equal(o.session->logits, logits, sizeof logits);
    }
    assert_int_equal(draws, 6 * 3780 * 3);
    close_session(&o);
}

/* What is no use is an error that names the option, and no token. */
static void values_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t at;
        double bad[6]; /* up to the first 0.125, which nothing refuses */
    } cases[] = {
#define FIELD(name) #name, offsetof(tg_sample_options, name)
        { FIELD(temperature), { -1, -1e-9, 1001, NAN, INFINITY, -INFINITY } },
        { FIELD(top_p), { 0, -1, 1.0001, NAN, INFINITY, -INFINITY } },
        { FIELD(min_p), { -1, -1e-9, 1.0001, NAN, INFINITY, -INFINITY } },
        { FIELD(typical_p), { -1, -1e-9, 1.0001, NAN, INFINITY, -INFINITY } },
        { FIELD(repeat_penalty), { 0, -1, 101, NAN, INFINITY, -INFINITY } },
        { FIELD(frequency_penalty), { 101, -101, NAN, INFINITY, -INFINITY, 0.125 } },
        { FIELD(presence_penalty), { 101, -101, NAN, INFINITY, -INFINITY, 0.125 } },
    };
    opened o = open_session();
    int32_t token = -7;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 6 && cases[i].bad[k] != 0.125; k++) {
            tg_sample_options s = tg_sample_options_default();
            memcpy((char *)&s + cases[i].at, &cases[i].bad[k], sizeof(double));
            assert_int_equal(tg_session_sample(o.session, &s, 0, &token), TG_E_ARG);
            if (!strstr(tg_context_error(o.ctx), cases[i].name))
                fail_msg("%s: %s", cases[i].name, tg_context_error(o.ctx));
        }
    static const int32_t wholes[] = { -1, INT32_MIN, 1025 };
    for (size_t i = 0; i < 3; i++) {
        tg_sample_options s = tg_sample_options_default();
        s.repeat_last = wholes[i];
        assert_int_equal(tg_session_sample(o.session, &s, 0, &token), TG_E_ARG);
        assert_non_null(strstr(tg_context_error(o.ctx), "repeat_last"));
        s = tg_sample_options_default();
        s.top_k = wholes[i];
        const tg_status want = wholes[i] < 0 ? TG_E_ARG : TG_OK;
        assert_int_equal(tg_session_sample(o.session, &s, 0, &token), want);
        if (want != TG_OK) assert_int_equal(token, -7);
    }
    /* Nothing fed: there is nothing to draw from. */
    OK(o.ctx, tg_session_rewind(o.session, 0));
    assert_int_equal(tg_session_sample(o.session, NULL, 0, &token), TG_E_ARG);
    close_session(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),
        cmocka_unit_test(values_that_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
