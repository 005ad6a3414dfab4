/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bias_grad - db[c] = sum over rows of dy[row, c]: the gradient of a bias.
 *
 *   in 0  dy [.., C]     out 0  db [C] (accumulates)
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    n->out[0].type = tg_type_1d(TG_F32, tg_type_cols(&n->in[0]->type));
}

/* Column by column, which is the slow way through memory and the plain one: a sum in double over
 * rising rows, to which the kernel's order of chunks is compared. */
static void ref(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[0]), C = tg_type_cols(&a->in_type[0]);
    const TG_REAL *dy = a->in[0];
    TG_REAL *db = a->out[0];
    for (size_t c = 0; c < C; c++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++) sum += (double)dy[r * C + c];
        db[c] = (TG_REAL)(a->acc & 1 ? (double)db[c] + sum : sum);
    }
}

/* Each shape twice, with and without accumulation; rows around a chunk of 128, columns around 16
 * and 64. The tolerance grows with the number of rows that a float sum has. */
#define CASE(rows, C, t)                                                                           \
    { .in = { TG_T2(F32, rows, C) }, .tol = (t) }, {                                               \
        .in = { TG_T2(F32, rows, C) }, .acc = 1, .tol = (t)                                        \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1e-6),     CASE(1, 17, 1e-6),    CASE(3, 15, 1e-6),    CASE(31, 16, 3e-6),
    CASE(32, 33, 3e-6),   CASE(33, 96, 3e-6),   CASE(127, 131, 1e-5), CASE(128, 64, 1e-5),
    CASE(129, 400, 1e-5), CASE(1031, 37, 2e-5),
};

static const char *const wgsl[] = {
#include "ops/bias_grad/bias_grad.wgsl.h"
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
           tg_type_cols(&a->in_type[0]) * sizeof(float);
}

#define BIND { TG_BIND_IN(0), TG_BIND_OUT(0), TG_BIND_SCRATCH }
static const tg_shader shaders[] = {
    { .name = "columns",
      .pass = { { .entry = "parts", .wgsl = { wgsl }, .bind = BIND, .groups = part_groups },
                { .entry = "total", .wgsl = { wgsl }, .bind = BIND, .groups = total_groups } },
      .scratch_bytes = partial_bytes },
};

TG_OP_DESC(bias_grad) = {
    .name = "bias_grad",
    TG_DOC "column sums, the gradient of a bias",
    .in_names = { "dy" },
    .out_names = { "db" },
    .n_in = 1,
    .n_out = 1,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(bias_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
