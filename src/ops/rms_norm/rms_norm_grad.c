/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_norm_grad - the gradients of rms_norm, and the gradient that comes around the block. Of
 * groups (i[0], see there) a row below is one.
 *
 *   s = 1 / sqrt(mean(x^2) + eps)     h = x * s     e = dy * w
 *   dx = res + s * (e - h * sum(e * h) / C)         the sum over a row
 *   dw = sum of dy * h over rows
 *
 *   in 0  x [..,C]   in 1  w [C]   in 2  dy [..,C]
 *   in 3  res [..,C], optional: added to dx last
 *   out 0  dx [..,C]   out 1  dw [C], which accumulates, the old value added last    f[0] eps
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/fusing.h"
#include "ops/rms_norm/rms_groups.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const tg_type x = n->in[0]->type, row = tg_type_1d(TG_F32, tg_type_cols(&x));
    if (!tg_want_type(g, n, 1, row) || !tg_want_type(g, n, 2, x) || !tg_want_type(g, n, 3, x) ||
        !rms_want_groups(g, n))
        return;
    n->out[0].type = x;
    n->out[1].type = row;
}

static double scale_of(const TG_REAL *x, size_t cols, double eps) {
    double sum = 0;
    for (size_t c = 0; c < cols; c++) sum += (double)x[c] * (double)x[c];
    return 1 / tg_sqrt(sum / (double)cols + eps);
}

/* Row by row dw first, then dx, which may lie where dy is. dw grows in its own memory: a reference
 * has no other, and the double one loses nothing. */
static void ref(const tg_args *a) {
    const size_t groups = rms_groups(&a->attr), cols = rms_cols(a);
    const TG_REAL *x = a->in[0], *dy = a->in[2], *res = a->in[3];
    TG_REAL *dx = a->out[0];
    const double eps = (double)a->attr.f[0];
    for (size_t c = 0; c < groups * cols && !(a->acc & 2); c++) ((TG_REAL *)a->out[1])[c] = 0;
    for (size_t r = 0; r < groups * tg_type_rows(&a->in_type[0]); r++) {
        const size_t at = r * cols, first = r % groups * cols;
        const TG_REAL *w = (const TG_REAL *)a->in[1] + first;
        TG_REAL *dw = (TG_REAL *)a->out[1] + first;
        const double s = scale_of(x + at, cols, eps);
        double sum = 0;
        for (size_t c = 0; c < cols; c++) {
            const double h = (double)x[at + c] * s;
            sum += (double)dy[at + c] * (double)w[c] * h;
            dw[c] = (TG_REAL)((double)dw[c] + (double)dy[at + c] * h);
        }
        sum /= (double)cols;
        for (size_t c = 0; c < cols; c++) {
            const double h = (double)x[at + c] * s;
            const double d = s * ((double)dy[at + c] * (double)w[c] - h * sum);
            dx[at + c] = (TG_REAL)(res ? (double)res[at + c] + d : d);
        }
    }
}

static bool fuse(tg_graph *g, tg_node *n) { return tg_fuse_residual(g, n, 3); }

#define RES(rows, c)            TG_T2(F32, rows, c)
#define CASE(rows, c, res, add) GROUPED(rows, c, 0, add, res)
#define GROUPED(rows, c, groups, add, ...)                                                         \
    { .in = { TG_T2(F32, rows, c), TG_T1(F32, c), TG_T2(F32, rows, c), __VA_ARGS__ },              \
      .attr = { .i = { groups }, .f = { 1e-5f } },                                                 \
      .tol = 1e-5,                                                                                 \
      .acc = (add) }
/* Rows around a chunk of 32 and a block of 4, columns around a vector; and rows so small that eps
 * decides. */
TG_CASE_TABLE cases[] = {
    CASE(1, 1, TG_ABSENT, 0),
    CASE(3, 2, RES(3, 2), 0),
    CASE(3, 15, RES(3, 15), 2),
    CASE(5, 16, TG_ABSENT, 2),
    CASE(7, 17, RES(7, 17), 0),
    CASE(31, 64, TG_ABSENT, 2),
    CASE(32, 33, RES(32, 33), 0),
    CASE(33, 131, RES(33, 131), 0),
    CASE(131, 80, TG_ABSENT, 0),
    CASE(101, 769, RES(101, 769), 2),
    { .in = { TG_T3(F32, 3, 5, 64), TG_T1(F32, 64), TG_T3(F32, 3, 5, 64) },
      .attr = { .f = { 1e-3f } },
      .scale = 0.01f,
      .tol = 1e-5 },
    GROUPED(33, 34, 2, 0, RES(33, 34)),
    GROUPED(5, 24, 3, 2, TG_ABSENT),
    GROUPED(70, 6, 6, 0, TG_ABSENT),
};

static const char *const wgsl[] = {
#include "ops/rms_norm/rms_norm_grad.wgsl.h"
};
static size_t across(const tg_args *a) {
    return tg_shader_parts(tg_type_cols(&a->in_type[0]), TG_SHADER_COLS);
}
static size_t row_parts(const tg_args *a) {
    return tg_shader_parts(tg_type_rows(&a->in_type[0]), TG_SHADER_ROWS);
}
static size_t by_row_groups(const tg_args *a) {
    return tg_shader_groups_rows(a) * rms_groups(&a->attr);
}
static size_t part_groups(const tg_args *a) { return row_parts(a) * across(a); }
static size_t scratch_bytes(const tg_args *a) {
    const size_t cols = tg_type_cols(&a->in_type[0]);
    const size_t rows = tg_type_rows(&a->in_type[0]) * rms_groups(&a->attr);
    return (rows + row_parts(a) * cols) * sizeof(float);
}

#define PASS(name, count)                                                                          \
    { .entry = name,                                                                               \
      .wgsl = { wgsl },                                                                            \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0),        \
                TG_BIND_OUT(1), TG_BIND_SCRATCH },                                                 \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "chunks",
      .pass = { PASS("by_row", by_row_groups), PASS("parts", part_groups), PASS("total", across) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(rms_norm_grad) = {
    .name = "rms_norm_grad",
    TG_DOC "gradients of rms_norm, plus the gradient around it",
    .in_names = { "x", "w", "dy", "res" },
    .out_names = { "dx", "dw" },
    .n_in = 4,
    .n_in_optional = 1,
    .n_out = 2,
    .accumulates = 2,
    .in_place = { 3 },
    .infer = infer,
    TG_REFS(rms_norm_grad, ref),
    TG_SHADERS(shaders),
    .fuse = fuse,
    TG_CASES(cases),
};
