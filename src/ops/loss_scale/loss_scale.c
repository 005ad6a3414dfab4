/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss_scale - dynamic loss scaling (Micikevicius et al. 2018, section 3.2): by how much gradients
 * are scaled down, beyond what each product scales them by itself, before they are rounded to f16.
 *
 *   in 0  scaling [4], a state:
 *       0  scale   a power of two in (0, 1], that matmul's operands of gradients are multiplied by
 *       1  good    updates since it last changed
 *       2  skipped updates that were left out for it, in all
 *       3  answer  1 if this update is one of them
 *   in 1  stats [4] of grad_norm
 *   out 0 scaling of the next step     out 1 the same [4], to be read by the caller
 *
 * A gradient beyond f16's range is infinite, and so is then the norm, while the loss is finite: the
 * update is left out (adamw looks at stats' ok) and the scale halved. After GOOD updates in a row
 * it is doubled again, up to 1: there what most runs need already uses f16's range. A scale below
 * LEAST would lose what f16 can say of most gradients, so that infinities are then somebody else's
 * fault.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

#define GOOD  2000
#define LEAST (1.0 / (1 << 20))

static void infer(tg_graph *g, tg_node *n) {
    const tg_type four = tg_type_1d(TG_F32, 4);
    if (!tg_want_type(g, n, 0, four) || !tg_want_type(g, n, 1, four)) return;
    n->out[0].type = n->out[1].type = four;
}

static void ref(const tg_args *a) {
    const TG_REAL *scaling = a->in[0], *stats = a->in[1];
    double scale = (double)scaling[0], good = (double)scaling[1], skipped = (double)scaling[2];
    const bool ok = stats[2] != 0;
    const bool answer = !ok && tg_isfinite((double)stats[3]) && scale > LEAST;
    good = ok ? good + 1 : 0;
    if (answer) {
        scale /= 2;
        skipped++;
    } else if (good >= GOOD && scale < 1) {
        scale *= 2;
        good = 0;
    }
    const double next[4] = { scale, good < GOOD ? good : GOOD, skipped, answer };
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 4; i++) ((TG_REAL *)a->out[k])[i] = (TG_REAL)next[i];
}

/* Of the cases the filling of what decides: attr.f is scale and good, then ok and the loss. */
static void prepare(const tg_args *a) {
    TG_REAL *scaling = (TG_REAL *)(uintptr_t)a->in[0], *stats = (TG_REAL *)(uintptr_t)a->in[1];
    for (int i = 0; i < 2; i++) {
        scaling[i] = (TG_REAL)a->attr.f[i];
        stats[2 + i] = (TG_REAL)a->attr.f[2 + i];
    }
    scaling[2] = 7;
    if (a->attr.f[3] < 0) stats[3] = (TG_REAL)TG_NAN;
}
#define CASE(scale, good, ok, loss)                                                                \
    { .in = { TG_T1(F32, 4), TG_T1(F32, 4) },                                                      \
      .attr = { .f = { scale, good, ok, loss } },                                                  \
      .prepare = prepare }
TG_CASE_TABLE cases[] = {
    CASE(1, 5, 1, 2),                                 /* nothing to do */
    CASE(1, 1999, 1, 2),                              /* it is 1 at most */
    CASE(0.25f, 1998, 1, 2), CASE(0.25f, 1999, 1, 2), /* doubled */
    CASE(0.25f, 9, 0, 2),                             /* halved, and the update is skipped */
    CASE(0.25f, 9, 0, -1),                            /* the loss is a NaN: no scale is to blame */
    CASE(0x1p-20f, 9, 0, 2),                          /* as small as it gets */
};

static const char *const wgsl[] = {
#include "ops/loss_scale/loss_scale.wgsl.h"
};
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}
static const tg_shader shaders[] = {
    { .name = "one thread",
      .pass = { { .entry = "main",
                  .constants = "const GOOD = 2000.0; const LEAST = 0x1p-20f;\n",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_OUT(0), TG_BIND_IN(1), TG_BIND_OUT(1) },
                  .groups = one_group } } },
};

TG_OP_DESC(loss_scale) = {
    .name = "loss_scale",
    TG_DOC
    "what gradients are scaled by before they are rounded to f16: halved when they leave its "
    "range",
    .in_names = { "scaling", "stats" },
    .out_names = { "scaling", "told" },
    .n_in = 2,
    .n_out = 2,
    .scalar_only = true,
    .state_in = { 1 },
    .infer = infer,
    TG_REFS(loss_scale, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
