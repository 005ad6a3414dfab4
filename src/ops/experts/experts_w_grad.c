/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_w_grad - the gradient of experts with respect to one of its matrices:
 *
 *   dw_e[n,:] = sum over tokens t and choices j with ids[t,j] = e, both rising, of dy[t,j,n] x[t]
 *
 *   in 0  dy [..,k*N], or [..,2*k*N]     in 1  ids [..,k] i32     in 2  x [..,K], or (own) [..,k*K]
 *   out 0 dw [E*N,K], which accumulates; experts that nobody chose have zeros
 *   i[0]  E   i[1]  own, as experts      i[2]  which matrix, 0 or 1      i[3]  N
 */
#include "ops/build.h"
#include "ops/experts/experts_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    const int32_t E = n->attr.i[EXPERTS_E], N = n->attr.i[EXPERTS_ROWS];
    const int32_t own = n->attr.i[EXPERTS_OWN], part = n->attr.i[EXPERTS_PART];
    if (!tg_want_dims(g, n, EXPERTS_DW_X, TG_F32, 1, TG_MAX_DIMS) ||
        !tg_want_dims(g, n, EXPERTS_IDS, TG_I32, 1, TG_MAX_DIMS))
        return;
    const size_t k = tg_type_cols(&n->in[EXPERTS_IDS]->type),
                 cols = tg_type_cols(&n->in[EXPERTS_DW_X]->type);
    const size_t parts = N > 0 ? tg_type_cols(&n->in[0]->type) / (k * (size_t)N) : 0;
    if (E < 1 || N < 1 || own < 0 || own > 1 || part < 0 || part >= EXPERTS_PARTS ||
        parts > EXPERTS_PARTS || (size_t)part >= parts || (own && cols % k)) {
        tg_graph_fail(g, n, TG_E_ARG,
                      "want sizes that fit the columns of dy and x, have %d experts of %d rows, "
                      "own %d, matrix %d",
                      (int)E, (int)N, (int)own, (int)part);
        return;
    }
    tg_type x = n->in[EXPERTS_IDS]->type;
    x.dtype = TG_F32;
    x.dim[x.n_dims - 1] = cols;
    if (!tg_want_type(g, n, EXPERTS_DW_X, x) ||
        !experts_want_choices(g, n, EXPERTS_IDS, parts * k * (size_t)N))
        return;
    n->out[0].type = tg_type_2d(TG_F32, (size_t)E * (size_t)N, own ? cols / k : cols);
}

static void ref(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_dw(a);
    const int32_t *ids = a->in[EXPERTS_IDS];
    const size_t part = (size_t)a->attr.i[EXPERTS_PART];
    for (size_t row = 0; row < s.experts * s.N; row++)
        for (size_t c = 0; c < s.K; c++) {
            TG_REAL *dw = (TG_REAL *)a->out[0] + row * s.K + c;
            double sum = a->acc & 1 ? (double)*dw : 0;
            for (size_t i = 0; i < s.tokens * s.k; i++) {
                const size_t t = i / s.k, j = i % s.k;
                if (tg_clamp_id(ids[i], s.experts) != row / s.N) continue;
                const size_t y = experts_y_at(&s, t, j, part) + row % s.N;
                sum += (double)((const TG_REAL *)a->in[0])[y] *
                       (double)((const TG_REAL *)a->in[EXPERTS_DW_X])[experts_x_at(&s, t, j) + c];
            }
            *dw = (TG_REAL)sum;
        }
}

static double flop(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_dw(a);
    return 2.0 * (double)s.tokens * (double)(s.k * s.N) * (double)s.K;
}

#define CASE(rows, k, E, n, K, parts, part, own, add)                                              \
    { .in = { TG_T2(F32, rows, (parts) * (k) * (n)), TG_T2(I32, rows, k),                          \
              TG_T2(F32, rows, (own) ? (k) * (K) : (K)) },                                         \
      .attr = { .i = { E, own, part, n } },                                                        \
      .i32_below = (E) + 1,                                                                        \
      .acc = (add),                                                                                \
      .tol = 2e-5 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 0, 0, 0),    CASE(5, 2, 3, 7, 13, 2, 0, 0, 1),
    CASE(5, 2, 3, 7, 13, 2, 1, 0, 0),   CASE(40, 3, 4, 5, 67, 1, 0, 1, 1),
    CASE(67, 2, 5, 16, 33, 1, 0, 1, 0), CASE(3, 2, 9, 4, 64, 2, 1, 0, 1),
};

static const char *const wgsl[] = {
#include "ops/experts/experts_w_grad.wgsl.h"
};
static size_t groups(const tg_args *a) {
    return tg_shader_parts(tg_type_elems(&a->out_type[0]), TG_SHADER_COLS);
}
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(experts_w_grad) = {
    .name = "experts_w_grad",
    TG_DOC "gradient of experts with respect to one of its matrices",
    .in_names = { "dy", "ids", "x" },
    .out_names = { "dw" },
    .n_in = 3,
    .n_out = 1,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(experts_w_grad, ref),
    TG_SHADERS(shaders),
    .flop = flop,
    TG_CASES(cases),
};
