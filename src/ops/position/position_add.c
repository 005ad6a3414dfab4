/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position_add - y[b,t,:] = x[b,t,:] + p[pos + t,:], the learned embedding of positions.
 *
 *   in 0  x [B,T,C] or [T,C]     in 1  p [Tmax,C]     out 0  y as x
 *   i[0]  1: pos is the run-time scalar (tokens already in the KV cache), 0: pos is 0
 *
 * Backward needs nothing. The session sees to it that pos + T <= Tmax.
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
    n->out[0].type = *x;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *p = a->in[1];
    TG_REAL *y = a->out[0];
    const tg_type *type = &a->in_type[0];
    const size_t rows = tg_type_rows(type), cols = tg_type_cols(type);
    const size_t tokens = type->dim[type->n_dims == 3]; /* of [B,T,C] or [T,C] */
    const size_t pos = a->attr.i[0] ? (size_t)a->rt->pos : 0;
    TG_ASSERT(pos + tokens <= a->in_type[1].dim[0]);
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *from = p + (pos + r % tokens) * cols;
        for (size_t c = 0; c < cols; c++) y[r * cols + c] = x[r * cols + c] + from[c];
    }
}

/* dx is dy itself, no node. With a run-time position the rows of p that took part are not known
 * when the graph is made; only inference uses that form. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (n->attr.i[0]) {
        tg_graph_fail(g, n, TG_E_UNSUPPORTED,
                      "no gradient where the position is a run-time scalar");
        return;
    }
    din[0] = dy[0];
    din[1] = tg_position_grad(g, dy[0], (int32_t)n->in[1]->type.dim[0]);
}

/* Widths around a vector; tables that are just long enough, and longer ones; the last case stands
 * at the end of its table. */
static const tg_case cases[] = {
    { .in = { TG_T2(F32, 1, 1), TG_T2(F32, 1, 1) } },
    { .in = { TG_T2(F32, 5, 15), TG_T2(F32, 7, 15) } },
    { .in = { TG_T3(F32, 3, 4, 16), TG_T2(F32, 4, 16) } },
    { .in = { TG_T3(F32, 2, 7, 17), TG_T2(F32, 11, 17) } },
    { .in = { TG_T3(F32, 3, 37, 131), TG_T2(F32, 64, 131) } },
    { .in = { TG_T2(F32, 3, 67), TG_T2(F32, 13, 67) },
      .attr = { .i = { 1 } },
      .rt = { .pos = 10 } },
};

static const char *const wgsl[] = {
#include "ops/position/position_add.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(position_add) = {
    .name = "position_add",
    .doc = "y[b,t,:] = x[b,t,:] + p[pos + t,:]",
    .in_names = { "x", "p" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(position_add, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
