/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_parts.h - the matrices that linear and its gradient read, side by side.
 */
#ifndef TG_OPS_LINEAR_PARTS_H
#define TG_OPS_LINEAR_PARTS_H

#include "dtype/packed.h"
#include "ir/op.h"

enum { LINEAR_PARTS = 3, LINEAR_X = 0, LINEAR_W = 1, LINEAR_BIAS = 4, LINEAR_RESIDUAL = 5 };

/* A part of y: columns [col, col + rows) are x times the rows of one matrix. */
typedef struct part {
    tg_dtype dtype;
    tg_packing packing; /* NONE: rows of 16-bit floats, as a file has them */
    size_t rows, col;
    const uint8_t *packed;
} part;

/* Returns how many there are. While a plan is made, there are types and no data. */
static inline size_t linear_parts(const tg_args *a, part out[LINEAR_PARTS]) {
    size_t n = 0, col = 0;
    for (; n < LINEAR_PARTS && a->in_type[LINEAR_W + n].n_dims; n++) {
        const tg_type *t = &a->in_type[LINEAR_W + n];
        out[n] = (part) { t->dtype, t->layout, t->dim[0], col, a->in[LINEAR_W + n] };
        col += out[n].rows;
    }
    return n;
}

/* Columns of x that go into a product: half of them where they are gates and values. */
static inline size_t linear_depth(const tg_args *a) {
    return tg_type_cols(&a->in_type[LINEAR_X]) / (a->attr.i[0] ? 2 : 1);
}

#endif
