/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout - elements are left out at random, and what stays is made larger (Srivastava et al.
 * 2014); and what comes around the branch is added, as a branch ends with it.
 *
 *   in 0  x [B,..]     in 1  around, same shape, optional     out 0  y, same shape
 *   f[0]  rate in [0, 1)     i[0]  stream: the place in the model
 *
 *   y = x * mask (+ around)       mask 0 or 1 / (1 - rate): mask.h
 *
 * Run-time scalars: the run's seed, and draw, the number of sequence 0 in the run. Backward draws
 * the same mask again. For training alone: evaluation and sampling have no such node.
 */
#include "ops/dropout/mask.h"

#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 2, TG_MAX_DIMS)) return;
    if (n->in[1] && !tg_want_type(g, n, 1, n->in[0]->type)) return;
    if (!(n->attr.f[0] >= 0 && n->attr.f[0] < 1)) {
        tg_graph_fail(g, n, TG_E_ARG, "rate: want 0 and more, below 1, have %g",
                      (double)n->attr.f[0]);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const TG_REAL *x = a->in[0], *around = a->in[1];
    TG_REAL *y = a->out[0];
    const size_t sequences = a->in_type[0].dim[0];
    const size_t n = tg_type_elems(&a->in_type[0]) / sequences;
    for (size_t i = 0; i < sequences * n; i++) {
        const tg_mask m = tg_mask_of(a, a->attr.f[0], i / n, (uint32_t)a->attr.i[0]);
        const double kept = (double)x[i] * tg_mask_at(&m, (uint32_t)(i % n / 4), i % n % 4);
        y[i] = (TG_REAL)(kept + (around ? (double)around[i] : 0));
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    din[0] = tg_dropout(g, dy[0], NULL, n->attr.f[0], n->attr.i[0]);
    if (n->in[1]) din[1] = dy[0];
}

/* Sequences whose elements are no whole blocks, more than one unit, the last row before numbers
 * recur, rates of nothing and of nearly all. */
#define CASE(b, t, c, rate, draw_)                                                                 \
    { .in = { TG_T3(F32, b, t, c), TG_T3(F32, b, t, c) },                                          \
      .attr = { .i = { 5 }, .f = { rate } },                                                       \
      .rt = { .seed_lo = 42, .seed_hi = 7, .draw_lo = (draw_) },                                   \
      .tol = 1e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 0.2f, 0),
    CASE(3, 5, 7, 0.5f, 11),
    CASE(2, 1, 63, 0.1f, 1),
    CASE(2, 4, 16, 0.2f, UINT32_MAX),
    CASE(1, 13, 5, 0, 2),
    CASE(2, 37, 131, 0.9f, 1000),
    { .in = { TG_T3(F32, 2, 9, 33), { .dtype = TG_DTYPE_COUNT } },
      .attr = { .i = { 65537 }, .f = { 0.3f } },
      .rt = { .seed_lo = 1, .draw_lo = 8 },
      .tol = 1e-6 },
};

static const char *const philox[] = {
#include "ops/dropout/mask.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/dropout/dropout.wgsl.h"
};
static size_t groups(const tg_args *a) {
    const size_t sequences = a->in_type[0].dim[0];
    const size_t n = tg_type_elems(&a->in_type[0]) / sequences;
    return tg_shader_parts(sequences * tg_shader_parts(n, 4), 256);
}
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { philox, wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = groups } } },
};

TG_OP_DESC(dropout) = {
    .name = "dropout",
    TG_DOC "y = x * mask + around, the mask 0 or 1 / (1 - rate) at random",
    .in_names = { "x", "around" },
    .out_names = { "y" },
    .n_in = 2,
    .n_in_optional = 1,
    .n_out = 1,
    .in_place = { 1 },
    .infer = infer,
    TG_REFS(dropout, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
