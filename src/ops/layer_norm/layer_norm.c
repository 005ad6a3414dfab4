/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm - y = (x - mean) * rstd * w + b, row by row (Ba, Kiros, Hinton 2016).
 *
 *   mean = sum(x) / C     var = sum((x - mean)^2) / C     rstd = 1 / sqrt(var + eps)
 *
 *   in 0  x [..,C]     in 1  w [C]     in 2  b [C]     f[0]  eps
 *   out 0  y [..,C]    out 1  mean [rows]    out 2  rstd [rows]
 *
 * Backward needs x, w, mean and rstd. y is cheap to compute again from them. The variance is summed
 * in a second pass: sum(x^2) - C mean^2 cancels for rows that lie far from 0.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const tg_type *x = &n->in[0]->type;
    const tg_type row = tg_type_1d(TG_F32, tg_type_cols(x));
    if (!tg_want_type(g, n, 1, row) || !tg_want_type(g, n, 2, row)) return;
    n->out[0].type = *x;
    n->out[1].type = n->out[2].type = tg_type_1d(TG_F32, tg_type_rows(x));
}

static void ref(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    const TG_REAL *w = a->in[1], *b = a->in[2];
    TG_REAL *mean_out = a->out[1], *rstd_out = a->out[2];
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + r * cols;
        TG_REAL *y = (TG_REAL *)a->out[0] + r * cols;
        double sum = 0, square = 0;
        for (size_t c = 0; c < cols; c++) sum += (double)x[c];
        const double mean = sum / (double)cols;
        for (size_t c = 0; c < cols; c++) square += ((double)x[c] - mean) * ((double)x[c] - mean);
        const double rstd = 1 / tg_sqrt(square / (double)cols + (double)a->attr.f[0]);
        for (size_t c = 0; c < cols; c++)
            y[c] = (TG_REAL)(((double)x[c] - mean) * rstd * (double)w[c] + (double)b[c]);
        mean_out[r] = (TG_REAL)mean;
        rstd_out[r] = (TG_REAL)rstd;
    }
}

/* One node for all three gradients: they share the row sums. mean and rstd are saved, h is not. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    din[0] = tg_layer_norm_grad(g, n->in[0], n->in[1], &n->out[1], &n->out[2], dy[0], NULL);
    din[1] = tg_out(din[0], 1);
    din[2] = tg_out(din[0], 2);
}

/* Columns around a vector, and two scales that a naive variance or a forgotten eps would not
 * pass. */
#define CASE(rows, c)                                                                              \
    { .in = { TG_T2(F32, rows, c), TG_T1(F32, c), TG_T1(F32, c) },                                 \
      .attr = { .f = { 1e-5f } },                                                                  \
      .tol = 3e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1),
    CASE(3, 2),
    CASE(3, 15),
    CASE(5, 16),
    CASE(7, 17),
    CASE(33, 131),
    CASE(67, 769),
    { .in = { TG_T3(F32, 3, 5, 64), TG_T1(F32, 64), TG_T1(F32, 64) },
      .attr = { .f = { 1e-5f } },
      .tol = 3e-6,
      .scale = 30 },
    { .in = { TG_T1(F32, 48), TG_T1(F32, 48), TG_T1(F32, 48) },
      .attr = { .f = { 1e-3f } },
      .tol = 3e-6,
      .scale = 0.01f },
};

static const char *const wgsl[] = {
#include "ops/layer_norm/layer_norm.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0),
                            TG_BIND_OUT(1), TG_BIND_OUT(2) },
                  .groups = tg_shader_groups_rows } } },
};

TG_OP_DESC(layer_norm) = {
    .name = "layer_norm",
    TG_DOC "y = (x - mean) * rstd * w + b, row by row",
    .in_names = { "x", "w", "b" },
    .out_names = { "y", "mean", "rstd" },
    .n_in = 3,
    .n_out = 3,
    .in_place = { 1 },
    .recompute = true,
    .infer = infer,
    TG_REFS(layer_norm, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
