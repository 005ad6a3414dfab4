/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_parts.h - how the attributes of linear and embedding_packed name packed matrices.
 */
#ifndef TG_OPS_LINEAR_PARTS_H
#define TG_OPS_LINEAR_PARTS_H

#include "dtype/packed.h"
#include "ir/op.h"

enum { LINEAR_PARTS = 3, LINEAR_X = 0, LINEAR_W = 1, LINEAR_BIAS = 4, LINEAR_RESIDUAL = 5 };

/* One number of attr.i: 16 * rows + packing. 0: there is none. */
static inline tg_packing tg_packed_attr_packing(int32_t code) { return (tg_packing)(code & 15); }
static inline size_t tg_packed_attr_rows(int32_t code) { return (size_t)code >> 4; }

/* A part of y: columns [col, col + rows) are x times the rows of one matrix. */
typedef struct part {
    tg_packing packing;
    size_t rows, col;
    const uint8_t *packed;
} part;

/* Returns how many there are. */
static inline size_t linear_parts(const tg_args *a, part out[LINEAR_PARTS]) {
    size_t n = 0, col = 0;
    for (; n < LINEAR_PARTS && a->attr.i[n]; n++) {
        out[n] = (part) { tg_packed_attr_packing(a->attr.i[n]), tg_packed_attr_rows(a->attr.i[n]),
                          col, a->in[LINEAR_W + n] };
        col += out[n].rows;
    }
    return n;
}

/* Columns of x that go into a product: half of them where they are gates and values. */
static inline size_t linear_depth(const tg_args *a) {
    return tg_type_cols(&a->in_type[LINEAR_X]) / (a->attr.i[3] ? 2 : 1);
}

#endif
