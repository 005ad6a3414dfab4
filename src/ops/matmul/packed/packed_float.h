/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_float.h - products of x as it is with a group of W turned into floats.
 *
 * The lanes are the group's sixteen rows of W. A sum is one of the sums of CHAIN columns each, in
 * rising k: a chain over all columns would round each product against the sum of all before it.
 */
#ifndef TG_OPS_PACKED_FLOAT_H
#define TG_OPS_PACKED_FLOAT_H

#include "ops/matmul/packed/packed_int8.h"

enum { FLOAT_ROWS = 12, CHAIN = 128 };

/* A block of whole numbers, as [32][16] floats. Through memory, and one function for all packings:
 * this way is not the fast one, and unrolled for each it would be a hundredth of a module. */
TG_OUT_OF_LINE void float_block(tg_packing p, const uint8_t *group, size_t at, float *out) {
    w_block w;
    take_block(p, group, at, &w);
    const tg_v zero = tg_vset((float)tg_packing_table[p].zero);
    for (int j = 0; j < 8; j++) {
        const int half = p == TG_PACK_Q8MX16 ? j / 4 : 0;
        uint8_t u[64];
        memcpy(u, &w.u[j], sizeof u);
        for (int i = 0; i < 4; i++) {
            int32_t lane[16];
            for (int r = 0; r < 16; r++) lane[r] = u[4 * r + i];
            tg_v x = tg_vmul(w.scale[half], tg_vsub(tg_vfloat(tg_viload(lane)), zero));
            if (has_offset(p)) x = tg_vadd(x, w.offset[half]);
            tg_vstore(out + (4 * j + i) * 16, x);
        }
    }
}

/* The group as [depth][16] floats: where it is, or in the panel. All ops that read packed groups
 * have this and float_tile, so they stay functions: a module keeps one of all that are equal. */
TG_OUT_OF_LINE const float *float_panel(tg_packing p, size_t depth, const uint8_t *group,
                                        float *panel) {
    switch (p) {
    case TG_PACK_F32: return (const float *)(const void *)group;
    case TG_PACK_F16:
        for (size_t k = 0; k < depth; k++) tg_vstore(panel + 16 * k, load_half(group + 32 * k));
        break;
    case TG_PACK_BF16:
        for (size_t k = 0; k < depth; k++)
            tg_vstore(panel + 16 * k,
                      tg_vload_bf16((const uint16_t *)(const void *)(group + 32 * k)));
        break;
    default:
        for (size_t b = 0; b < depth / 32; b++) float_block(p, group, b, panel + b * 32 * 16);
        break;
    }
    return panel;
}

INLINE void float_rows(const float *w, const float *x, size_t step, size_t depth, const int rows,
                       tg_v *y) {
    UNROLL
    for (int i = 0; i < rows; i++) y[i] = tg_vzero();
    for (size_t begin = 0; begin < depth; begin += CHAIN) {
        const size_t end = tg_min_size(begin + CHAIN, depth);
        tg_v sum[FLOAT_ROWS];
        UNROLL
        for (int i = 0; i < rows; i++) sum[i] = tg_vzero();
        for (size_t k = begin; k < end; k++) {
            const tg_v v = tg_vload(w + 16 * k);
            UNROLL
            for (int i = 0; i < rows; i++)
                sum[i] = tg_vfma(tg_vset(x[(size_t)i * step + k]), v, sum[i]);
        }
        UNROLL
        for (int i = 0; i < rows; i++) y[i] = tg_vadd(y[i], sum[i]);
    }
}

/* n <= FLOAT_ROWS rows of x, step apart. */
TG_OUT_OF_LINE void float_tile(const float *w, const float *x, size_t step, size_t depth, size_t n,
                               tg_v *y) {
    size_t i = 0;
    if (n == FLOAT_ROWS && TG_MR > 1) {
        float_rows(w, x, step, depth, FLOAT_ROWS, y);
        return;
    }
    for (; i + 4 <= n && TG_MR > 1; i += 4) float_rows(w, x + i * step, step, depth, 4, y + i);
    for (; i < n; i++) float_rows(w, x + i * step, step, depth, 1, y + i);
}

#endif
