/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_matmul - y = rms_norm(a) b^T + bias: an RMS norm inside the product that follows it.
 *
 *   in 0  a [..,K]      in 1  b [N,K]      in 2  bias [N] optional      in 3  gain [K]
 *   in 4, 5  two more matrices of K columns, optional: b is the rows of all, as in matmul
 *   out 0  y [..,N]     f[0] eps
 *
 *   y[j] = sum over k of a[k] gain[k] b[j,k] / sqrt(mean(a^2) + eps)  + bias[j]
 *
 * matmul takes the norm in (lever fused_decode) where a token is written: a dispatch costs a GPU
 * more than the norm of a row, so that every workgroup of the product finds the scale itself. It is
 * for plans of a GPU that answer, and has no gradient.
 *
 * As the scale is one number a row, it can come last: y[j] = scale * sum of a gain b. The threads
 * of a workgroup have read the whole row once they have its products, so they sum its squares on
 * the way, and none waits for the norm (norm_matmul.wgsl).
 *
 *     rms_norm    a ----> x        |
 *     matmul             x, b ---> y      two dispatches, and x through memory
 *     norm_matmul a, gain, b ----> y      one
 *
 * Three ways to the same formula: matmul_one_row.wgsl for weights of four bits, which may round a
 * gain to 8 bits (lever int8_activations), matmul_packed_one.wgsl for all others, and
 * matmul_phase.wgsl as a phase of a whole plan in one dispatch. absorb_norm in matmul.c says when
 * the op is made; matmul_operands.h has the numbers of the inputs.
 */
#include "base/math.h"
#include "ops/matmul/matmul_grid.h"
#include "ops/matmul/matmul_reference.h"
#include "ops/matmul/matmul_rules.h"
#include "ops/matmul/packed/matmul_one_row.h"
#include "ops/packed_case.h"

/* Columns are a multiple of 4, since the shaders read a and gain in fours; absorb_norm leaves other
 * products alone. gain comes behind bias, which may be absent, so that the table of ops has to
 * count it among the optional inputs: here it is wanted. All matrices have the columns of the first
 * one. */
static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, MATMUL_A, TG_F32, 1, TG_MAX_DIMS) || !matmul_want_weights(g, n)) return;
    const size_t cols = tg_type_cols(&n->in[MATMUL_A]->type);
    tg_type in[MATMUL_N_IN] = { 0 };
    for (int j = 0; j < MATMUL_N_IN; j++)
        if (n->in[j]) in[j] = n->in[j]->type;
    if (in[MATMUL_B].dim[1] != cols || cols % 4 != 0) {
        char text[TG_TYPE_TEXT_BYTES];
        tg_graph_fail(g, n, TG_E_SHAPE, "b: want %zu columns, a multiple of 4, have %s", cols,
                      tg_type_text(&in[MATMUL_B], text));
        return;
    }
    if (!n->in[NORM_MATMUL_GAIN]) {
        tg_graph_fail(g, n, TG_E_ARG, "gain: want f32 [%zu], have none", cols);
        return;
    }
    const size_t rows = matmul_rows_of_b(in);
    if (!tg_want_type(g, n, NORM_MATMUL_GAIN, tg_type_1d(TG_F32, cols)) ||
        !tg_want_type(g, n, MATMUL_BIAS, tg_type_1d(TG_F32, rows)))
        return;
    n->out[0].type = in[MATMUL_A];
    n->out[0].type.dim[in[MATMUL_A].n_dims - 1] = rows;
}

/* Sums are doubles, and b is unpacked element by element. Here the scale comes first, as the
 * formula has it; shaders, which have it last, are held against this. */
static void ref(const tg_args *args) {
    const size_t m = tg_type_rows(&args->in_type[MATMUL_A]);
    const size_t n = tg_type_cols(&args->out_type[0]);
    const matmul_operand b = matmul_operand_of(args);
    const TG_REAL *gain = args->in[NORM_MATMUL_GAIN], *bias = args->in[MATMUL_BIAS];
    for (size_t i = 0; i < m; i++) {
        const TG_REAL *a = (const TG_REAL *)args->in[MATMUL_A] + i * b.cols;
        double square = 0;
        for (size_t k = 0; k < b.cols; k++) square += (double)a[k] * (double)a[k];
        const double scale = 1 / tg_sqrt(square / (double)b.cols + (double)args->attr.f[0]);
        for (size_t j = 0; j < n; j++) {
            double sum = 0;
            for (size_t k = 0; k < b.cols; k++)
                sum += (double)a[k] * scale * (double)gain[k] * matmul_b_at(&b, j, k);
            if (bias) sum += (double)bias[j];
            ((TG_REAL *)args->out[0])[i * n + j] = (TG_REAL)sum;
        }
    }
}

/* Of the product alone: the norm is K of 2 N K. */
static double flop(const tg_args *args) {
    return 2.0 * (double)tg_type_elems(&args->out_type[0]) *
           (double)tg_type_cols(&args->in_type[MATMUL_A]);
}

/* Random floats are no weights of a packed layout, so each matrix is filled as its own has it, and
 * each by another stream, or three matrices of a case would begin alike. With whole-number weights
 * a gain is what 8 bits can say without loss (lever int8_activations): whole numbers with a 127 in
 * each block, times a power of two of the block. */
static void prepare(const tg_args *a) {
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[MATMUL_A];
    TG_REAL *gain = (TG_REAL *)(uintptr_t)a->in[NORM_MATMUL_GAIN];
    const size_t n = tg_type_elems(&a->in_type[MATMUL_A]);
    const size_t cols = tg_type_cols(&a->in_type[MATMUL_A]);
    for (int i = 0; i < MATMUL_PARTS && a->in[matmul_b[i]]; i++)
        tg_case_fill_packed(a, matmul_b[i], (uint32_t)i);
    if (!tg_packing_is_integer(a->in_type[MATMUL_B].layout)) return;
    for (size_t k = 0; k < cols; k++) {
        const double power = k / 32 % 3 == 0 ? 0.5 : k / 32 % 3 == 1 ? 1 : 2;
        gain[k] = (TG_REAL)(k % 32 % 5 == 2 ? -power : k % 32 % 5 == 3 ? power / 2 : power);
    }
    for (size_t i = 0; i < n; i++) {
        const double v = tg_floor((double)x[i] * 20);
        x[i] = (TG_REAL)(2 * (v > 63 ? 63 : v < -63 ? -63 : v));
        if (i % cols % 32 == 5) x[i] = 127;
    }
}

/* One row, or rows one by one. Columns around a slice's turn of 32 blocks, and around the 3,072
 * (4,096 in 8 bits) that lie in a workgroup's memory at a time. Rows of b around the 8 and the 16
 * of a workgroup: less, one more, a prime. Three matrices of one layout and of different ones, the
 * last ones with a bias over all their rows. */
#define CASE_OF(b_, m, cols, alone, tol_)                                                          \
    { .in = { TG_T2(F32, m, cols), b_, TG_ABSENT, TG_T1(F32, cols) },                              \
      .attr = { .f = { 1e-5f } },                                                                  \
      .prepare = prepare,                                                                          \
      .rows_alone = (alone),                                                                       \
      .tol = (tol_) }
#define ONE(p, n, k, tol_)      CASE_OF(TG_CASE_MATRIX(p, n, k), 1, k, false, tol_)
#define ALONE(p, m, n, k, tol_) CASE_OF(TG_CASE_MATRIX(p, n, k), m, k, true, tol_)
TG_CASE_TABLE cases[] = {
    ONE(F32, 1, 4, 1e-5),
    ONE(F16, 9, 36, 1e-5),
    ONE(BF16, 17, 64, 1e-5),
    ONE(Q4X16, 8, 32, 2e-5),
    ONE(Q4MX16, 23, 576, 5e-5),
    ONE(Q5X16, 7, 1056, 5e-5),
    ONE(Q5MX16, 9, 96, 2e-5),
    ONE(Q8X16, 31, 3104, 2e-4),
    ONE(Q4KX16, 5, 3328, 2e-4),
    ONE(Q8MX16, 15, 64, 2e-5),
    CASE_OF(TG_T2(F16, 11, 3076), 1, 3076, false, 5e-5),
    ALONE(Q4MX16, 3, 17, 160, 2e-5),
    ALONE(Q8X16, 13, 8, 96, 5e-5),
    { .in = { TG_T2(F32, 1, 64), TG_CASE_MATRIX(Q4X16, 33, 64), TG_ABSENT, TG_T1(F32, 64),
              TG_CASE_MATRIX(Q4X16, 16, 64), TG_CASE_MATRIX(Q4X16, 5, 64) },
      .attr = { .f = { 1e-5f } },
      .prepare = prepare,
      .tol = 5e-5 },
    { .in = { TG_T2(F32, 1, 512), TG_CASE_MATRIX(Q4X16, 17, 512), TG_ABSENT, TG_T1(F32, 512),
              TG_CASE_MATRIX(Q4KX16, 16, 512), TG_CASE_MATRIX(Q4MX16, 3, 512) },
      .attr = { .f = { 1e-5f } },
      .prepare = prepare,
      .tol = 5e-5 },
    { .in = { TG_T3(F32, 1, 2, 64), TG_CASE_MATRIX(Q4MX16, 33, 64), TG_T1(F32, 54), TG_T1(F32, 64),
              TG_CASE_MATRIX(Q8X16, 16, 64), TG_CASE_MATRIX(F32, 5, 64) },
      .attr = { .f = { 1e-2f } },
      .prepare = prepare,
      .rows_alone = true,
      .tol = 5e-5 },
    ONE(Q4X16, 9, 4128, 2e-4),
    ONE(Q4KX16, 5, 4352, 2e-4),
    /* 565 groups of 16 rows: workgroups that have two, of which some are of two matrices */
    { .in = { TG_T2(F32, 1, 64), TG_CASE_MATRIX(Q4X16, 5000, 64), TG_ABSENT, TG_T1(F32, 64),
              TG_CASE_MATRIX(Q4X16, 4000, 64), TG_CASE_MATRIX(Q4X16, 17, 64) },
      .attr = { .f = { 1e-5f } },
      .prepare = prepare,
      .tol = 5e-5 },
};

/* Pieces of the shaders: wgsl says how a is read and what becomes of a sum, the others are
 * matmul's. They are put one behind the other as the arrays below list them. */
static const char *const wgsl[] = {
#include "ops/norm_matmul/norm_matmul.wgsl.h"
};
static const char *const weights[] = {
#include "ops/matmul/shaders/packed/matmul_weights.wgsl.h"
};
static const char *const words[] = {
#include "ops/matmul/shaders/packed/matmul_words.wgsl.h"
};
static const char *const packed_text[] = {
#include "ops/packed.wgsl.h"
};
static const char *const packed_rows[] = {
#include "ops/packed_rows.wgsl.h"
};
static const char *const packed_one[] = {
#include "ops/matmul/shaders/packed/matmul_packed_one.wgsl.h"
};
/* rows_alone: each row is to have the bits that it has by itself, so it gets workgroups of its own.
 * Other products of several rows are no case for this op: absorb_norm makes none of them. */
static bool fits(const tg_args *a) {
    return tg_type_rows(&a->in_type[MATMUL_A]) == 1 || a->rows_alone;
}
/* Workgroups: across the rows of the matrices, then down the rows of a. No workgroup has rows of
 * two matrices, so each matrix is rounded up by itself. */
static size_t groups(const tg_args *a) {
    return tg_packed_across(a, TG_PACKED_ONE_ROWS) * tg_type_rows(&a->in_type[MATMUL_A]);
}
static bool fits_nibbles(const tg_args *a) { return fits(a) && tg_packed_is_nibbles(a); }
/* matmul_one_row.h */
#define ONE_ROW_TEXTS wgsl, four_words, weights, packed_text
static const tg_shader shaders[] = {
    NIBBLES_FLOATS,
    { .name = "packed, rows one by one",
      .fits = fits,
      .word = tg_packed_word,
      .pass = { { .entry = "main",
                  .wgsl = { wgsl, words, weights, packed_text, packed_rows, packed_one },
                  .fours = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_IN(4), TG_BIND_IN(5), TG_BIND_OUT(0) },
                  .groups = groups } } },
    NIBBLES_ROUNDED,
};

/* In one dispatch with all other steps (backend/webgpu/single/single.h). There a is one row,
 * always. The bits say that inputs 1 to 5, b to b2, are states: weights, which are bound, and no
 * values of the plan. gain is one of them, in the place where matmul has a residual. */
static bool fits_grid(const tg_args *a) { return tg_type_rows(&a->in_type[MATMUL_A]) == 1; }
static uint32_t grid_word(const tg_args *a) { return tg_packed_word(a) | MATMUL_GRID_NORM; }
static const tg_grid grid = {
    .fits = fits_grid,
    .word = grid_word,
    .share = matmul_grid_share,
    .phase = { MATMUL_GRID_PHASE(1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5) },
};

TG_OP_DESC(norm_matmul) = {
    .name = "norm_matmul",
    TG_DOC "y = rms_norm(a) b^T + bias, b weights of files: up to three packed matrices",
    .in_names = { "a", "b", "bias", "gain", "b1", "b2" },
    .out_names = { "y" },
    .n_in = NORM_MATMUL_N_IN,
    .n_in_optional = 4,
    .reads_packed = 1 << MATMUL_B | 1 << MATMUL_B1 | 1 << MATMUL_B2,
    .n_out = 1,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(norm_matmul, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    .flop = flop,
    TG_CASES(cases),
};
