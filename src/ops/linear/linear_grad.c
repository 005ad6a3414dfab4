/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_grad - the gradient of linear with respect to what it reads: df = dy W.
 *
 *   in 0   dy [..,N]                      in 1..3  W0, W1, W2 as linear
 *   out 0  df [..,K]
 *
 *   df[k] = sum over n of dy[n] W[n,k], rows of all matrices numbered through
 *
 * Weights are as exact here as in files: it is for what is trained beside packed weights, or in
 * front of them. They have no gradient themselves. Where linear reads gates and values, glu_grad
 * goes on from df.
 */
#include "ops/build.h"
#include "ops/linear/linear_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    tg_type df = n->in[0]->type, dy = df;
    const size_t depth = tg_type_cols(&n->in[LINEAR_W]->type);
    size_t rows = 0;
    if (!linear_want_matrices(g, n, depth, &rows)) return;
    dy.dim[dy.n_dims - 1] = rows;
    if (!tg_want_type(g, n, 0, dy)) return;
    df.dim[df.n_dims - 1] = depth;
    n->out[0].type = df;
}

/* Columns [begin, begin + n) of a row, n <= 64. */
static void columns(const tg_args *a, const part *parts, size_t n_parts, const TG_REAL *dy,
                    size_t begin, size_t n, TG_REAL *df) {
    double sum[64] = { 0 };
    for (size_t i = 0; i < n_parts; i++) {
        for (size_t r = 0; r < parts[i].rows; r++) {
            float w[64];
            tg_matrix_to_f32_n(parts[i].dtype, parts[i].packing, tg_type_cols(&a->out_type[0]),
                               parts[i].packed, r, begin, n, w);
            for (size_t c = 0; c < n; c++) sum[c] += (double)dy[parts[i].col + r] * (double)w[c];
        }
    }
    for (size_t c = 0; c < n; c++) df[begin + c] = (TG_REAL)sum[c];
}

static void ref(const tg_args *a) {
    part parts[LINEAR_PARTS];
    const size_t n_parts = linear_parts(a, parts), depth = tg_type_cols(&a->out_type[0]);
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    for (size_t r = 0; r < rows; r++)
        for (size_t k = 0; k < depth; k += 64)
            columns(a, parts, n_parts, (const TG_REAL *)a->in[0] + r * cols, k,
                    depth - k < 64 ? depth - k : 64, (TG_REAL *)a->out[0] + r * depth);
}

static double flop(const tg_args *a) {
    return 2 * (double)tg_type_elems(&a->in_type[0]) * (double)tg_type_cols(&a->out_type[0]);
}

static void prepare(const tg_args *a) {
    for (int k = 0; k < LINEAR_PARTS && a->in[LINEAR_W + k]; k++) linear_fill_packed(a, k);
}

#define CASE(p, m, n, k, tol_)                                                                     \
    { .in = { TG_T2(F32, m, n), MATRIX(p, n, k) }, .prepare = prepare, .tol = (tol_) }
#define ROWS_CASE(p, m, n, k, tol_)                                                                \
    { .in = { TG_T2(F32, m, n), ROWS(p, n, k) }, .prepare = prepare, .tol = (tol_) }
/* Rows around the register tile of 4, those of W around a group of 16, columns around a unit of 64.
 */
static const tg_case cases[] = {
    CASE(F32, 1, 1, 1, 1e-5),
    CASE(F32, 3, 15, 63, 1e-5),
    CASE(F32, 4, 17, 64, 1e-5),
    CASE(F16, 5, 16, 65, 1e-5),
    CASE(BF16, 7, 31, 131, 1e-5),
    CASE(C4, 1, 16, 32, 1e-5),
    CASE(M4, 9, 35, 96, 2e-5),
    CASE(C5, 12, 33, 32, 1e-5),
    CASE(M5, 3, 17, 64, 1e-5),
    CASE(C8, 13, 18, 160, 5e-5),
    CASE(K4, 2, 33, 256, 2e-5),
    CASE(S8, 5, 19, 96, 5e-5),
    { .in = { TG_T3(F32, 2, 2, 54), MATRIX(M4, 33, 64), MATRIX(C8, 16, 64), MATRIX(F32, 5, 64) },
      .prepare = prepare,
      .tol = 2e-5 },
    ROWS_CASE(F16, 3, 17, 31, 1e-5),
    ROWS_CASE(BF16, 4, 31, 48, 1e-5),
};

TG_OP_DESC(linear_grad) = {
    .name = "linear_grad",
    .doc = "df = dy W, the gradient of linear with respect to what it reads, W packed",
    .in_names = { "dy", "w0", "w1", "w2" },
    .out_names = { "df" },
    .n_in = 4,
    .n_in_optional = 2,
    .n_out = 1,
    .reads_packed = 7 << LINEAR_W,
    .cpu_only = true,
    .infer = infer,
    TG_REFS(linear_grad, ref),
    .flop = flop,
    TG_CASES(cases),
};
