/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muon_step - the second half of Muon: weights go along an orthogonal matrix (Jordan et al. 2024).
 *
 *   w' = (1 - lr wd) w - lr * scale * x
 *
 *   in 0  w [R,C]   in 1  x [rows, cols] of the block   in 2  stats [4] of all gradients
 *   out 0 the new version of w, of which the block alone is written
 *   i[0..3]  the block (block.h)     f[0]  scale   f[1]  wd
 *
 * With scale = 0.2 sqrt(max(rows, cols)) elements move as far as AdamW's do, so that both take the
 * same rate and decay (Liu et al. 2025, "Muon is Scalable for LLM Training", 2.2). Run-time scalar:
 * lr. Nothing is written when stats' ok is 0.
 */
#include "ops/build.h"
#include "ops/muon/block_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!muon_want(g, n, 0)) return;
    const tg_type block = tg_type_2d(TG_F32, (size_t)n->attr.i[1], (size_t)n->attr.i[3]);
    if (!tg_want_type(g, n, 1, block) || !tg_want_type(g, n, 2, tg_type_1d(TG_F32, 4))) return;
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const muon_block k = muon_block_of(&a->attr, &a->in_type[0]);
    const TG_REAL *w = a->in[0], *x = a->in[1];
    TG_REAL *w_out = a->out[0];
    if (((const TG_REAL *)a->in[2])[2] == 0) return;
    const double lr = (double)a->rt->lr;
    const double keep = 1 - lr * (double)a->attr.f[1], rate = lr * (double)a->attr.f[0];
    for (size_t r = 0; r < k.rows; r++)
        for (size_t c = 0; c < k.cols; c++) {
            const size_t at = k.first + r * k.stride + c;
            w_out[at] = (TG_REAL)(keep * (double)w[at] - rate * (double)x[r * k.cols + c]);
        }
}

#define CASE(R, C, row, rows, col, cols)                                                           \
    { .in = { TG_T2(F32, R, C), TG_T2(F32, rows, cols), TG_T1(F32, 4) },                           \
      .attr = { .i = { row, rows, col, cols }, .f = { 3.2f, 0.1f } },                              \
      .rt = { .lr = 0.02f },                                                                       \
      .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 0, 1, 0, 1),
    CASE(7, 51, 0, 7, 17, 17),
    CASE(131, 390, 0, 131, 130, 131),
    { .in = { TG_T2(F32, 5, 33), TG_T2(F32, 4, 33), TG_T1(F32, 4) },
      .attr = { .i = { 1, 4, 0, 33 }, .f = { 3.2f, 0.1f } },
      .rt = { .lr = 0.02f },
      .tol = 2e-6,
      .prepare = muon_put_refused },
};

static const char *const block[] = {
#include "ops/muon/block.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/muon/muon_step.wgsl.h"
};
static size_t groups(const tg_args *a) { return tg_shader_elem_groups(&a->in_type[1]); }
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { block, wgsl },
                  .bind = { TG_BIND_OUT(0), TG_BIND_IN(1), TG_BIND_IN(2) },
                  .groups = groups } } },
};

TG_OP_DESC(muon_step) = {
    .name = "muon_step",
    TG_DOC "weights of a matrix go along an orthogonal one, for Muon",
    .in_names = { "w", "x", "stats" },
    .out_names = { "w" },
    .n_in = 3,
    .n_out = 1,
    .state_in = { 1 },
    .infer = infer,
    TG_REFS(muon_step, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
