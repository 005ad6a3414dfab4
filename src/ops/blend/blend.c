/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blend - y = (p x + q z) / max(norm, floor), element by element.
 *
 *   in 0  x     in 1  z, same shape, or absent     in 2  stats [4] of grad_norm, or absent
 *   out 0 y, same shape     f[0] p   f[1] q   f[2] floor
 *
 * norm is stats[0]; without stats nothing is divided by. It scales branches and logits
 * (model/net.c), and is what polynomials of a matrix are made of: Newton-Schulz in
 * training/train_graph.c.
 *
 * Backward: dx = p dy, dz = q dy. A norm has none.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    if (!tg_want_type(g, n, 2, tg_type_1d(TG_F32, 4))) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *z = a->in[1], *stats = a->in[2];
    const double p = (double)a->attr.f[0], q = (double)a->attr.f[1], least = (double)a->attr.f[2];
    const double norm = !stats ? 1 : (double)stats[0] > least ? (double)stats[0] : least;
    TG_REAL *y = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++)
        y[i] = (TG_REAL)((p * (double)x[i] + (z ? q * (double)z[i] : 0)) / norm);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    const float *f = n->attr.f;
    if (n->in[2]) {
        tg_graph_fail(g, n, TG_E_UNSUPPORTED, "a quotient of a norm has no gradient");
        return;
    }
    din[0] = tg_blend(g, dy[0], NULL, NULL, f[0], 0, 0);
    if (n->in[1]) din[1] = tg_blend(g, dy[0], NULL, NULL, f[1], 0, 0);
}

#define CASE(rows, c, z, stats)                                                                    \
    { .in = { TG_T2(F32, rows, c), z, stats },                                                     \
      .attr = { .f = { 3.4445f, -4.775f, 0.5f } },                                                 \
      .positive = 1 << 2,                                                                          \
      .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, TG_T2(F32, 1, 1), TG_ABSENT),
    CASE(1, 15, TG_ABSENT, TG_T1(F32, 4)),
    CASE(1, 17, TG_T2(F32, 1, 17), TG_T1(F32, 4)),
    CASE(7, 13, TG_ABSENT, TG_ABSENT),
    CASE(131, 257, TG_T2(F32, 131, 257), TG_ABSENT),
    { .in = { TG_T2(F32, 3, 5), TG_ABSENT, TG_T1(F32, 4) },
      .attr = { .f = { 1, 0, 100 } },
      .tol = 2e-6 },
    { .in = { TG_T2(F32, 1, 17) }, .attr = { .f = { 0.22F } } },
    { .in = { TG_T2(F32, 64, 131) }, .attr = { .f = { 0.22F } } },
};

static const char *const wgsl[] = {
#include "ops/blend/blend.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(blend) = {
    .name = "blend",
    TG_DOC "y = (p x + q z) / max(norm, floor)",
    .in_names = { "x", "z", "stats" },
    .out_names = { "y" },
    .n_in = 3,
    .n_in_optional = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(blend, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
