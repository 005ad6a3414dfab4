/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_packed_shader.h - what the GPU tables of products with weights of files share.
 */
#ifndef TG_OPS_MATMUL_PACKED_SHADER_H
#define TG_OPS_MATMUL_PACKED_SHADER_H

#include "ops/matmul/matmul_operands.h"
#include "ops/shader.h"

enum { TG_PACKED_ONE_ROWS = 8 }; /* ROWS of matmul_packed_one.wgsl */

/* The layouts of the matrices: op.word of packed.wgsl. */
static inline uint32_t tg_packed_word(const tg_args *a) {
    uint32_t word = 0;
    for (unsigned i = 0; i < MATMUL_PARTS && a->in_type[matmul_b[i]].n_dims; i++)
        word |= tg_shader_layout(a, matmul_b[i], i);
    return word;
}
/* Workgroups of so many rows of a matrix each, for all matrices. */
static inline size_t tg_packed_across(const tg_args *a, size_t rows) {
    size_t across = 0;
    for (unsigned i = 0; i < MATMUL_PARTS && a->in_type[matmul_b[i]].n_dims; i++)
        across += tg_shader_parts(a->in_type[matmul_b[i]].dim[0], rows);
    return across;
}

#endif
