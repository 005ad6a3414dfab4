/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_norm - the length of all gradients as one vector, and what follows from it for the step.
 *
 *   in 0  grads [P]     in 1  loss, a scalar     f[0]  clip, 0 for none
 *   out 0  stats [4]:
 *       0  norm = sqrt(sum(grads^2))
 *       1  coefficient that the gradients are to be scaled by, min(1, clip / (norm + 1e-6))
 *       2  ok: 1 if loss and norm are finite, else 0: nothing may be updated from these gradients
 *       3  loss
 *
 * Squares and sums are doubles: the square of an f32 is exact in a double and cannot overflow.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, 1)) return;
    if (!tg_want_type(g, n, 1, tg_type_scalar(TG_F32))) return;
    n->out[0].type = tg_type_1d(TG_F32, 4);
}

static void ref(const tg_args *a) {
    const TG_REAL *grads = a->in[0], loss = ((const TG_REAL *)a->in[1])[0];
    TG_REAL *stats = a->out[0];
    const size_t n = tg_type_elems(&a->in_type[0]);
    const double clip = (double)a->attr.f[0];
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)grads[i] * (double)grads[i];
    const double norm = tg_sqrt(sum), coefficient = clip / (norm + 1e-6);
    stats[0] = (TG_REAL)norm;
    stats[1] = (TG_REAL)(clip > 0 && coefficient < 1 ? coefficient : 1);
    stats[2] = tg_isfinite((double)stats[0]) && tg_isfinite((double)loss) ? 1 : 0;
    stats[3] = loss;
}

#define CASE(n, s, clip)                                                                           \
    { .in = { TG_T1(F32, n), TG_T0(F32) }, .attr = { .f = { clip } }, .scale = (s), .tol = 1e-6 }
/* One gradient, or the loss, that is not finite: what a step is refused for. */
static void put_nan(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[0])[77] = (TG_REAL)TG_NAN; }
static void put_inf(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[0])[5] = (TG_REAL)-TG_INF; }
static void put_loss(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[1])[0] = (TG_REAL)TG_NAN; }
/* A norm of 1e-6, clipped at 1e-6: the coefficient is 0.5, for what is added to the norm. */
static void put_tiny(const tg_args *a) {
    for (size_t i = 0; i < 16; i++) ((TG_REAL *)(uintptr_t)a->in[0])[i] = (TG_REAL)2.5e-7;
}

#define CASE_BAD(n, put)                                                                           \
    { .in = { TG_T1(F32, n), TG_T0(F32) }, .attr = { .f = { 1 } }, .tol = 1e-6, .prepare = put }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1),
    CASE(15, 1, 0),
    CASE(16, 1e-3f, 1),
    CASE(17, 1, 100),
    CASE(131, 1, 1),
    CASE(4095, 1, 1),
    CASE(4096, 1, 1),
    CASE(4097, 1, 1),
    CASE(40009, 1, 1),
    CASE(131, 1e25f, 1),
    CASE(131, 1e-25f, 1),
    CASE_BAD(131, put_nan),
    CASE_BAD(4097, put_inf),
    CASE_BAD(17, put_loss),
    { .in = { TG_T1(F32, 16), TG_T0(F32) },
      .attr = { .f = { 1e-6f } },
      .tol = 1e-6,
      .prepare = put_tiny },
};

static const char *const wgsl[] = {
#include "ops/grad_norm/grad_norm.wgsl.h"
};
/* 4096 workgroups are enough for any GPU, and few enough for one to add them up. */
static size_t part_groups(const tg_args *a) {
    const size_t parts = tg_shader_parts(tg_type_elems(&a->in_type[0]), TG_SHADER_ELEMS);
    return parts < 4096 ? parts : 4096;
}
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}
static size_t partial_bytes(const tg_args *a) { return part_groups(a) * 3 * sizeof(float); }

#define BIND(grads) { grads, TG_BIND_IN(1), TG_BIND_OUT(0), TG_BIND_SCRATCH }
static const tg_shader shaders[] = {
    { .name = "three ranges",
      .pass = { { .entry = "parts",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND(TG_BIND_IN(0)),
                  .groups = part_groups },
                { .entry = "total",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND(TG_BIND_NONE),
                  .groups = one_group } },
      .scratch_bytes = partial_bytes,
      .splits = true },
};

TG_OP_DESC(grad_norm) = {
    .name = "grad_norm",
    TG_DOC "norm of all gradients, clip coefficient, whether the step may be taken, loss",
    .in_names = { "grads", "loss" },
    .out_names = { "stats" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(grad_norm, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
