/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preference - direct preference optimisation (Rafailov et al. 2023, equation 7): how surprised a
 * model is that one answer is preferred to another, as it is changed from a reference.
 *
 *   logp_b   = sum over rows of sequence b with a target of (logits[target] - lse)
 *   margin_p = beta * ((logp_2p - reference_2p) - (logp_2p+1 - reference_2p+1))
 *   loss     = scale * mean over pairs of -log(sigmoid(margin))
 *
 *   in 0  logits [B,T,V]   in 1  targets [B,T] i32   in 2  reference [B], logp of the reference
 *   out 0 loss, a scalar, accumulates    out 1 lse [B*T]    out 2 margin [B/2]
 *   f[0] scale, 1 / micro-steps     f[1] beta
 *
 * Sequences 2p and 2p + 1 are a pair, the preferred answer first. Rows whose target is negative do
 * not count, and have a lse of 0.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/preference/surprise.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 3, 3)) return;
    const tg_type *logits = &n->in[0]->type;
    const size_t B = logits->dim[0];
    if (B % 2) {
        tg_graph_fail(g, n, TG_E_SHAPE, "logits: want an even number of sequences, have %zu", B);
        return;
    }
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_I32, B, logits->dim[1])) ||
        !tg_want_type(g, n, 2, tg_type_1d(TG_F32, B)))
        return;
    n->out[0].type = tg_type_scalar(TG_F32);
    n->out[1].type = tg_type_1d(TG_F32, B * logits->dim[1]);
    n->out[2].type = tg_type_1d(TG_F32, B / 2);
}

static double row_lse(const TG_REAL *x, size_t n) {
    double max = (double)x[0], sum = 0;
    for (size_t i = 1; i < n; i++) max = (double)x[i] > max ? (double)x[i] : max;
    for (size_t i = 0; i < n; i++) sum += tg_exp((double)x[i] - max);
    return max + tg_log(sum);
}

/* logp of sequence b, and the lse of its rows. */
static double sequence(const tg_args *a, size_t b) {
    const size_t T = a->in_type[0].dim[1], V = a->in_type[0].dim[2];
    const int32_t *targets = a->in[1];
    TG_REAL *lse = a->out[1];
    double sum = 0;
    for (size_t r = b * T; r < (b + 1) * T; r++) {
        const TG_REAL *x = (const TG_REAL *)a->in[0] + r * V;
        lse[r] = 0;
        if (targets[r] < 0) continue;
        const double row = row_lse(x, V);
        lse[r] = (TG_REAL)row;
        sum += (double)x[tg_clamp_id(targets[r], V)] - row;
    }
    return sum;
}

static void ref(const tg_args *a) {
    const size_t pairs = tg_type_elems(&a->out_type[2]);
    const TG_REAL *reference = a->in[2];
    TG_REAL *loss = a->out[0], *margin = a->out[2];
    double sum = 0;
    for (size_t p = 0; p < pairs; p++) {
        const double chosen = sequence(a, 2 * p) - (double)reference[2 * p];
        const double rejected = sequence(a, 2 * p + 1) - (double)reference[2 * p + 1];
        const double m = (double)a->attr.f[1] * (chosen - rejected);
        margin[p] = (TG_REAL)m;
        sum += tg_preference_loss(m);
    }
    const double mean = sum / (double)pairs * (double)a->attr.f[0];
    loss[0] = (TG_REAL)(a->acc & 1 ? (double)loss[0] + mean : mean);
}

/* lse and margin are saved for this; what follows from them has no gradient. */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    din[0] = tg_preference_grad(g, n->in[0], n->in[1], &n->out[1], &n->out[2], dy[0], &n->attr);
}

/* Every third row is read alone. */
static void put_mask(const tg_args *a) {
    int32_t *targets = (int32_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < tg_type_elems(&a->in_type[1]); r += 3) targets[r] = -1;
}
/* A margin so far to either side that exp of it is no number. */
static void put_far(const tg_args *a) {
    TG_REAL *reference = (TG_REAL *)(uintptr_t)a->in[2];
    reference[0] = 2000;
    reference[3] = 3000;
}

#define CASE(b, t, v, scale, beta, add, fill)                                                      \
    { .in = { TG_T3(F32, b, t, v), TG_T2(I32, b, t), TG_T1(F32, b) },                              \
      .attr = { .f = { scale, beta } },                                                            \
      .i32_below = (v),                                                                            \
      .tol = 2e-6,                                                                                 \
      .acc = (add),                                                                                \
      .prepare = (fill) }
TG_CASE_TABLE cases[] = {
    CASE(2, 1, 1, 1, 0.1f, 0, NULL),      CASE(2, 3, 15, 0.25f, 0.1f, 1, NULL),
    CASE(4, 5, 16, 1, 0.5f, 0, put_mask), CASE(6, 7, 17, 0.5f, 1, 1, put_mask),
    CASE(4, 3, 131, 1, 1, 0, put_far),
};

static const char *const wgsl[] = {
#include "ops/preference/preference.wgsl.h"
};
static size_t a_group_each(const tg_args *a) { return tg_type_elems(&a->out_type[2]); }
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}
static size_t row_logp_bytes(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * sizeof(float);
}

#define PASS(name, n)                                                                              \
    { .entry = (name),                                                                             \
      .wgsl = { wgsl },                                                                            \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_OUT(0), TG_BIND_OUT(1),       \
                TG_BIND_OUT(2), TG_BIND_SCRATCH },                                                 \
      .groups = (n) }
static const tg_shader shaders[] = {
    { .name = "rows",
      .pass = { PASS("rows", tg_shader_groups_rows), PASS("pairs", a_group_each),
                PASS("mean", one_group) },
      .scratch_bytes = row_logp_bytes },
};

TG_OP_DESC(preference) = {
    .name = "preference",
    TG_DOC "loss = scale * mean over pairs of -log(sigmoid(beta * (chosen - rejected))), each the "
           "log-probability of an answer less the reference's",
    .in_names = { "logits", "targets", "reference" },
    .out_names = { "loss", "lse", "margin" },
    .n_in = 3,
    .n_out = 3,
    .accumulates = 1,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(preference, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
