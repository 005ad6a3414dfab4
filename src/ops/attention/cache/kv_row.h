/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_row.h - a row of the KV cache: the key or the value of one head at one position.
 *
 *   dtype of the cache   dimensions          a row of D numbers
 *   F32                  [P,2K,R,D]          as they are
 *   F16                  [P,2K,R,D]          rounded to nearest, ties to even
 *   U8                   [P,2K,R,D + 4]      | q, D whole numbers of 8 bits | d, f32 |   x = d * q
 *
 * d = max |x| / 127. A row with a NaN or an infinity has a NaN for d, so that neither is lost. What
 * has been written reads as the same floats everywhere: attention of a cache is exact but for that.
 */
#ifndef TG_OPS_ATTENTION_KV_ROW_H
#define TG_OPS_ATTENTION_KV_ROW_H

#include "base/math.h"
#include "dtype/dtype.h"

static inline size_t tg_kv_row_elems(tg_dtype dtype, size_t d) {
    return dtype == TG_U8 ? d + sizeof(float) : d;
}
static inline size_t tg_kv_row_bytes(tg_dtype dtype, size_t d) {
    return tg_kv_row_elems(dtype, d) * tg_dtype_bytes(dtype);
}

/* dtype F16 or U8. */
static inline void tg_kv_write(tg_dtype dtype, uint8_t *row, const float *x, size_t d) {
    if (dtype == TG_F16) {
        for (size_t i = 0; i < d; i++) {
            const uint16_t bits = tg_f16_from_f32(x[i]);
            memcpy(row + 2 * i, &bits, sizeof bits);
        }
        return;
    }
    float most = 0, poison = 0;
    for (size_t i = 0; i < d; i++) {
        const float size = x[i] < 0 ? -x[i] : x[i];
        if (size > most) most = size;
        poison += x[i] * 0.0F;
    }
    const float inverse = most > 0 ? 127.0F / most : 0, scale = most / 127.0F + poison;
    for (size_t i = 0; i < d; i++) {
        const double q = tg_floor((double)(x[i] * inverse) + 0.5);
        row[i] = (uint8_t)(int8_t)(q >= -127 && q <= 127 ? q : 0);
    }
    memcpy(row + d, &scale, sizeof scale);
}

/* One number of a row; dtype F16 or U8. */
static inline float tg_kv_at(tg_dtype dtype, const uint8_t *row, size_t d, size_t i) {
    if (dtype == TG_F16) {
        uint16_t bits;
        memcpy(&bits, row + 2 * i, sizeof bits);
        return tg_f16_to_f32(bits);
    }
    float scale;
    memcpy(&scale, row + d, sizeof scale);
    return scale * (float)(int8_t)row[i];
}

#endif
