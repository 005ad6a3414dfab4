/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_dtype.c - the 16-bit float formats: every half there and back, rounding against exact
 * arithmetic in double at every boundary, and the list of types.
 */
#include "base/math.h"
#include "base/rng.h"
#include "dtype/dtype.h"

#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

static void type_list(void **state) {
    (void)state;
    static const struct {
        tg_dtype dtype;
        const char *name;
        size_t bytes;
    } want[] = { { TG_F32, "f32", 4 }, { TG_F16, "f16", 2 }, { TG_BF16, "bf16", 2 },
                 { TG_I32, "i32", 4 }, { TG_U8, "u8", 1 },   { TG_F64, "f64", 8 } };
    assert_int_equal(TG_Q4_0, sizeof want / sizeof want[0]); /* blocks come behind them */
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        tg_dtype found = TG_DTYPE_COUNT;
        assert_string_equal(tg_dtype_name(want[i].dtype), want[i].name);
        assert_int_equal(tg_dtype_bytes(want[i].dtype), want[i].bytes);
        assert_true(tg_dtype_find(want[i].name, &found) && found == want[i].dtype);
    }
    tg_dtype found = TG_U8;
    assert_false(tg_dtype_find("f8", &found));
    assert_false(tg_dtype_find("", &found));
    assert_false(tg_dtype_find("F32", &found));
    assert_int_equal(found, TG_U8);
    assert_true(tg_dtype_find("q4_k", &found) && found == TG_Q4_K);
    assert_string_equal(tg_dtype_table[TG_IQ4_NL].label, "IQ4_NL");
    assert_string_equal(tg_dtype_name(TG_DTYPE_COUNT), "?");
    assert_string_equal(tg_dtype_name((tg_dtype)-1), "?");
    assert_int_equal(tg_dtype_bytes(TG_DTYPE_COUNT), 0);
}

/* What 16 bits mean, by the definition of the format. */
static double meaning(uint16_t bits, int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

static double f16_meaning(uint16_t bits) { return meaning(bits, 5, 10); }
static double bf16_meaning(uint16_t bits) { return meaning(bits, 8, 7); }

static void every_half(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 0x10000; i++) {
        const uint16_t bits = (uint16_t)i;
        const float h = tg_f16_to_f32(bits), b = tg_bf16_to_f32(bits);
        if (isnan(f16_meaning(bits))) {
            assert_true(isnan(h));
            /* quiet, with the sign and the payload kept */
            assert_int_equal(tg_bits_from_float(h),
                             (i & 0x8000) << 16 | 0x7fc00000 | (i & 0x3ff) << 13);
            assert_int_equal(tg_f16_from_f32(h), bits | 0x200);
        } else {
            assert_true((double)h == f16_meaning(bits) && !signbit(h) == !(bits & 0x8000));
            assert_int_equal(tg_f16_from_f32(h), bits);
        }
        if (isnan(bf16_meaning(bits))) {
            assert_int_equal(tg_bits_from_float(b), i << 16 | 0x400000);
            assert_int_equal(tg_bf16_from_f32(b), bits | 0x40);
        } else {
            assert_true((double)b == bf16_meaning(bits) && !signbit(b) == !(bits & 0x8000));
            assert_int_equal(tg_bf16_from_f32(b), bits);
        }
    }
}

/*
 * Rounding, checked without rounding: below and above are neighbours in the small format, and x
 * has to go to the nearer one, or to the even one from the middle (exact in double).
 */
static uint16_t nearest(float x, uint16_t below, uint16_t above, double (*meaning_of)(uint16_t)) {
    const double low = meaning_of(below);
    double high = meaning_of(above);
    if (isinf(high)) {
        high = low + (low - meaning_of((uint16_t)(below - 1)));
    } /* as if it went on */
    const double middle = low / 2 + high / 2;
    if ((double)x == middle) return below & 1 ? above : below;
    return (double)x < middle ? below : above;
}

/* Floats at, just beside and between the middles of all neighbours; both signs. */
static void check_rounding(uint16_t last_finite, float (*to)(uint16_t), uint16_t (*from)(float),
                           double (*meaning_of)(uint16_t)) {
    for (uint32_t i = 0; i <= last_finite; i++) {
        const uint16_t below = (uint16_t)i, above = (uint16_t)(i + 1);
        const float low = to(below);
        const double next = isinf(meaning_of(above))
                                ? (double)low + ((double)low - meaning_of((uint16_t)(below - 1)))
                                : meaning_of(above);
        const float middle = (float)((double)low / 2 + next / 2);
        const float tries[] = {
            low,    nextafterf(low, INFINITY),    nextafterf(middle, 0),
            middle, nextafterf(middle, INFINITY), (float)(next * 0.75 + (double)low * 0.25)
        };
        for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++) {
            if (isinf(tries[k]) || (double)tries[k] >= next) continue;
            const uint16_t want = nearest(tries[k], below, above, meaning_of);
            if (from(tries[k]) != want)
                fail_msg("%a: have %04x, want %04x", (double)tries[k], from(tries[k]), want);
            assert_int_equal(from(-tries[k]), want | 0x8000);
        }
    }
}

static void rounding(void **state) {
    (void)state;
    check_rounding(0x7bff, tg_f16_to_f32, tg_f16_from_f32, f16_meaning);
    check_rounding(0x7f7f, tg_bf16_to_f32, tg_bf16_from_f32, bf16_meaning);
}

static void extremes(void **state) {
    (void)state;
    assert_int_equal(tg_f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(tg_f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(tg_f16_from_f32(FLT_MAX), 0x7c00);
    assert_int_equal(tg_f16_from_f32(65504.0f), 0x7bff);
    assert_int_equal(tg_f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(tg_f16_from_f32(65520.0f), 0x7c00);
    assert_int_equal(tg_f16_from_f32(0x1p-25f), 0); /* the middle goes to even, which is 0 */
    assert_int_equal(tg_f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(tg_f16_from_f32(-0x1p-26f), 0x8000);
    assert_int_equal(tg_f16_from_f32(0x1p-149f), 0);
    assert_int_equal(tg_bf16_from_f32(INFINITY), 0x7f80);
    assert_int_equal(tg_bf16_from_f32(FLT_MAX), 0x7f80);
    assert_int_equal(tg_bf16_from_f32(0x1p-149f), 0);
    /* A NaN whose payload lies in the lost bits must not become infinite. */
    assert_int_equal(tg_f16_from_f32(tg_float_from_bits(0x7f800001)), 0x7e00);
    assert_int_equal(tg_f16_from_f32(tg_float_from_bits(0xffffffff)), 0xffff);
    assert_int_equal(tg_bf16_from_f32(tg_float_from_bits(0x7f800001)), 0x7fc0);
    assert_int_equal(tg_bf16_from_f32(tg_float_from_bits(0xff80ffff)), 0xffc0);
}

static void arrays(void **state) {
    (void)state;
    enum { N = 1000 };
    float in[N], back[N];
    uint16_t half[N], brain[N];
    for (uint64_t i = 0; i < N; i++) {
        uint32_t x[4];
        tg_philox(5, i, 0, 0, x);
        in[i] = tg_float_from_bits(x[0]);
    }
    tg_f16_from_f32_n(half, in, N);
    tg_bf16_from_f32_n(brain, in, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(half[i], tg_f16_from_f32(in[i]));
        assert_int_equal(brain[i], tg_bf16_from_f32(in[i]));
    }
    tg_f16_to_f32_n(back, half, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(tg_bits_from_float(back[i]), tg_bits_from_float(tg_f16_to_f32(half[i])));
    tg_bf16_to_f32_n(back, brain, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(tg_bits_from_float(back[i]), tg_bits_from_float(tg_bf16_to_f32(brain[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_list), cmocka_unit_test(every_half), cmocka_unit_test(rounding),
        cmocka_unit_test(extremes),  cmocka_unit_test(arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
