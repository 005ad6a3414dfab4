/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy_grad - dlogits = (exp(logits - lse) - [target]) * dloss * scale / rows,
 * where rows are those with a target that is not negative; dlogits of the others are 0.
 *
 *   in 0  logits [..,V]   in 1  targets [..] i32   in 2  lse [rows]   in 3  dloss, a scalar
 *   out 0  dlogits [..,V]     f[0]  scale
 *
 * exp(logits - lse) is the probability that the forward pass gave; [target] is 1 in the column of
 * the target and 0 elsewhere.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS)) return;
    const tg_type *logits = &n->in[0]->type;
    tg_type targets = *logits;
    targets.dtype = TG_I32;
    targets.dim[--targets.n_dims] = 1;
    if (!tg_want_type(g, n, 1, targets) ||
        !tg_want_type(g, n, 2, tg_type_1d(TG_F32, tg_type_rows(logits))) ||
        !tg_want_type(g, n, 3, tg_type_scalar(TG_F32)))
        return;
    n->out[0].type = *logits;
}

/* dloss is the gradient of the loss itself: 1, unless somebody computes something of the loss. */
static void ref(const tg_args *a) {
    const TG_REAL *logits = a->in[0], *lse = a->in[2], *dloss = a->in[3];
    const int32_t *targets = a->in[1];
    TG_REAL *out = a->out[0];
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    size_t counted = 0;
    for (size_t r = 0; r < rows; r++) counted += targets[r] >= 0;
    const double all = (double)dloss[0] * (double)a->attr.f[0] / (double)(counted ? counted : 1);
    for (size_t r = 0; r < rows; r++) {
        const double factor = targets[r] < 0 ? 0 : all;
        const size_t target = tg_clamp_id(targets[r], cols);
        for (size_t c = 0; c < cols; c++) {
            const double p = tg_exp((double)logits[r * cols + c] - (double)lse[r]);
            out[r * cols + c] = (TG_REAL)((p - (c == target)) * factor);
        }
    }
}

/* lse is an input of its own here, random and positive, so exp(logits - lse) is no probability; the
 * formula is tested, not the sum to 1. */
#define CASE(rows, v, s, below)                                                                    \
    { .in = { TG_T2(F32, rows, v), TG_T1(I32, rows), TG_T1(F32, rows), TG_T0(F32) },               \
      .attr = { .f = { 0.25f } },                                                                  \
      .scale = (s),                                                                                \
      .i32_below = (below),                                                                        \
      .positive = 1 << 2,                                                                          \
      .tol = 2e-6 }
static void put_mask(const tg_args *a) {
    int32_t *targets = (int32_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < tg_type_elems(&a->in_type[1]); r += 3) targets[r] = -1 - (int32_t)r;
}

TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1),
    CASE(3, 15, 1, 15),
    CASE(5, 16, 3, 16),
    CASE(7, 17, 1, 17),
    CASE(37, 131, 2, 131),
    CASE(131, 256, 1, 256),
    CASE(5, 3, 1, 7), /* targets beyond the columns */
    { .in = { TG_T3(F32, 3, 11, 64), TG_T2(I32, 3, 11), TG_T1(F32, 33), TG_T0(F32) },
      .attr = { .f = { 1 } },
      .i32_below = 64,
      .positive = 1 << 2,
      .tol = 2e-6 },
    { .in = { TG_T2(F32, 67, 19), TG_T1(I32, 67), TG_T1(F32, 67), TG_T0(F32) },
      .attr = { .f = { 0.5f } },
      .i32_below = 19,
      .positive = 1 << 2,
      .tol = 2e-6,
      .prepare = put_mask },
    { .in = { TG_T2(F32, 1, 5), TG_T1(I32, 1), TG_T1(F32, 1), TG_T0(F32) },
      .attr = { .f = { 1 } },
      .i32_below = 5,
      .positive = 1 << 2,
      .tol = 2e-6,
      .prepare = put_mask }, /* nothing counts */
};

static const char *const wgsl[] = {
#include "ops/cross_entropy/cross_entropy_grad.wgsl.h"
};
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}
static size_t count_bytes(const tg_args *a) {
    (void)a;
    return sizeof(float);
}

#define BIND                                                                                       \
    { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0), TG_BIND_SCRATCH }
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "count",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND,
                  .groups = one_group },
                { .entry = "main",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND,
                  .groups = tg_shader_groups_in0 } },
      .scratch_bytes = count_bytes },
};

TG_OP_DESC(cross_entropy_grad) = {
    .name = "cross_entropy_grad",
    TG_DOC "dlogits = (exp(logits - lse) - [target]) * dloss * scale / rows with a target",
    .in_names = { "logits", "targets", "lse", "dloss" },
    .out_names = { "dlogits" },
    .n_in = 4,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(cross_entropy_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
