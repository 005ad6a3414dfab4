/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - what a value of a graph is: a type of elements or blocks (dtype.h), up to four static
 * dimensions, and how they lie in memory.
 *
 * Letters used for shapes everywhere: B batch, T tokens, N = B*T rows, C channels (width), H heads,
 * D size of a head, M width of the MLP, V vocabulary, L layers, P parameters in all.
 * Tensors are dense and row-major: dim[0] is the slowest. Unused dimensions are 1. Dimensions count
 * elements, whatever the type: a q4_1 [576,1536] has 576 rows of 48 blocks. Matrices [rows, cols]
 * of weights may have another layout, sixteen rows side by side, for the kernels that multiply with
 * them; verify refuses those, and blocks, wherever an op has not said that it reads them.
 */
#ifndef TG_IR_TENSOR_H
#define TG_IR_TENSOR_H

#include "dtype/packed.h"

#define TG_MAX_DIMS 4

typedef struct tg_type {
    tg_dtype dtype;
    int n_dims;              /* 0 is a scalar: one element */
    size_t dim[TG_MAX_DIMS]; /* [0..n_dims) count, the others are 1 */
    tg_packing layout;       /* TG_PACK_NONE: row after row */
} tg_type;

static inline size_t tg_type_elems(const tg_type *t) {
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
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

/* In memory, by type and layout; rows are whole blocks. */
static inline size_t tg_type_bytes(const tg_type *t) {
    return tg_matrix_bytes(t->dtype, t->layout, tg_type_rows(t), tg_type_cols(t));
}

/* Elements one behind the other, which all ops read: no blocks, and no layout of its own. */
static inline bool tg_type_is_plain(const tg_type *t) {
    return t->layout == TG_PACK_NONE && tg_dtype_table[t->dtype].cols == 1;
}

/* Is it a matrix that has whole blocks, in the layout of its type or none? */
static inline bool tg_type_is_whole(const tg_type *t) {
    const tg_packing own = tg_dtype_table[t->dtype].packing;
    return tg_type_cols(t) % tg_dtype_table[t->dtype].cols == 0 &&
           (t->layout == TG_PACK_NONE || (t->layout == own && t->n_dims == 2));
}

static inline bool tg_type_same_shape(const tg_type *a, const tg_type *b) {
    if (a->n_dims != b->n_dims) return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

/* The same type in the same layout, of the same shape. */
static inline bool tg_type_same(const tg_type *a, const tg_type *b) {
    return a->dtype == b->dtype && a->layout == b->layout && tg_type_same_shape(a, b);
}

#define TG_TYPE_TEXT_BYTES 120
/* "f32 [4, 16, 256]", "q4_1 [576, 1536] m4"; "f32 []" is a scalar. Returns text. */
const char *tg_type_text(const tg_type *t, char text[TG_TYPE_TEXT_BYTES]);

static inline tg_type tg_type_1d(tg_dtype dtype, size_t n) {
    return (tg_type) { dtype, 1, { n, 1, 1, 1 } };
}
static inline tg_type tg_type_2d(tg_dtype dtype, size_t rows, size_t cols) {
    return (tg_type) { dtype, 2, { rows, cols, 1, 1 } };
}
/* A matrix of weights as kernels read it: in the layout of its type. */
static inline tg_type tg_type_packed(tg_dtype dtype, size_t rows, size_t cols) {
    return (tg_type) { dtype, 2, { rows, cols, 1, 1 }, tg_dtype_table[dtype].packing };
}
static inline tg_type tg_type_scalar(tg_dtype dtype) {
    return (tg_type) { dtype, 0, { 1, 1, 1, 1 } };
}

#endif
