/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_rules.h - the shape rule that rope and its gradient share.
 */
#ifndef TG_OPS_ROPE_RULES_H
#define TG_OPS_ROPE_RULES_H

#include "ops/attention/heads_rules.h"
#include "ops/rope/normed.h"

/* Input `rows` is rows of heads [B,T,(H+2K)*D] or [T,..], input `table` [T,R], R even and at most
 * D, and from input `norms` on there are two optional norms, of the heads that normed.h tells. */
static inline bool rope_want(tg_graph *g, const tg_node *n, int rows, int table, int norms) {
    const int n_dims = n->in[rows]->type.n_dims == 3 ? 3 : 2;
    if (!tg_heads_want_qkv(g, n, rows, n_dims)) return false;
    const size_t d = (size_t)n->attr.i[2], tokens = n->in[rows]->type.dim[n_dims - 2];
    const size_t turned = n->in[table]->type.dim[1];
    if (n->in[table]->type.n_dims == 2 && (turned % 2 != 0 || turned > d)) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "want an even number of up to %zu elements that turn, have %zu", d, turned);
        return false;
    }
    return tg_want_type(g, n, table, tg_type_2d(TG_F32, tokens, turned)) &&
           tg_want_type(g, n, norms, tg_type_1d(TG_F32, tg_normed_of(&n->attr, 0).size)) &&
           tg_want_type(g, n, norms + 1, tg_type_1d(TG_F32, tg_normed_of(&n->attr, 1).size));
}

#endif
