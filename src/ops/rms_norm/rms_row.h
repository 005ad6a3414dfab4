/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_row.h - 1 / sqrt(mean(x^2) + eps) of a row: sums in 16 lanes, the root of one number in
 * double, as in layer_norm.simd.h.
 */
#ifndef TG_OPS_RMS_ROW_H
#define TG_OPS_RMS_ROW_H

#include "base/math.h"
#include "simd/vec.h"

static inline float rms_scale(const float *x, size_t n, float eps) {
    tg_v sum = tg_vzero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const tg_v v = tg_vload(x + i);
        sum = tg_vfma(v, v, sum);
    }
    const tg_v v = tg_vload_n(x + i, n - i);
    sum = tg_vfma(v, v, sum);
    return (float)(1 / tg_sqrt((double)tg_vsum(sum) / (double)n + (double)eps));
}

#endif
