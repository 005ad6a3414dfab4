/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vcap.h - y = back * tanh(to * x) of n floats: a soft cap, for all ISAs at once. y may be x. Bits
 * as of vmath.h: an element's do not depend on where it stands.
 */
#ifndef TG_SIMD_VCAP_H
#define TG_SIMD_VCAP_H

#include "simd/vmath.h"

#if TG_MR == 1
/* tg_vtanh one by one, with the bits of the plain class: where each lane is an instruction, its
 * vectors would be a fiftieth of a module. */
TG_OUT_OF_LINE void tg_vcap_n(float *y, const float *x, size_t n, float to, float back) {
    static const float c[] = { 1.0f,           0x1.fffffcp-2f, 0x1.555490p-3f,
                               0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a234ep-10f };
    for (size_t i = 0; i < n; i++) {
        float u = to * x[i], p = c[5];
        u = u + u;
        u = 40 < u ? 40 : u;
        u = -40 > u ? -40 : u;
        const float whole = u * 0x1.715476p+0f + 0x1.8p23f - 0x1.8p23f;
        float r = u - whole * 0x1.62e4p-1f;
        r = r - whole * 0x1.7f7d1cp-20f;
        for (int k = 4; k >= 0; k--) p = p * r + c[k];
        const uint32_t bits = u == u ? (uint32_t)((int32_t)whole + 127) << 23 : 0;
        float power;
        memcpy(&power, &bits, sizeof power);
        const float d = power * (r * p) + (power - 1);
        y[i] = d / (d + 2) * back;
    }
}
#else
TG_OUT_OF_LINE void tg_vcap_n(float *y, const float *x, size_t n, float to, float back) {
    for (size_t i = 0; i < n; i += 16) {
        const size_t m = n - i < 16 ? n - i : 16;
        const tg_v u = tg_vmul(tg_vload_n(x + i, m), tg_vset(to));
        tg_vstore_n(y + i, tg_vmul(tg_vtanh(u), tg_vset(back)), m);
    }
}
#endif

#endif
