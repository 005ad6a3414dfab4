/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route - which k of E experts a token goes through, and by what weight each (Shazeer et al. 2017).
 *
 *   in 0  logits [..,E]      out 0  weights [..,k]      out 1  ids [..,k] i32, which differ
 *   i[0]  k     i[1] share   0  weights are a softmax of the k logits: they sum to 1
 *                            1  they are those of a softmax of all E: their shares of all
 *
 * The choices come by falling logits; of equal ones the lower number comes first. To choose before
 * the softmax or behind it is the same, as it keeps the order; and the shares of the k divided by
 * their sum are the softmax of the k. So the two kinds serve all families.
 *
 * Backward needs the logits and what came out.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/experts/experts_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const int32_t k = n->attr.i[0], share = n->attr.i[1];
    tg_type t = n->in[0]->type;
    if (k < 1 || (size_t)k > tg_type_cols(&t) || share < 0 || share > 1) {
        tg_graph_fail(g, n, TG_E_ARG, "want 1..%zu choices and share 0 or 1, have %d and %d",
                      tg_type_cols(&t), (int)k, (int)share);
        return;
    }
    t.dim[t.n_dims - 1] = (size_t)k;
    n->out[0].type = n->out[1].type = t;
    n->out[1].type.dtype = TG_I32;
}

static bool is_chosen(const int32_t *ids, size_t n, size_t e) {
    while (n-- > 0)
        if (ids[n] == (int32_t)e) return true;
    return false;
}

/* A NaN is greater than nothing; where all others are chosen, it is, too. */
static size_t greatest(const TG_REAL *x, size_t E, const int32_t *ids, size_t n) {
    size_t best = E;
    for (size_t e = 0; e < E; e++)
        if (!is_chosen(ids, n, e) && (best == E || x[e] > x[best])) best = e;
    return best;
}

static void ref(const tg_args *a) {
    const size_t E = tg_type_cols(&a->in_type[0]), k = tg_type_cols(&a->out_type[0]);
    const bool share = a->attr.i[1] != 0;
    for (size_t t = 0; t < tg_type_rows(&a->in_type[0]); t++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + t * E;
        TG_REAL *w = (TG_REAL *)a->out[0] + t * k;
        int32_t *ids = (int32_t *)a->out[1] + t * k;
        for (size_t j = 0; j < k; j++) ids[j] = (int32_t)greatest(x, E, ids, j);
        const double most = (double)x[ids[0]];
        double sum = 0;
        for (size_t e = 0; share && e < E; e++) sum += tg_exp((double)x[e] - most);
        for (size_t j = 0; !share && j < k; j++) sum += tg_exp((double)x[ids[j]] - most);
        for (size_t j = 0; j < k; j++) w[j] = (TG_REAL)(tg_exp((double)x[ids[j]] - most) / sum);
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1) || !dy[0]) return;
    din[0] = tg_route_grad(g, n->in[0], &n->out[0], &n->out[1], dy[0], &n->attr);
}

#define CASE(rows, E, k, share, s)                                                                 \
    { .in = { TG_T2(F32, rows, E) }, .attr = { .i = { k, share } }, .scale = (s), .tol = 1e-6 }
/* Whole numbers, of which many are equal. */
static void prepare_ties(const tg_args *a) {
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[0];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++)
        x[i] = (TG_REAL)tg_floor((double)x[i]);
}
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 0, 1),
    CASE(3, 5, 2, 0, 1),
    CASE(3, 5, 2, 1, 1),
    CASE(7, 16, 16, 1, 3),
    CASE(67, 128, 8, 0, 1),
    CASE(33, 61, 6, 1, 3),
    { .in = { TG_T3(F32, 2, 3, 40) }, .attr = { .i = { 8, 1 } }, .scale = 30, .tol = 1e-6 },
    { .in = { TG_T2(F32, 19, 9) },
      .attr = { .i = { 4, 0 } },
      .prepare = prepare_ties,
      .grad_tol = 1, /* where logits are equal there is none */
      .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/experts/route.wgsl.h"
};
static size_t groups(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS);
}
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0), TG_BIND_OUT(1) },
                  .groups = groups } } },
};

TG_OP_DESC(route) = {
    .name = "route",
    TG_DOC "chooses experts: the greatest logits of a row, and their softmax",
    .in_names = { "logits" },
    .out_names = { "weights", "ids" },
    .n_in = 1,
    .n_out = 2,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(route, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
