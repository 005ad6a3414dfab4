/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_sum_grad - the gradients of experts_sum:
 *
 *   dz[t, choice j] = w[t,j] dy[t]        dw[t,j] = sum over c of dy[t,c] z[t, choice j, c]
 *
 *   in 0  z [..,k*C]   in 1  w [..,k]   in 2  dy [..,C]     out 0  dz as z     out 1  dw as w
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 1, TG_F32, 1, TG_MAX_DIMS) ||
        !tg_want_dims(g, n, 2, TG_F32, 1, TG_MAX_DIMS))
        return;
    const size_t k = tg_type_cols(&n->in[1]->type), C = tg_type_cols(&n->in[2]->type);
    tg_type t = n->in[1]->type;
    t.dim[t.n_dims - 1] = C;
    if (!tg_want_type(g, n, 2, t)) return;
    t.dim[t.n_dims - 1] = k * C;
    if (!tg_want_type(g, n, 0, t)) return;
    n->out[0].type = t;
    n->out[1].type = n->in[1]->type;
}

static void ref(const tg_args *a) {
    const size_t k = tg_type_cols(&a->in_type[1]), C = tg_type_cols(&a->in_type[2]);
    for (size_t i = 0; i < tg_type_elems(&a->in_type[1]); i++) {
        const TG_REAL *z = (const TG_REAL *)a->in[0] + i * C;
        const TG_REAL *dy = (const TG_REAL *)a->in[2] + i / k * C;
        const double w = (double)((const TG_REAL *)a->in[1])[i];
        double sum = 0;
        for (size_t c = 0; c < C; c++) {
            sum += (double)dy[c] * (double)z[c];
            ((TG_REAL *)a->out[0])[i * C + c] = (TG_REAL)(w * (double)dy[c]);
        }
        ((TG_REAL *)a->out[1])[i] = (TG_REAL)sum;
    }
}

#define CASE(rows, k, c)                                                                           \
    { .in = { TG_T2(F32, rows, (k) * (c)), TG_T2(F32, rows, k), TG_T2(F32, rows, c) }, .tol = 1e-5 }
TG_CASE_TABLE cases[] = { CASE(1, 1, 1), CASE(3, 2, 15), CASE(5, 8, 16), CASE(67, 3, 257) };

static const char *const wgsl[] = {
#include "ops/experts/experts_sum_grad.wgsl.h"
};
/* A thread has a choice. */
static size_t groups(const tg_args *a) {
    return tg_shader_parts(tg_type_elems(&a->in_type[1]), TG_SHADER_ROWS);
}
static const tg_shader shaders[] = {
    { .name = "choices",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0),
                            TG_BIND_OUT(1) },
                  .groups = groups } } },
};

TG_OP_DESC(experts_sum_grad) = {
    .name = "experts_sum_grad",
    TG_DOC "gradients of experts_sum with respect to what is added up and its weights",
    .in_names = { "z", "w", "dy" },
    .out_names = { "dz", "dw" },
    .n_in = 3,
    .n_out = 2,
    .infer = infer,
    TG_REFS(experts_sum_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
