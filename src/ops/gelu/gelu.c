/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu - a function of each element: the activation of a plain MLP, which is a Gaussian error
 * linear unit or a rectified one squared; or the soft cap of logits. The functions are told in
 * ops/activation.h.
 *
 *   in 0  x     out 0  y, same shape
 *   i[0]  TG_ACT_GELU_ERF, TG_ACT_GELU_TANH, TG_ACT_RELU2, or TG_ACT_SOFT_CAP at f[0], above 0
 *
 * Backward needs x alone.
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    const int32_t act = n->attr.i[0];
    const float cap = n->attr.f[0];
    if (act < TG_ACT_GELU_ERF || act > TG_ACT_SOFT_CAP ||
        (act == TG_ACT_SOFT_CAP && !(cap > 0 && cap <= FLT_MAX))) {
        tg_graph_fail(g, n, TG_E_ARG,
                      "want gelu by erf or tanh, relu squared, or a cap above 0, have %" PRId32
                      " and %g",
                      act, (double)cap);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

static double activated(double x, const tg_attr *attr) {
    const int32_t act = attr->i[0];
    if (act == TG_ACT_RELU2) return act_relu2(x);
    if (act == TG_ACT_SOFT_CAP) return act_soft_cap(x, (double)attr->f[0]);
    return act == TG_ACT_GELU_ERF ? act_gelu_erf(x) : act_gelu_tanh(x);
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0];
    TG_REAL *y = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++) y[i] = (TG_REAL)activated((double)x[i], &a->attr);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_gelu_grad(g, n->in[0], dy[0], &n->attr);
}

#define CASE(kind, n, s) CAPPED(kind, n, s, 0)
#define CAPPED(kind, n, s, cap)                                                                    \
    { .in = { TG_T1(F32, n) },                                                                     \
      .attr = { .i = { TG_ACT_##kind }, .f = { cap } },                                            \
      .scale = (s),                                                                                \
      .tol = 1e-6 }
TG_CASE_TABLE cases[] = {
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
    TG_DOC "y = gelu(x), the erf or the tanh form; or relu(x) squared; or a soft cap",
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
