/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_spans - attention both ways within each of several texts that lie one behind the other.
 *
 *   in 0   qkv [T,(H+2K)*D], T dynamic     in 1  spans [T,2] i32: first and end of a token's text
 *   out 0  o [T,H*D]                       out 1  lse [T,H]
 *   i[0] H   i[1] K   i[2] D   i[3] window, 0: none   f[0] scale
 *
 *   s[t,j] = scale * q[t].k[j]    for j in [first, end) of t, |j - t| <= window / 2
 *   lse[t] = log sum_j exp(s[t,j])
 *   o[t]   = sum_j p[t,j] v[j],   p[t,j] = exp(s[t,j] - lse[t]), the softmax of row t
 *
 * Texts of any lengths share a call without padding. A span is held within the T rows, and has its
 * own token at least. Backward needs qkv, spans, o and lse, as that of attention does; lse is for
 * that alone.
 */
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/attention_spans/spans_case.h"
#include "ops/build.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_qkv(g, n, 0, 2)) return;
    const size_t rows = n->in[0]->type.dim[0];
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_I32, rows, 2))) return;
    n->out[0].type = tg_type_2d(TG_F32, rows, tg_heads_of(&n->attr).q_row);
    n->out[1].type = tg_type_2d(TG_F32, rows, tg_heads_of(&n->attr).n_q);
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0];
    const TG_REAL *qkv = a->in[0];
    for (size_t h = 0; h < s.n_q; h++) {
        for (size_t t = 0; t < rows; t++) {
            const span seen = span_of(a->in[1], t, rows, a->attr.i[3]);
            const TG_REAL *from = qkv + seen.begin * s.row;
            const memory m = { .k = from + tg_heads_k(&s, h / s.group),
                               .v = from + tg_heads_v(&s, h / s.group),
                               .n = seen.end - seen.begin,
                               .d = s.size,
                               .step = s.row };
            ((TG_REAL *)a->out[1])[t * s.n_q + h] =
                (TG_REAL)attend(&m, (double)a->attr.f[0], qkv + t * s.row + tg_heads_q(&s, h),
                                (TG_REAL *)a->out[0] + t * s.q_row + h * s.size);
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    din[0] =
        tg_attention_spans_grad(g, n->in[0], n->in[1], &n->out[0], &n->out[1], dy[0], &n->attr);
}

/* As if all rows were one text. */
static double flop(const tg_args *a) {
    const double rows = (double)a->in_type[0].dim[0];
    return 4 * (double)tg_heads_of(&a->attr).q_row * rows * rows;
}

#define CASE(rows_, h, k, d, scale_) WINDOW(rows_, h, k, d, scale_, 0)
#define WINDOW(rows_, h, k, d, scale_, window_)                                                    \
    { .in = { TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)), TG_T2(I32, rows_, 2) },                    \
      .attr = { .i = { h, k, d, window_ }, .f = { scale_ } },                                      \
      .rt = { .rows = (rows_) },                                                                   \
      .i32_below = (rows_) + 2,                                                                    \
      .prepare = prepare_spans,                                                                    \
      .tol = 3e-6 }
TG_CASE_TABLE cases[] = {
#include "ops/attention_spans/spans_cases.def"
};

static const char *const spans[] = {
#include "ops/attention_spans/spans.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention_spans/attention_spans.wgsl.h"
};
/* A thread has four columns at most. */
static bool fits(const tg_args *a) { return a->attr.i[2] <= 256; }
static size_t head_groups(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
static const tg_shader shaders[] = {
    { .name = "heads",
      .fits = fits,
      .pass = { { .entry = "main",
                  .wgsl = { spans, wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0), TG_BIND_OUT(1) },
                  .groups = head_groups } } },
};

TG_OP_DESC(attention_spans) = {
    .name = "attention_spans",
    TG_DOC "attention both ways within each of several texts",
    .in_names = { "qkv", "spans" },
    .out_names = { "o", "lse" },
    .n_in = 2,
    .n_out = 2,
    .infer = infer,
    TG_REFS(attention_spans, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    .flop = flop,
    TG_CASES(cases),
};
