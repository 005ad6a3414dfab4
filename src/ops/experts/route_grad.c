/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route_grad - the gradient of route's weights with respect to the logits; the choice has none.
 *
 *   dlogits[e] = p[e] * (dw[e] - s)      s = sum over the chosen of w * dw; dw[e] 0 of others
 *
 * where p is w of the chosen ones and, of the others, 0 or (share) the softmax of all.
 *
 *   in 0  logits [..,E]   in 1  weights [..,k]   in 2  ids [..,k]   in 3  dweights [..,k]
 *   out 0 dlogits [..,E]  i  as route
 */
#include "base/math.h"
#include "ops/experts/experts_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type t = n->in[0]->type;
    t.dim[t.n_dims - 1] = (size_t)n->attr.i[0];
    tg_type ids = t;
    ids.dtype = TG_I32;
    if (!tg_want_type(g, n, 1, t) || !tg_want_type(g, n, 2, ids) || !tg_want_type(g, n, 3, t))
        return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const size_t E = tg_type_cols(&a->in_type[0]), k = tg_type_cols(&a->in_type[1]);
    const bool share = a->attr.i[1] != 0;
    for (size_t t = 0; t < tg_type_rows(&a->in_type[0]); t++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + t * E,
                      *w = (const TG_REAL *)a->in[1] + t * k;
        const int32_t *ids = (const int32_t *)a->in[2] + t * k;
        const TG_REAL *dw = (const TG_REAL *)a->in[3] + t * k;
        TG_REAL *dx = (TG_REAL *)a->out[0] + t * E;
        double s = 0, most = (double)x[0], sum = 0;
        for (size_t j = 0; j < k; j++) s += (double)w[j] * (double)dw[j];
        for (size_t e = 1; e < E; e++)
            if ((double)x[e] > most) most = (double)x[e];
        for (size_t e = 0; share && e < E; e++) sum += tg_exp((double)x[e] - most);
        for (size_t e = 0; e < E; e++)
            dx[e] = share ? (TG_REAL)(-s * tg_exp((double)x[e] - most) / sum) : 0;
        for (size_t j = 0; j < k; j++)
            dx[tg_clamp_id(ids[j], E)] = (TG_REAL)((double)w[j] * ((double)dw[j] - s));
    }
}

#define CASE(rows, E, k, share)                                                                    \
    { .in = { TG_T2(F32, rows, E), TG_T2(F32, rows, k), TG_T2(I32, rows, k),                       \
              TG_T2(F32, rows, k) },                                                               \
      .attr = { .i = { k, share } },                                                               \
      .i32_below = (E),                                                                            \
      .tol = 4e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 0), CASE(3, 5, 2, 0), CASE(3, 5, 2, 1), CASE(67, 128, 8, 0), CASE(33, 61, 6, 1),
};

static const char *const wgsl[] = {
#include "ops/experts/route_grad.wgsl.h"
};
static size_t groups(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS);
}
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(route_grad) = {
    .name = "route_grad",
    TG_DOC "gradient of route's weights with respect to its logits",
    .in_names = { "logits", "weights", "ids", "dweights" },
    .out_names = { "dlogits" },
    .n_in = 4,
    .n_out = 1,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(route_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
