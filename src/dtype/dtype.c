/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.c - the reference conversions between float formats, on bits alone.
 *
 * No float arithmetic happens here, so rounding mode, flush-to-zero and compiler options change
 * nothing. The vector kernels are tested against these for all 65536 halves and for samples of
 * floats around every rounding boundary.
 */
#include "dtype/dtype.h"

const tg_dtype_desc tg_dtype_table[TG_DTYPE_COUNT] = {
#define TG_DTYPE(suffix, name, number, cols, bytes, packing)                                       \
    [TG_##suffix] = { #name, #suffix, number, cols, bytes, TG_PACK_##packing },
#define TG_BLOCK TG_DTYPE
#include "dtype/types.def"
};

/* A value from a file or a caller's cast may lie outside of the enumeration, on either side. */
static bool known(tg_dtype dtype) { return (unsigned)dtype < (unsigned)TG_DTYPE_COUNT; }

const char *tg_dtype_name(tg_dtype dtype) {
    return known(dtype) ? tg_dtype_table[dtype].name : "?";
}

size_t tg_dtype_bytes(tg_dtype dtype) { return known(dtype) ? tg_dtype_table[dtype].bytes : 0; }

bool tg_dtype_find(const char *name, tg_dtype *out) {
    for (int i = 0; i < TG_DTYPE_COUNT; i++) {
        if (strcmp(tg_dtype_table[i].name, name) == 0) {
            *out = (tg_dtype)i;
            return true;
        }
    }
    return false;
}

bool tg_dtype_of_number(uint32_t number, tg_dtype *out) {
    for (int i = 0; i < TG_DTYPE_COUNT; i++) {
        if (tg_dtype_table[i].number != number || number == TG_NOT_IN_GGUF) continue;
        *out = (tg_dtype)i;
        return true;
    }
    return false;
}

/* memcpy is the one way to look at the bits that C allows everywhere; it costs nothing. */
static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* value / 2^shift to the nearest integer, ties to even; 1 <= shift <= 31. */
static uint32_t shift_round(uint32_t value, unsigned shift) {
    const uint32_t kept = value >> shift;
    const uint32_t rest = value & ((UINT32_C(1) << shift) - 1);
    const uint32_t half = UINT32_C(1) << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* Every half has its float: nothing is rounded here. */
float tg_f16_to_f32(uint16_t bits) {
    const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    const uint32_t exponent = bits >> 10 & 0x1f;
    uint32_t fraction = bits & 0x3ff;
    if (exponent == 0x1f) /* infinity; a NaN is made quiet */
        return bits_float(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0) {
        if (fraction == 0) return bits_float(sign);
        /* fraction * 2^-24: move its leading one to where a normal number has it implied. */
        uint32_t e = 127 - 14;
        while (!(fraction & 0x400)) {
            fraction <<= 1;
            e--;
        }
        return bits_float(sign | e << 23 | (fraction & 0x3ff) << 13);
    }
    return bits_float(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

/* By magnitude, from the top: NaN, too large, normal, subnormal, nothing. */
uint16_t tg_f16_from_f32(float x) {
    const uint32_t bits = float_bits(x);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) {
        return (uint16_t)(sign | 0x7c00);
    } /* 65536 and more */
    if (magnitude >= 0x38800000) {
        /* A normal half, 2^-14 and more. A carry out of the fraction raises the exponent, and from
         * the largest exponent it makes infinity: both are what rounding asks for. */
        return (uint16_t)(sign | shift_round(magnitude - ((UINT32_C(127) - 15) << 23), 13));
    }
    /* A subnormal half counts in steps of 2^-24: the 24-bit significand, shifted to that place. */
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 127 - 25) {
        return (uint16_t)sign;
    } /* below half a step */
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    return (uint16_t)(sign | shift_round(significand, 126 - exponent));
}

/* The upper half of a float; only a NaN needs a hand, to be quiet as the rest of the file has it.
 */
float tg_bf16_to_f32(uint16_t bits) {
    const bool nan = (bits & 0x7fff) > 0x7f80;
    return bits_float((uint32_t)bits << 16 | (nan ? 0x400000 : 0));
}

/* Rounding may carry into the exponent, up to infinity, as it should. A NaN must be taken out
 * first: its carry would run into the sign, and a payload in the lost half would leave an infinity.
 */
uint16_t tg_bf16_from_f32(float x) {
    const uint32_t bits = float_bits(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)shift_round(bits, 16);
}

void tg_f16_to_f32_n(float *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = tg_f16_to_f32(in[i]);
}

void tg_f16_from_f32_n(uint16_t *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = tg_f16_from_f32(in[i]);
}

void tg_bf16_to_f32_n(float *out, const uint16_t *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = tg_bf16_to_f32(in[i]);
}

void tg_bf16_from_f32_n(uint16_t *out, const float *in, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = tg_bf16_from_f32(in[i]);
}
