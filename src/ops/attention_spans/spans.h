/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - which rows a token sees, whatever the numbers are.
 */
#ifndef TG_OPS_ATTENTION_SPANS_SPANS_H
#define TG_OPS_ATTENTION_SPANS_SPANS_H

#include "base/libc.h"

typedef struct span {
    size_t begin, end;
} span;

/* Row t of spans [rows,2], held within the rows and around t; of a window, what lies in it. */
static inline span span_of(const int32_t *spans, size_t t, size_t rows, int32_t window) {
    const int32_t begin = spans[2 * t], end = spans[2 * t + 1];
    const size_t b = begin < 0 ? 0 : (size_t)begin, e = end < 0 ? 0 : (size_t)end;
    const size_t far = window > 0 ? (size_t)window / 2 : rows;
    const size_t low = t > far ? t - far : 0, high = rows - t > far + 1 ? t + far + 1 : rows;
    return (span) { b < low ? low : b < t ? b : t, e <= t ? t + 1 : e < high ? e : high };
}

#endif
