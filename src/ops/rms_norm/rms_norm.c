/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_norm - y = x / sqrt(mean(x^2) + eps) * w (+ r), row by row, or group by group of its columns.
 *
 *   in 0  x [..,C]   in 1  w [C]   in 2  r [..,C] optional: what the result is added to
 *   out 0  y [..,C]    f[0] eps    i[0] groups of C/i[0] columns, each with a mean of its own; 0:
 * one
 *
 * Zhang and Sennrich 2019. Families that write (1 + w) store w so in GGUF files that this one
 * holds. Backward needs x and w: 1 / rms is cheaper to compute again than to keep.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rms_norm/rms_groups.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const tg_type x = n->in[0]->type;
    if (!tg_want_type(g, n, 1, tg_type_1d(TG_F32, tg_type_cols(&x)))) return;
    if (!tg_want_type(g, n, 2, x) || !rms_want_groups(g, n)) return;
    n->out[0].type = x;
}

static void ref(const tg_args *a) {
    const size_t groups = rms_groups(&a->attr), cols = rms_cols(a);
    for (size_t r = 0; r < groups * tg_type_rows(&a->in_type[0]); r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + r * cols;
        const TG_REAL *w = (const TG_REAL *)a->in[1] + r % groups * cols;
        const TG_REAL *residual = a->in[2] ? (const TG_REAL *)a->in[2] + r * cols : NULL;
        TG_REAL *y = (TG_REAL *)a->out[0] + r * cols;
        double sum = 0;
        for (size_t c = 0; c < cols; c++) sum += (double)x[c] * (double)x[c];
        const double scale = 1 / tg_sqrt(sum / (double)cols + (double)a->attr.f[0]);
        for (size_t c = 0; c < cols; c++) {
            const double v = (double)x[c] * scale * (double)w[c];
            y[c] = (TG_REAL)(residual ? v + (double)residual[c] : v);
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_rms_norm_grad(g, n->in[0], n->in[1], dy[0], NULL, &n->attr);
    din[1] = tg_out(din[0], 1);
    din[2] = dy[0];
}

#define CASE(rows, c) GROUPED(rows, c, 0)
#define GROUPED(rows, c, groups)                                                                   \
    { .in = { TG_T2(F32, rows, c), TG_T1(F32, c) },                                                \
      .attr = { .i = { groups }, .f = { 1e-5f } },                                                 \
      .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1),
    CASE(3, 15),
    CASE(1, 16),
    CASE(3, 17),
    CASE(2, 576),
    CASE(67, 131),
    { .in = { TG_T3(F32, 2, 5, 33), TG_T1(F32, 33), TG_T3(F32, 2, 5, 33) },
      .attr = { .f = { 1e-6f } },
      .tol = 2e-6 },
    GROUPED(3, 34, 2),
    GROUPED(5, 24, 3),
    GROUPED(2, 6, 6),
};

static const char *const wgsl[] = {
#include "ops/rms_norm/rms_norm.wgsl.h"
};
static size_t group_count(const tg_args *a) {
    return tg_shader_groups_rows(a) * rms_groups(&a->attr);
}
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0) },
                  .groups = group_count } } },
};

static const char *const phase[] = {
#include "ops/rms_norm/rms_norm_phase.wgsl.h"
};
/* A phase keeps its row in the memory of workgroups, as one. */
static bool is_one(const tg_args *a) { return rms_groups(&a->attr) == 1; }
static const tg_grid grid = {
    .fits = is_one,
    .phase = { {
        .call = "rms_norm",
        .wgsl = { phase },
        .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0) },
        .takes_row = 1,
        .states = 1 << 1,
        .gives_row = true,
    } }
};

TG_OP_DESC(rms_norm) = {
    .name = "rms_norm",
    TG_DOC "y = x / rms(x) * w (+ r), by rows or by groups of their columns",
    .in_names = { "x", "w", "residual" },
    .out_names = { "y" },
    .n_in = 3,
    .n_in_optional = 1,
    .n_out = 1,
    .in_place = { 1 },
    .recompute = true,
    .infer = infer,
    TG_REFS(rms_norm, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    .grad = grad,
    TG_CASES(cases),
};
