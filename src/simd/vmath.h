/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmath.h - exp, log, Phi and activations on sixteen lanes, for all ISAs at once.
 *
 * Everything is built of vec.h's exact operations in one order, so the bits are those of the class
 * (fused or scalar) whatever the ISA. Coefficients are minimax fits of this project's own, rounded
 * to float. Errors against double functions over all binades, held by test/simd_test.c, as are the
 * bits of either class:
 *
 *   function          error, of either class        special values
 *   tg_vexp           < 1.2 ulp                     -inf 0, > 88.73 inf, subnormals kept
 *   tg_vlog           < 0.9 ulp                     0 -inf, +inf inf, < 0 NaN, subnormals taken
 *   tg_vphi           < 1.4e-7                      exactly 0 and 1 beyond 5.26
 *   tg_vgelu_erf      < 4.5e-7 * (1 + |result|)     as x Phi(x): +inf inf, -inf NaN, 0 below -5.26
 *   tg_vgelu_erf_d    < 2.7e-7                      exactly 0 and 1 beyond 5.72
 *   tg_vgelu_tanh     < 1.2e-7 * (1 + |result|)     as tg_vgelu_erf
 *   tg_vgelu_tanh_d   < 3e-7
 *   tg_vsilu          < 1.5e-7 * (1 + |result|)     as tg_vgelu_erf
 *   tg_vsilu_d        < 3e-7
 *   tg_vtanh          < 3 ulp                       exactly -1 and 1 far out
 *
 * A NaN stays a NaN everywhere: tg_vmin(limit, x) returns x when the comparison fails.
 */
#ifndef TG_SIMD_VMATH_H
#define TG_SIMD_VMATH_H

#include "simd/vec.h"

/* Where each lane is an instruction, a function is sixteen times as long, and a call nothing. */
#if TG_MR == 1
#define TG_VMATH TG_OUT_OF_LINE
#else
#define TG_VMATH static inline
#endif

/* c[0] + c[1] x + ... + c[n-1] x^(n-1), from the highest power down. n is a constant. */
static inline tg_v tg_vpoly(tg_v x, const float *c, int n) {
    tg_v y = tg_vset(c[n - 1]);
#pragma GCC unroll 32
    for (int i = n - 2; i >= 0; i--) y = tg_vfma(y, x, tg_vset(c[i]));
    return y;
}

/*
 * exp(x) = 2^n exp(r),  n = round(x / ln 2),  |r| <= ln 2 / 2,  exp(r) = 1 + r + r^2 P(r).
 * The sum with 1.5 * 2^23 rounds to whole numbers. ln 2 is taken off in two parts, the first of 15
 * bits, so that n times it is exact even where a product is rounded on its own.
 */
TG_VMATH tg_v tg_vexp(tg_v x) {
    static const float c[] = { 1.0f,           1.0f,           0x1.fffffcp-2f, 0x1.555490p-3f,
                               0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a234ep-10f };
    const tg_v whole = tg_vset(0x1.8p23f);
    x = tg_vmax(tg_vset(-104.0f), tg_vmin(tg_vset(89.0f), x));
    const tg_v n = tg_vsub(tg_vfma(x, tg_vset(0x1.715476p+0f), whole), whole);
    tg_v r = tg_vfnma(n, tg_vset(0x1.62e4p-1f), x);
    r = tg_vfnma(n, tg_vset(0x1.7f7d1cp-20f), r);
    return tg_vscale(tg_vpoly(r, c, 7), n);
}

/*
 * log(x) = e ln 2 + log(1 + f),  x = 2^e (1 + f),  1 + f in [sqrt(1/2), sqrt(2)),
 * log(1 + f) = f - f^2/2 + f^3 P(f). Subnormals are multiplied by 2^24 first.
 */
TG_VMATH tg_v tg_vlog(tg_v x) {
    static const float c[] = { 0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4cap-3f,
                               -0x1.555c5cp-3f, 0x1.2335b0p-3f,  -0x1.fc1d46p-4f,
                               0x1.e70714p-4f,  -0x1.de660ep-4f, 0x1.14573cp-4f };
    const tg_v zero = tg_vzero(), inf = tg_vfrombits(tg_viset(0x7f800000));
    const tg_vm tiny = tg_vlt(x, tg_vset(FLT_MIN));
    const tg_v y = tg_vselect(tiny, tg_vmul(x, tg_vset(0x1p24f)), x);
    /* The bits minus those of sqrt(1/2) have e in the exponent's place. */
    const tg_vi from_root = tg_visub(tg_vbits(y), tg_viset(0x3f3504f3));
    const tg_vi e = tg_visar(from_root, 23);
    const tg_v m = tg_vfrombits(tg_visub(tg_vbits(y), tg_vishl(e, 23)));
    const tg_v n = tg_vsub(tg_vfloat(e), tg_vselect(tiny, tg_vset(24.0f), zero));
    const tg_v f = tg_vsub(m, tg_vset(1.0f)), f2 = tg_vmul(f, f);
    tg_v tail = tg_vmul(tg_vmul(f2, f), tg_vpoly(f, c, 9));
    tail = tg_vfma(n, tg_vset(0x1.7f7d1cp-20f), tail);
    tail = tg_vfnma(f2, tg_vset(0.5f), tail);
    tg_v r = tg_vfma(n, tg_vset(0x1.62e4p-1f), tg_vadd(f, tail));
    r = tg_vselect(tg_veq(x, inf), inf, r);
    r = tg_vselect(tg_veq(x, zero), tg_vneg(inf), r);
    const tg_v nan = tg_vfrombits(tg_viset(0x7fc00000));
    return tg_vselect(tg_vle(zero, x), r, tg_vselect(tg_vlt(x, zero), nan, x));
}

/*
 * An odd function that has come to its limit at x = end: y P(v), y = x clamped to [-end, end],
 * v = y^2 scale - 1 in [-1, 1]. Powers of v instead of y^2 keep the terms of P small, so that they
 * do not cancel. end is a float where the product rounds to the limit itself, not nearly: the
 * limits are exact, and x Phi(x) is 0 far out on the left.
 */
static inline tg_v tg_vodd(tg_v x, float end, float scale, const float *c, int n) {
    const tg_v y = tg_vmax(tg_vset(-end), tg_vmin(tg_vset(end), x));
    const tg_v v = tg_vfma(tg_vmul(y, y), tg_vset(scale), tg_vset(-1.0f));
    return tg_vmul(y, tg_vpoly(v, c, n));
}

/* Phi(x) = (1 + erf(x / sqrt 2)) / 2, the normal distribution. No exp and no division: matmul's
 * epilogue pays for every instruction here. */
TG_VMATH tg_v tg_vphi(tg_v x) {
    static const float c[] = { 0x1.13c848p-3f,  -0x1.12f392p-4f,  0x1.96b2c2p-5f, -0x1.45bdecp-5f,
                               0x1.0666ccp-5f,  -0x1.9a4988p-6f,  0x1.2fbccap-6f, -0x1.a29e22p-7f,
                               0x1.13d5b4p-7f,  -0x1.6514b6p-8f,  0x1.7b1f84p-9f, -0x1.107ba4p-10f,
                               0x1.5c745ap-11f, -0x1.5841a6p-11f, 0x1.f74a56p-13f };
    return tg_vadd(tg_vset(0.5f), tg_vodd(x, 0x1.503692p+2f, 0x1.293726p-4f, c, 15));
}

TG_VMATH tg_v tg_vgelu_erf(tg_v x) { return tg_vmul(x, tg_vphi(x)); }

/* Phi(x) + x phi(x): one half and an odd function again, which overshoots its limit on the way, and
 * costs half of what Phi, an exp and the sum of both do. */
TG_VMATH tg_v tg_vgelu_erf_d(tg_v x) {
    static const float c[] = { 0x1.fc94c6p-4f, -0x1.01bea0p-4f, 0x1.9aba72p-5f,  -0x1.8cec5ap-5f,
                               0x1.b4c1eap-5f, -0x1.f6a09ap-5f, 0x1.18056cp-4f,  -0x1.244feap-4f,
                               0x1.1a4aa4p-4f, -0x1.dd933ep-5f, 0x1.5b02f8p-5f,  -0x1.105ba8p-5f,
                               0x1.d6a0eap-6f, -0x1.e2465cp-7f, 0x1.992698p-10f, -0x1.5f962cp-9f,
                               0x1.58618ep-8f, -0x1.0b22fap-9f };
    return tg_vadd(tg_vset(0.5f), tg_vodd(x, 0x1.6d9adep+2f, 0x1.f8473ap-5f, c, 18));
}

/* tanh(x) = d / (d + 2),  d = exp(2x) - 1 = 2^n (exp(r) - 1) + (2^n - 1): see tg_vexp. So small x
 * keep their relative precision, too. */
TG_VMATH tg_v tg_vtanh(tg_v x) {
    static const float c[] = { 1.0f,           0x1.fffffcp-2f, 0x1.555490p-3f,
                               0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a234ep-10f };
    const tg_v whole = tg_vset(0x1.8p23f), one = tg_vset(1);
    x = tg_vmax(tg_vset(-40.0f), tg_vmin(tg_vset(40.0f), tg_vadd(x, x)));
    const tg_v n = tg_vsub(tg_vfma(x, tg_vset(0x1.715476p+0f), whole), whole);
    tg_v r = tg_vfnma(n, tg_vset(0x1.62e4p-1f), x);
    r = tg_vfnma(n, tg_vset(0x1.7f7d1cp-20f), r);
    const tg_v power = tg_vscale(one, n), e = tg_vmul(r, tg_vpoly(r, c, 6));
    const tg_v d = tg_vfma(power, e, tg_vsub(power, one));
    return tg_vdiv(d, tg_vadd(d, tg_vset(2)));
}

/* gelu's other form: x (1 + tanh(u)) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3). Half of one plus
 * tanh(u) is 1 / (1 + e) with e = exp(-2u): one exp and one division. */
static inline tg_v tg_vgelu_tanh_e(tg_v x) {
    /* -2 sqrt(2/pi), and 0.044715 times that */
    const tg_v slope = tg_vfma(tg_vmul(x, x), tg_vset(-0.0713548163f), tg_vset(-1.59576912f));
    return tg_vexp(tg_vmul(x, slope));
}
TG_VMATH tg_v tg_vgelu_tanh(tg_v x) {
    const tg_v one = tg_vset(1.0f);
    return tg_vmul(x, tg_vdiv(one, tg_vadd(one, tg_vgelu_tanh_e(x))));
}

/* With g = 1 / (1 + e) it is g + x g (1 - g) 2u', and g (1 - g) = e g^2 without cancellation. x is
 * held where e is finite; further out nothing changes any more. */
TG_VMATH tg_v tg_vgelu_tanh_d(tg_v x) {
    const tg_v y = tg_vmax(tg_vset(-8.0f), tg_vmin(tg_vset(8.0f), x));
    const tg_v one = tg_vset(1.0f), e = tg_vgelu_tanh_e(y);
    const tg_v g = tg_vdiv(one, tg_vadd(one, e)), spread = tg_vmul(tg_vmul(e, g), g);
    /* 2 sqrt(2/pi), and 3 * 0.044715 times that */
    const tg_v slope = tg_vfma(tg_vmul(y, y), tg_vset(0.214064449f), tg_vset(1.59576912f));
    return tg_vfma(spread, tg_vmul(y, slope), g);
}

/* x / (1 + exp(-x)), and with g = 1 / (1 + e), e = exp(-x), its slope g + x g (1 - g), as above. */
static inline tg_v tg_vsilu(tg_v x) {
    return tg_vdiv(x, tg_vadd(tg_vset(1.0f), tg_vexp(tg_vneg(x))));
}
TG_VMATH tg_v tg_vsilu_d(tg_v x) {
    const tg_v y = tg_vmax(tg_vset(-80.0f), tg_vmin(tg_vset(80.0f), x));
    const tg_v one = tg_vset(1.0f), e = tg_vexp(tg_vneg(y));
    const tg_v g = tg_vdiv(one, tg_vadd(one, e));
    return tg_vfma(tg_vmul(tg_vmul(e, g), g), y, g);
}

#endif
