/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ema - an exponential moving average of weights, a step of it.
 *
 *   average' = average + r (w - average)        r = max(f[0], 9 / (10 + t))
 *
 *   in 0  average     in 1  w, same shape     in 2  stats [4] of grad_norm
 *   out 0 the new version of average     f[0]  1 - decay
 *
 * Run-time scalar: step t, from 1. 1 - r is min(decay, (1 + t) / (10 + t)), as in
 * tf.train.ExponentialMovingAverage with num_updates: an average that began at random weights
 * forgets them in a short run, too. Nothing is written when stats' ok is 0.
 */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 0, TG_MAX_DIMS)) return;
    if (!tg_want_type(g, n, 1, n->in[0]->type)) return;
    if (!tg_want_type(g, n, 2, tg_type_1d(TG_F32, 4))) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *average = a->in[0], *w = a->in[1], *stats = a->in[2];
    TG_REAL *out = a->out[0];
    if (stats[2] == 0) return;
    const double least = 9 / (10 + (double)a->rt->step), rest = (double)a->attr.f[0];
    const double r = rest > least ? rest : least;
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t i = 0; i < n; i++)
        out[i] = (TG_REAL)((double)average[i] + r * ((double)w[i] - (double)average[i]));
}

/* Of a case: the step is refused. */
static void put_refused(const tg_args *a) { ((TG_REAL *)(uintptr_t)a->in[2])[2] = 0; }

#define CASE(n, t)                                                                                 \
    { .in = { TG_T1(F32, n), TG_T1(F32, n), TG_T1(F32, 4) },                                       \
      .attr = { .f = { 0.001f } },                                                                 \
      .rt = { .step = (t) },                                                                       \
      .tol = 1e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1),
    CASE(15, 2),
    CASE(17, 8990),
    CASE(131, 8991),
    CASE(4099, 100000),
    CASE(20011, 70),
    { .in = { TG_T2(F32, 7, 33), TG_T2(F32, 7, 33), TG_T1(F32, 4) },
      .attr = { .f = { 0.01f } },
      .rt = { .step = 5 },
      .tol = 1e-6 },
    { .in = { TG_T1(F32, 33), TG_T1(F32, 33), TG_T1(F32, 4) },
      .attr = { .f = { 0.01f } },
      .rt = { .step = 1 },
      .tol = 1e-6,
      .prepare = put_refused },
};

static const char *const wgsl[] = {
#include "ops/ema/ema.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_OUT(0), TG_BIND_IN(1), TG_BIND_IN(2) },
                  .groups = tg_shader_groups_in0 } },
      .splits = true },
};

TG_OP_DESC(ema) = {
    .name = "ema",
    TG_DOC "a step of an exponential moving average of weights",
    .in_names = { "average", "w", "stats" },
    .out_names = { "average" },
    .n_in = 3,
    .n_out = 1,
    .state_in = { 1 },
    .infer = infer,
    TG_REFS(ema, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
