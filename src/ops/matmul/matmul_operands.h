/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_operands.h - what b is: a matrix of floats, or weights as model files have them, of which
 * up to three lie side by side.
 */
#ifndef TG_OPS_MATMUL_OPERANDS_H
#define TG_OPS_MATMUL_OPERANDS_H

#include "ir/op.h"

/* Inputs. */
enum {
    MATMUL_A,
    MATMUL_B,
    MATMUL_BIAS,
    MATMUL_RESIDUAL,
    MATMUL_B1,
    MATMUL_B2,
    NORM_MATMUL_N_IN,
    MATMUL_SCALING = NORM_MATMUL_N_IN,
    MATMUL_N_IN
};
/* Attributes. */
enum { MATMUL_TRANS, MATMUL_ACT, MATMUL_KEEP_Z, MATMUL_READ };
/* Of norm_matmul, whose others are the same. */
enum { NORM_MATMUL_GAIN = MATMUL_RESIDUAL };
enum { MATMUL_PARTS = 3 };
static const uint8_t matmul_b[MATMUL_PARTS] = { MATMUL_B, MATMUL_B1, MATMUL_B2 };

/* Plain f32, which is trained; others are weights of files. */
static inline bool matmul_b_is_floats(const tg_args *a) {
    return a->in_type[MATMUL_B].dtype == TG_F32 && tg_type_is_plain(&a->in_type[MATMUL_B]);
}

/* One matrix of weights, whose rows are numbers [begin, begin + rows) of all. */
typedef struct b_part {
    tg_dtype dtype;
    tg_packing packing; /* NONE: rows of 16-bit floats, as a file has them */
    size_t rows, begin;
    const uint8_t *packed;
} b_part;

/* Returns how many there are. While a plan is made, there are types and no data. */
static inline size_t matmul_parts(const tg_args *a, b_part out[MATMUL_PARTS]) {
    size_t n = 0, begin = 0;
    for (; n < MATMUL_PARTS && a->in_type[matmul_b[n]].n_dims; n++) {
        const tg_type *t = &a->in_type[matmul_b[n]];
        out[n] = (b_part) { t->dtype, t->layout, t->dim[0], begin, a->in[matmul_b[n]] };
        begin += out[n].rows;
    }
    return n;
}

/* Columns of f(a): half of a's where they are gates and values. */
static inline size_t matmul_depth(const tg_args *a) {
    return tg_type_cols(&a->in_type[MATMUL_A]) / (a->attr.i[MATMUL_READ] ? 2 : 1);
}

#endif
