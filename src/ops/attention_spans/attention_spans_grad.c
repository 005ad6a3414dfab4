/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_spans_grad - the gradient of attention_spans with respect to queries, keys and values.
 *
 *   in 0  qkv [T,(H+2K)*D]   in 1  spans [T,2] i32
 *   in 2  o [T,H*D]          in 3  lse [T,H]          in 4  do [T,H*D]
 *   out 0  dqkv as qkv       attributes as attention_spans
 *
 *   p[t,j]  = exp(s[t,j] - lse[t])                  for j that t sees, else 0
 *   ds[t,j] = p[t,j] * (do[t].v[j] - do[t].o[t])
 *   dq[t]   = scale * sum_j ds[t,j] k[j]
 *   dk[j]   = scale * sum_t ds[t,j] q[t]            head by head of the group, t rising
 *   dv[j]   = sum_t p[t,j] do[t]
 *
 * (Dao et al. 2022, algorithm 4.) o and lse have to be what attention_spans gave for this qkv; as a
 * function of its inputs it is defined for any. Spans may differ from token to token: who sees a
 * key is asked of all tokens.
 */
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/attention_spans/spans_case.h"
#include "ops/build.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_qkv(g, n, 0, 2)) return;
    const size_t rows = n->in[0]->type.dim[0];
    const tg_heads s = tg_heads_of(&n->attr);
    const tg_type o = tg_type_2d(TG_F32, rows, s.q_row);
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_I32, rows, 2)) || !tg_want_type(g, n, 2, o) ||
        !tg_want_type(g, n, 3, tg_type_2d(TG_F32, rows, s.n_q)) || !tg_want_type(g, n, 4, o))
        return;
    n->out[0].type = n->in[0]->type;
}

/* p[t,j] of head h, and ds[t,j]. */
static double pair(const tg_args *a, size_t h, size_t t, size_t j, double *ds) {
    const tg_heads s = tg_heads_of(&a->attr);
    const TG_REAL *qkv = a->in[0], *o = a->in[2], *lse = a->in[3], *dout = a->in[4];
    const TG_REAL *q = qkv + t * s.row + tg_heads_q(&s, h), *row = qkv + j * s.row;
    const TG_REAL *k = row + tg_heads_k(&s, h / s.group), *v = row + tg_heads_v(&s, h / s.group);
    const size_t at = t * s.q_row + h * s.size;
    const double score = (double)a->attr.f[0] * dot(q, k, s.size);
    const double p = tg_exp(score - (double)lse[t * s.n_q + h]);
    *ds = p * (dot(dout + at, v, s.size) - dot(dout + at, o + at, s.size));
    return p;
}

/* Columns [begin, begin + n) of dq of head h, row t. */
static void ref_dq(const tg_args *a, size_t h, size_t t, size_t begin, size_t n) {
    const tg_heads s = tg_heads_of(&a->attr);
    const span seen = span_of(a->in[1], t, a->in_type[0].dim[0], a->attr.i[3]);
    double acc[CHUNK] = { 0 };
    for (size_t j = seen.begin; j < seen.end; j++) {
        double ds;
        pair(a, h, t, j, &ds);
        const TG_REAL *k =
            (const TG_REAL *)a->in[0] + j * s.row + tg_heads_k(&s, h / s.group) + begin;
        for (size_t c = 0; c < n; c++) acc[c] += ds * (double)k[c];
    }
    TG_REAL *dq = (TG_REAL *)a->out[0] + t * s.row + tg_heads_q(&s, h) + begin;
    for (size_t c = 0; c < n; c++) dq[c] = (TG_REAL)((double)a->attr.f[0] * acc[c]);
}

/* Columns [begin, begin + n) of dk and dv of key head kv, row j. */
static void ref_dkv(const tg_args *a, size_t kv, size_t j, size_t begin, size_t n) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0];
    double dk[CHUNK] = { 0 }, dv[CHUNK] = { 0 };
    for (size_t h = kv * s.group; h < (kv + 1) * s.group; h++) {
        for (size_t t = 0; t < rows; t++) {
            const span seen = span_of(a->in[1], t, rows, a->attr.i[3]);
            if (j < seen.begin || j >= seen.end) continue;
            double ds;
            const double p = pair(a, h, t, j, &ds);
            const TG_REAL *q = (const TG_REAL *)a->in[0] + t * s.row + tg_heads_q(&s, h) + begin;
            const TG_REAL *dout = (const TG_REAL *)a->in[4] + t * s.q_row + h * s.size + begin;
            for (size_t c = 0; c < n; c++) {
                dk[c] += ds * (double)q[c];
                dv[c] += p * (double)dout[c];
            }
        }
    }
    TG_REAL *row = (TG_REAL *)a->out[0] + j * s.row + begin;
    for (size_t c = 0; c < n; c++) {
        row[tg_heads_k(&s, kv) + c] = (TG_REAL)((double)a->attr.f[0] * dk[c]);
        row[tg_heads_v(&s, kv) + c] = (TG_REAL)dv[c];
    }
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    for (size_t begin = 0; begin < s.size; begin += CHUNK) {
        const size_t n = s.size - begin < CHUNK ? s.size - begin : CHUNK;
        for (size_t t = 0; t < a->in_type[0].dim[0]; t++) {
            for (size_t h = 0; h < s.n_q; h++) ref_dq(a, h, t, begin, n);
            for (size_t kv = 0; kv < s.n_kv; kv++) ref_dkv(a, kv, t, begin, n);
        }
    }
}

/* As if all rows were one text: five products of 2*D for each pair. */
static double flop(const tg_args *a) {
    const double rows = (double)a->in_type[0].dim[0];
    return 10 * (double)tg_heads_of(&a->attr).q_row * rows * rows;
}

/* The inputs are independent normals, so that lse is not the rows' own, and sums are larger than
 * they would be: as in attention_grad. */
#define CASE(rows_, h, k, d, scale_) WINDOW(rows_, h, k, d, scale_, 0)
#define WINDOW(rows_, h, k, d, scale_, window_)                                                    \
    { .in = { TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)), TG_T2(I32, rows_, 2),                      \
              TG_T2(F32, rows_, (h) * (d)), TG_T2(F32, rows_, h), TG_T2(F32, rows_, (h) * (d)) },  \
      .attr = { .i = { h, k, d, window_ }, .f = { scale_ } },                                      \
      .rt = { .rows = (rows_) },                                                                   \
      .i32_below = (rows_) + 2,                                                                    \
      .prepare = prepare_spans,                                                                    \
      .scale = 0.5f,                                                                               \
      .tol = 1e-5 }
TG_CASE_TABLE cases[] = {
#include "ops/attention_spans/spans_cases.def"
};

static const char *const spans[] = {
#include "ops/attention_spans/spans.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention_spans/attention_spans_grad.wgsl.h"
};
/* A thread has four columns at most. */
static bool fits(const tg_args *a) { return a->attr.i[2] <= 256; }
/* One for a query of a head, and one for a key of a key head. */
static size_t groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)(a->attr.i[0] + a->attr.i[1]);
}
static const tg_shader shaders[] = {
    { .name = "heads",
      .fits = fits,
      .pass = { { .entry = "both",
                  .wgsl = { spans, wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_IN(4), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(attention_spans_grad) = {
    .name = "attention_spans_grad",
    TG_DOC "gradient of attention_spans with respect to queries, keys and values",
    .in_names = { "qkv", "spans", "o", "lse", "do" },
    .out_names = { "dqkv" },
    .n_in = 5,
    .n_out = 1,
    .infer = infer,
    TG_REFS(attention_spans_grad, ref),
    TG_SHADERS(shaders),
    .flop = flop,
    TG_CASES(cases),
};
