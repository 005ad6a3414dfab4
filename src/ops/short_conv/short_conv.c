/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv - a gated causal convolution over few positions, each column for itself (LFM2).
 *
 *   in 0  z [B,T,3C]: b, c, x side by side      in 1  w [C,L], L in 2..8      out 0  y [B,T,C]
 *
 *   y[t] = c[t] * sum over j < L of w[:,j] * u[t - L + 1 + j]      u = b * x, 0 before the first
 *
 * Backward needs z and w only. Facts: transformers' modeling_lfm2, Lfm2ShortConv.
 */
#include "ops/shader.h"
#include "ops/short_conv/conv_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    tg_type y;
    if (conv_want(g, n, 1, 3, &y)) n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->out_type[0]);
    const size_t L = a->in_type[1].dim[1];
    const TG_REAL *w = a->in[1];
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
        for (size_t c = 0; c < C; c++) {
            const TG_REAL *z = (const TG_REAL *)a->in[0] + r * 3 * C;
            double sum = 0;
            for (size_t back = 0; back < L && back <= r % T; back++)
                sum += (double)w[c * L + L - 1 - back] * conv_u(z - back * 3 * C, C, c);
            ((TG_REAL *)a->out[0])[r * C + c] = (TG_REAL)((double)z[C + c] * sum);
        }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_short_conv_grad(g, n->in[0], n->in[1], dy[0]);
    din[1] = tg_out(din[0], 1);
}

/* Sequences shorter than the taps, rows around a unit, columns around a vector. */
#define CASE(b, t, c, l) { .in = { TG_T3(F32, b, t, 3 * (c)), TG_T2(F32, c, l) }, .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 2),
    CASE(2, 2, 15, 3),
    CASE(3, 5, 16, 8),
    CASE(2, 67, 33, 3),
};

static const char *const wgsl[] = {
#include "ops/short_conv/short_conv.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(short_conv) = {
    .name = "short_conv",
    TG_DOC "gated causal convolution over a few positions, each column for itself",
    .in_names = { "z", "w" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .recompute = true,
    .infer = infer,
    TG_REFS(short_conv, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
