/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax.h - 2^t on sixteen lanes: the exponential that all bodies of attention share.
 *
 *   n = round(t)    by adding 1.5 * 2^23 + 127, after which the lowest bits are the exponent of 2^n
 *   2^t = 2^n P(t - n),  P a minimax fit of degree 5 on [-1/2, 1/2] with P(0) = 1
 *
 * tg_vexp has all floats to serve; here t is at most about 0, so that 2^n is a shift of bits that
 * are there anyway, and exp(scale x) costs no step more than 2^t, x being multiplied in any case.
 *
 * Error below 1.8e-7 relative for t in [-126, 127]. A t below counts as -126, whose power is
 * nothing beside the 1 of a row's largest score; t stays below 127 where lse belongs to the scores.
 * 2^0 is exactly 1: a tile that brings no new maximum leaves a row as it is. A NaN stays a NaN.
 */
#ifndef TG_OPS_ATTENTION_SOFTMAX_H
#define TG_OPS_ATTENTION_SOFTMAX_H

#include "simd/vec.h"
#include "simd/vmath.h"

#define LOG2_E    0x1.715476p+0f
#define MINUS_INF (-__builtin_inff())

TG_VMATH tg_v power_of_2(tg_v t) {
    const tg_v magic = tg_vset(0x1.8p23f + 127);
    t = tg_vmax(tg_vset(-126), t);
    const tg_v u = tg_vadd(t, magic), n = tg_vsub(u, magic), r = tg_vsub(t, n);
    tg_v p = tg_vset(0x1.5bda56p-10f);
    p = tg_vfma(p, r, tg_vset(0x1.3ce8aep-7f));
    p = tg_vfma(p, r, tg_vset(0x1.c6b6d8p-5f));
    p = tg_vfma(p, r, tg_vset(0x1.ebf9c2p-3f));
    p = tg_vfma(p, r, tg_vset(0x1.62e42ap-1f));
    p = tg_vfma(p, r, tg_vset(1));
    return tg_vmul(p, tg_vfrombits(tg_vishl(tg_vbits(u), 23)));
}

#endif
