/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans_dot.h - a dot product along the columns of a head, for attention_spans and its gradient.
 */
#ifndef TG_OPS_ATTENTION_SPANS_SPANS_DOT_H
#define TG_OPS_ATTENTION_SPANS_SPANS_DOT_H

#include "simd/vec.h"

enum { LANES = 16 };

/* The last, partial vector of columns has zeros beyond them, which add nothing. */
static inline float dot(const float *x, const float *y, size_t n) {
    tg_v sum = tg_vzero();
    size_t c = 0;
    for (; c + LANES <= n; c += LANES) sum = tg_vfma(tg_vload(x + c), tg_vload(y + c), sum);
    if (c < n) sum = tg_vfma(tg_vload_n(x + c, n - c), tg_vload_n(y + c, n - c), sum);
    return tg_vsum(sum);
}

#endif
