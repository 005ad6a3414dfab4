/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position_grad - dp[t,:] = sum over b of dy[b,t,:], the gradient of position_add.
 *
 *   in 0  dy [B,T,C] or [T,C]     out 0  dp [Tmax,C], accumulates     i[0]  Tmax >= T
 *
 * The sums run over rising b, from 0; what is accumulated into is added last. Rows from T on get 0.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 2, 3)) return;
    const tg_type *dy = &n->in[0]->type;
    const size_t tokens = dy->dim[dy->n_dims == 3]; /* of [B,T,C] or [T,C] */
    if (n->attr.i[0] < 1 || (size_t)n->attr.i[0] < tokens) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want %zu positions or more, have %" PRId32, tokens,
                      n->attr.i[0]);
        return;
    }
    n->out[0].type = tg_type_2d(TG_F32, (size_t)n->attr.i[0], tg_type_cols(dy));
}

static void ref(const tg_args *a) {
    const TG_REAL *dy = a->in[0];
    TG_REAL *dp = a->out[0];
    const tg_type *type = &a->in_type[0];
    const size_t tokens = type->dim[type->n_dims == 3], cols = tg_type_cols(type);
    const size_t batch = tg_type_rows(type) / tokens;
    for (size_t t = 0; t < a->out_type[0].dim[0]; t++) {
        for (size_t c = 0; c < cols; c++) {
            double sum = 0;
            for (size_t b = 0; b < batch && t < tokens; b++)
                sum += (double)dy[(b * tokens + t) * cols + c];
            TG_REAL *to = &dp[t * cols + c];
            *to = (TG_REAL)(a->acc & 1 ? (double)*to + sum : sum);
        }
    }
}

/* Tmax equal to T and above it: the rows beyond T must be 0, or keep what they had under acc. */
#define ATTR(t_max) .attr = { .i = { t_max } }, .tol = 2e-6
TG_CASE_TABLE cases[] = {
    { .in = { TG_T2(F32, 1, 1) }, ATTR(1) },
    { .in = { TG_T2(F32, 5, 15) }, ATTR(7), .acc = 1 },
    { .in = { TG_T3(F32, 3, 4, 16) }, ATTR(4) },
    { .in = { TG_T3(F32, 2, 7, 17) }, ATTR(11), .acc = 1 },
    { .in = { TG_T3(F32, 5, 37, 131) }, ATTR(64) },
};

static const char *const wgsl[] = {
#include "ops/position/position_grad.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(position_grad) = {
    .name = "position_grad",
    TG_DOC "dp[t,:] = sum over b of dy[b,t,:]",
    .in_names = { "dy" },
    .out_names = { "dp" },
    .n_in = 1,
    .n_out = 1,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(position_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
