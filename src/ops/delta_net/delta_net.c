/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net - the mixer of a gated delta net between its products (Yang, Kautz and Hatamizadeh
 * 2024): each head has a state S [N,P], from which a row's value is recalled by its key, and the
 * difference to it is written.
 *
 *   in 0  z [B,T,I+K]: gates, and what the convolution sees      in 1  ba [B,T,2H]
 *   in 2  w [K,L]      in 3  heads [2H+P]                        out 0 y [B,T,I]
 *
 *   q, k, v = silu(causal convolution of their columns by w)     q, k of length 1/sqrt(N) and 1
 *   S = exp(-exp(a) softplus(step + b)) S      S = S + k (sigmoid(beta) (v - k^T S))      o = q^T S
 *   y = o / sqrt(mean(o^2) + eps) * gain * silu(gate), each head for itself
 *
 * i[0] H, i[1] P, i[2] G, i[3] N, i[4] the order of heads, f[0] eps: delta_net_rules.h, which says
 * how rows lie, too. Backward needs the inputs alone.
 */
#include "ops/delta_net/delta_net_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (delta_want(g, n, 2, 1, 3, &m)) n->out[0].type = mamba_y(&n->in[0]->type, &m);
}

/* Column p of head h over a sequence: it has its own column of the state. */
static void ref_column(const tg_args *a, const mamba *m, size_t first, size_t h, size_t p) {
    const TG_REAL *z = (const TG_REAL *)a->in[0] + first * m->Z;
    const TG_REAL *ba = (const TG_REAL *)a->in[1] + first * 2 * m->H;
    TG_REAL *y = (TG_REAL *)a->out[0] + first * m->I;
    double s[DELTA_STATE_MAX] = { 0 };
    delta_head k;
    for (size_t t = 0; t < a->in_type[0].dim[1]; t++) {
        const delta_row r = { z + t * m->Z, NULL, t };
        double recalled = 0, sum = 0;
        delta_head_at(m, &a->attr, &r, ba + t * 2 * m->H, a->in[2], a->in[3], h, &k);
        for (size_t n = 0; n < m->N; n++) recalled += k.k[n] * (s[n] *= k.kept);
        const double v = act_silu(delta_conv(m, &r, a->in[2], delta_v(m, h) + p));
        for (size_t n = 0; n < m->N; n++)
            sum += k.q[n] * (s[n] += k.k[n] * k.write * (v - recalled));
        y[t * m->I + h * m->P + p] = (TG_REAL)sum;
    }
}

static void ref(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    const size_t T = a->in_type[0].dim[1], rows = tg_type_rows(&a->in_type[0]);
    for (size_t first = 0; first < rows; first += T)
        for (size_t i = 0; i < m.I; i++) ref_column(a, &m, first, i / m.P, i % m.P);
    for (size_t i = 0; i < rows * m.H; i++)
        delta_gate(&m, &a->attr, (const TG_REAL *)a->in[0] + i / m.H * m.Z, a->in[3], i % m.H,
                   (TG_REAL *)a->out[0] + i * m.P);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_delta_net_grad(g, n->in[0], n->in[1], n->in[2], n->in[3], dy[0], &n->attr);
    for (int k = 1; k < 4; k++) din[k] = tg_out(din[0], k);
}

/* Sequences shorter than the taps; heads and keys around a vector, and longer than a
 * workgroup's threads; both orders of heads. */
#define CASE(b, t, h, p, g, n, l, order)                                                           \
    { .in = { TG_T3(F32, b, t, 2 * (h) * (p) + 2 * (g) * (n)), TG_T3(F32, b, t, 2 * (h)),          \
              TG_T2(F32, (h) * (p) + 2 * (g) * (n), l), TG_T1(F32, 2 * (h) + (p)) },               \
      .attr = { .i = { h, p, g, n, order }, .f = { 1e-6f } },                                      \
      .tol = 2e-5 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 2, 0),   CASE(2, 3, 2, 3, 1, 2, 4, 0),    CASE(1, 9, 4, 2, 2, 3, 3, 0),
    CASE(1, 9, 4, 2, 2, 3, 3, 1),   CASE(1, 19, 2, 17, 1, 18, 4, 0), CASE(1, 6, 2, 32, 2, 7, 4, 1),
    CASE(1, 3, 2, 80, 1, 70, 4, 0),
};

static const char *const sizes[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const places[] = {
#include "ops/delta_net/delta_net_common.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/delta_net/delta_net.wgsl.h"
};
static const char *const rows[] = {
#include "ops/delta_net/delta_net_rows.wgsl.h"
};
static const char *const gate[] = {
#include "ops/delta_net/delta_net_gate.wgsl.h"
};
static size_t scan_groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[0] * tg_shader_parts((size_t)a->attr.i[1], 64);
}
static size_t gate_groups(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * (size_t)a->attr.i[0];
}
/* What the convolution gives, and the states. */
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    return sizeof(float) * (tg_type_rows(&a->in_type[0]) * m.K + a->in_type[0].dim[0] * m.I * m.N);
}
#define PASS(name, count, rows_of, taps)                                                           \
    { .entry = name,                                                                               \
      .wgsl = { sizes, places, wgsl, rows, gate },                                                 \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(rows_of), TG_BIND_IN(taps), TG_BIND_OUT(0), TG_BIND_SCRATCH },          \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("rows", delta_row_groups, 0, 2), PASS("scan", scan_groups, 1, 3),
                PASS("gate", gate_groups, 0, 3) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(delta_net) = {
    .name = "delta_net",
    TG_DOC
    "gated delta net's mixer: causal convolution, states written by the delta rule, norm and "
    "gate",
    .in_names = { "z", "ba", "w", "heads" },
    .out_names = { "y" },
    .n_in = 4,
    .n_out = 1,
    .infer = infer,
    TG_REFS(delta_net, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
