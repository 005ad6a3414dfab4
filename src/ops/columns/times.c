/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times - y = s x, by a number that is a weight of the model.
 *
 *   in 0  x     in 1  s [1]     out 0  y, may be the same memory as x
 *
 * The number stands still while a model is trained, as it does in transformers (a buffer of Gemma
 * 4's layers), so nothing flows into it.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, tg_type_1d(TG_F32, 1))) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *s = a->in[1];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++)
        ((TG_REAL *)a->out[0])[i] = (TG_REAL)((double)x[i] * (double)s[0]);
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_times(g, dy[0], n->in[1]);
}

TG_CASE_TABLE cases[] = {
    { .in = { TG_T1(F32, 1), TG_T1(F32, 1) }, .tol = 1e-6 },
    { .in = { TG_T2(F32, 3, 17), TG_T1(F32, 1) }, .tol = 1e-6 },
    { .in = { TG_T2(F32, 2, 16), TG_T1(F32, 1) }, .tol = 1e-6 },
    { .in = { TG_T3(F32, 2, 67, 131), TG_T1(F32, 1) }, .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/columns/times.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(times) = {
    .name = "times",
    TG_DOC "y = s x, s a weight",
    .in_names = { "x", "s" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(times, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
