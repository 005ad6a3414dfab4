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

/* Row t of spans [rows,2], held within the rows and around t. */
static inline span span_of(const int32_t *spans, size_t t, size_t rows) {
    const int32_t begin = spans[2 * t], end = spans[2 * t + 1];
    const size_t b = begin < 0 ? 0 : (size_t)begin, e = end < 0 ? 0 : (size_t)end;
    return (span) { b < t ? b : t, e <= t ? t + 1 : e < rows ? e : rows };
}

#endif
