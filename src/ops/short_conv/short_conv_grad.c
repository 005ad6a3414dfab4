/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv_grad - the gradients of short_conv, s being its sum and d = dy * c:
 *
 *   dc[t] = dy[t] * s[t]          du[t] = sum over j < L of w[:,j] * d[t + L - 1 - j], 0 behind the
 * last db = du * x    dx = du * b    dw[:,j] = sum over sequences and t of d[t] * u[t - L + 1 + j]
 *
 *   in 0  z [B,T,3C]    in 1  w [C,L]    in 2  dy [B,T,C]
 *   out 0 dz [B,T,3C]   out 1 dw [C,L], which accumulates
 */
#include "ops/shader.h"
#include "ops/short_conv/conv_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    tg_type y;
    if (!conv_want(g, n, 1, 3, &y) || !tg_want_type(g, n, 2, y)) return;
    n->out[0].type = n->in[0]->type;
    n->out[1].type = n->in[1]->type;
}

/* Row r, which is t in its sequence, at column c. */
static void ref_at(const tg_args *a, size_t r, size_t t, size_t c) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->in_type[2]);
    const size_t L = a->in_type[1].dim[1];
    const TG_REAL *z = (const TG_REAL *)a->in[0] + r * 3 * C,
                  *w = (const TG_REAL *)a->in[1] + c * L;
    const TG_REAL *dy = (const TG_REAL *)a->in[2] + r * C;
    TG_REAL *dz = (TG_REAL *)a->out[0] + r * 3 * C, *dw = (TG_REAL *)a->out[1] + c * L;
    double s = 0, du = 0;
    for (size_t k = 0; k < L; k++) {
        if (k <= t) {
            const double u = conv_u(z - k * 3 * C, C, c);
            s += (double)w[L - 1 - k] * u;
            dw[L - 1 - k] = (TG_REAL)((double)dw[L - 1 - k] + (double)dy[c] * (double)z[C + c] * u);
        }
        if (t + k < T)
            du += (double)w[L - 1 - k] * (double)dy[k * C + c] * (double)z[(3 * k + 1) * C + c];
    }
    dz[c] = (TG_REAL)(du * (double)z[2 * C + c]);
    dz[C + c] = (TG_REAL)((double)dy[c] * s);
    dz[2 * C + c] = (TG_REAL)(du * (double)z[c]);
}

static void ref(const tg_args *a) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->in_type[2]);
    for (size_t i = 0; i < tg_type_elems(&a->in_type[1]) && !(a->acc & 2); i++)
        ((TG_REAL *)a->out[1])[i] = 0;
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
        for (size_t c = 0; c < C; c++) ref_at(a, r, r % T, c);
}

/* Tolerances grow with the rows that a float sum of dw has. */
#define CASE(b, t, c, l, add, bound)                                                               \
    { .in = { TG_T3(F32, b, t, 3 * (c)), TG_T2(F32, c, l), TG_T3(F32, b, t, c) },                  \
      .acc = (add),                                                                                \
      .tol = (bound) }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 2, 0, 2e-6),
    CASE(2, 2, 15, 3, 2, 4e-6),
    CASE(3, 5, 16, 8, 0, 1e-5),
    CASE(2, 67, 33, 3, 2, 2e-5),
};

static const char *const wgsl[] = {
#include "ops/short_conv/short_conv_grad.wgsl.h"
};
static size_t groups(const tg_args *a) { return tg_shader_elem_groups(&a->in_type[2]); }
static size_t total_groups(const tg_args *a) {
    return tg_shader_parts(tg_type_elems(&a->in_type[1]), TG_SHADER_COLS);
}
static size_t row_parts(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS);
}
static size_t part_groups(const tg_args *a) { return row_parts(a) * total_groups(a); }
static size_t scratch_bytes(const tg_args *a) {
    return row_parts(a) * tg_type_elems(&a->in_type[1]) * sizeof(float);
}

#define PASS(name, count)                                                                          \
    { .entry = name,                                                                               \
      .wgsl = { wgsl },                                                                            \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0), TG_BIND_OUT(1),       \
                TG_BIND_SCRATCH },                                                                 \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { PASS("rows", groups), PASS("parts", part_groups), PASS("total", total_groups) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(short_conv_grad) = {
    .name = "short_conv_grad",
    TG_DOC "gradients of short_conv with respect to its input and its taps",
    .in_names = { "z", "w", "dy" },
    .out_names = { "dz", "dw" },
    .n_in = 3,
    .n_out = 2,
    .accumulates = 2,
    .infer = infer,
    TG_REFS(short_conv_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
