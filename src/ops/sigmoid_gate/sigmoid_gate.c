/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigmoid_gate - y = x / (1 + exp(-gate)): what attention gives, let through by gates.
 *
 *   in 0  x     in 1  gate, same shape     out 0  y, may be the same memory as x
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *gate = a->in[1];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++)
        ((TG_REAL *)a->out[0])[i] = (TG_REAL)((double)x[i] * act_sigmoid((double)gate[i]));
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_sigmoid_gate_grad(g, n->in[0], n->in[1], dy[0]);
    din[1] = tg_out(din[0], 1);
}

TG_CASE_TABLE cases[] = {
    { .in = { TG_T1(F32, 1), TG_T1(F32, 1) }, .tol = 1e-6 },
    { .in = { TG_T2(F32, 3, 17), TG_T2(F32, 3, 17) }, .tol = 1e-6 },
    { .in = { TG_T2(F32, 2, 16), TG_T2(F32, 2, 16) }, .scale = 60, .tol = 1e-6 },
    { .in = { TG_T3(F32, 2, 67, 131), TG_T3(F32, 2, 67, 131) }, .scale = 3, .tol = 1e-6 },
};

static const char *const wgsl[] = {
#include "ops/sigmoid_gate/sigmoid_gate.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(sigmoid_gate) = {
    .name = "sigmoid_gate",
    TG_DOC "y = x * sigmoid(gate)",
    .in_names = { "x", "gate" },
    .out_names = { "y" },
    .n_in = 2,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(sigmoid_gate, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
