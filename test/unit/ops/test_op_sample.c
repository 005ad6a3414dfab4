/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_op_sample.c - the op sample against one that sorts all logits: ties, NaN, infinities, and
 * ranks beyond those that the op puts in order at first.
 */
#include "engine_util.h"

#include "base/math.h"
#include "base/rng.h"
#include "ir/op.h"

enum { V = 300, RECENT = 4 };
#define INF ((float)TG_INF)
#define NOT ((float)TG_NAN)

static float key[V]; /* of the sort below, which gets no other argument */

static int likelier_first(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (key[x] > key[y]) return -1;
    if (key[x] < key[y]) return 1;
    return x < y ? -1 : x > y;
}

static double weight(int32_t id, double max, const tg_scalars *rt) {
    return key[id] < -FLT_MAX ? 0 : tg_exp(((double)key[id] - max) / (double)rt->temperature);
}

static void penalize(const float *logits, size_t n, const int32_t *recent, const tg_scalars *rt) {
    const double by = (double)rt->repeat_penalty;
    for (size_t i = 0; i < n; i++) key[i] = tg_isnan((double)logits[i]) ? -INF : logits[i];
    for (int i = 0; i < rt->n_recent; i++) {
        const int32_t id = recent[i];
        if (id < 0 || (size_t)id >= n || key[id] < -FLT_MAX) continue;
        const double x = (double)logits[id];
        key[id] = (float)(x > 0 ? x / by : x * by);
    }
    for (size_t i = 0; i < n; i++) key[i] = key[i] > FLT_MAX ? FLT_MAX : key[i];
}

/* What sample.c's head says, step by step. */
static int32_t want(const float *logits, size_t n, const int32_t *recent, const tg_scalars *rt) {
    int32_t order[V];
    penalize(logits, n, recent, rt);
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    qsort(order, n, sizeof order[0], likelier_first);
    const double max = (double)key[order[0]];
    if (!(rt->temperature > 0) || max < -FLT_MAX) return order[0];
    const size_t k = rt->top_k > 0 && (size_t)rt->top_k < n ? (size_t)rt->top_k : n;
    double total = 0, mass = 0;
    for (size_t i = 0; i < k; i++) total += weight(k < n ? order[i] : (int32_t)i, max, rt);
    size_t kept = k;
    if (rt->top_p < 1 || rt->min_p > 0) {
        for (kept = 0; kept < k; kept++) {
            const double w = weight(order[kept], max, rt);
            if (kept > 0 && (w <= 0 || (rt->min_p > 0 && w < (double)rt->min_p))) break;
            if (kept > 0 && rt->top_p < 1 && mass >= (double)rt->top_p * total) break;
            mass += w;
        }
    } else {
        mass = total;
    }
    uint32_t x[4];
    tg_philox((uint64_t)rt->seed_hi << 32 | rt->seed_lo, (uint64_t)rt->draw_hi << 32 | rt->draw_lo,
              TG_RNG_SAMPLE, 0, x);
    const double target = tg_rng_uniform(x[0]) * mass;
    double sum = 0;
    int32_t last = order[0];
    for (size_t i = 0; i < kept && sum <= target; i++) {
        const double w = weight(order[i], max, rt);
        if (w <= 0) break;
        sum += w;
        last = order[i];
    }
    return last;
}

static int32_t have(const float *logits, size_t n, const int32_t *recent, const tg_scalars *rt) {
    static float keys[V];
    static int32_t order[V];
    int32_t token = -1;
    tg_args a = { .in = { logits, recent }, .out = { &token, keys, order }, .rt = rt };
    a.in_type[0] = tg_type_2d(TG_F32, 1, n);
    a.in_type[1] = tg_type_1d(TG_I32, RECENT);
    tg_op_table[TG_OP_sample]->ref(&a);
    return token;
}

static uint32_t draw_below(uint64_t *at, uint32_t n) {
    uint32_t x[4];
    tg_philox(1, (*at)++, TG_RNG_INIT, 0, x);
    return x[0] % n;
}

/* One in eight logits is another one again, one in forty is no number; the spread reaches from all
 * within what is put in order at first to nearly nothing within it. */
static void fill(float *x, size_t n, uint64_t *at) {
    const float odd[] = { -INF, INF, NOT, NOT, 3e38F };
    static const float spread[] = { 1e-3F, 0.1F, 1, 30, 1000 };
    const float scale = spread[draw_below(at, 5)] * 1e-6F;
    for (size_t i = 0; i < n; i++) {
        x[i] = ((float)draw_below(at, 2000001) - 1e6F) * scale;
        if (i > 0 && draw_below(at, 8) == 0) x[i] = x[draw_below(at, (uint32_t)i)];
        if (draw_below(at, 40) == 0) x[i] = odd[draw_below(at, 5)];
    }
}

static void as_if_sorted(void **state) {
    (void)state;
    const float temperatures[] = { 0, 1, 0.7F, 1e-30F, 1e30F, 8, NOT, -1 };
    static const float top_p[] = { 1, 1, 0.9F, 0.5F, 0, 0.999F };
    static const float min_p[] = { 0, 0, 0.05F, 1e-6F, 1 };
    static const float penalty[] = { 1, 1, 1.3F, 0.5F };
    uint64_t at = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        const size_t n = 1 + draw_below(&at, i % 4 == 0 ? V : 20);
        float x[V];
        int32_t recent[RECENT];
        fill(x, n, &at);
        for (int r = 0; r < RECENT; r++) recent[r] = (int32_t)draw_below(&at, (uint32_t)n + 2) - 1;
        const tg_scalars rt = { .temperature = temperatures[draw_below(&at, 8)],
                                .top_k = (int32_t)(draw_below(&at, 2) * draw_below(&at, 60)),
                                .top_p = top_p[draw_below(&at, 6)],
                                .min_p = min_p[draw_below(&at, 5)],
                                .repeat_penalty = penalty[draw_below(&at, 4)],
                                .n_recent = (int32_t)draw_below(&at, RECENT + 1),
                                .seed_lo = i / 7,
                                .seed_hi = i % 2,
                                .draw_lo = i,
                                .draw_hi = i % 5 };
        const int32_t a = have(x, n, recent, &rt), b = want(x, n, recent, &rt);
        if (a != b)
            fail_msg("case %u of %zu logits: temperature %g, top_k %d, top_p %g, min_p %g: want %d,"
                     " have %d",
                     i, n, (double)rt.temperature, (int)rt.top_k, (double)rt.top_p,
                     (double)rt.min_p, (int)b, (int)a);
    }
}

static void nothing_to_draw(void **state) {
    (void)state;
    const float x[] = { NOT, -INF, NOT };
    const int32_t recent[RECENT] = { 0 };
    tg_scalars rt = { .top_p = 1, .repeat_penalty = 1 };
    assert_int_equal(have(x, 3, recent, &rt), 0);
    rt.temperature = 1;
    assert_int_equal(have(x, 3, recent, &rt), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_if_sorted),
                                        cmocka_unit_test(nothing_to_draw) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
