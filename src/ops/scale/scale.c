/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale - y = scale * x, element by element.
 *
 *   in 0  x     out 0  y, same shape     f[0] scale
 *
 * Backward needs nothing: dx = scale * dy.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0];
    TG_REAL *y = a->out[0];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++) y[i] = (TG_REAL)a->attr.f[0] * x[i];
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_scale(g, dy[0], n->attr.f[0]);
}

#define CASE(rows, c)                                                                              \
    {                                                                                              \
        .in = { TG_T2(F32, rows, c) }, .attr = {.f = { 0.22F } }                                   \
    }
static const tg_case cases[] = { CASE(1, 1), CASE(1, 17), CASE(64, 131) };

static const char *const wgsl[] = {
#include "ops/scale/scale.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(scale) = {
    .name = "scale",
    .doc = "y = scale * x",
    .in_names = { "x" },
    .out_names = { "y" },
    .n_in = 1,
    .n_out = 1,
    .infer = infer,
    TG_REFS(scale, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
