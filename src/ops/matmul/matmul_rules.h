/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_rules.h - the shape rule of weights of files, which all products with them share.
 */
#ifndef TG_OPS_MATMUL_RULES_H
#define TG_OPS_MATMUL_RULES_H

#include "ops/matmul/matmul_operands.h"
#include "ops/rules.h"

/* Rows of b, of all its matrices. */
static inline size_t matmul_rows_of_b(const tg_type in[MATMUL_N_IN]) {
    size_t rows = tg_type_rows(&in[MATMUL_B]);
    for (int i = 1; i < MATMUL_PARTS; i++)
        if (in[matmul_b[i]].n_dims) rows += in[matmul_b[i]].dim[0];
    return rows;
}

/* Weights: packed, or rows of 16-bit floats, with the columns that the first one has. */
static inline bool matmul_want_weights(tg_graph *g, const tg_node *n) {
    const size_t cols = tg_type_cols(&n->in[MATMUL_B]->type);
    for (int i = 0; i < MATMUL_PARTS && n->in[matmul_b[i]]; i++) {
        const tg_type *t = &n->in[matmul_b[i]]->type;
        const bool halves = t->dtype == TG_F16 || t->dtype == TG_BF16;
        if (t->n_dims == 2 && t->dim[0] > 0 && t->dim[1] == cols && (halves || t->layout)) continue;
        char text[TG_TYPE_TEXT_BYTES];
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "%s: want weights of %zu columns, packed or f16 or bf16, "
                      "have %s",
                      tg_in_name(n, matmul_b[i]), cols, tg_type_text(t, text));
        return false;
    }
    return true;
}

#endif
