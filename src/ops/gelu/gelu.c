/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu - the activation of a plain MLP, element by element: a Gaussian error linear unit, or a
 * rectified one squared. The functions are told in ops/activation.h.
 *
 *   in 0  x     out 0  y, same shape     i[0]  TG_ACT_GELU_ERF, TG_ACT_GELU_TANH or TG_ACT_RELU2
 *
 * Backward needs x alone.
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (n->attr.i[0] < TG_ACT_GELU_ERF || n->attr.i[0] > TG_ACT_RELU2) {
        tg_graph_fail(g, n, TG_E_ARG, "want gelu by erf or tanh, or relu squared, have %" PRId32,
                      n->attr.i[0]);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

static double activated(double x, int act) {
    if (act == TG_ACT_RELU2) return act_relu2(x);
    return act == TG_ACT_GELU_ERF ? act_gelu_erf(x) : act_gelu_tanh(x);
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0];
    TG_REAL *y = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++) y[i] = (TG_REAL)activated((double)x[i], a->attr.i[0]);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_gelu_grad(g, n->in[0], dy[0], n->attr.i[0]);
}

#define CASE(kind, n, s)                                                                           \
    { .in = { TG_T1(F32, n) }, .attr = { .i = { TG_ACT_##kind } }, .scale = (s), .tol = 1e-6 }
static const tg_case cases[] = {
#include "ops/gelu/gelu_cases.def"
    { .in = { TG_T3(F32, 2, 3, 67) }, .attr = { .i = { TG_ACT_GELU_ERF } }, .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/gelu/gelu.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(gelu) = {
    .name = "gelu",
    .doc = "y = gelu(x), the erf or the tanh form, or relu(x) squared",
    .in_names = { "x" },
    .out_names = { "y" },
    .n_in = 1,
    .n_out = 1,
    .in_place = { 1 },
    .recompute = true,
    .infer = infer,
    TG_REFS(gelu, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
