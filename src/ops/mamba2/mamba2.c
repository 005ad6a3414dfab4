/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2 - the mixer of Mamba2 between its two products (Dao and Gu 2024): each head has a state S
 * [P,N], which a row decays, writes to, and reads.
 *
 *   in 0  z [B,T,2I+2GN+H]: gates, x, B, C, steps     in 1  w [K,L]      in 2  bias [K]
 *   in 3  heads [3H]: b, a, d                         out 0 y [B,T,I]    K = I + 2GN, I = HP
 *
 *   x, B, C = silu(bias + causal convolution of their columns by w)
 *   s = softplus(step + b)      S = exp(-exp(a) s) S + s x B^T      y = silu(gate) * (S C + d x)
 *
 * i[0] H, i[1] P, i[2] G, i[3] N. Heads [g H/G, (g+1) H/G) share B and C of group g. Backward needs
 * the inputs alone. The reference is the dual form, which needs no state: a row's output is a sum
 * over the rows before it.
 */
#include "ops/mamba2/mamba2_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (mamba_want(g, n, 1, 3, &m)) n->out[0].type = mamba_y(&n->in[0]->type, &m);
}

/* Row z, which is t in its sequence, of head h at column p. */
static double ref_at(const tg_args *a, const mamba *m, const TG_REAL *z, size_t t, size_t h,
                     size_t p) {
    const TG_REAL *w = a->in[1], *bias = a->in[2], *heads = a->in[3];
    const size_t b = mamba_b(m, h), x = h * m->P + p;
    double sum = (double)heads[2 * m->H + h] * act_silu(mamba_conv(m, z, t, w, bias, x));
    double kept = 1;
    for (size_t back = 0; back <= t; back++) {
        const TG_REAL *from = z - back * m->Z;
        const double step = mamba_step(m, from, heads, h);
        double both = 0;
        for (size_t n = 0; n < m->N; n++)
            both += act_silu(mamba_conv(m, from, t - back, w, bias, b + n)) *
                    act_silu(mamba_conv(m, z, t, w, bias, b + m->G * m->N + n));
        sum += kept * step * both * act_silu(mamba_conv(m, from, t - back, w, bias, x));
        kept *= tg_exp(step * mamba_decay(m, heads, h));
    }
    return sum * act_silu((double)z[x]);
}

static void ref(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    const size_t T = a->in_type[0].dim[1];
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
        for (size_t i = 0; i < m.I; i++)
            ((TG_REAL *)a->out[0])[r * m.I + i] = (TG_REAL)ref_at(
                a, &m, (const TG_REAL *)a->in[0] + r * m.Z, r % T, i / m.P, i % m.P);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_mamba2_grad(g, n->in[0], n->in[1], n->in[2], n->in[3], dy[0], &n->attr);
    for (int k = 1; k < 4; k++) din[k] = tg_out(din[0], k);
}

/* Sequences shorter than the taps; heads and states around a vector; groups of one and of more. */
#define CASE(b, t, h, p, g, n, l)                                                                  \
    { .in = { TG_T3(F32, b, t, 2 * (h) * (p) + 2 * (g) * (n) + (h)),                               \
              TG_T2(F32, (h) * (p) + 2 * (g) * (n), l), TG_T1(F32, (h) * (p) + 2 * (g) * (n)),     \
              TG_T1(F32, 3 * (h)) },                                                               \
      .attr = { .i = { h, p, g, n } },                                                             \
      .tol = 1e-5 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 2),
    CASE(2, 3, 2, 3, 1, 2, 4),
    CASE(1, 9, 4, 2, 2, 3, 3),
    CASE(1, 19, 2, 17, 1, 16, 4),
};

static const char *const common[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/mamba2/mamba2.wgsl.h"
};
static size_t conv_groups(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return tg_shader_parts(tg_type_rows(&a->in_type[0]) * m.K, TG_SHADER_ELEMS);
}
static size_t scan_groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[0] * tg_shader_parts((size_t)a->attr.i[1], 64);
}
/* What the convolution gives, and the states. */
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = mamba_sizes(a, 1);
    return sizeof(float) * (tg_type_rows(&a->in_type[0]) * m.K + a->in_type[0].dim[0] * m.I * m.N);
}
#define PASS(name, count)                                                                          \
    { .entry = name,                                                                               \
      .wgsl = { common, wgsl },                                                                    \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0),        \
                TG_BIND_SCRATCH },                                                                 \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("conv", conv_groups), PASS("scan", scan_groups) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(mamba2) = {
    .name = "mamba2",
    TG_DOC "Mamba2's mixer: causal convolution, selective state space of heads and groups, gate",
    .in_names = { "z", "w", "bias", "heads" },
    .out_names = { "y" },
    .n_in = 4,
    .n_out = 1,
    .infer = infer,
    TG_REFS(mamba2, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
