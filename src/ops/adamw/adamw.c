/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adamw - Adam with decoupled weight decay (Kingma, Ba 2015; Loshchilov, Hutter 2019), as PyTorch.
 *
 *   g = grads * coefficient        m' = b1 m + (1 - b1) g        v' = b2 v + (1 - b2) g^2
 *   w' = (1 - lr wd) w - lr * (m' / (1 - b1^t)) / (sqrt(v' / (1 - b2^t)) + eps)
 *
 *   in 0  w [n]   in 1  grads [n]   in 2  m [n]   in 3  v [n]   in 4  stats [4] of grad_norm
 *   out 0..2  new versions of w, m, v
 *   f[0..3]  beta1 beta2 eps wd     i[0]  elements [0, i[0]) are decayed, the rest is not
 *
 * Run-time scalars: lr and step t, from 1. Nothing is written when stats' ok is 0.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, 1)) return;
    for (int k = 1; k < 4; k++)
        if (!tg_want_type(g, n, k, n->in[0]->type)) return;
    if (!tg_want_type(g, n, 4, tg_type_1d(TG_F32, 4))) return;
    for (int k = 0; k < 3; k++) n->out[k].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *w = a->in[0], *grads = a->in[1], *m = a->in[2], *v = a->in[3];
    const TG_REAL *stats = a->in[4];
    TG_REAL *w_out = a->out[0], *m_out = a->out[1], *v_out = a->out[2];
    if (stats[2] == 0) return;
    const double b1 = (double)a->attr.f[0], b2 = (double)a->attr.f[1];
    const double eps = (double)a->attr.f[2], wd = (double)a->attr.f[3], lr = (double)a->rt->lr;
    const double bias1 = 1 - tg_pow(b1, a->rt->step), bias2 = 1 - tg_pow(b2, a->rt->step);
    const size_t n = tg_type_elems(&a->in_type[0]);
    const size_t decayed = a->attr.i[0] > 0 ? (size_t)a->attr.i[0] : 0;
    for (size_t i = 0; i < n; i++) {
        const double g = (double)grads[i] * (double)stats[1];
        const double new_m = b1 * (double)m[i] + (1 - b1) * g;
        const double new_v = b2 * (double)v[i] + (1 - b2) * g * g;
        const double kept = (double)w[i] * (i < decayed ? 1 - lr * wd : 1);
        w_out[i] = (TG_REAL)(kept - lr * (new_m / bias1) / (tg_sqrt(new_v / bias2) + eps));
        m_out[i] = (TG_REAL)new_m;
        v_out[i] = (TG_REAL)new_v;
    }
}

#define CASE(n, decay, t, s)                                                                       \
    { .in = { TG_T1(F32, n), TG_T1(F32, n), TG_T1(F32, n), TG_T1(F32, n), TG_T1(F32, 4) },         \
      .attr = { .i = { decay }, .f = { 0.9f, 0.99f, 1e-8f, 0.1f } },                               \
      .rt = { .step = (t), .lr = 1e-3f },                                                          \
      .scale = (s),                                                                                \
      .positive = 1 << 3,                                                                          \
      .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1),     CASE(15, 7, 1, 1),     CASE(16, 0, 2, 1),       CASE(17, 17, 3, 0.01f),
    CASE(131, 100, 9, 1), CASE(4099, 33, 70, 1), CASE(20011, 9001, 5, 1), CASE(67, 67, 100000, 1),
};

static const char *const wgsl[] = {
#include "ops/adamw/adamw.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_OUT(0), TG_BIND_IN(1), TG_BIND_OUT(1), TG_BIND_OUT(2),
                            TG_BIND_IN(4) },
                  .groups = tg_shader_groups_in0 } },
      .splits = true },
};

TG_OP_DESC(adamw) = {
    .name = "adamw",
    TG_DOC "Adam with decoupled weight decay, gradients clipped, refused when not finite",
    .in_names = { "w", "grads", "m", "v", "stats" },
    .out_names = { "w", "m", "v" },
    .n_in = 5,
    .n_out = 3,
    .state_in = { 1, 3, 4 },
    .infer = infer,
    TG_REFS(adamw, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
