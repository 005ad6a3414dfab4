/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glu - gated linear unit: y = act(gates) * values, side by side in a row (Shazeer 2020).
 *
 *   y[k] = act(x[k]) * x[M + k]      k < M
 *
 *   in 0  x [..,2M]     out 0  y [..,M]     i[0]  TG_READ_SILU, _GELU_TANH or _GELU_ERF
 *
 * Backward needs x alone. linear reads its input in the same way but for the exact gelu, with the
 * same bits: so what is trained with this op is what is decoded without it.
 */
#include "ops/build.h"
#include "ops/glu/glu_act.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type y = n->in[0]->type;
    const size_t cols = tg_type_cols(&y);
    const int32_t how = n->attr.i[0];
    if (cols % 2 || how < TG_READ_SILU || how > TG_READ_GELU_ERF) {
        tg_graph_fail(g, n, TG_E_ARG,
                      "want silu or gelu of an even number of columns, have %d of %zu", (int)how,
                      cols);
        return;
    }
    y.dim[y.n_dims - 1] = cols / 2;
    n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[0]), m = tg_type_cols(&a->out_type[0]);
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + 2 * r * m;
        TG_REAL *y = (TG_REAL *)a->out[0] + r * m;
        for (size_t k = 0; k < m; k++) {
            const double gate = (double)x[k], value = (double)x[m + k];
            y[k] = (TG_REAL)(glu_act(a->attr.i[0], gate) * value);
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_glu_grad(g, n->in[0], dy[0], n->attr.i[0]);
}

#define CASE(kind, rows, m, s)                                                                     \
    { .in = { TG_T2(F32, rows, 2 * (m)) },                                                         \
      .attr = { .i = { TG_READ_##kind } },                                                         \
      .scale = (s),                                                                                \
      .tol = 1e-6 * (s) }
TG_CASE_TABLE cases[] = {
#include "ops/glu/glu_cases.def"
    { .in = { TG_T3(F32, 2, 3, 34) }, .attr = { .i = { TG_READ_SILU } }, .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/glu/glu.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(glu) = {
    .name = "glu",
    TG_DOC "y = act(gates) * values, halves of a row",
    .in_names = { "x" },
    .out_names = { "y" },
    .n_in = 1,
    .n_out = 1,
    .recompute = true,
    .infer = infer,
    TG_REFS(glu, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
