/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate - a new version of a state: x in the first micro-step of a step, state + x in later
 * ones.
 *
 *   in 0  state     in 1  x, same shape     out 0  the new version of state
 *
 * Run-time scalar: accumulate, 0 or 1. With 0 the old version is not read, so that it needs no
 * clearing and nothing of a refused step (a NaN, say) lives on in it.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *state = a->in[0], *x = a->in[1];
    TG_REAL *out = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++) out[i] = a->rt->accumulate ? state[i] + x[i] : x[i];
}

/* The state, a view of it mostly, must stand before the node that is to write it. */
static bool comes_before(tg_graph *g, const tg_value *state, const tg_node *writer) {
    tg_node *const view = state->node;
    if (tg_node_before(view, writer)) return true;
    if (view->op != TG_OP_view || !tg_node_before(view->in[0]->node, writer)) return false;
    tg_node_move_after(g, view, view->in[0]->node);
    return true;
}

/* Whether a node of [from, to) reads v. */
static bool is_read(const tg_value *v, const tg_node *from, const tg_node *to) {
    for (; from != to; from = from->next)
        for (int i = 0; i < from->n_in; i++)
            if (from->in[i] == v) return true;
    return false;
}

/*
 * A producer that can add into existing memory writes the state itself; x never exists.
 *
 *     matmul --x--> accumulate(state, x) -->     =>     matmul, adding into state -->
 *
 * The write moves up to the producer, so nobody in between may look at the old version, and x may
 * have no other reader.
 */
static bool fuse(tg_graph *g, tg_node *n) {
    tg_value *const state = n->in[0], *const x = n->in[1];
    tg_node *const producer = x->node;
    const unsigned k = x->index;
    if (!(tg_op_table[producer->op]->accumulates >> k & 1) || producer->acc_into[k]) return false;
    if (tg_single_user(g, x) != n || is_read(state, producer, n)) return false;
    if (!comes_before(g, state, producer)) return false;
    producer->acc_into[k] = state;
    tg_replace_uses(g, &n->out[0], x, NULL);
    tg_node_remove(g, n);
    return true;
}

#define CASE(n, later)                                                                             \
    {                                                                                              \
        .in = { TG_T1(F32, n), TG_T1(F32, n) }, .rt = {.accumulate = (later) }                     \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 0),
    CASE(15, 1),
    CASE(16, 0),
    CASE(17, 1),
    CASE(131, 0),
    CASE(131, 1),
    CASE(20011, 0),
    CASE(20011, 1),
    { .in = { TG_T2(F32, 3, 37), TG_T2(F32, 3, 37) }, .rt = { .accumulate = 1 } },
};

static const char *const wgsl[] = {
#include "ops/accumulate/accumulate.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(accumulate) = {
    .name = "accumulate",
    TG_DOC "a new version of a state: x, or state + x in later micro-steps",
    .in_names = { "state", "x" },
    .out_names = { "state" },
    .n_in = 2,
    .n_out = 1,
    .state_in = { 1 },
    .infer = infer,
    TG_REFS(accumulate, ref),
    TG_SHADERS(shaders),
    .fuse = fuse,
    TG_CASES(cases),
};
