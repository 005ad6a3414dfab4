/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_sum - what the experts of a token give, weighted and added up in the order of its
 * choices:
 *
 *   y[t] = sum over j, rising, of w[t,j] z[t, choice j]
 *
 *   in 0  z [..,k*C]     in 1  w [..,k]     out 0  y [..,C]
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS) ||
        !tg_want_dims(g, n, 1, TG_F32, 1, TG_MAX_DIMS))
        return;
    const size_t k = tg_type_cols(&n->in[1]->type), cols = tg_type_cols(&n->in[0]->type);
    tg_type t = n->in[1]->type;
    t.dim[t.n_dims - 1] = cols / k * k; /* none of them 0: cols >= k, or the types differ */
    if (!tg_want_type(g, n, 0, t)) return;
    t.dim[t.n_dims - 1] = cols / k;
    n->out[0].type = t;
}

static void ref(const tg_args *a) {
    const size_t k = tg_type_cols(&a->in_type[1]), C = tg_type_cols(&a->out_type[0]);
    for (size_t t = 0; t < tg_type_rows(&a->out_type[0]); t++)
        for (size_t c = 0; c < C; c++) {
            double sum = 0;
            for (size_t j = 0; j < k; j++)
                sum += (double)((const TG_REAL *)a->in[1])[t * k + j] *
                       (double)((const TG_REAL *)a->in[0])[(t * k + j) * C + c];
            ((TG_REAL *)a->out[0])[t * C + c] = (TG_REAL)sum;
        }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_experts_sum_grad(g, n->in[0], n->in[1], dy[0]);
    din[1] = tg_out(din[0], 1);
}

#define CASE(rows, k, c) { .in = { TG_T2(F32, rows, (k) * (c)), TG_T2(F32, rows, k) }, .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1),
    CASE(3, 2, 15),
    CASE(5, 8, 16),
    CASE(67, 3, 257),
    { .in = { TG_T3(F32, 2, 3, 34), TG_T3(F32, 2, 3, 2) }, .tol = 2e-6 },
};

static const char *const wgsl[] = {
#include "ops/experts/experts_sum.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(experts_sum) = {
    .name = "experts_sum",
    TG_DOC "what the experts of a row give, weighted and added up",
    .in_names = { "z", "w" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(experts_sum, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
