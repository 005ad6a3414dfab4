/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope - query and key heads turned by their positions, after a norm of each head where there is
 * one.
 *
 *   in 0   qkv [T,(H+2K)*D]     in 1  table [T,D] of rope_table
 *   in 2   q_norm [D] optional  in 3  k_norm [D] optional
 *   out 0  qkv, may be the same memory; value heads pass through
 *   i[0] H   i[1] K   i[2] D   f[0] eps of the norms
 *
 *   (x[i], x[i + D/2])  <-  (x[i] cos - x[i + D/2] sin,  x[i + D/2] cos + x[i] sin)    i < D/2
 *
 * Files whose rows pair (2i, 2i + 1) instead have their rows put in this order when they are
 * loaded.
 */
#include "base/math.h"
#include "ops/attention/heads_rules.h"
#include "ops/build.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_qkv(g, n, 0, 2)) return;
    const size_t d = (size_t)n->attr.i[2];
    if (d % 2 != 0) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want heads of an even size, have %zu", d);
        return;
    }
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_F32, n->in[0]->type.dim[0], d))) return;
    if (!tg_want_type(g, n, 2, tg_type_1d(TG_F32, d))) return;
    if (!tg_want_type(g, n, 3, tg_type_1d(TG_F32, d))) return;
    n->out[0].type = n->in[0]->type;
}

static void turn(const TG_REAL *x, TG_REAL *y, const TG_REAL *norm, const TG_REAL *table, size_t d,
                 double eps) {
    double scale = 1;
    if (norm) {
        double sum = 0;
        for (size_t i = 0; i < d; i++) sum += (double)x[i] * (double)x[i];
        scale = 1 / tg_sqrt(sum / (double)d + eps);
    }
    for (size_t i = 0; i < d / 2; i++) {
        const size_t j = i + d / 2;
        const double p = (double)x[i] * scale * (norm ? (double)norm[i] : 1);
        const double q = (double)x[j] * scale * (norm ? (double)norm[j] : 1);
        const double c = (double)table[i], s = (double)table[j];
        y[i] = (TG_REAL)(p * c - q * s);
        y[j] = (TG_REAL)(q * c + p * s);
    }
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    for (size_t t = 0; t < a->in_type[0].dim[0]; t++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + t * s.row;
        const TG_REAL *table = (const TG_REAL *)a->in[1] + t * s.size;
        TG_REAL *y = (TG_REAL *)a->out[0] + t * s.row;
        for (size_t h = 0; h < s.n_q + s.n_kv; h++)
            turn(x + h * s.size, y + h * s.size, h < s.n_q ? a->in[2] : a->in[3], table, s.size,
                 (double)a->attr.f[0]);
        for (size_t i = tg_heads_v(&s, 0); i < s.row; i++) y[i] = x[i];
    }
}

#define CASE(rows, h, k, d, ...)                                                                   \
    { .in = { TG_T2(F32, rows, ((h) + 2 * (k)) * (d)), TG_T2(F32, rows, d), __VA_ARGS__ },         \
      .attr = { .i = { h, k, d }, .f = { 1e-6f } },                                                \
      .tol = 2e-6 }
static const tg_case cases[] = {
    CASE(1, 1, 1, 2, TG_ABSENT),
    CASE(3, 9, 3, 64, TG_ABSENT),
    CASE(5, 2, 1, 34, TG_T1(F32, 34), TG_T1(F32, 34)),
    CASE(1, 4, 1, 256, TG_T1(F32, 256), TG_T1(F32, 256)),
    CASE(17, 2, 2, 16, TG_ABSENT, TG_T1(F32, 16)),
};

TG_OP_DESC(rope) = {
    .name = "rope",
    .doc = "query and key heads turned by their positions",
    .in_names = { "qkv", "table", "q_norm", "k_norm" },
    .out_names = { "qkv" },
    .n_in = 4,
    .n_in_optional = 2,
    .n_out = 1,
    .in_place = { 1 },
    .cpu_only = true,
    .infer = infer,
    TG_REFS(rope, ref),
    TG_CASES(cases),
};
