/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_rules.h - the shape rule that the ops of Muon share.
 */
#ifndef TG_OPS_MUON_BLOCK_RULES_H
#define TG_OPS_MUON_BLOCK_RULES_H

#include "ops/muon/block.h"
#include "ops/rules.h"

/* Input k is a parameter that the block of the attributes lies in. */
static inline bool muon_want(tg_graph *g, const tg_node *n, int k) {
    const int32_t *i = n->attr.i;
    if (!tg_want_dims(g, n, k, TG_F32, 2, 2)) return false;
    const size_t *dim = n->in[k]->type.dim;
    if (i[0] >= 0 && i[1] > 0 && i[2] >= 0 && i[3] > 0 && (size_t)i[0] + (size_t)i[1] <= dim[0] &&
        (size_t)i[2] + (size_t)i[3] <= dim[1])
        return true;
    tg_graph_fail(g, n, TG_E_SHAPE, "block: want one in [%zu, %zu], have one outside", dim[0],
                  dim[1]);
    return false;
}

/* Of a case: the step is refused. */
static inline void muon_put_refused(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[2])[2] = 0; }

#endif
