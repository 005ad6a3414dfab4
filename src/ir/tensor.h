/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - what a value of a graph is: an element type and up to four static dimensions.
 *
 * Letters used for shapes everywhere: B batch, T tokens, N = B*T rows, C channels (width), H heads,
 * D size of a head, M width of the MLP, V vocabulary, L layers, P parameters in all.
 * Tensors are dense and row-major: dim[0] is the slowest. Unused dimensions are 1.
 */
#ifndef TG_IR_TENSOR_H
#define TG_IR_TENSOR_H

#include "base/libc.h"
#include "dtype/dtype.h"

#define TG_MAX_DIMS 4

typedef struct tg_type {
    tg_dtype dtype;
    int n_dims;              /* 0 is a scalar: one element */
    size_t dim[TG_MAX_DIMS]; /* [0..n_dims) count, the others are 1 */
} tg_type;

static inline size_t tg_type_elems(const tg_type *t) {
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static inline size_t tg_type_bytes(const tg_type *t) {
    return tg_type_elems(t) * tg_dtype_bytes(t->dtype);
}

/* The last dimension, 1 for a scalar: the length of a row. */
static inline size_t tg_type_cols(const tg_type *t) {
    return t->n_dims > 0 ? t->dim[t->n_dims - 1] : 1;
}

/* All dimensions but the last, multiplied: the number of rows. */
static inline size_t tg_type_rows(const tg_type *t) {
    size_t rows = 1;
    for (int i = 0; i + 1 < t->n_dims; i++) rows *= t->dim[i];
    return rows;
}

static inline bool tg_type_same_shape(const tg_type *a, const tg_type *b) {
    if (a->n_dims != b->n_dims) return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

static inline tg_type tg_type_1d(tg_dtype dtype, size_t n) {
    return (tg_type) { dtype, 1, { n, 1, 1, 1 } };
}
static inline tg_type tg_type_2d(tg_dtype dtype, size_t rows, size_t cols) {
    return (tg_type) { dtype, 2, { rows, cols, 1, 1 } };
}
static inline tg_type tg_type_scalar(tg_dtype dtype) {
    return (tg_type) { dtype, 0, { 1, 1, 1, 1 } };
}

#endif
