/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_rules.h - the shapes of a gated short convolution: z [..,3C], w [C,L] as input `taps`.
 */
#ifndef TG_OPS_SHORT_CONV_RULES_H
#define TG_OPS_SHORT_CONV_RULES_H

#include "ops/build.h"
#include "ops/rules.h"

/* *y: the shape of its result. */
static inline bool conv_want(tg_graph *g, const tg_node *n, int taps, int dims, tg_type *y) {
    if (!tg_want_dims(g, n, 0, TG_F32, dims, dims) || !tg_want_dims(g, n, taps, TG_F32, 2, 2))
        return false;
    *y = n->in[0]->type;
    const size_t cols = tg_type_cols(y), L = n->in[taps]->type.dim[1];
    y->dim[dims - 1] = cols / 3;
    if (cols % 3 == 0 && n->in[taps]->type.dim[0] == cols / 3 && L >= 2 && L <= TG_CONV_TAPS_MAX)
        return true;
    tg_graph_fail(
        g, n, TG_E_SHAPE,
        "want rows of three times as many columns as w has rows, and 2..%d taps, have %zu "
        "of %zu and %zu",
        TG_CONV_TAPS_MAX, cols, n->in[taps]->type.dim[0], L);
    return false;
}

/* u of a row of z at column c. */
static inline double conv_u(const TG_REAL *z, size_t C, size_t c) {
    return (double)z[c] * (double)z[2 * C + c];
}

#endif
