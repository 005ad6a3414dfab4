/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glu_grad - the gradient of glu with respect to gates and values.
 *
 *   dx[k] = dy[k] * x[M + k] * act'(x[k])      dx[M + k] = dy[k] * act(x[k])      k < M
 *
 *   in 0  x [..,2M]    in 1  dy [..,M]    out 0  dx [..,2M], may be the same memory as x
 *   i[0]  as glu
 */
#include "ops/build.h"
#include "ops/glu/glu_act.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type y = n->in[0]->type;
    y.dim[y.n_dims - 1] /= 2;
    if (!tg_want_type(g, n, 1, y)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[1]), m = tg_type_cols(&a->in_type[1]);
    const int how = a->attr.i[0];
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + 2 * r * m;
        const TG_REAL *dy = (const TG_REAL *)a->in[1] + r * m;
        TG_REAL *dx = (TG_REAL *)a->out[0] + 2 * r * m;
        for (size_t k = 0; k < m; k++) {
            const double gate = (double)x[k], value = (double)x[m + k], d = (double)dy[k];
            dx[k] = (TG_REAL)(d * value * glu_act_d(how, gate));
            dx[m + k] = (TG_REAL)(d * glu_act(how, gate));
        }
    }
}

/* dy and the values are as large as the scale in a case, and the slope's error of 3e-7 is
 * multiplied by both. */
#define CASE(kind, rows, m, s)                                                                     \
    { .in = { TG_T2(F32, rows, 2 * (m)), TG_T2(F32, rows, m) },                                    \
      .attr = { .i = { TG_READ_##kind } },                                                         \
      .scale = (s),                                                                                \
      .tol = 2e-6 * (s) * (s) }
TG_CASE_TABLE cases[] = {
#include "ops/glu/glu_cases.def"
    { .in = { TG_T3(F32, 2, 3, 34), TG_T3(F32, 2, 3, 17) },
      .attr = { .i = { TG_READ_SILU } },
      .tol = 2e-6 },
};

static const char *const wgsl[] = {
#include "ops/glu/glu_grad.wgsl.h"
};
static size_t groups(const tg_args *a) { return tg_shader_elem_groups(&a->in_type[1]); }
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(glu_grad) = {
    .name = "glu_grad",
    TG_DOC "gradient of glu with respect to gates and values",
    .in_names = { "x", "dy" },
    .out_names = { "dx" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(glu_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
