/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_math.c - the elementary functions against values of 106 bits (math_cases.h), against
 * libm in a wider format over dense random arguments, at the special values of C11 annex F, and as
 * bits: one hash over results that every compiler and machine has to reproduce.
 */
#include "base/math.h"
#include "base/rng.h"
#include "math_cases.h"

#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

/* The bounds that math.h promises, in units in the last place. */
#define BOUND_exp   1.0
#define BOUND_expm1 1.1
#define BOUND_log   1.0
#define BOUND_log1p 1.0
#define BOUND_sin   1.0
#define BOUND_cos   1.0
#define BOUND_tanh  2.0
#define BOUND_erf   2.0
#define BOUND_erfc  4.0
#define BOUND_pow   1.0

static double last_place(double x) {
    int exponent;
    (void)frexp(x, &exponent);
    return exponent < -1021 ? 0x1p-1074 : ldexp(1, exponent - 53);
}

/* ------------------------------------------------------------------------------- against tables */

static double call_exp(double x, double y) { return (void)y, tg_exp(x); }
static double call_expm1(double x, double y) { return (void)y, tg_expm1(x); }
static double call_log(double x, double y) { return (void)y, tg_log(x); }
static double call_log1p(double x, double y) { return (void)y, tg_log1p(x); }
static double call_sin(double x, double y) { return (void)y, tg_sin(x); }
static double call_cos(double x, double y) { return (void)y, tg_cos(x); }
static double call_tanh(double x, double y) { return (void)y, tg_tanh(x); }
static double call_erf(double x, double y) { return (void)y, tg_erf(x); }
static double call_erfc(double x, double y) { return (void)y, tg_erfc(x); }
static double call_pow(double x, double y) { return tg_pow(x, y); }

static void exact_values(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double (*call)(double, double);
        double bound, x, y, high, low;
    } cases[] = {
#define ROW(name, x, y, high, low) { #name, call_##name, BOUND_##name, x, y, high, low },
        MATH_CASES(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double got = cases[i].call(cases[i].x, cases[i].y);
        const double error = fabs((got - cases[i].high) - cases[i].low) / last_place(cases[i].high);
        if (!(error <= cases[i].bound)) {
            fail_msg("%s(%a, %a) = %a, want %a: %.2f ulp", cases[i].name, cases[i].x, cases[i].y,
                     got, cases[i].high, error);
        }
    }
}

/* ------------------------------------------------------------------------------ against a sweep */

/* The i-th of a fixed sequence of uniform numbers. */
static double uniform(uint64_t i) {
    uint32_t x[4];
    tg_philox(7, i, 0, 0, x);
    return (double)(tg_rng_draw64(x) >> 11) * 0x1p-53;
}

/* Arguments of all magnitudes in [2^low, 2^high), both signs. */
static double any_magnitude(uint64_t i, int low, int high) {
    const double size = ldexp(1 + uniform(4 * i), low + (int)(uniform(4 * i + 1) * (high - low)));
    return uniform(4 * i + 2) < 0.5 ? -size : size;
}

#define SWEEP 40000

/* Without a wider long double there is nothing to compare with: the table above has to do. */
#if LDBL_MANT_DIG >= 64
static void check_sweep(const char *name, double (*f)(double), long double (*want)(long double),
                        double low, double high, double bound) {
    for (uint64_t i = 0; i < SWEEP; i++) {
        const double x = low + (high - low) * uniform(i);
        const long double exact = want((long double)x);
        const double error = (double)fabsl((long double)f(x) - exact) / last_place((double)exact);
        if (!(error <= bound)) fail_msg("%s(%a) = %a: %.3f ulp", name, x, f(x), error);
    }
}

static void check_magnitudes(const char *name, double (*f)(double),
                             long double (*want)(long double), int low, int high, double bound) {
    for (uint64_t i = 0; i < SWEEP; i++) {
        const double x = any_magnitude(i, low, high);
        const long double exact = want((long double)x);
        const double error = (double)fabsl((long double)f(x) - exact) / last_place((double)exact);
        if (!(error <= bound)) fail_msg("%s(%a) = %a: %.3f ulp", name, x, f(x), error);
    }
}

#define CHECK_SWEEP(name, low, high) check_sweep(#name, tg_##name, name##l, low, high, BOUND_##name)
#define CHECK_MAGNITUDES(name, low, high)                                                          \
    check_magnitudes(#name, tg_##name, name##l, low, high, BOUND_##name)

static void dense_arguments(void **state) {
    (void)state;
    CHECK_SWEEP(exp, -1, 1);
    CHECK_SWEEP(exp, -745, 709.7);
    CHECK_SWEEP(exp, -745, -708); /* subnormal results */
    CHECK_SWEEP(expm1, -1, 1);
    CHECK_SWEEP(expm1, -40, 709.7);
    CHECK_MAGNITUDES(expm1, -1000, 5);
    CHECK_SWEEP(log, 0, 2);
    CHECK_SWEEP(log, 0.99, 1.01);
    CHECK_SWEEP(log, 0, 1e300);
    CHECK_SWEEP(log1p, -0.9999, 1);
    CHECK_SWEEP(log1p, 0, 1e6);
    CHECK_MAGNITUDES(log1p, -1000, -1);
    CHECK_SWEEP(sin, -7, 7);
    CHECK_SWEEP(sin, -1e6, 1e6);
    CHECK_SWEEP(sin, -3e9, 3e9);
    CHECK_MAGNITUDES(sin, -1000, 20);
    CHECK_SWEEP(cos, -7, 7);
    CHECK_SWEEP(cos, -1e6, 1e6);
    CHECK_SWEEP(cos, -3e9, 3e9);
    CHECK_SWEEP(tanh, -1, 1);
    CHECK_SWEEP(tanh, -23, 23);
    CHECK_MAGNITUDES(tanh, -1000, 6);
    CHECK_SWEEP(erf, -1, 1);
    CHECK_SWEEP(erf, -6.5, 6.5);
    CHECK_MAGNITUDES(erf, -1000, 3);
    CHECK_SWEEP(erfc, -6.5, 1);
    CHECK_SWEEP(erfc, 0.4, 6);
    CHECK_SWEEP(erfc, 6, 27.2);
}

static void dense_powers(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 3 * SWEEP; i++) {
        const double size =
            fabs(any_magnitude(i, i % 3 == 1 ? -1020 : -20, i % 3 == 1 ? 1020 : 20));
        const double x = i % 3 == 2 ? 1 + 0x1p-30 * size : size;
        const double y = (2 * uniform(9 * i) - 1) * (i % 3 == 0 ? 50 : i % 3 == 1 ? 1 : 1e6);
        const long double exact = powl((long double)x, (long double)y);
        if (!(exact < 1e308L && exact > 1e-320L)) continue;
        const double error =
            (double)fabsl((long double)tg_pow(x, y) - exact) / last_place((double)exact);
        if (!(error <= BOUND_pow)) fail_msg("pow(%a, %a): %.3f ulp", x, y, error);
    }
}
#else
static void not_wider(const char *name) {
    print_message("skipped: %s: long double is no wider than double\n", name);
    skip();
}
static void dense_arguments(void **state) { (void)state, not_wider("dense_arguments"); }
static void dense_powers(void **state) { (void)state, not_wider("dense_powers"); }
#endif

/* ------------------------------------------------------------------------------- special values */

static const double edges[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    1e308,
    -1e308,
    0x1p-1074,
    -0x1p-1074,
    0x1p-1022,
    -0x1p-1022,
    0x1p52,
    -0x1p52,
    0x1.8p52,
    0x1p53,
    0x1p53 + 2,
    -0x1p60,
    0x1.fffffffffffffp-2,
    -0x1.fffffffffffffp-2,
    DBL_MAX,
    -DBL_MAX,
    INFINITY,
    -INFINITY,
    NAN,
};
#define N_EDGES (sizeof edges / sizeof edges[0])

/* Equal in value and sign, both NaN, or apart by the last places that the bounds allow. */
static void check_edge(const char *name, double x, double y, double got, double want) {
    const bool same = (isnan(got) && isnan(want)) ||
                      (got == want && signbit(got) == signbit(want)) ||
                      (isfinite(want) && want != 0 && fabs(got - want) <= 2 * last_place(want));
    if (!same) fail_msg("%s(%a, %a) = %a, want %a", name, x, y, got, want);
}

static void special_values(void **state) {
    (void)state;
    for (size_t i = 0; i < N_EDGES; i++) {
        const double x = edges[i];
        check_edge("exp", x, 0, tg_exp(x), exp(x));
        check_edge("expm1", x, 0, tg_expm1(x), expm1(x));
        check_edge("log", x, 0, tg_log(x), log(x));
        check_edge("log1p", x, 0, tg_log1p(x), log1p(x));
        check_edge("tanh", x, 0, tg_tanh(x), tanh(x));
        check_edge("erf", x, 0, tg_erf(x), erf(x));
        check_edge("erfc", x, 0, tg_erfc(x), erfc(x));
        check_edge("sqrt", x, 0, tg_sqrt(x), sqrt(x));
        check_edge("floor", x, 0, tg_floor(x), floor(x));
        check_edge("ceil", x, 0, tg_ceil(x), ceil(x));
        check_edge("round", x, 0, tg_round(x), round(x));
        check_edge("fabs", x, 0, tg_fabs(x), fabs(x));
        assert_int_equal(tg_isfinite(x), isfinite(x) != 0);
        assert_int_equal(tg_isnan(x), isnan(x) != 0);
        const bool in_range = fabs(x) < 3.3e9;
        check_edge("sin", x, 0, tg_sin(x), in_range ? sin(x) : NAN);
        check_edge("cos", x, 0, tg_cos(x), in_range ? cos(x) : NAN);
        for (size_t k = 0; k < N_EDGES; k++)
            check_edge("pow", x, edges[k], tg_pow(x, edges[k]), pow(x, edges[k]));
    }
    assert_true(tg_pow(10, 22) == 1e22 && tg_pow(2, -1074) == 0x1p-1074 && tg_pow(3, 4) == 81);
    assert_true(isnan(TG_NAN) && isinf(TG_INF) && TG_INF > 0);
}

static void roundings(void **state) {
    (void)state;
    for (uint64_t i = 0; i < SWEEP; i++) {
        const double x = any_magnitude(i, -3, 54);
        assert_true(tg_floor(x) == floor(x) && tg_ceil(x) == ceil(x) && tg_round(x) == round(x));
        assert_true(tg_sqrt(fabs(x)) == sqrt(fabs(x)));
        const double scaled = any_magnitude(i, -1074, 1023);
        const int e = (int)(uniform(i) * 4600) - 2300;
        assert_true(tg_ldexp(scaled, e) == ldexp(scaled, e));
    }
    assert_true(tg_ldexp(1, INT_MAX) == TG_INF && tg_ldexp(1, INT_MIN) == 0);
}

/* ----------------------------------------------------------------------------------------- bits */

static uint64_t mix(uint64_t hash, double value) {
    return (hash ^ tg_bits_from_double(value)) * UINT64_C(0x100000001b3);
}

/*
 * The contract that weights are the same everywhere rests on these bits. If a change of math.c
 * moves the hash, it moves the initial weights of every seed: that is a change of the format.
 */
static void same_bits_everywhere(void **state) {
    (void)state;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < 20000; i++) {
        const double x = any_magnitude(i, -12, 5), size = fabs(x);
        hash = mix(hash, tg_exp(x));
        hash = mix(hash, tg_expm1(x));
        hash = mix(hash, tg_log(size));
        hash = mix(hash, tg_log1p(size));
        hash = mix(hash, tg_sin(x));
        hash = mix(hash, tg_cos(x));
        hash = mix(hash, tg_tanh(x));
        hash = mix(hash, tg_erf(x));
        hash = mix(hash, tg_erfc(x));
        hash = mix(hash, tg_pow(size, x));
        hash = mix(hash, tg_sqrt(size));
    }
    if (hash != UINT64_C(0x50eebebfa83da0f5)) fail_msg("hash %016llx", (unsigned long long)hash);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_values), cmocka_unit_test(dense_arguments),
        cmocka_unit_test(dense_powers), cmocka_unit_test(special_values),
        cmocka_unit_test(roundings),    cmocka_unit_test(same_bits_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
