/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_reference.h - weights as the references of products read them: one by one, in double.
 */
#ifndef TG_OPS_MATMUL_REFERENCE_H
#define TG_OPS_MATMUL_REFERENCE_H

#include "ops/matmul/matmul_operands.h"

/* b as the reference reads it: element by element. */
typedef struct matmul_operand {
    const TG_REAL *floats; /* or NULL: */
    b_part parts[MATMUL_PARTS];
    size_t cols;
} matmul_operand;

static inline matmul_operand matmul_operand_of(const tg_args *a) {
    matmul_operand b = { .cols = tg_type_cols(&a->in_type[MATMUL_B]) };
    if (matmul_b_is_floats(a))
        b.floats = a->in[MATMUL_B];
    else
        matmul_parts(a, b.parts);
    return b;
}

static inline double matmul_b_at(const matmul_operand *b, size_t row, size_t col) {
    if (b->floats) return (double)b->floats[row * b->cols + col];
    const b_part *p = b->parts;
    while (row - p->begin >= p->rows) p++;
    float w;
    tg_matrix_to_f32_n(p->dtype, p->packing, b->cols, p->packed, row - p->begin, col, 1, &w);
    return (double)w;
}

#endif
