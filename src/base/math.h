/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math.h - elementary functions in double, the same bits on every machine.
 *
 * Built of +, -, *, / and sqrt alone, which IEEE 754 fixes to the last bit, and compiled without
 * contraction to fused multiply-add (-ffp-contract=off). glibc's own change their last bit with the
 * processor, musl's differ from glibc's, and WebAssembly has none: a seed has to give the same
 * weights everywhere. Ten to twenty nanoseconds a call (pow: a hundred); kernels have float vectors
 * of their own in simd/.
 *
 *   function   largest error seen, in units in the last place; the bound that tests enforce
 *   exp        0.76   1       sin    0.78   1  (beyond 2^30 pi the result is NaN)
 *   expm1      1.02   1.1     cos    0.79   1  (the same)
 *   log        0.80   1       tanh   1.86   2
 *   log1p      0.82   1       erf    1.24   2
 *   pow        0.63   1       erfc   3.33   4  (tail included)
 *
 * Special values are those of C11 annex F. The flags of the floating-point environment, errno and
 * rounding modes other than to nearest are not supported.
 */
#ifndef TG_BASE_MATH_H
#define TG_BASE_MATH_H

#include "base/libc.h"

#define TG_PI 3.14159265358979323846

double tg_exp(double x);
double tg_expm1(double x); /* exp(x) - 1 without cancellation near 0 */
double tg_log(double x);   /* natural; -inf for 0, NaN below */
double tg_log1p(double x); /* log(1 + x) without cancellation near 0 */
double tg_sin(double x);
double tg_cos(double x);
double tg_tanh(double x);
double tg_erf(double x);  /* 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x */
double tg_erfc(double x); /* 1 - erf(x) with full relative precision in the tail */
double tg_pow(double x, double y);
double tg_ldexp(double x, int e); /* x * 2^e, rounded once */

double tg_sqrt(double x); /* correctly rounded */
double tg_floor(double x);
double tg_ceil(double x);
double tg_round(double x); /* to the nearest integer, halves away from zero */

static inline uint64_t tg_bits_from_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double tg_double_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t tg_bits_from_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float tg_float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double tg_fabs(double x) {
    return tg_double_from_bits(tg_bits_from_double(x) & ~(UINT64_C(1) << 63));
}

/* By the bits, so that -ffast-math elsewhere cannot reason them away. */
static inline bool tg_isfinite(double x) { return (tg_bits_from_double(x) >> 52 & 0x7ff) != 0x7ff; }

static inline bool tg_isnan(double x) {
    return (tg_bits_from_double(x) & ~(UINT64_C(1) << 63)) > UINT64_C(0x7ff0000000000000);
}

#define TG_NAN tg_double_from_bits(UINT64_C(0x7ff8000000000000))
#define TG_INF tg_double_from_bits(UINT64_C(0x7ff0000000000000))

#endif
