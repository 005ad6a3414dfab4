/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention - causal self-attention of B sequences, all heads at once (Vaswani et al. 2017).
 *
 *   in 0   qkv [B,T,(H+2K)*D]    rows of H query, K key and K value heads: heads.h
 *   out 0  o [B,T,H*D]           out 1  lse [B,H,T]
 *   i[0] H   i[1] K   i[2] D   i[3] W, a window, or 0    f[0] scale above 0, usually 1/sqrt(D)
 *   i[4] stream and f[1] rate of dropout, 0: none    f[2] cap of scores, 0: none
 *
 *   s[t,j] = scale * q[t] . k[j]      for j = 0 .. t: a token sees itself and what came before,
 *                                     with a window W the last W of these
 *   with a cap c  s = c tanh(s / c)                   (Gemma 2, 2024)
 *   lse[t] = log sum_j exp(s[t,j])
 *   p[t,j] = exp(s[t,j] - lse[t])     the softmax of row t
 *   o[t]   = sum_j p[t,j] mask[t,j] v[j]       the mask, 1 without dropout: ops/dropout/mask.h
 *
 * Backward needs qkv, o and lse: p is cheaper to compute again from lse than to keep, being T x T.
 * lse is for that alone; nothing else may depend on it.
 */
#include "ops/attention/flash/flash_shader.h"
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/build.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) || !tg_heads_want_qkv(g, n, 0, 3))
        return;
    const tg_type *qkv = &n->in[0]->type;
    const tg_heads s = tg_heads_of(&n->attr);
    n->out[0].type = (tg_type) { TG_F32, 3, { qkv->dim[0], qkv->dim[1], s.q_row, 1 } };
    n->out[1].type = (tg_type) { TG_F32, 3, { qkv->dim[0], s.n_q, qkv->dim[1], 1 } };
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t batch = a->in_type[0].dim[0], tokens = a->in_type[0].dim[1];
    for (size_t b = 0; b < batch; b++) {
        const TG_REAL *qkv = (const TG_REAL *)a->in[0] + b * tokens * s.row;
        TG_REAL *o = (TG_REAL *)a->out[0] + b * tokens * s.q_row;
        TG_REAL *lse = (TG_REAL *)a->out[1] + b * s.n_q * tokens;
        for (size_t h = 0; h < s.n_q; h++) {
            memory m = {
                .d = s.size, .step = s.row, .tokens = tokens, .cap = (double)a->attr.f[2]
            };
            if (a->attr.f[1] > 0)
                m.mask = tg_mask_of(a, a->attr.f[1], b, tg_mask_head(&a->attr, h));
            for (size_t t = 0; t < tokens; t++) {
                /* What is after a token does not exist for it, nor what is behind its window. */
                const size_t first = (size_t)tg_heads_low(&a->attr, t, 0);
                m.k = qkv + first * s.row + tg_heads_k(&s, h / s.group);
                m.v = qkv + first * s.row + tg_heads_v(&s, h / s.group);
                m.n = t + 1 - first;
                m.t = t;
                lse[h * tokens + t] =
                    (TG_REAL)attend(&m, (double)a->attr.f[0], qkv + t * s.row + tg_heads_q(&s, h),
                                    o + t * s.q_row + h * s.size);
            }
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    din[0] = tg_attention_grad(g, n->in[0], &n->out[0], &n->out[1], dy[0], &n->attr);
}

/* A score and its share of o: 2*D each. */
static double flop(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    return 4 * (double)s.size * (double)(a->in_type[0].dim[0] * s.n_q) *
           tg_heads_window_pairs((double)a->in_type[0].dim[1], a->attr.i[3]);
}

/* The last scale makes rows steep: nearly all of a row then hangs on one token. */
#define CASE(b, t, h, k, d, scale_) WINDOW(b, t, h, k, d, scale_, 0)
#define WINDOW(b, t, h, k, d, scale_, w)                                                           \
    { .in = { TG_T3(F32, b, t, ((h) + 2 * (k)) * (d)) },                                           \
      .attr = { .i = { h, k, d, w }, .f = { scale_ } },                                            \
      .tol = 3e-6 }
/* Scores far above 0 in one head and far below in the next, so that whatever stands where a key is
 * not seen would hide all others. */
static void put_low_scores(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    TG_REAL *qkv = (TG_REAL *)(uintptr_t)a->in[0];
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < (s.n_q + s.n_kv) * s.size; c++)
            qkv[r * cols + c] = (TG_REAL)(c < s.n_q * s.size && c / s.size % 2 ? 5 : -5);
}

#define DROPPING(b, t, h, k, d, scale_, w, rate) CAPPED(b, t, h, k, d, scale_, w, rate, 0)
#define CAPPED(b, t, h, k, d, scale_, w, rate, cap)                                                \
    { .in = { TG_T3(F32, b, t, ((h) + 2 * (k)) * (d)) },                                           \
      .attr = { .i = { h, k, d, w, 3 }, .f = { scale_, rate, cap } },                              \
      .rt = { .seed_lo = 9, .draw_lo = 70 },                                                       \
      .tol = 5e-6 }
TG_CASE_TABLE cases[] = {
#include "ops/attention/attention_cases.def"
    CASE(1, 129, 4, 2, 16, 1),
    { .in = { TG_T3(F32, 2, 33, 8 * 16) },
      .attr = { .i = { 4, 2, 16, 9 }, .f = { 1 } },
      .tol = 3e-6,
      .prepare = put_low_scores },
};

static const char *const flash[] = {
#include "ops/attention/flash/flash.wgsl.h"
};
static const char *const ops_mask[] = {
#include "ops/dropout/mask.wgsl.h"
};
static const char *const drop[] = {
#include "ops/attention/drop.wgsl.h"
};
static const char *const forward[] = {
#include "ops/attention/attention_forward.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention/attention.wgsl.h"
};

static size_t groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[0] * tg_shader_parts(a->in_type[0].dim[1], 32);
}

#define PASSES(in_fours, text, ...)                                                                \
    .pass = { { .entry = "main",                                                                   \
                .wgsl = { flash, wgsl, forward, __VA_ARGS__ },                                     \
                .constants = text,                                                                 \
                .fours = in_fours,                                                                 \
                .bind = { TG_BIND_IN(0), TG_BIND_OUT(0), TG_BIND_OUT(1) },                         \
                .groups = groups } }
static const tg_shader shaders[] = { TG_FLASH_SHADERS_DROPPING(PASSES), TG_FLASH_SHADERS(PASSES) };

TG_OP_DESC(attention) = {
    .name = "attention",
    TG_DOC "causal self-attention: o = softmax(scale * q k^T) v, and the rows' log-sum-exp",
    .in_names = { "qkv" },
    .out_names = { "o", "lse" },
    .n_in = 1,
    .n_out = 2,
    .infer = infer,
    TG_REFS(attention, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    .flop = flop,
    TG_CASES(cases),
};
