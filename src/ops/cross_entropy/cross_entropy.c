/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy - loss = scale * mean over rows of (lse - logits[target]), the mean surprise.
 * Rows whose target is negative do not count; if none does, the loss is 0.
 *
 *   lse = log(sum(exp(logits))) = max + log(sum(exp(logits - max))), row by row
 *
 *   in 0  logits [..,V]     in 1  targets [..] i32 below V     f[0]  scale, 1 / micro-steps
 *   out 0  loss, a scalar, accumulates     out 1  lse [rows]
 *
 * Backward needs logits, targets and lse. Losses of rows are added in double, rows rising. A target
 * beyond V takes the last column (tg_clamp_id).
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
    if (!tg_want_type(g, n, 1, targets)) return;
    n->out[0].type = tg_type_scalar(TG_F32);
    n->out[1].type = tg_type_1d(TG_F32, tg_type_rows(logits));
}

static double row_lse(const TG_REAL *x, size_t n) {
    double max = (double)x[0], sum = 0;
    for (size_t i = 1; i < n; i++) max = (double)x[i] > max ? (double)x[i] : max;
    for (size_t i = 0; i < n; i++) sum += tg_exp((double)x[i] - max);
    return max + tg_log(sum);
}

static void ref(const tg_args *a) {
    const TG_REAL *logits = a->in[0];
    const int32_t *targets = a->in[1];
    TG_REAL *loss = a->out[0], *lse = a->out[1];
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    double sum = 0;
    size_t counted = 0;
    for (size_t r = 0; r < rows; r++) {
        const TG_REAL *x = logits + r * cols;
        const double row = row_lse(x, cols);
        lse[r] = (TG_REAL)row;
        if (targets[r] < 0) continue;
        sum += row - (double)x[tg_clamp_id(targets[r], cols)];
        counted++;
    }
    const double mean = counted ? sum / (double)counted * (double)a->attr.f[0] : 0;
    loss[0] = (TG_REAL)(a->acc & 1 ? (double)loss[0] + mean : mean);
}

/* lse is saved by the forward pass for this; a gradient towards lse itself is not supported. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    din[0] = tg_cross_entropy_grad(g, n->in[0], n->in[1], &n->out[1], dy[0], n->attr.f[0]);
}

#define CASE(rows, v, s, below, add)                                                               \
    { .in = { TG_T2(F32, rows, v), TG_T1(I32, rows) },                                             \
      .attr = { .f = { 0.25f } },                                                                  \
      .scale = (s),                                                                                \
      .i32_below = (below),                                                                        \
      .tol = 2e-6,                                                                                 \
      .acc = (add) }
/* A logit that is no number must make the loss none: the step is refused by it. */
static void put_nan(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[0])[70] = (TG_REAL)TG_NAN; }

/* Logits so low that exp of the distance to a zero, which is no logit, would be 0. */
static void put_low(const tg_args *a) {
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[0];
    for (size_t i = 0; i < tg_type_elems(&a->in_type[0]); i++) x[i] -= 200;
}

/* Every third row does not count; and none at all. */
static void put_mask(const tg_args *a) {
    int32_t *targets = (int32_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < tg_type_elems(&a->in_type[1]); r += 3) targets[r] = -1 - (int32_t)r;
}
static void put_no_target(const tg_args *a) {
    int32_t *targets = (int32_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < tg_type_elems(&a->in_type[1]); r++) targets[r] = -1;
}

TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 0),
    CASE(3, 15, 1, 15, 1),
    CASE(5, 16, 3, 16, 0),
    CASE(7, 17, 1, 17, 0),
    CASE(37, 131, 5, 131, 1),
    CASE(131, 256, 1, 256, 0),
    CASE(9, 31, 100, 31, 0),
    CASE(5, 3, 1, 7, 0), /* targets beyond the columns */
    { .in = { TG_T3(F32, 3, 11, 64), TG_T2(I32, 3, 11) },
      .attr = { .f = { 1 } },
      .i32_below = 64,
      .tol = 2e-6 },
    { .in = { TG_T2(F32, 5, 33), TG_T1(I32, 5) },
      .attr = { .f = { 1 } },
      .i32_below = 33,
      .tol = 2e-6,
      .prepare = put_nan },
    { .in = { TG_T2(F32, 3, 17), TG_T1(I32, 3) },
      .attr = { .f = { 1 } },
      .i32_below = 17,
      .tol = 2e-6,
      .prepare = put_low },
    { .in = { TG_T2(F32, 67, 19), TG_T1(I32, 67) },
      .attr = { .f = { 0.5f } },
      .i32_below = 19,
      .tol = 2e-6,
      .acc = 1,
      .prepare = put_mask },
    { .in = { TG_T2(F32, 3, 17), TG_T1(I32, 3) },
      .attr = { .f = { 1 } },
      .i32_below = 17,
      .tol = 2e-6,
      .prepare = put_no_target },
};

static const char *const wgsl[] = {
#include "ops/cross_entropy/cross_entropy.wgsl.h"
};
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}
static size_t row_loss_bytes(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * sizeof(float);
}

#define BIND { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0), TG_BIND_OUT(1), TG_BIND_SCRATCH }
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { { .entry = "rows",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND,
                  .groups = tg_shader_groups_rows },
                { .entry = "mean",
                  .wgsl = { wgsl },
                  .reduces = true,
                  .bind = BIND,
                  .groups = one_group } },
      .scratch_bytes = row_loss_bytes },
};

TG_OP_DESC(cross_entropy) = {
    .name = "cross_entropy",
    TG_DOC "loss = scale * mean over rows with a target of (log sum exp(logits) - logits[target])",
    .in_names = { "logits", "targets" },
    .out_names = { "loss", "lse" },
    .n_in = 2,
    .n_out = 2,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(cross_entropy, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
