/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigmoid_gate_grad - the gradients of sigmoid_gate: with s = 1 / (1 + exp(-gate)),
 *
 *   dx = dy s      dgate = dy x s (1 - s)
 *
 *   in 0  x     in 1  gate     in 2  dy     out 0  dx     out 1  dgate     all of one shape
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    for (int k = 1; k < 3; k++)
        if (!tg_want_type(g, n, k, n->in[0]->type)) return;
    for (int k = 0; k < 2; k++) n->out[k].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *gate = a->in[1], *dy = a->in[2];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++) {
        const double s = act_sigmoid((double)gate[i]), shut = act_sigmoid(-(double)gate[i]);
        ((TG_REAL *)a->out[0])[i] = (TG_REAL)((double)dy[i] * s);
        ((TG_REAL *)a->out[1])[i] = (TG_REAL)((double)dy[i] * (double)x[i] * s * shut);
    }
}

#define CASE(type, s) { .in = { type, type, type }, .scale = (s), .tol = 1e-6 * (s) }
TG_CASE_TABLE cases[] = {
    CASE(TG_T1(F32, 1), 1),
    CASE(TG_T2(F32, 3, 17), 1),
    CASE(TG_T2(F32, 2, 16), 60),
    CASE(TG_T3(F32, 2, 67, 131), 3),
};

static const char *const wgsl[] = {
#include "ops/sigmoid_gate/sigmoid_gate_grad.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0),
                            TG_BIND_OUT(1) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(sigmoid_gate_grad) = {
    .name = "sigmoid_gate_grad",
    TG_DOC "gradients of sigmoid_gate",
    .in_names = { "x", "gate", "dy" },
    .out_names = { "dx", "dgate" },
    .n_in = 3,
    .n_out = 2,
    .infer = infer,
    TG_REFS(sigmoid_gate_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
