/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - the part of a parameter that is one matrix: queries, keys and values lie side by side
 * in one, and each of them is orthogonalised by itself.
 *
 *   i[0] first row   i[1] rows   i[2] first column   i[3] columns     of a parameter [R,C]
 */
#ifndef TG_OPS_MUON_BLOCK_H
#define TG_OPS_MUON_BLOCK_H

#include "ir/op.h"

typedef struct muon_block {
    size_t rows, cols;
    size_t first, stride; /* of its elements in the parameter: first + r * stride + c */
} muon_block;

static inline muon_block muon_block_of(const tg_attr *a, const tg_type *parameter) {
    const size_t stride = tg_type_cols(parameter);
    return (muon_block) { .rows = (size_t)a->i[1],
                          .cols = (size_t)a->i[3],
                          .first = (size_t)a->i[0] * stride + (size_t)a->i[2],
                          .stride = stride };
}

#endif
