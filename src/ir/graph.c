/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - the sticky builder and the small moves that rewriting is made of.
 *
 * Invariants: the node list is a topological order; every input of a node is an output of an
 * earlier one; after the first error nothing is appended. See grad.c for gradients, verify.c for
 * the law, dump.c for the text form.
 *
 * Nodes and names are never freed alone: they lie in the arena, and a removed node is one that the
 * list no longer passes through. So ids are not dense after rewriting, and tables by id have
 * n_nodes places, not as many as the list is long.
 *
 * The poison value is an output of a node outside of the list. It has a type of zeros and is never
 * computed; it exists so that a model file need not ask after every line whether the last one
 * worked, and so that asking for its node, shape or name is never a NULL.
 */
#include "ir/graph.h"

/* Allocates nothing, so it cannot fail: the arena takes its first block with the first node. */
tg_status tg_graph_init(tg_graph *g, tg_ctx *ctx, uint32_t levers) {
    memset(g, 0, sizeof *g);
    g->ctx = ctx;
    g->levers = levers;
    tg_arena_init(&g->arena, &ctx->mem);
    g->poison_node.name = "poison";
    g->poison_node.n_out = 1;
    g->poison = (tg_value) { .node = &g->poison_node, .name = "poison" };
    return TG_OK;
}

void tg_graph_deinit(tg_graph *g) {
    tg_arena_deinit(&g->arena);
    g->first = g->last = NULL;
}

/* Only the first error counts: those after it are mostly its consequences, and the message should
 * name the cause. */
void tg_graph_fail(tg_graph *g, const tg_node *n, tg_status code, const char *fmt, ...) {
    if (g->status != TG_OK) return;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    g->status = n ? tg_fail(g->ctx, code, "%s (%s): %s", n->name ? n->name : "unnamed node",
                            tg_op_table[n->op]->name, text)
                  : tg_fail(g->ctx, code, "graph: %s", text);
}

bool tg_is_poison(const tg_graph *g, const tg_value *v) { return v == &g->poison; }

/* A scope that is too long is cut. Names are for people; nothing is found by them except states and
 * parameters, which are made outside of any scope. */
void tg_graph_scope(tg_graph *g, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(g->scope, sizeof g->scope, fmt, args);
    va_end(args);
}

/* Copied in any case: callers build names in buffers of their own. */
static const char *scoped_name(tg_graph *g, const char *what) {
    const char *name = g->scope[0] ? tg_arena_sprintf(&g->arena, "%s.%s", g->scope, what)
                                   : tg_arena_strdup(&g->arena, what);
    if (!name) g->status = tg_fail_memory(g->ctx, "name of a node", strlen(what));
    return name;
}

/* Appends an empty node; NULL after an error. The id is taken last of what can fail, so a node that
 * did not come about leaves no gap; arena memory is zeroed, which makes all the rest "none". */
static tg_node *new_node(tg_graph *g, tg_op_id op, const char *what) {
    if (g->status != TG_OK) return NULL;
    tg_node *n = tg_arena_alloc(&g->arena, sizeof *n);
    if (!n) {
        g->status = tg_fail_memory(g->ctx, "node of a graph", sizeof *n);
        return NULL;
    }
    n->op = op;
    n->name = scoped_name(g, what);
    if (!n->name) return NULL;
    n->id = g->n_nodes++;
    n->backward = g->in_backward;
    n->n_out = tg_op_table[op]->n_out;
    for (int k = 0; k < n->n_out; k++) {
        n->out[k].node = n;
        n->out[k].index = (uint8_t)k;
    }
    n->prev = g->last;
    if (g->last)
        g->last->next = n;
    else
        g->first = n;
    g->last = n;
    return n;
}

/* Gives outputs their names: the node's own, or node.output where there are several. Output 0 keeps
 * the plain name, so that adding an output to an op renames nothing in dumps. */
static void name_outputs(tg_graph *g, tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k].name) continue;
        const char *part = d->out_names[k];
        n->out[k].name =
            k == 0 || !part ? n->name : tg_arena_sprintf(&g->arena, "%s.%s", n->name, part);
        if (!n->out[k].name) g->status = tg_fail_memory(g->ctx, "name of a value", 64);
    }
}

static bool any_dynamic(const tg_node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->dynamic_rows) return true;
    return false;
}

/* An output of dynamic inputs is itself dynamic when it has their rows in front; ops that end the
 * rows (last_row) leave a first dimension of 1. */
static void mark_dynamic(tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    if (!any_dynamic(n)) return;
    size_t rows = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->dynamic_rows) rows = n->in[i]->type.dim[0];
    for (int k = 0; k < n->n_out; k++)
        n->out[k].dynamic_rows = d->state_in[k] == 0 && !d->ends_rows &&
                                 n->out[k].type.n_dims > 0 && n->out[k].type.dim[0] == rows;
}

bool tg_want_readable(tg_graph *g, const tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    for (int j = 0; j < n->n_in; j++) {
        if (!n->in[j]) continue;
        const tg_type *t = &n->in[j]->type;
        const bool readable = tg_type_is_plain(t) || (d->reads_packed >> j & 1);
        if (readable && tg_type_is_whole(t)) continue;
        char text[TG_TYPE_TEXT_BYTES];
        tg_graph_fail(
            g, n, TG_E_SHAPE, "%s: want %s, have %s", d->in_names[j] ? d->in_names[j] : "input",
            readable ? "whole blocks in a layout of their type" : "elements row after row",
            tg_type_text(t, text));
        return false;
    }
    return true;
}

/*
 * Poison is looked for first and passes through without a message: its cause has left one. A caller
 * may give fewer inputs than the op has, the others are absent. The op's own shape rule then sets
 * the types of the outputs; it is also what tg_verify asks again, so a node cannot be of another
 * type than its op says. A node that failed stays in the list, half made: the graph is lost anyway.
 */
tg_value *tg_apply(tg_graph *g, tg_op_id op, const tg_attr *attr, tg_value *const *in, int n_in) {
    const tg_op_desc *d = tg_op_table[op];
    for (int i = 0; i < n_in; i++)
        if (in[i] == &g->poison) return &g->poison;
    tg_node *n = new_node(g, op, d->name);
    if (!n) return &g->poison;
    if (attr) n->attr = *attr;
    n->n_in = d->n_in;
    TG_ASSERT(n_in <= d->n_in);
    for (int i = 0; i < d->n_in; i++) {
        n->in[i] = i < n_in ? in[i] : NULL;
        if (!n->in[i] && i < d->n_in - d->n_in_optional)
            tg_graph_fail(g, n, TG_E_SHAPE, "input %d (%s) is missing", i,
                          d->in_names[i] ? d->in_names[i] : "?");
    }
    if (g->status == TG_OK && tg_want_readable(g, n) && d->infer) d->infer(g, n);
    if (g->status != TG_OK) return &g->poison;
    mark_dynamic(n);
    name_outputs(g, n);
    return g->status == TG_OK ? &n->out[0] : &g->poison;
}

/* Poison has one output, which stands for all of them. */
tg_value *tg_out(tg_value *v, int k) {
    TG_ASSERT(k < v->node->n_out || v->node->id == 0);
    return v->node->name && v->node->n_out > k ? &v->node->out[k] : v;
}

/* The mark keeps passes from dropping or fusing v away, and the planner from reusing its bytes. */
void tg_output(tg_graph *g, tg_value *v, const char *name) {
    if (g->status != TG_OK) return;
    v->is_output = true;
    v->name = tg_arena_strdup(&g->arena, name);
    if (!v->name) g->status = tg_fail_memory(g->ctx, "name of an output", strlen(name));
}

/* A value that no kernel computes: the type is given, not inferred, and the name is its own. */
static tg_value *structural(tg_graph *g, tg_op_id op, const char *name, tg_type type) {
    tg_node *n = new_node(g, op, name);
    if (!n) return &g->poison;
    n->out[0].type = type;
    n->out[0].name = n->name;
    return &n->out[0];
}

tg_value *tg_input(tg_graph *g, const char *name, tg_type type) {
    return structural(g, TG_OP_input, name, type);
}

tg_value *tg_input_rows(tg_graph *g, const char *name, tg_type type) {
    tg_value *v = structural(g, TG_OP_input, name, type);
    v->dynamic_rows = true;
    return v;
}

tg_value *tg_state(tg_graph *g, const char *name, tg_type type) {
    return structural(g, TG_OP_state, name, type);
}

tg_value *tg_constant(tg_graph *g, float x) {
    tg_value *v = structural(g, TG_OP_constant, "constant", tg_type_scalar(TG_F32));
    if (!tg_is_poison(g, v)) v->node->attr.f[0] = x;
    return v;
}

/* Bounds are checked here once and for all: a kernel that writes a view trusts it. Written so that
 * offset + elems cannot wrap. */
tg_value *tg_view(tg_graph *g, tg_value *state, size_t offset_elems, tg_type type,
                  const char *name) {
    if (tg_is_poison(g, state)) return state;
    tg_value *v = structural(g, TG_OP_view, name, type);
    if (tg_is_poison(g, v)) return v;
    const size_t elems = tg_type_elems(&state->type);
    if (offset_elems > elems || tg_type_elems(&type) > elems - offset_elems) {
        tg_graph_fail(g, v->node, TG_E_SHAPE,
                      "view of %zu elements at %zu leaves %s, which has %zu", tg_type_elems(&type),
                      offset_elems, state->name, elems);
        return &g->poison;
    }
    v->node->n_in = 1;
    v->node->in[0] = state;
    v->node->offset_elems = offset_elems;
    return tg_want_readable(g, v->node) ? v : &g->poison;
}

/* Its one input is the state, not the writes before it: the order of the list is what puts it
 * behind them, and verify refuses a reader of it that stands behind yet another write. */
tg_value *tg_latest(tg_graph *g, tg_value *state) {
    if (tg_is_poison(g, state)) return state;
    tg_value *v = structural(g, TG_OP_latest, state->name, state->type);
    if (tg_is_poison(g, v)) return v;
    v->node->n_in = 1;
    v->node->in[0] = state;
    return v;
}

/* ----------------------------------------------------------------------------- memory of a value
 */

/* The value whose memory v is written into or taken from; NULL if v has memory of its own. One step
 * of a chain: version 3 -> version 2 -> a view -> the state. acc_into is asked first, since an
 * output that was fused into a state has no fresh memory whatever its op says. */
static const tg_value *memory_of(const tg_value *v, size_t *offset_elems) {
    const tg_node *n = v->node;
    if (n->acc_into[v->index]) return n->acc_into[v->index];
    const tg_op_desc *d = tg_op_table[n->op];
    if (d->state_in[v->index]) return n->in[d->state_in[v->index] - 1];
    if (n->op == TG_OP_view) {
        *offset_elems += n->offset_elems;
        return n->in[0];
    }
    return n->op == TG_OP_latest ? n->in[0] : NULL;
}

const tg_value *tg_value_root(const tg_value *v, size_t *offset_elems) {
    *offset_elems = 0;
    for (const tg_value *m = v; m; m = memory_of(v, offset_elems)) v = m;
    return v;
}

/* ------------------------------------------------------------------------------------ rewriting */

/* These walk the list, and passes call them for every node: quadratic in some hundreds of nodes,
 * a few milliseconds once per plan. Lists of users would have to be kept true by every move below,
 * which is where rewriting goes wrong. Only nodes behind v can use it. */
size_t tg_count_uses(const tg_graph *g, const tg_value *v) {
    size_t uses = v->is_output ? 1 : 0;
    for (const tg_node *n = v->node->next; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) uses += n->in[i] == v;
        for (int k = 0; k < n->n_out; k++) uses += n->acc_into[k] == v;
    }
    (void)g;
    return uses;
}

/* An output has the caller as a user, who is no node; a write into v does not read it. Both make it
 * NULL, as fusing would take the value away from somebody. */
tg_node *tg_single_user(const tg_graph *g, const tg_value *v) {
    tg_node *user = NULL;
    if (v->is_output) return NULL;
    for (tg_node *n = v->node->next; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] != v) continue;
            if (user) return NULL;
            user = n;
        }
        for (int k = 0; k < n->n_out; k++)
            if (n->acc_into[k] == v) return NULL;
    }
    (void)g;
    return user;
}

/* The caller sees to the order: `to` must stand before every user. If the caller of the plan reads
 * `from`, he reads `to` from now on, by the same name. except is the node that computes `to` out of
 * `from`, which would otherwise become its own input. */
void tg_replace_uses(tg_graph *g, tg_value *from, tg_value *to, const tg_node *except) {
    for (tg_node *n = g->first; n; n = n->next) {
        if (n == except) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == from) n->in[i] = to;
        for (int k = 0; k < n->n_out; k++)
            if (n->acc_into[k] == from) n->acc_into[k] = to;
    }
    if (from->is_output) {
        from->is_output = false;
        to->is_output = true;
        to->name = from->name;
    }
}

static void unlink_node(tg_graph *g, tg_node *n) {
    if (n->prev)
        n->prev->next = n->next;
    else
        g->first = n->next;
    if (n->next)
        n->next->prev = n->prev;
    else
        g->last = n->prev;
    n->prev = n->next = NULL;
}

void tg_node_remove(tg_graph *g, tg_node *n) { unlink_node(g, n); }

/* Moves may break the order of the list; whoever moves a node has looked at its inputs and users,
 * and verify looks again after the pass. */
void tg_node_move_after(tg_graph *g, tg_node *n, tg_node *where) {
    if (n == where || where->next == n) return;
    unlink_node(g, n);
    n->prev = where;
    n->next = where->next;
    if (where->next)
        where->next->prev = n;
    else
        g->last = n;
    where->next = n;
}

/* For recomputing in the backward pass. Types are copied rather than inferred again, as the inputs
 * are the same values; marks of the original (output, accumulation) are not: the copy is private to
 * those who are then made to read it. It counts as backward if its place is there, which keeps it
 * from being recomputed itself. */
tg_node *tg_node_clone_before(tg_graph *g, const tg_node *n, tg_node *where) {
    tg_node *c = new_node(g, n->op, "again");
    if (!c) return NULL;
    c->name = tg_arena_sprintf(&g->arena, "%s.again", n->name);
    if (!c->name) {
        g->status = tg_fail_memory(g->ctx, "name of a node", strlen(n->name));
        return NULL;
    }
    c->attr = n->attr;
    c->n_in = n->n_in;
    memcpy(c->in, n->in, sizeof c->in);
    for (int k = 0; k < c->n_out; k++) {
        c->out[k].type = n->out[k].type;
        c->out[k].dynamic_rows = n->out[k].dynamic_rows;
    }
    name_outputs(g, c);
    c->backward = where->backward;
    if (where->prev != c) {
        TG_ASSERT(where->prev != NULL);
        tg_node_move_after(g, c, where->prev);
    }
    return c;
}

bool tg_node_before(const tg_node *a, const tg_node *b) {
    for (const tg_node *n = a->next; n; n = n->next)
        if (n == b) return true;
    return false;
}

/* An error of the building comes before one of the law, which it may have caused. */
tg_status tg_graph_finish(tg_graph *g) {
    if (g->status != TG_OK) return g->status;
    g->status = tg_verify(g);
    return g->status;
}
