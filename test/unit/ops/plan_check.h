/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_check.h - the law of a plan's memory, found anew and not by the planner's own means: no two
 * values of the workspace that are needed at the same time share a byte.
 *
 * A value's bytes are needed from the step that writes them to the last step that reads them, be it
 * through a view. What the caller fills or reads is needed all along. Steps are places in the
 * graph's list. The one exception is an op that works in place: its output may begin where its
 * input ends, if the op reads it once and nobody reads it later.
 */
#ifndef TG_TEST_PLAN_CHECK_H
#define TG_TEST_PLAN_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan.h"

typedef struct needed {
    const tg_value *value;
    const tg_node *node;
    size_t begin, end;  /* bytes in the workspace */
    size_t first, last; /* steps */
} needed;

static inline const tg_value *root_of(const tg_value *v) {
    size_t offset;
    return tg_value_root(v, &offset);
}

static inline size_t last_reader(const tg_graph *g, const tg_value *root, size_t written) {
    size_t last = written, step = 0;
    for (const tg_node *n = g->first; n; n = n->next, step++) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && root_of(n->in[i]) == root) last = step > last ? step : last;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k].is_output && root_of(&n->out[k]) == root) last = SIZE_MAX;
    }
    return last;
}

/* All values that have bytes of their own in the workspace; freed by the caller. */
static inline needed *all_needed(const tg_plan *plan, size_t *n_out) {
    needed *list = calloc((size_t)plan->graph->n_nodes * TG_MAX_OUT + 1, sizeof *list);
    size_t n = 0, step = 0;
    for (const tg_node *node = plan->graph->first; node; node = node->next, step++) {
        for (int k = 0; k < node->n_out; k++) {
            const tg_value *v = &node->out[k];
            if (root_of(v) != v || tg_op_table[node->op]->is_state) continue;
            const tg_place *p = tg_plan_place_of(plan, v);
            assert_int_equal(p->kind, TG_PLACE_WORKSPACE);
            assert_int_equal(p->bytes, tg_type_bytes(&v->type));
            const bool kept = tg_op_table[node->op]->structural;
            list[n++] = (needed) { .value = v,
                                   .node = node,
                                   .begin = p->offset_bytes,
                                   .end = p->offset_bytes + p->bytes,
                                   .first = kept ? 0 : step,
                                   .last = kept ? SIZE_MAX : last_reader(plan->graph, v, step) };
        }
    }
    *n_out = n;
    return list;
}

/* May b, an output of an op that reads a, begin where a ends? */
static inline bool takes_over(const needed *a, const needed *b) {
    const tg_op_desc *d = tg_op_table[b->node->op];
    const int from = d->in_place[b->value->index];
    if (from == 0 || b->node->in[from - 1] != a->value) return false;
    int times = 0;
    for (int i = 0; i < b->node->n_in; i++)
        times += b->node->in[i] && root_of(b->node->in[i]) == a->value;
    return times == 1 && a->last == b->first && a->begin == b->begin && a->end == b->end;
}

static inline void check_plan_memory(const tg_plan *plan) {
    size_t n;
    needed *list = all_needed(plan, &n);
    for (size_t i = 0; i < n; i++) {
        const needed *a = &list[i];
        if (a->begin % plan->align_bytes != 0 || a->end > plan->workspace_bytes)
            fail_msg("plan %s: %s lies at %zu..%zu of %zu", plan->name, a->value->name, a->begin,
                     a->end, plan->workspace_bytes);
        for (size_t j = 0; j < n; j++) {
            const needed *b = &list[j];
            const bool bytes_meet = a->begin < b->end && b->begin < a->end;
            const bool lives_meet = a->first <= b->last && b->first <= a->last;
            if (i == j || !bytes_meet || !lives_meet || takes_over(a, b) || takes_over(b, a))
                continue;
            fail_msg("plan %s: %s and %s share bytes while both are needed", plan->name,
                     a->value->name, b->value->name);
        }
    }
    free(list);
}

#endif
