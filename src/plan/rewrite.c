/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.c - the passes between a graph as it was written and the graph that runs.
 *
 *   recompute   a cheap forward value that the backward pass needs is computed there again instead
 *               of being kept: keeping costs memory for the whole step, computing a few percent
 *   fuse        every op may absorb its neighbours (its fuse function); repeated until nobody does
 *   dead nodes  what nobody reads and what writes no state goes
 *
 * The passes name no op. The graph is verified after each.
 */
#include "plan/plan.h"

/* The first node of the backward pass that reads v; NULL if there is none. */
static tg_node *first_backward_user(const tg_value *v) {
    for (tg_node *n = v->node->next; n; n = n->next) {
        if (!n->backward) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v) return n;
    }
    return NULL;
}

/* Output 0 alone is computed anew; the small statistics that an op may have are kept. */
static void recompute_node(tg_graph *g, tg_node *n) {
    tg_value *v = &n->out[0];
    tg_node *user = v->is_output ? NULL : first_backward_user(v);
    if (!user) return;
    tg_node *again = tg_node_clone_before(g, n, user);
    if (!again) return;
    for (tg_node *m = user; m; m = m->next)
        for (int i = 0; i < m->n_in; i++)
            if (m->in[i] == v && m->backward) m->in[i] = &again->out[0];
}

static tg_status recompute(tg_graph *g) {
    for (tg_node *n = g->first; n && g->status == TG_OK; n = n->next)
        if (tg_op_table[n->op]->recompute && !n->backward) recompute_node(g, n);
    return tg_verify(g);
}

static bool in_list(const tg_graph *g, const tg_node *n) {
    return n->prev ? n->prev->next == n : g->first == n;
}

/* After a change the list is another one around us: an op that absorbed one neighbour may absorb
 * the next, and either of the two may be gone. To begin anew each time would take a large model's
 * plan most of its time. */
static tg_status fuse(tg_graph *g) {
    for (bool changed = true; changed && g->status == TG_OK;) {
        changed = false;
        for (tg_node *n = g->first; n && g->status == TG_OK;) {
            tg_node *next = n->next;
            const tg_op_desc *d = tg_op_table[n->op];
            if (d->fuse && d->fuse(g, n)) {
                changed = true;
                next = in_list(g, n) ? n : next && in_list(g, next) ? next : g->first;
            }
            n = next;
        }
    }
    return tg_verify(g);
}

static bool is_root(const tg_node *n) {
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k].is_output || n->acc_into[k] || tg_op_table[n->op]->state_in[k]) return true;
    return false;
}

static tg_status drop_dead(tg_graph *g) {
    bool *live = tg_arena_array(&g->arena, g->n_nodes, sizeof(bool));
    if (!live) return g->status = tg_fail_memory(g->ctx, "table of live nodes", g->n_nodes);
    for (tg_node *n = g->last; n; n = n->prev) {
        if (!live[n->id] && !is_root(n)) continue;
        live[n->id] = true;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) live[n->in[i]->node->id] = true;
        for (int k = 0; k < n->n_out; k++)
            if (n->acc_into[k]) live[n->acc_into[k]->node->id] = true;
    }
    for (tg_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!live[n->id]) tg_node_remove(g, n);
    }
    return tg_verify(g);
}

tg_status tg_rewrite(tg_graph *g) {
    TG_TRY(tg_graph_finish(g));
    if (g->levers & TG_LEVER_BIT(recompute)) TG_TRY(recompute(g));
    if (g->levers & TG_LEVER_BIT(epilogue_fusion)) TG_TRY(fuse(g));
    return drop_dead(g);
}
