/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad.c - reverse-mode differentiation: gradients are nodes like any other.
 *
 * Walks the list backwards from the loss and asks each op for the gradients of its inputs. Only
 * nodes on a path from what is differentiated to the loss are visited. A value with several users
 * gets the sum of their contributions, added in the order in which the walk meets them.
 */
#include "ir/graph.h"

/* Gradient so far and need of every value, by node id and output. */
typedef struct grad_table {
    tg_value **grad;
    bool *needed;
} grad_table;

/* A node's outputs need a gradient if one of its inputs does. */
static void mark_needed(tg_graph *g, const grad_table *t) {
    for (const tg_node *n = g->first; n; n = n->next) {
        bool any = false;
        for (int i = 0; i < n->n_in; i++)
            any = any || (n->in[i] && t->needed[tg_value_slot(n->in[i])]);
        for (int k = 0; k < n->n_out && any; k++) t->needed[tg_value_slot(&n->out[k])] = true;
    }
}

static void contribute(tg_graph *g, const grad_table *t, const tg_value *to, tg_value *d) {
    tg_value **sum = &t->grad[tg_value_slot(to)];
    *sum = *sum ? tg_apply(g, TG_OP_add, NULL, (tg_value *[]) { *sum, d }, 2) : d;
}

static void visit(tg_graph *g, const grad_table *t, tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    tg_value *dy[TG_MAX_OUT] = { NULL }, *din[TG_MAX_IN] = { NULL };
    bool any = false;
    for (int k = 0; k < n->n_out; k++) {
        dy[k] = t->grad[tg_value_slot(&n->out[k])];
        any = any || dy[k];
    }
    if (!any || d->structural || !t->needed[tg_value_slot(&n->out[0])]) return;
    if (!d->grad) {
        tg_graph_fail(g, n, TG_E_UNSUPPORTED, "this op has no gradient");
        return;
    }
    tg_graph_scope(g, "grad.%s", n->name);
    d->grad(g, n, dy, din);
    for (int i = 0; i < n->n_in && g->status == TG_OK; i++) {
        if (!n->in[i] || !din[i] || !t->needed[tg_value_slot(n->in[i])]) continue;
        if (!tg_type_same_shape(&din[i]->type, &n->in[i]->type)) {
            tg_graph_fail(g, n, TG_E_INTERNAL, "the gradient of input %d has another shape", i);
            return;
        }
        contribute(g, t, n->in[i], din[i]);
    }
}

void tg_grad(tg_graph *g, tg_value *loss, float scale, tg_value *const *wrt, size_t n,
             tg_value **dwrt) {
    for (size_t i = 0; i < n; i++) dwrt[i] = NULL;
    if (g->status != TG_OK) return;
    const size_t slots = (size_t)g->n_nodes * TG_MAX_OUT;
    grad_table t = { tg_arena_array(&g->arena, slots, sizeof(tg_value *)),
                     tg_arena_array(&g->arena, slots, sizeof(bool)) };
    if (!t.grad || !t.needed) {
        g->status = tg_fail_memory(g->ctx, "table of gradients", slots * sizeof(tg_value *));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char text[TG_TYPE_TEXT_BYTES];
        if (wrt[i]->type.dtype != TG_F32 || !tg_type_is_plain(&wrt[i]->type))
            tg_graph_fail(g, wrt[i]->node, TG_E_UNSUPPORTED,
                          "want plain f32 to have a gradient of, have %s",
                          tg_type_text(&wrt[i]->type, text));
        t.needed[tg_value_slot(wrt[i])] = true;
    }
    mark_needed(g, &t);
    if (!t.needed[tg_value_slot(loss)]) return;

    g->in_backward = true;
    tg_graph_scope(g, "grad");
    tg_node *const end = loss->node;
    t.grad[tg_value_slot(loss)] = tg_constant(g, scale);
    for (tg_node *node = end; node && g->status == TG_OK; node = node->prev) visit(g, &t, node);
    tg_graph_scope(g, "%s", "");
    for (size_t i = 0; i < n && g->status == TG_OK; i++) dwrt[i] = t.grad[tg_value_slot(wrt[i])];
}
