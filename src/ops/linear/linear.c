/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear - y = f(x) W^T + b + r, with weights as model files have them (dtype/packed.h).
 *
 *   in 0   x [..,K]                       in 1..3  W0, W1, W2 [rows,K], packed, or f16 or bf16 as
 *                                                  a file has them; W1 and W2 optional
 *   in 4   b [N] optional                 in 5     r [..,N] optional
 *   out 0  y [..,N], N = rows of W0, W1 and W2 together: | x W0^T | x W1^T | x W2^T |
 *   i[0]    how x is read (TG_READ_...):
 *             PLAIN      f(x) = x
 *             SILU       x is [.., 2K], gates and values: f(x)[k] = silu(x[k]) * x[K + k]
 *             GELU_TANH  the same with gelu
 *
 * Up to three matrices share one x, so that q|k|v are one step even where each has a type of its
 * own, as mixed files have. These weights are not trained; what is read has a gradient.
 *
 * Kernels may round f(x) to 8 bits, blocks of 32 columns sharing a scale (lever int8_activations).
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/linear/linear_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, LINEAR_X, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type y = n->in[LINEAR_X]->type;
    const size_t cols = tg_type_cols(&y), depth = n->attr.i[0] ? cols / 2 : cols;
    if (n->attr.i[0] < TG_READ_PLAIN || n->attr.i[0] > TG_READ_GELU_TANH ||
        (n->attr.i[0] && cols % 2)) {
        tg_graph_fail(g, n, TG_E_ARG, "x: want a way to read it that fits %zu columns", cols);
        return;
    }
    size_t rows = 0;
    if (!linear_want_matrices(g, n, depth, &rows)) return;
    if (!tg_want_type(g, n, LINEAR_BIAS, tg_type_1d(TG_F32, rows))) return;
    y.dim[y.n_dims - 1] = rows;
    if (!tg_want_type(g, n, LINEAR_RESIDUAL, y)) return;
    n->out[0].type = y;
}

static double read_x(const tg_args *a, const TG_REAL *x, size_t k, size_t depth) {
    const double v = (double)x[k];
    if (a->attr.i[0] == TG_READ_PLAIN) return v;
    const double gate = a->attr.i[0] == TG_READ_SILU ? act_silu(v) : act_gelu_tanh(v);
    return gate * (double)x[depth + k];
}

/* Weights are taken 64 at a time: a reference has no memory of its own. */
static double product(const tg_args *a, const part *p, size_t n, const TG_REAL *x, size_t depth) {
    float w[64];
    double sum = 0;
    for (size_t k = 0; k < depth; k += 64) {
        const size_t here = depth - k < 64 ? depth - k : 64;
        tg_matrix_to_f32_n(p->dtype, p->packing, depth, p->packed, n, k, here, w);
        for (size_t i = 0; i < here; i++) sum += read_x(a, x, k + i, depth) * (double)w[i];
    }
    return sum;
}

static void ref(const tg_args *a) {
    part parts[LINEAR_PARTS];
    const size_t n_parts = linear_parts(a, parts), depth = linear_depth(a);
    const size_t rows = tg_type_rows(&a->in_type[LINEAR_X]);
    const size_t x_cols = tg_type_cols(&a->in_type[LINEAR_X]);
    const size_t cols = tg_type_cols(&a->out_type[0]);
    const TG_REAL *bias = a->in[LINEAR_BIAS], *residual = a->in[LINEAR_RESIDUAL];
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[LINEAR_X] + r * x_cols;
        for (size_t i = 0; i < n_parts; i++) {
            for (size_t n = 0; n < parts[i].rows; n++) {
                const size_t col = parts[i].col + n;
                double y = product(a, &parts[i], n, x, depth);
                if (bias) y += (double)bias[col];
                if (residual) y += (double)residual[r * cols + col];
                ((TG_REAL *)a->out[0])[r * cols + col] = (TG_REAL)y;
            }
        }
    }
}

/* df, of what is read, then that of gates and values where these are read. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    tg_value *const *in = n->in, *x = in[LINEAR_X];
    tg_value *df = tg_linear_grad(g, dy[0], in + LINEAR_W);
    din[LINEAR_X] = n->attr.i[0] ? tg_glu_grad(g, x, df, n->attr.i[0]) : df;
    if (in[LINEAR_BIAS]) din[LINEAR_BIAS] = tg_bias_grad(g, dy[0]);
    din[LINEAR_RESIDUAL] = dy[0];
}

static double flop(const tg_args *a) {
    return 2 * (double)tg_type_elems(&a->out_type[0]) * (double)linear_depth(a);
}

/*
 * x is what 8 bits can say without loss: whole numbers with a 127 in each block, so that kernels
 * that round it are held to the tolerance of the others. Gates are then so large that they let all
 * or nothing through; floats have normals for gates.
 */
static void prepare(const tg_args *a) {
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[LINEAR_X];
    for (int k = 0; k < LINEAR_PARTS && a->in[LINEAR_W + k]; k++) linear_fill_packed(a, k);
    const tg_packing p = a->in_type[LINEAR_W].layout;
    if (!tg_packing_is_integer(p)) return;
    const size_t n = tg_type_elems(&a->in_type[LINEAR_X]), depth = linear_depth(a);
    const bool large = !a->attr.i[0] && linear_small_bytes(p) > 0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i] * 40;
        x[i] = (TG_REAL)tg_floor(v > 127 ? 127 : v < -127 ? -127 : v);
        if (i % 32 == 5 || (large && i % depth < 32)) x[i] = 127;
        if (a->attr.i[0] && i % (2 * depth) < depth) x[i] = i % 8 == 3 ? -90 : 64;
    }
}

#define CASE(p, m, n, k, tol_)                                                                     \
    { .in = { TG_T2(F32, m, k), MATRIX(p, n, k) }, .prepare = prepare, .tol = (tol_) }
#define ROWS_CASE(p, m, n, k, tol_)                                                                \
    { .in = { TG_T2(F32, m, k), ROWS(p, n, k) }, .prepare = prepare, .tol = (tol_) }
#define GATED(p, m, n, k, read, tol_)                                                              \
    { .in = { TG_T2(F32, m, 2 * (k)), MATRIX(p, n, k) },                                           \
      .attr = { .i = { TG_READ_##read } },                                                         \
      .prepare = prepare,                                                                          \
      .tol = (tol_) }
static const tg_case cases[] = {
    CASE(F32, 1, 1, 1, 1e-5),
    CASE(F32, 3, 17, 13, 1e-5),
    CASE(F32, 14, 33, 67, 2e-5),
    CASE(F16, 2, 16, 31, 1e-5),
    CASE(F16, 13, 40, 64, 1e-5),
    CASE(BF16, 1, 31, 48, 1e-5),
    CASE(C4, 1, 16, 32, 1e-5),
    CASE(C4, 5, 35, 96, 1e-5),
    CASE(M4, 1, 48, 64, 1e-5),
    CASE(M4, 1, 576, 576, 2e-5),
    CASE(M4, 29, 31, 160, 1e-5),
    CASE(C5, 1, 16, 64, 1e-5),
    CASE(C5, 12, 33, 32, 1e-5),
    CASE(M5, 1, 17, 64, 1e-5),
    CASE(M5, 7, 16, 96, 1e-5),
    CASE(C8, 1, 1, 32, 2e-5),
    CASE(C8, 1, 100, 96, 2e-5),
    CASE(C8, 131, 18, 64, 5e-5),
    CASE(K4, 1, 16, 256, 2e-5),
    CASE(K4, 13, 33, 512, 5e-5),
    CASE(S8, 1, 32, 64, 2e-5),
    CASE(S8, 25, 19, 96, 5e-5),
    { .in = { TG_T3(F32, 2, 2, 64), MATRIX(M4, 33, 64), MATRIX(C8, 16, 64), MATRIX(F32, 5, 64),
              TG_T1(F32, 54), TG_T3(F32, 2, 2, 54) },
      .prepare = prepare,
      .tol = 2e-5 },
    { .in = { TG_T2(F32, 37, 96), MATRIX(C5, 16, 96), MATRIX(S8, 17, 96), TG_ABSENT, TG_ABSENT,
              TG_T2(F32, 37, 33) },
      .prepare = prepare,
      .tol = 1e-4 },
    GATED(F32, 3, 17, 20, SILU, 1e-5),
    GATED(F32, 15, 16, 32, GELU_TANH, 1e-5),
    GATED(M4, 1, 33, 64, SILU, 2e-5),
    GATED(C8, 17, 20, 96, GELU_TANH, 5e-5),
    ROWS_CASE(F16, 1, 40, 64, 1e-5),
    ROWS_CASE(F16, 3, 17, 31, 1e-5),
    ROWS_CASE(F16, 13, 35, 39, 1e-5),
    ROWS_CASE(BF16, 4, 31, 48, 1e-5),
    ROWS_CASE(BF16, 14, 18, 7, 1e-5),
};

TG_OP_DESC(linear) = {
    .name = "linear",
    .doc = "y = f(x) W^T + b + r, W packed as model files have it",
    .in_names = { "x", "w0", "w1", "w2", "bias", "residual" },
    .out_names = { "y" },
    .n_in = 6,
    .n_in_optional = 4,
    .n_out = 1,
    .reads_packed = 7 << LINEAR_W,
    .cpu_only = true,
    .infer = infer,
    TG_REFS(linear, ref),
    .grad = grad,
    .flop = flop,
    TG_CASES(cases),
};
