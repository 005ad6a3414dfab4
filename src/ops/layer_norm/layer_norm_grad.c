/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm_grad - the gradients of layer_norm, and the gradient that comes around the block.
 *
 *   h = (x - mean) * rstd     e = dy * w
 *   dx = res + rstd * (e - sum(e) / C - h * sum(e * h) / C)      sums over a row
 *   dw = sum of dy * h over rows      db = sum of dy over rows
 *
 *   in 0  x [..,C]   in 1  w [C]   in 2  mean [rows]   in 3  rstd [rows]   in 4  dy [..,C]
 *   in 5  res [..,C], optional: added to dx last
 *   out 0  dx [..,C]   out 1  dw [C]   out 2  db [C]; 1 and 2 accumulate, the old value added last
 */
#include "ops/build.h"
#include "ops/fusing.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const tg_type x = n->in[0]->type;
    const tg_type row = tg_type_1d(TG_F32, tg_type_cols(&x));
    const tg_type column = tg_type_1d(TG_F32, tg_type_rows(&x));
    if (!tg_want_type(g, n, 1, row) || !tg_want_type(g, n, 2, column) ||
        !tg_want_type(g, n, 3, column) || !tg_want_type(g, n, 4, x) || !tg_want_type(g, n, 5, x))
        return;
    n->out[0].type = x;
    n->out[1].type = n->out[2].type = row;
}

/* dw and db of all columns. Comes before dx, which may lie where dy is. */
static void ref_columns(const tg_args *a, size_t rows, size_t cols) {
    const TG_REAL *x = a->in[0], *mean = a->in[2], *rstd = a->in[3], *dy = a->in[4];
    TG_REAL *dw = a->out[1], *db = a->out[2];
    for (size_t c = 0; c < cols; c++) {
        double sum_w = 0, sum_b = 0;
        for (size_t r = 0; r < rows; r++) {
            const double d = (double)dy[r * cols + c];
            sum_w += d * ((double)x[r * cols + c] - (double)mean[r]) * (double)rstd[r];
            sum_b += d;
        }
        dw[c] = (TG_REAL)(a->acc & 2 ? (double)dw[c] + sum_w : sum_w);
        db[c] = (TG_REAL)(a->acc & 4 ? (double)db[c] + sum_b : sum_b);
    }
}

static void ref(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    const TG_REAL *w = a->in[1], *res = a->in[5];
    ref_columns(a, rows, cols);
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + r * cols;
        const TG_REAL *dy = (const TG_REAL *)a->in[4] + r * cols;
        TG_REAL *dx = (TG_REAL *)a->out[0] + r * cols;
        const double mean = (double)((const TG_REAL *)a->in[2])[r];
        const double rstd = (double)((const TG_REAL *)a->in[3])[r];
        double sum_e = 0, sum_eh = 0;
        for (size_t c = 0; c < cols; c++) {
            const double e = (double)dy[c] * (double)w[c];
            sum_e += e;
            sum_eh += e * ((double)x[c] - mean) * rstd;
        }
        sum_e /= (double)cols;
        sum_eh /= (double)cols;
        for (size_t c = 0; c < cols; c++) {
            const double h = ((double)x[c] - mean) * rstd;
            const double d = rstd * ((double)dy[c] * (double)w[c] - sum_e - h * sum_eh);
            dx[c] = (TG_REAL)(res ? (double)res[r * cols + c] + d : d);
        }
    }
}

static bool fuse(tg_graph *g, tg_node *n) { return tg_fuse_residual(g, n, 5); }

#define CASE(rows, c, res, add)                                                                    \
    { .in = { TG_T2(F32, rows, c), TG_T1(F32, c), TG_T1(F32, rows), TG_T1(F32, rows),              \
              TG_T2(F32, rows, c), res },                                                          \
      .positive = 1 << 3,                                                                          \
      .tol = 1e-5,                                                                                 \
      .acc = (add) }
#define RES(rows, c) TG_T2(F32, rows, c)
TG_CASE_TABLE cases[] = {
    CASE(1, 1, TG_ABSENT, 0),
    CASE(3, 2, RES(3, 2), 0),
    CASE(3, 15, RES(3, 15), 6),
    CASE(5, 16, TG_ABSENT, 2),
    CASE(7, 17, RES(7, 17), 4),
    CASE(31, 64, TG_ABSENT, 6),
    CASE(32, 33, RES(32, 33), 0),
    CASE(33, 131, RES(33, 131), 0),
    CASE(131, 80, TG_ABSENT, 0),
    CASE(101, 769, RES(101, 769), 6),
    { .in = { TG_T3(F32, 3, 5, 64), TG_T1(F32, 64), TG_T1(F32, 15), TG_T1(F32, 15),
              TG_T3(F32, 3, 5, 64), TG_ABSENT },
      .positive = 1 << 3,
      .tol = 1e-5 },
};

static const char *const wgsl[] = {
#include "ops/layer_norm/layer_norm_grad.wgsl.h"
};
static const char *const columns[] = {
#include "ops/layer_norm/layer_norm_grad_w.wgsl.h"
};
static size_t part_groups(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS) *
           tg_shader_parts(tg_type_cols(&a->in_type[0]), TG_SHADER_COLS);
}
static size_t total_groups(const tg_args *a) {
    return tg_shader_parts(tg_type_cols(&a->in_type[0]), TG_SHADER_COLS);
}
static size_t partial_bytes(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS) *
           tg_type_cols(&a->in_type[0]) * 2 * sizeof(float);
}

static size_t main_groups(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), 4) + part_groups(a);
}

static const tg_shader shaders[] = {
    { .name = "rows and columns",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_IN(4), TG_BIND_IN(5), TG_BIND_OUT(0), TG_BIND_SCRATCH },
                  .groups = main_groups },
                { .entry = "total",
                  .wgsl = { columns },
                  .bind = { TG_BIND_OUT(1), TG_BIND_OUT(2), TG_BIND_SCRATCH },
                  .groups = total_groups } },
      .scratch_bytes = partial_bytes },
};

TG_OP_DESC(layer_norm_grad) = {
    .name = "layer_norm_grad",
    TG_DOC "gradients of layer_norm, plus the gradient around it",
    .in_names = { "x", "w", "mean", "rstd", "dy", "res" },
    .out_names = { "dx", "dw", "db" },
    .n_in = 6,
    .n_in_optional = 1,
    .n_out = 3,
    .accumulates = 2 | 4,
    .in_place = { 5 },
    .infer = infer,
    TG_REFS(layer_norm_grad, ref),
    TG_SHADERS(shaders),
    .fuse = fuse,
    TG_CASES(cases),
};
