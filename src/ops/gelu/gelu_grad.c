/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu_grad - dx = dy * gelu'(x), the gradient of gelu.
 *
 *   erf   gelu'(x) = Phi(x) + x * exp(-x^2 / 2) / sqrt(2 pi)
 *   tanh  t = tanh(u),  u = k (x + c x^3),  k = sqrt(2 / pi),  c = 0.044715
 *         gelu'(x) = (1 + t) / 2 + x (1 - t^2) k (1 + 3 c x^2) / 2
 *
 *   in 0  x     in 1  dy, same shape     out 0  dx, same shape     i[0]  as gelu
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    n->out[0].type = n->in[0]->type;
}

static double slope_erf(double x) {
    return 0.5 * tg_erfc(-x * 0.70710678118654752440) +
           x * tg_exp(-0.5 * x * x) / tg_sqrt(2 * TG_PI);
}

/* Where tanh is 1 to the last bit its slope is 0, and x^2 must not get the chance to be infinite.
 */
static double slope_tanh(double x) {
    const double k = tg_sqrt(2 / TG_PI), c = 0.044715;
    const double t = tg_tanh(k * (x + c * x * x * x));
    if (tg_fabs(t) == 1) return 0.5 * (1 + t);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *dy = a->in[1];
    TG_REAL *dx = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    const bool erf = a->attr.i[0] == TG_ACT_GELU_ERF;
    for (size_t i = 0; i < n; i++)
        dx[i] =
            (TG_REAL)((double)dy[i] * (erf ? slope_erf((double)x[i]) : slope_tanh((double)x[i])));
}

/* dy is as large as x in a case, and the slope's error of 3e-7 is multiplied by it. */
#define CASE(kind, n, s)                                                                           \
    { .in = { TG_T1(F32, n), TG_T1(F32, n) },                                                      \
      .attr = { .i = { TG_ACT_GELU_##kind } },                                                     \
      .scale = (s),                                                                                \
      .tol = 1e-6 * (s) }
static const tg_case cases[] = {
#include "ops/gelu/gelu_cases.def"
    { .in = { TG_T3(F32, 2, 3, 67), TG_T3(F32, 2, 3, 67) },
      .attr = { .i = { TG_ACT_GELU_ERF } },
      .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/gelu/gelu_grad.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(gelu_grad) = {
    .name = "gelu_grad",
    .doc = "dx = dy * gelu'(x)",
    .in_names = { "x", "dy" },
    .out_names = { "dx" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 2 },
    .infer = infer,
    TG_REFS(gelu_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
