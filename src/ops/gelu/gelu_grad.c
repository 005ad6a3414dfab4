/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gelu_grad - dx = dy * act'(x), the gradient of gelu. The slopes are told in ops/activation.h.
 *
 *   in 0  x     in 1  dy, same shape     out 0  dx, same shape     i[0], f[0]  as gelu
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    n->out[0].type = n->in[0]->type;
}

static double slope(double x, const tg_attr *attr) {
    const int32_t act = attr->i[0];
    if (act == TG_ACT_SOFT_CAP) return act_soft_cap_d(x, (double)attr->f[0]);
    if (act == TG_ACT_RELU2) return act_relu2_d(x);
    return act == TG_ACT_GELU_ERF ? act_gelu_erf_d(x) : act_gelu_tanh_d(x);
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *dy = a->in[1];
    TG_REAL *dx = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++) dx[i] = (TG_REAL)((double)dy[i] * slope((double)x[i], &a->attr));
}

/* dy is as large as x in a case, and the slope's error of 3e-7 is multiplied by it. */
#define CASE(kind, n, s) CAPPED(kind, n, s, 0)
#define CAPPED(kind, n, s, cap)                                                                    \
    { .in = { TG_T1(F32, n), TG_T1(F32, n) },                                                      \
      .attr = { .i = { TG_ACT_##kind }, .f = { cap } },                                            \
      .scale = (s),                                                                                \
      .tol = 1e-6 * (s) }
TG_CASE_TABLE cases[] = {
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
    TG_DOC "dx = dy * gelu'(x)",
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
