/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusing.h - what the fusion patterns of ops share.
 */
#ifndef TG_OPS_FUSING_H
#define TG_OPS_FUSING_H

#include "ir/graph.h"

/*
 * What feeds a norm feeds the sum around the block as well, so that its gradient is add(dx, res).
 * If nobody else wants dx, out 0 of n, and res is there before n runs, n takes res as input k and
 * adds it itself, which saves a pass over memory. The same bits: dx is rounded first, then added
 * to.
 *
 *     res ----------.                  res --.
 *     n (a norm's gradient) -+- add -->   =>    n -->
 */
static inline bool tg_fuse_residual(tg_graph *g, tg_node *n, int k) {
    tg_value *const dx = &n->out[0];
    tg_node *const user = n->in[k] ? NULL : tg_single_user(g, dx);
    if (!user || user->op != TG_OP_add) return false;
    tg_value *const res = user->in[0] == dx ? user->in[1] : user->in[0];
    if (!tg_node_before(res->node, n)) return false;
    n->in[k] = res;
    tg_replace_uses(g, &user->out[0], dx, NULL);
    tg_node_remove(g, user);
    return true;
}

#endif
