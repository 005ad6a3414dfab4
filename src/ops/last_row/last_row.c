/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_row - y = the last row of x: after a prompt, only the logits that follow its newest token
 * are wanted, so that the head works on one row.
 *
 *   in 0  x [T,C], of dynamic rows      out  y [1,C]
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 2, 2)) return;
    n->out[0].type = tg_type_2d(TG_F32, 1, n->in[0]->type.dim[1]);
}

static void ref(const tg_args *a) {
    const size_t rows = a->in_type[0].dim[0], C = a->in_type[0].dim[1];
    const TG_REAL *x = a->in[0];
    TG_REAL *y = a->out[0];
    for (size_t i = 0; i < C; i++) y[i] = x[(rows - 1) * C + i];
}

TG_CASE_TABLE cases[] = {
    { .in = { TG_T2(F32, 1, 1) } },
    { .in = { TG_T2(F32, 3, 17) } },
    { .in = { TG_T2(F32, 32, 96) } },
};

static const char *const wgsl[] = {
#include "ops/last_row/last_row.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

static const char *const phase[] = {
#include "ops/last_row/last_row_phase.wgsl.h"
};
static const tg_grid grid = { .phase = { {
                                  .call = "last_row",
                                  .wgsl = { phase },
                                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                                  .takes_row = 1,
                                  .gives_row = true,
                              } } };

TG_OP_DESC(last_row) = {
    .name = "last_row",
    TG_DOC "the last row of a sequence",
    .in_names = { "x" },
    .out_names = { "y" },
    .n_in = 1,
    .n_out = 1,
    .ends_rows = true,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(last_row, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    TG_CASES(cases),
};
