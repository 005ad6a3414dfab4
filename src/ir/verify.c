/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - the law of graphs, run after building and after every rewrite.
 *
 *   1. inputs come from earlier nodes
 *   2. a fresh inference of every node gives the types it carries
 *   3. outputs that are new versions have the type of what they replace
 *   4. nobody reads an old version of a state after it was overwritten
 *   5. blocks, and layouts of their own, go to inputs that an op says it reads them from
 */
#include "ir/graph.h"

/* One write into a state: a range of elements of a root, at a position in the list. */
typedef struct write_record {
    const tg_value *root;
    size_t begin, end;
    size_t position;
} write_record;

typedef struct verifier {
    tg_graph *g;
    size_t *position; /* by node id; SIZE_MAX: not in the list (removed) */
    write_record *writes;
    size_t n_writes;
} verifier;

/* When the content that v stands for came into being: a view is as old as what it looks at. */
static size_t birth(const verifier *v, const tg_value *value) {
    while (value->node->op == TG_OP_view) value = value->node->in[0];
    return v->position[value->node->id];
}

static bool writes_state(const tg_node *n, int k) {
    return tg_op_table[n->op]->state_in[k] != 0 || n->acc_into[k] != NULL;
}

static void record_writes(verifier *v, const tg_node *n) {
    for (int k = 0; k < n->n_out; k++) {
        if (!writes_state(n, k)) continue;
        size_t offset;
        const tg_value *root = tg_value_root(&n->out[k], &offset);
        v->writes[v->n_writes++] =
            (write_record) { root, offset, offset + tg_type_elems(&n->out[k].type),
                             v->position[n->id] };
    }
}

static void check_reader(verifier *v, const tg_node *n, const tg_value *in) {
    size_t offset;
    const tg_value *root = tg_value_root(in, &offset);
    const size_t end = offset + tg_type_elems(&in->type);
    const size_t born = birth(v, in), now = v->position[n->id];
    for (size_t i = 0; i < v->n_writes; i++) {
        const write_record *w = &v->writes[i];
        if (w->root == root && w->begin < end && offset < w->end && w->position > born &&
            w->position < now) {
            tg_graph_fail(v->g, n, TG_E_INTERNAL, "reads an old version of %s, overwritten before",
                          in->name);
            return;
        }
    }
}

static void check_types(tg_graph *g, tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    tg_type kept[TG_MAX_OUT];
    for (int k = 0; k < n->n_out; k++) kept[k] = n->out[k].type;
    if (d->infer && !d->structural) d->infer(g, n);
    for (int k = 0; k < n->n_out && g->status == TG_OK; k++) {
        if (!tg_type_same(&kept[k], &n->out[k].type))
            tg_graph_fail(g, n, TG_E_INTERNAL,
                          "output %d carries another type than inference gives", k);
        const tg_value *state =
            n->acc_into[k] ? n->acc_into[k] : (d->state_in[k] ? n->in[d->state_in[k] - 1] : NULL);
        if (state && tg_type_elems(&state->type) != tg_type_elems(&n->out[k].type))
            tg_graph_fail(g, n, TG_E_INTERNAL, "output %d does not fit the state %s", k,
                          state->name);
    }
}

/* latest stands for the whole state after all writes so far: it is born where it stands, so it may
 * have an input of any age. */
static void check_node(verifier *v, tg_node *n) {
    tg_graph *g = v->g;
    for (int i = 0; i < n->n_in && g->status == TG_OK; i++) {
        if (!n->in[i]) continue;
        const size_t at = v->position[n->in[i]->node->id];
        if (at >= v->position[n->id])
            tg_graph_fail(g, n, TG_E_INTERNAL, "input %d (%s) does not come from an earlier node",
                          i, n->in[i]->name);
        else if (n->op != TG_OP_latest && n->op != TG_OP_view)
            check_reader(v, n, n->in[i]);
    }
    for (int k = 0; k < n->n_out && g->status == TG_OK; k++) {
        if (!n->acc_into[k]) continue;
        if (v->position[n->acc_into[k]->node->id] >= v->position[n->id])
            tg_graph_fail(g, n, TG_E_INTERNAL, "adds into a state that comes later");
        else
            check_reader(v, n, n->acc_into[k]);
    }
    if (g->status == TG_OK && tg_want_readable(g, n)) check_types(g, n);
    if (g->status == TG_OK) record_writes(v, n);
}

tg_status tg_verify(tg_graph *g) {
    if (g->status != TG_OK) return g->status;
    verifier v = { .g = g };
    v.position = tg_arena_array(&g->arena, g->n_nodes, sizeof(size_t));
    size_t n_writes = 0, at = 0;
    for (const tg_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->n_out; k++) n_writes += writes_state(n, k);
    v.writes = tg_arena_array(&g->arena, n_writes + 1, sizeof(write_record));
    if (!v.position || !v.writes)
        return g->status =
                   tg_fail_memory(g->ctx, "verification of a graph", g->n_nodes * sizeof(size_t));
    for (uint32_t i = 0; i < g->n_nodes; i++) v.position[i] = SIZE_MAX;
    for (const tg_node *n = g->first; n; n = n->next) v.position[n->id] = at++;
    for (tg_node *n = g->first; n && g->status == TG_OK; n = n->next) check_node(&v, n);
    return g->status;
}
