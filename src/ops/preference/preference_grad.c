/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preference_grad - of pair p, whose preferred answer has sign 1 and the other one -1:
 *
 *   dlogits = sign * beta * sigmoid(-margin_p) * (exp(logits - lse) - [target]) * dloss * scale / P
 *
 *   in 0 logits [B,T,V]   in 1 targets [B,T] i32   in 2 lse [B*T]   in 3 margin [B/2]
 *   in 4 dloss, a scalar  out 0 dlogits [B,T,V]    f[0] scale   f[1] beta
 *
 * P = B/2 pairs; rows whose target is negative have no gradient.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 3, 3)) return;
    const tg_type *logits = &n->in[0]->type;
    const size_t B = logits->dim[0], T = logits->dim[1];
    if (!tg_want_type(g, n, 1, tg_type_2d(TG_I32, B, T)) ||
        !tg_want_type(g, n, 2, tg_type_1d(TG_F32, B * T)) ||
        !tg_want_type(g, n, 3, tg_type_1d(TG_F32, B / 2)) ||
        !tg_want_type(g, n, 4, tg_type_scalar(TG_F32)))
        return;
    n->out[0].type = *logits;
}

static void ref(const tg_args *a) {
    const size_t B = a->in_type[0].dim[0], T = a->in_type[0].dim[1], V = a->in_type[0].dim[2];
    const TG_REAL *logits = a->in[0], *lse = a->in[2], *margin = a->in[3], *dloss = a->in[4];
    const int32_t *targets = a->in[1];
    TG_REAL *out = a->out[0];
    const double all =
        (double)dloss[0] * (double)a->attr.f[0] * (double)a->attr.f[1] / (double)(B / 2);
    for (size_t r = 0; r < B * T; r++) {
        const size_t b = r / T, target = tg_clamp_id(targets[r], V);
        const double pull = all / (1 + tg_exp((double)margin[b / 2]));
        const double factor = b % 2 ? -pull : pull;
        for (size_t c = 0; c < V; c++) {
            const size_t i = r * V + c;
            const double p = targets[r] < 0 ? 0 : tg_exp((double)logits[i] - (double)lse[r]);
            out[i] = targets[r] < 0 ? 0 : (TG_REAL)((p - (c == target)) * factor);
        }
    }
}

static void put_mask(const tg_args *a) {
    int32_t *targets = (int32_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < tg_type_elems(&a->in_type[1]); r += 3) targets[r] = -1;
}

#define CASE(b, t, v, fill)                                                                        \
    { .in = { TG_T3(F32, b, t, v), TG_T2(I32, b, t), TG_T1(F32, (b) * (t)), TG_T1(F32, (b) / 2),   \
              TG_T0(F32) },                                                                        \
      .attr = { .f = { 0.25f, 0.1f } },                                                            \
      .i32_below = (v),                                                                            \
      .positive = 1 << 2,                                                                          \
      .tol = 2e-6,                                                                                 \
      .prepare = (fill) }
TG_CASE_TABLE cases[] = {
    CASE(2, 1, 1, NULL),      CASE(2, 3, 15, NULL),      CASE(4, 5, 16, put_mask),
    CASE(6, 7, 17, put_mask), CASE(4, 3, 131, put_mask),
};

static const char *const wgsl[] = {
#include "ops/preference/preference_grad.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),
                            TG_BIND_IN(4), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(preference_grad) = {
    .name = "preference_grad",
    TG_DOC
    "dlogits = +-beta * sigmoid(-margin) * (exp(logits - lse) - [target]) * dloss * scale / pairs",
    .in_names = { "logits", "targets", "lse", "margin", "dloss" },
    .out_names = { "dlogits" },
    .n_in = 5,
    .n_out = 1,
    .scalar_only = true,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(preference_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
