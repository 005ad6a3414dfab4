/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_packed_shader.h - what the GPU tables of products with weights of files share.
 */
#ifndef TG_OPS_MATMUL_PACKED_SHADER_H
#define TG_OPS_MATMUL_PACKED_SHADER_H

#include "ops/matmul/matmul_operands.h"
#include "ops/shader.h"

enum { TG_PACKED_ONE_ROWS = 8 }; /* ROWS of matmul_packed_one.wgsl */

/* Are all matrices of four bits a weight? */
static inline bool tg_packed_is_nibbles(const tg_args *a) {
    bool all = a->in_type[MATMUL_B].layout != TG_PACK_NONE;
    for (unsigned i = 0; i < MATMUL_PARTS && a->in_type[matmul_b[i]].n_dims; i++) {
        const tg_packing p = a->in_type[matmul_b[i]].layout;
        all = all && (p == TG_PACK_Q4X16 || p == TG_PACK_Q4MX16 || p == TG_PACK_Q4KX16);
    }
    return all;
}
/* All matrices of q4x16: loads that do not ask for the layout are quicker. */
static inline bool tg_packed_is_q4(const tg_args *a) {
    bool all = true;
    for (unsigned i = 0; i < MATMUL_PARTS && a->in_type[matmul_b[i]].n_dims; i++)
        all = all && a->in_type[matmul_b[i]].layout == TG_PACK_Q4X16;
    return all;
}
/* There is one, so that loads do not ask for the matrix, either. */
static inline bool tg_packed_is_lone_q4(const tg_args *a) {
    return tg_packed_is_q4(a) && !a->in_type[MATMUL_B1].n_dims && !a->in_type[MATMUL_B2].n_dims;
}
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

/*
 * One row times weights of four bits: matmul_one_row.wgsl has a thread take four rows and EACH * 8
 * columns of a block, and a workgroup 8 rows, or 16. Wide ones do more for what they begin with,
 * and win where there are enough of them (measured on one H200: of floats 256 do, 192 do not). It
 * follows from the matrices alone, so that rows of a batch have the bits of lone ones.
 */
#define TG_ONE_ROW_NARROW      "const QUADS = 2u; const EACH = 1u; const EARLY = true;\n"
#define TG_ONE_ROW_WIDE        "const QUADS = 4u; const EACH = 4u; const EARLY = true;\n"
#define TG_ONE_ROW_NARROW_INT8 "const QUADS = 2u; const EACH = 2u; const EARLY = true;\n"
#define TG_ONE_ROW_WIDE_INT8   "const QUADS = 4u; const EACH = 4u; const EARLY = false;\n"
#define TG_ONE_ROW_ANY         "const ONLY = 0u; const LONE = false;\n"
#define TG_ONE_ROW_Q4          "const ONLY = Q4X16; const LONE = false;\n"
#define TG_ONE_ROW_LONE_Q4     "const ONLY = Q4X16; const LONE = true;\n"
static inline bool tg_packed_is_wide(const tg_args *a) { return tg_packed_across(a, 16) >= 224; }
static inline bool tg_packed_is_wide_int8(const tg_args *a) {
    return tg_packed_across(a, 16) >= 128;
}

#endif
