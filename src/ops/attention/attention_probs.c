/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_probs - the weights of attention themselves, for people to look at.
 *
 *   in 0   qkv [B,T,(H+2K)*D]; values are not read      see heads.h
 *   out 0  p [B,H,T,T]
 *   i[0] H   i[1] K   i[2] D   i[3] W, a window, or 0    f[0] scale above 0
 *   f[2] cap of scores, 0: none, which comes before the exponential: attention.c
 *
 *   p[t,j] = exp(scale * q[t] . k[j]) / sum over i = 0 .. t of exp(scale * q[t] . k[i])   for j <=
 * t p[t,j] = 0                                                                            for j > t
 *
 * Attention as such never makes this matrix: it is T times as large as what it serves. There is no
 * gradient, since nothing is trained through a picture.
 */
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/build.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) || !tg_heads_want_qkv(g, n, 0, 3))
        return;
    const tg_type *qkv = &n->in[0]->type;
    const size_t tokens = qkv->dim[1];
    n->out[0].type =
        (tg_type) { TG_F32, 4, { qkv->dim[0], tg_heads_of(&n->attr).n_q, tokens, tokens } };
}

/* Scores in double, three times over, since a reference has no room to keep them. */
static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t batch = a->in_type[0].dim[0], T = a->in_type[0].dim[1];
    const double scale = (double)a->attr.f[0], cap = (double)a->attr.f[2];
    TG_REAL *p = a->out[0];
    for (size_t row = 0; row < batch * s.n_q * T; row++, p += T) {
        const size_t b = row / (s.n_q * T), h = row / T % s.n_q, t = row % T;
        const TG_REAL *qkv = (const TG_REAL *)a->in[0] + b * T * s.row;
        const TG_REAL *q = qkv + t * s.row + tg_heads_q(&s, h);
        const TG_REAL *k = qkv + tg_heads_k(&s, h / s.group);
        const size_t first = (size_t)tg_heads_low(&a->attr, t, 0);
        double top = -TG_INF, sum = 0;
        for (size_t j = first; j <= t; j++) {
            const double score = soft_cap(scale * dot(q, k + j * s.row, s.size), cap);
            if (!(score <= top)) top = score; /* a NaN stays */
        }
        for (size_t j = first; j <= t; j++)
            sum += tg_exp(soft_cap(scale * dot(q, k + j * s.row, s.size), cap) - top);
        for (size_t j = 0; j < T; j++)
            p[j] =
                (TG_REAL)(j >= first && j <= t
                              ? tg_exp(soft_cap(scale * dot(q, k + j * s.row, s.size), cap) - top) /
                                    sum
                              : 0);
    }
}

/* Around 16 lanes, more heads than keys, and more than one unit. */
#define CASE(b, t, h, k, d, scale_)      WINDOW(b, t, h, k, d, scale_, 0)
#define WINDOW(b, t, h, k, d, scale_, w) CAPPED(b, t, h, k, d, scale_, w, 0)
#define CAPPED(b, t, h, k, d, scale_, w, cap)                                                      \
    { .in = { TG_T3(F32, b, t, ((h) + 2 * (k)) * (d)) },                                           \
      .attr = { .i = { h, k, d, w }, .f = { scale_, 0, cap } },                                    \
      .tol = 3e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1),
    CASE(2, 3, 2, 1, 8, 0.35355339f),
    CASE(2, 15, 3, 3, 5, 0.4472136f),
    CASE(1, 16, 2, 2, 16, 0.25f),
    CASE(3, 17, 4, 2, 40, 0.15811388f),
    CASE(1, 67, 3, 1, 32, 0.1767767f),
    CASE(1, 130, 2, 2, 64, 1),
    WINDOW(1, 7, 2, 1, 8, 0.35355339f, 1),
    WINDOW(2, 37, 2, 1, 16, 0.25f, 11),
    WINDOW(1, 67, 1, 1, 16, 0.25f, 100),
    CAPPED(2, 37, 2, 1, 16, 1, 11, 2),
};

static const char *const wgsl[] = {
#include "ops/attention/attention_probs.wgsl.h"
};
static size_t groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[0] * a->in_type[0].dim[1];
}

static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(attention_probs) = {
    .name = "attention_probs",
    TG_DOC "the matrix of causal attention: softmax(scale * q k^T), zeros above the diagonal",
    .in_names = { "qkv" },
    .out_names = { "p" },
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    TG_REFS(attention_probs, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
