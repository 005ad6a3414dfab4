/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates_rules.h - rows in which each query head stands beside its gates.
 *
 *   x      H times (D of the query | D gates) | K*D keys | K*D values
 *   qkv    H*D queries | K*D keys | K*D values       gates    H*D
 */
#ifndef TG_OPS_GATES_RULES_H
#define TG_OPS_GATES_RULES_H

#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"
#include "ops/shader.h"

typedef struct gates {
    size_t HD, D, row; /* H*D, D, of qkv */
} gates;

static inline gates gates_of(const tg_attr *a) {
    const size_t H = (size_t)a->i[0], K = (size_t)a->i[1], D = (size_t)a->i[2];
    return (gates) { H * D, D, (H + 2 * K) * D };
}

/* Where element i of a row of x stands: in qkv, or behind its end in the gates. */
static inline size_t gates_place(const gates *s, size_t i) {
    if (i >= 2 * s->HD) return i - s->HD;
    return i / s->D % 2 * s->row + i / (2 * s->D) * s->D + i % s->D;
}

/* Sizes within their limits, and input k of rows of `width`; *rows: a type to change the width of.
 */
static inline bool gates_want(tg_graph *g, const tg_node *n, int k, size_t more, tg_type *rows) {
    const int32_t *i = n->attr.i;
    if (!tg_want_dims(g, n, k, TG_F32, 2, TG_MAX_DIMS)) return false;
    if (i[0] < 1 || i[1] < 1 || i[2] < 1 || i[0] > 65536 || i[1] > 65536 || i[2] > 65536) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want sizes of 1..65536, have %d, %d and %d", (int)i[0],
                      (int)i[1], (int)i[2]);
        return false;
    }
    const gates s = gates_of(&n->attr);
    *rows = n->in[k]->type;
    rows->dim[rows->n_dims - 1] = s.row + more * s.HD;
    return tg_want_type(g, n, k, *rows);
}

static inline tg_type gates_type(const tg_type *rows, size_t cols) {
    tg_type t = *rows;
    t.dim[t.n_dims - 1] = cols;
    return t;
}

#endif
