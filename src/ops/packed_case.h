/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_case.h - packed matrices of test cases: types by packing, and their bytes.
 */
#ifndef TG_OPS_PACKED_CASE_H
#define TG_OPS_PACKED_CASE_H

#include "base/rng.h"
#include "ops/rules.h"

/* Of a block of four or five bits: the bytes that hold them. Where the first row of a group meets
 * the first block of x, their sums are as large as they get. */
static inline size_t tg_packing_small_bytes(tg_packing p) {
    return p == TG_PACK_Q4X16 || p == TG_PACK_Q4MX16   ? 256
           : p == TG_PACK_Q5X16 || p == TG_PACK_Q5MX16 ? 320
                                                       : 0;
}

/*
 * Input k, a packed matrix or one of 16-bit floats, is made of random bytes, with the 16-bit
 * floats' exponents held near 1/16, and those of every group's fourth row subnormal, which shaders
 * may not take for zeros; what is f32 in q8mx16 is made by hand.
 */
static inline void tg_case_fill_packed(const tg_args *a, int k, uint32_t stream) {
    const tg_type *t = &a->in_type[k];
    const tg_packing p = t->layout;
    uint8_t *out = (uint8_t *)(uintptr_t)a->in[k];
    const size_t n = tg_type_bytes(t), unit = p ? tg_packing_table[p].bytes : 1;
    const bool halves = t->dtype == TG_F16, upper_halves = t->dtype == TG_BF16;
    for (size_t i = 0; i < n; i++) {
        uint32_t x[4];
        tg_philox(7, i, TG_RNG_INIT, stream, x);
        const size_t at = i % unit;
        const bool half = halves || ((p == TG_PACK_Q4X16 || p == TG_PACK_Q4MX16) && at >= 256) ||
                          ((p == TG_PACK_Q5X16 || p == TG_PACK_Q5MX16) && at >= 320) ||
                          (p == TG_PACK_Q8X16 && at >= 512) || (p == TG_PACK_Q4KX16 && at < 64);
        out[i] = (uint8_t)x[0];
        if (at < tg_packing_small_bytes(p) && at % 64 < 4) out[i] = 255;
        if (half && i % 2) out[i] = (uint8_t)(0x20 | (x[0] & 0x83)); /* about 2^-7 */
        if (half && p && i % 32 == 7) out[i] &= 0x83;                /* subnormal, of row 3 */
        if (upper_halves && i % 2) out[i] = (uint8_t)(0x3c | (x[0] & 0x80));
        if (p == TG_PACK_F32 || (p == TG_PACK_Q8MX16 && at >= 512)) {
            const float f = ((float)(x[1] % 2001) - 1000) * 1e-4f;
            memcpy(&out[i - i % 4], &f, 4);
            i += 3 - i % 4;
        }
    }
}

/* A matrix by its packing: of the first type that has it. */
#define TG_CASE_MATRIX(p, n, k)     TG_CASE_MATRIX_##p(n, k)
#define TG_CASE_MATRIX_F32(n, k)    TG_PACKED(F32, F32, n, k)
#define TG_CASE_MATRIX_F16(n, k)    TG_PACKED(F16, F16, n, k)
#define TG_CASE_MATRIX_BF16(n, k)   TG_PACKED(BF16, BF16, n, k)
#define TG_CASE_MATRIX_Q4X16(n, k)  TG_PACKED(Q4_0, Q4X16, n, k)
#define TG_CASE_MATRIX_Q4MX16(n, k) TG_PACKED(Q4_1, Q4MX16, n, k)
#define TG_CASE_MATRIX_Q5X16(n, k)  TG_PACKED(Q5_0, Q5X16, n, k)
#define TG_CASE_MATRIX_Q5MX16(n, k) TG_PACKED(Q5_1, Q5MX16, n, k)
#define TG_CASE_MATRIX_Q8X16(n, k)  TG_PACKED(Q8_0, Q8X16, n, k)
#define TG_CASE_MATRIX_Q4KX16(n, k) TG_PACKED(Q4_K, Q4KX16, n, k)
#define TG_CASE_MATRIX_Q8MX16(n, k) TG_PACKED(MXFP4, Q8MX16, n, k)

#endif
