/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muon_momentum - Nesterov's momentum of a matrix, the first half of Muon (Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon/), as torch.optim.Muon.
 *
 *   g = grads * coefficient        m' = b m + (1 - b) g        u = (1 - b) g + b m'
 *
 *   in 0  grads [R,C]   in 1  m [R,C]   in 2  stats [4] of grad_norm of all gradients
 *   out 0 the new version of m, of which the block alone is written
 *   out 1 u [rows, cols] of the block: what is to be orthogonalised
 *   i[0..3]  the block (block.h)     f[0]  b
 *
 * m is not written when stats' ok is 0; u then means nothing, and muon_step does not write either.
 */
#include "ops/build.h"
#include "ops/muon/block_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!muon_want(g, n, 0) || !tg_want_type(g, n, 1, n->in[0]->type)) return;
    if (!tg_want_type(g, n, 2, tg_type_1d(TG_F32, 4))) return;
    n->out[0].type = n->in[0]->type;
    n->out[1].type = tg_type_2d(TG_F32, (size_t)n->attr.i[1], (size_t)n->attr.i[3]);
}

static void ref(const tg_args *a) {
    const muon_block k = muon_block_of(&a->attr, &a->in_type[0]);
    const TG_REAL *grads = a->in[0], *m = a->in[1], *stats = a->in[2];
    TG_REAL *m_out = a->out[0], *u = a->out[1];
    const double b = (double)a->attr.f[0];
    for (size_t r = 0; r < k.rows; r++)
        for (size_t c = 0; c < k.cols; c++) {
            const size_t at = k.first + r * k.stride + c;
            const double g = (1 - b) * (double)grads[at] * (double)stats[1];
            const double new_m = b * (double)m[at] + g;
            u[r * k.cols + c] = (TG_REAL)(g + b * new_m);
            if (stats[2] != 0) m_out[at] = (TG_REAL)new_m;
        }
}

#define CASE(R, C, row, rows, col, cols)                                                           \
    { .in = { TG_T2(F32, R, C), TG_T2(F32, R, C), TG_T1(F32, 4) },                                 \
      .attr = { .i = { row, rows, col, cols }, .f = { 0.95f } },                                   \
      .tol = 2e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 0, 1, 0, 1),
    CASE(7, 51, 0, 7, 17, 17),
    CASE(96, 16, 32, 33, 0, 16),
    CASE(131, 390, 0, 131, 130, 131),
    { .in = { TG_T2(F32, 5, 33), TG_T2(F32, 5, 33), TG_T1(F32, 4) },
      .attr = { .i = { 1, 4, 0, 33 }, .f = { 0.95f } },
      .tol = 2e-6,
      .prepare = muon_put_refused },
};

static const char *const block[] = {
#include "ops/muon/block.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/muon/muon_momentum.wgsl.h"
};
static size_t groups(const tg_args *a) { return tg_shader_elem_groups(&a->out_type[1]); }
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { block, wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(2), TG_BIND_OUT(0), TG_BIND_OUT(1) },
                  .groups = groups } } },
};

TG_OP_DESC(muon_momentum) = {
    .name = "muon_momentum",
    TG_DOC "Nesterov's momentum of a matrix, for Muon",
    .in_names = { "grads", "m", "stats" },
    .out_names = { "m", "u" },
    .n_in = 3,
    .n_out = 2,
    .state_in = { 2, 0 },
    .infer = infer,
    TG_REFS(muon_momentum, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
