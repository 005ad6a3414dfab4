/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_rng.c - Philox against the known answers of its authors (Random123, kat_vectors), the
 * conventions of the library, and the moments of the normals.
 */
#include "base/math.h"
#include "base/rng.h"

#include <setjmp.h>

#include <cmocka.h>

static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t x[4];
        tg_philox_block(cases[i].counter, cases[i].key, x);
        assert_memory_equal(x, cases[i].want, sizeof x);
    }
}

/* The same third answer through the library's own order: index, purpose, stream; seed as key. */
static void counter_layout(void **state) {
    (void)state;
    static const uint32_t want[4] = { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 };
    uint32_t x[4];
    tg_philox(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), 0x13198a2e, 0x03707344,
              x);
    assert_memory_equal(x, want, sizeof x);
    assert_true(tg_rng_draw64(x) == UINT64_C(0x94fdccebd16cfe09));
}

static void uniforms_stay_inside(void **state) {
    (void)state;
    assert_true(tg_rng_uniform(0) == 0x1p-33);
    assert_true(tg_rng_uniform(UINT32_MAX) == 1 - 0x1p-33);
}

static void below_is_the_high_half(void **state) {
    (void)state;
    static const uint64_t edges[] = { 0,
                                      1,
                                      2,
                                      3,
                                      0xffffffff,
                                      UINT64_C(0x100000000),
                                      1115394,
                                      UINT64_MAX,
                                      UINT64_MAX - 1,
                                      UINT64_C(0x8000000000000000) };
    const size_t n = sizeof edges / sizeof edges[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            /* Long multiplication by bits: 64 conditional additions into 128 bits. */
            uint64_t high = 0, low = 0;
            for (int bit = 63; bit >= 0; bit--) {
                high = high << 1 | low >> 63;
                low <<= 1;
                if (edges[i] >> bit & 1) {
                    low += edges[k];
                    high += low < edges[k];
                }
            }
            assert_true(tg_rng_below(edges[i], edges[k]) == high);
        }
    }
}

static void normals_have_the_right_moments(void **state) {
    (void)state;
    const int n = 200000;
    double sum[5] = { 0 };
    for (int i = 0; i < n / 4; i++) {
        uint32_t x[4];
        double z[4];
        tg_philox(42, (uint64_t)i, TG_RNG_INIT, 7, x);
        tg_rng_normal4(x, z);
        for (int k = 0; k < 4; k++) {
            double power = 1;
            for (int p = 1; p < 5; p++) sum[p] += power *= z[k];
        }
    }
    /* Standard errors of the mean powers: sqrt(1, 2, 15, 96) / sqrt(n); four of them. */
    const double root = tg_sqrt(n);
    assert_true(tg_fabs(sum[1] / n) < 4 * 1.0 / root);
    assert_true(tg_fabs(sum[2] / n - 1) < 4 * 1.42 / root);
    assert_true(tg_fabs(sum[3] / n) < 4 * 3.88 / root);
    assert_true(tg_fabs(sum[4] / n - 3) < 4 * 9.8 / root);
}

/* Written with mpmath from the known answer for zeros; the bits are part of the contract. */
static void normals_of_a_known_block(void **state) {
    (void)state;
    static const uint32_t x[4] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 };
    static const double want[4] = { 0.991137679930385816, -0.924662587665534981,
                                    -0.617608959459190606, -0.48206858748717966 };
    double z[4], extreme[4];
    tg_rng_normal4(x, z);
    for (int i = 0; i < 4; i++) assert_true(tg_fabs(z[i] - want[i]) <= 4e-16);
    tg_rng_normal4((const uint32_t[4]) { 0, 0, UINT32_MAX, UINT32_MAX }, extreme);
    for (int i = 0; i < 4; i++) assert_true(tg_fabs(extreme[i]) < 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(counter_layout),
        cmocka_unit_test(uniforms_stay_inside),
        cmocka_unit_test(below_is_the_high_half),
        cmocka_unit_test(normals_have_the_right_moments),
        cmocka_unit_test(normals_of_a_known_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
