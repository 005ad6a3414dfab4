/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add - y = a + b, element by element.
 *
 *   in 0  a     in 1  b, same shape     out 0  y, same shape
 *
 * Backward needs nothing. Others absorb it: a matmul as its residual, layer_norm_grad as the
 * gradient that comes around the block.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *args) {
    const TG_REAL *a = args->in[0], *b = args->in[1];
    TG_REAL *y = args->out[0];
    const size_t n = tg_type_elems(&args->in_type[0]);
    for (size_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    (void)g;
    (void)n;
    din[0] = din[1] = dy[0];
}

#define CASE(rows, c)                                                                              \
    {                                                                                              \
        .in = { TG_T2(F32, rows, c), TG_T2(F32, rows, c) }                                         \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 1),  CASE(1, 15),   CASE(1, 16),    CASE(1, 17),
    CASE(7, 13), CASE(64, 131), CASE(131, 257), { .in = { TG_T0(F32), TG_T0(F32) } },
};

static const char *const wgsl[] = {
#include "ops/add/add.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(add) = {
    .name = "add",
    TG_DOC "y = a + b",
    .in_names = { "a", "b" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(add, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
