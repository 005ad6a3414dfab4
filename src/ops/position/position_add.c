/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position_add - y[b,t,:] = x[b,t,:] + p[pos[t],:], the learned embedding of positions.
 *
 *   in 0  x [B,T,C] or [T,C]     in 1  p [Tmax,C]     out 0  y as x
 *   in 2  at [T,2] i32 of rows x [T,C] of sessions, optional (ops/attention/cache/pages.h):
 *         pos[t] = at[t,1], which is below Tmax; else pos[t] = t
 *
 * Backward needs nothing.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 2, 3) || !tg_want_dims(g, n, 1, TG_F32, 2, 2)) return;
    const tg_type *x = &n->in[0]->type, *p = &n->in[1]->type;
    const size_t tokens = x->dim[x->n_dims == 3], cols = tg_type_cols(x);
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_F32, p->dim[0], cols))) return;
    if (tokens > p->dim[0]) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "want at most %zu tokens, the positions that p has, have %zu", p->dim[0],
                      tokens);
        return;
    }
    if (n->in[2] && (!tg_want_dims(g, n, 0, TG_F32, 2, 2) ||
                     !tg_want_type(g, n, 2, tg_type_2d(TG_I32, tokens, 2))))
        return;
    n->out[0].type = *x;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *p = a->in[1];
    TG_REAL *y = a->out[0];
    const tg_type *type = &a->in_type[0];
    const size_t rows = tg_type_rows(type), cols = tg_type_cols(type);
    const size_t tokens = type->dim[type->n_dims == 3]; /* of [B,T,C] or [T,C] */
    const int32_t *at = a->in[2];
    for (size_t r = 0; r < rows; r++) {
        const size_t pos = at ? (size_t)at[2 * r + 1] : r % tokens;
        TG_ASSERT(pos < a->in_type[1].dim[0]);
        const TG_REAL *from = p + pos * cols;
        for (size_t c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c] + from[c];
    }
}

/* dx is dy itself, no node. Where rows bring their positions, the rows of p that took part are not
 * known when the graph is made; only inference uses that form. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (n->in[2]) {
        tg_graph_fail(g, n, TG_E_UNSUPPORTED, "no gradient where rows bring their positions");
        return;
    }
    din[0] = dy[0];
    din[1] = tg_position_grad(g, dy[0], (int32_t)n->in[1]->type.dim[0]);
}

/* Widths around a vector; tables that are just long enough, and longer ones; of the
 * rows of sessions, one stands at the end of its table. */
TG_CASE_TABLE cases[] = {
    { .in = { TG_T2(F32, 1, 1), TG_T2(F32, 1, 1) } },
    { .in = { TG_T2(F32, 5, 15), TG_T2(F32, 7, 15) } },
    { .in = { TG_T3(F32, 3, 4, 16), TG_T2(F32, 4, 16) } },
    { .in = { TG_T3(F32, 2, 7, 17), TG_T2(F32, 11, 17) } },
    { .in = { TG_T3(F32, 3, 37, 131), TG_T2(F32, 64, 131) } },
    { .in = { TG_T2(F32, 3, 67), TG_T2(F32, 13, 67), TG_T2(I32, 3, 2) },
      .at_in = 3,
      .at = { { 0, 10, 3 } } },
    { .in = { TG_T2(F32, 7, 17), TG_T2(F32, 9, 17), TG_T2(I32, 7, 2) },
      .at_in = 3,
      .at = { { 1, 8, 1 }, { 0, 3, 5 }, { 2, 0, 1 } } },
};

static const char *const wgsl[] = {
#include "ops/position/position_add.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(position_add) = {
    .name = "position_add",
    TG_DOC "y[b,t,:] = x[b,t,:] + p[pos[t],:]",
    .in_names = { "x", "p", "at" },
    .out_names = { "y" },
    .n_in = 3,
    .n_in_optional = 1,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(position_add, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
