/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding - y[n,:] = scale * table[ids[n],:], one row of the table for every token.
 *
 *   in 0  ids [..] i32 in [0,V)     in 1  table [V,C]     out 0  y [..,C]
 *   f[0]  scale, of which 0 is 1: rows are copied as they are
 *
 * Backward needs the ids alone. An id outside [0,V) takes the nearest row (tg_clamp_id).
 */
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_I32, 0, TG_MAX_DIMS - 1)) return;
    if (!tg_want_dims(g, n, 1, TG_F32, 2, 2)) return;
    tg_type y = n->in[0]->type;
    y.dtype = TG_F32;
    y.dim[y.n_dims++] = n->in[1]->type.dim[1];
    n->out[0].type = y;
}

static void ref(const tg_args *a) {
    const int32_t *ids = a->in[0];
    const TG_REAL *table = a->in[1];
    TG_REAL *y = a->out[0];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    const size_t vocab = a->in_type[1].dim[0], cols = a->in_type[1].dim[1];
    const double scale = a->attr.f[0] == 0 ? 1 : (double)a->attr.f[0];
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *from = table + tg_clamp_id(ids[r], vocab) * cols;
        for (size_t c = 0; c < cols; c++) y[r * cols + c] = (TG_REAL)(scale * (double)from[c]);
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[1] = tg_embedding_grad(g, n->in[0], dy[0], (int32_t)n->in[1]->type.dim[0], n->attr.f[0]);
}

#define CASE(tokens, v, c) { .in = { TG_T1(I32, tokens), TG_T2(F32, v, c) }, .i32_below = (v) }
#define SCALED(tokens, v, c, s)                                                                    \
    { .in = { TG_T1(I32, tokens), TG_T2(F32, v, c) },                                              \
      .attr = { .f = { s } },                                                                      \
      .i32_below = (v),                                                                            \
      .tol = 1e-6 }
static const tg_case cases[] = {
    CASE(1, 1, 1),
    CASE(7, 3, 15),
    CASE(5, 16, 16),
    CASE(31, 11, 17),
    { .in = { TG_T2(I32, 4, 67), TG_T2(F32, 256, 131) }, .i32_below = 256 },
    { .in = { TG_T1(I32, 9), TG_T2(F32, 5, 33) }, .i32_below = 8 }, /* ids beyond the table */
    SCALED(7, 3, 15, 1),
    SCALED(5, 16, 33, 22.627417f),
    SCALED(67, 11, 48, 0.3f),
};

static const char *const wgsl[] = {
#include "ops/embedding/embedding.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(embedding) = {
    .name = "embedding",
    .doc = "y[n,:] = scale * table[ids[n],:]",
    .in_names = { "ids", "table" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(embedding, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
