/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu - the Gaussian error linear unit (Hendrycks, Gimpel 2016), element by element.
 *
 *   erf   y = x * Phi(x),  Phi(x) = erfc(-x / sqrt 2) / 2
 *   tanh  y = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2, the approximation of GPT-2
 *
 *   in 0  x     out 0  y, same shape     i[0]  TG_ACT_GELU_ERF or TG_ACT_GELU_TANH
 *
 * Backward needs x alone.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (n->attr.i[0] != TG_ACT_GELU_ERF && n->attr.i[0] != TG_ACT_GELU_TANH) {
        tg_graph_fail(g, n, TG_E_ARG, "want the erf or the tanh form, have %" PRId32, n->attr.i[0]);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

/* erfc keeps the relative precision of the left tail, where 1 + erf has none. */
static double gelu_erf(double x) { return x * 0.5 * tg_erfc(-x * 0.70710678118654752440); }

static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tg_tanh(tg_sqrt(2 / TG_PI) * (x + 0.044715 * x * x * x)));
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0];
    TG_REAL *y = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    const bool erf = a->attr.i[0] == TG_ACT_GELU_ERF;
    for (size_t i = 0; i < n; i++)
        y[i] = (TG_REAL)(erf ? gelu_erf((double)x[i]) : gelu_tanh((double)x[i]));
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_gelu_grad(g, n->in[0], dy[0], n->attr.i[0]);
}

#define CASE(kind, n, s)                                                                           \
    { .in = { TG_T1(F32, n) }, .attr = { .i = { TG_ACT_GELU_##kind } }, .scale = (s), .tol = 1e-6 }
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
    .doc = "y = gelu(x), the erf or the tanh form",
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
