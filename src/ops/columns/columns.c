/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns - some columns of x, put among those of wider rows, or taken out of them.
 *
 *   in 0  x [..,C]     in 1  base [..,N] optional     out 0  y [..,N], may be the same memory as
 * base i[0] from   i[1] n   i[2] at   i[3] N   f[0] scale, of which 0 is 1
 *
 *   y[r, at + i] = base[r, at + i] + scale * x[r, from + i]   i < n     elsewhere base, or 0
 *
 * So at = 0, N = n takes columns out, and a base joins what several nodes give. Heads that one
 * layer has of its own and another's keys and values become one row in this way (model/net.c).
 *
 * The op is linear and its own gradient: of x with from and at in each other's place, of base dy.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    const int32_t from = n->attr.i[0], some = n->attr.i[1], at = n->attr.i[2], all = n->attr.i[3];
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type y = n->in[0]->type;
    const int64_t cols = (int64_t)tg_type_cols(&y);
    if (from < 0 || some < 1 || at < 0 || (int64_t)from + some > cols ||
        (int64_t)at + some > (int64_t)all) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "want columns that both sides have, have %d from %d of %zu, to %d of %d",
                      (int)some, (int)from, (size_t)cols, (int)at, (int)all);
        return;
    }
    y.dim[y.n_dims - 1] = (size_t)all;
    if (!tg_want_type(g, n, 1, y)) return;
    n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *base = a->in[1];
    const size_t from = (size_t)a->attr.i[0], n = (size_t)a->attr.i[1], at = (size_t)a->attr.i[2];
    const size_t C = tg_type_cols(&a->in_type[0]), N = tg_type_cols(&a->out_type[0]);
    const double scale = a->attr.f[0] == 0 ? 1 : (double)a->attr.f[0];
    TG_REAL *y = a->out[0];
    for (size_t i = 0; i < tg_type_elems(&a->out_type[0]); i++) {
        const size_t c = i % N;
        const double add = c >= at && c - at < n ? scale * (double)x[i / N * C + from + c - at] : 0;
        y[i] = (TG_REAL)((base ? (double)base[i] : 0) + add);
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    const int32_t *i = n->attr.i;
    const tg_attr back = { .i = { i[2], i[1], i[0], (int32_t)tg_type_cols(&n->in[0]->type) },
                           .f = { n->attr.f[0] } };
    din[0] = tg_columns(g, dy[0], NULL, &back);
    if (n->in[1]) din[1] = dy[0];
}

#define CASE(rows, c, all, base, from, n, at, scale)                                               \
    { .in = { TG_T2(F32, rows, c), base(rows, all) },                                              \
      .attr = { .i = { from, n, at, all }, .f = { scale } },                                       \
      .tol = 1e-6 }
#define HERE(rows, c) TG_T2(F32, rows, c)
#define NONE(rows, c) TG_ABSENT
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, NONE, 0, 1, 0, 0),
    CASE(3, 17, 5, NONE, 12, 5, 0, 0),
    CASE(3, 16, 48, HERE, 0, 16, 32, 0),
    CASE(7, 33, 31, HERE, 16, 15, 16, 0.7F),
    CASE(131, 15, 64, NONE, 0, 15, 49, 2),
    { .in = { TG_T3(F32, 2, 67, 96), TG_T3(F32, 2, 67, 131) },
      .attr = { .i = { 64, 32, 7, 131 } },
      .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/columns/columns.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(columns) = {
    .name = "columns",
    TG_DOC "some columns of x among those of other rows",
    .in_names = { "x", "base" },
    .out_names = { "y" },
    .n_in = 2,
    .n_in_optional = 1,
    .n_out = 1,
    .in_place = { 2 },
    .infer = infer,
    TG_REFS(columns, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
