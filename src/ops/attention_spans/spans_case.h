/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans_case.h - spans of test cases.
 */
#ifndef TG_OPS_ATTENTION_SPANS_SPANS_CASE_H
#define TG_OPS_ATTENTION_SPANS_SPANS_CASE_H

#include "ir/op.h"
#include "ops/attention_spans/spans.h"

/* Spans that the filler made are any two numbers: most do not hold their own token, and some lie
 * outside. Every third row gets one that does, as real ones are. */
static inline void prepare_spans(const tg_args *a) {
    int32_t *spans = (int32_t *)(uintptr_t)a->in[1];
    const int32_t rows = (int32_t)a->in_type[0].dim[0];
    for (int32_t t = 0; t < rows; t += 3) {
        spans[2 * t] = t / 2;
        spans[2 * t + 1] = t + (rows - t + 1) / 2;
    }
}

#endif
