/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_stats.c - medians and order-statistic intervals, against published ranks and by trial.
 */
#include "print/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void medians(void **state) {
    (void)state;
    double x[] = { 3, 1, 2 };
    tg_stats_sort(x, 3);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3);
    assert_true(tg_stats_median(x, 3) == 2);
    assert_true(tg_stats_median(x, 2) == 1.5);
    assert_true(tg_stats_median(x, 1) == 1);
    double same[] = { 5, 5, 5, 5 };
    tg_stats_sort(same, 4);
    assert_true(tg_stats_median(same, 4) == 5);
}

/* Ranks of the 95 % interval for the median, as in any table of the sign test. */
static void ranks(void **state) {
    (void)state;
    static const struct {
        size_t n, k;
        double coverage;
    } cases[] = {
        { 6, 1, 0.96875 },   { 8, 1, 0.9921875 }, { 9, 2, 0.9609375 }, { 10, 2, 0.978515625 },
        { 15, 4, 0.964844 }, { 20, 6, 0.958611 }, { 25, 8, 0.956715 }, { 100, 40, 0.9648 },
    };
    double x[2000];
    for (size_t i = 0; i < 2000; i++) x[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = cases[i].n;
        const tg_interval in = tg_stats_interval(x, n);
        assert_true(in.low == (double)cases[i].k);
        assert_true(in.high == (double)(n + 1 - cases[i].k));
        const double error = in.coverage - cases[i].coverage;
        assert_true(error < 1e-4 && error > -1e-4);
    }
    /* Both methods meet at the border: 1000 is exact, 1001 approximate, a rank may differ by one.
     */
    const tg_interval exact = tg_stats_interval(x, 1000), far = tg_stats_interval(x, 1001);
    assert_true(exact.low - far.low <= 1 && far.low - exact.low <= 1);
    assert_true(exact.coverage >= 0.95);
}

/* Of fewer than six values even the smallest and the largest hold the median too seldom. */
static void few_values(void **state) {
    (void)state;
    const double x[] = { 1, 2, 3, 4, 5, 6 };
    char text[32];
    for (size_t n = 1; n < 6; n++) {
        const tg_interval in = tg_stats_interval(x, n);
        assert_true(isnan(in.low) && isnan(in.high) && in.coverage == 0);
        tg_stats_interval_text(&in, 1, 2, false, text, sizeof text);
        assert_string_equal(text, "-");
    }
    const tg_interval in = tg_stats_interval(x, 6);
    assert_true(in.low == 1 && in.high == 6 && in.coverage >= 0.95);
    tg_stats_interval_text(&in, 1, 2, false, text, sizeof text);
    assert_string_equal(text, "1.00 .. 6.00");
    tg_stats_interval_text(&in, 100, 0, true, text, sizeof text);
    assert_string_equal(text, "+100 .. +600");
}

/* Of many samples of 15 from a lopsided distribution, 96.5 % of the intervals hold the median. */
static void covers(void **state) {
    (void)state;
    enum { TRIALS = 20000, N = 15 };
    uint64_t bits = 1;
    size_t held = 0;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        double x[N];
        for (size_t i = 0; i < N; i++) {
            bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const double u = (double)(bits >> 11) / 9007199254740992.0;
            x[i] = u * u * u; /* median 1/8 */
        }
        tg_stats_sort(x, N);
        const tg_interval in = tg_stats_interval(x, N);
        held += in.low <= 0.125 && 0.125 <= in.high;
    }
    const double share = (double)held / (double)TRIALS;
    assert_true(share > 0.96 && share < 0.97);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(ranks),
        cmocka_unit_test(few_values),
        cmocka_unit_test(covers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
