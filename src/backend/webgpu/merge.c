/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - see merge.h.
 */
#include "backend/webgpu/merge.h"

/* Do the bytes of two values meet? */
static bool values_meet(const tg_plan *plan, const tg_value *a, const tg_value *b) {
    const tg_place *p = tg_plan_place_of(plan, a), *q = tg_plan_place_of(plan, b);
    if (p->kind != q->kind || p->kind == TG_PLACE_NONE) return false;
    if (p->kind == TG_PLACE_STATE && p->state != q->state) return false;
    return p->offset_bytes < q->offset_bytes + q->bytes &&
           q->offset_bytes < p->offset_bytes + p->bytes;
}

static bool writes_into(const tg_plan *plan, const tg_node *a, const tg_node *b,
                        const tg_value *unwritten) {
    for (int k = 0; k < a->n_out; k++) {
        if (&a->out[k] == unwritten) continue;
        for (int i = 0; i < b->n_in; i++)
            if (b->in[i] && b->in[i] != unwritten && values_meet(plan, &a->out[k], b->in[i]))
                return true;
        for (int i = 0; i < b->n_out; i++)
            if (&b->out[i] != unwritten && values_meet(plan, &a->out[k], &b->out[i])) return true;
    }
    return false;
}

bool tg_merge_may_join(const tg_plan *plan, size_t s, size_t t) {
    const tg_node *n = plan->steps[t].node, *leader = plan->steps[s].node;
    const tg_value *unwritten = NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == &leader->out[0]) unwritten = n->in[i];
    for (size_t u = s; u < t; u++)
        if (writes_into(plan, plan->steps[u].node, n, unwritten) ||
            writes_into(plan, n, plan->steps[u].node, unwritten))
            return false;
    return true;
}
