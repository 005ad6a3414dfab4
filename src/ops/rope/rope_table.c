/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_table - the angles of rotary positions, once for all layers that turn by the same ones.
 *
 *   in 0   like                                                            in 1  freq [R/2]
 *   out 0  table [T,R]: cosines [R/2], then sines [R/2], of the angle pos[t] * freq[i], times f[0]
 *   f[0]   0: 1; above it, what YaRN and longrope stretch queries and keys by
 *   i[0]   1: like is at [T,2] i32, rows of sessions (ops/attention/cache/pages.h); pos[t] =
 * at[t,1] 2: like is pos [T] i32, of texts that lie one behind the other 0: like is [B,T] or
 * [B,T,..], whole sequences, of which only the shape is looked at; pos[t] = t
 *
 * The angle is rounded to f32, as transformers does; its functions are computed in double. Su et
 * al. 2021. Scaled positions are scaled frequencies, which whoever makes the model's states has
 * done.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rope/rope_reference.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    const tg_type *like = &n->in[0]->type;
    const bool by_row = n->attr.i[0] != 0, bare = n->attr.i[0] == TG_ROPE_POSITIONS;
    const tg_type at =
        bare ? tg_type_1d(TG_I32, like->dim[0]) : tg_type_2d(TG_I32, like->dim[0], 2);
    if (by_row && !tg_want_type(g, n, 0, at)) return;
    if (!bare && like->n_dims < 2) {
        tg_graph_fail(g, n, TG_E_SHAPE, "like: want 2 dimensions or more, have %d", like->n_dims);
        return;
    }
    if (!tg_want_dims(g, n, 1, TG_F32, 1, 1)) return;
    n->out[0].type = tg_type_2d(TG_F32, like->dim[!by_row], 2 * n->in[1]->type.dim[0]);
}

static void ref(const tg_args *a) {
    const size_t rows = a->out_type[0].dim[0], half = a->in_type[1].dim[0];
    const int32_t *at = a->attr.i[0] ? a->in[0] : NULL;
    const size_t step = a->attr.i[0] == TG_ROPE_AT ? 2 : 1;
    const TG_REAL *freq = a->in[1];
    const double scale = tg_rope_scale(&a->attr);
    TG_REAL *y = a->out[0];
    for (size_t t = 0; t < rows; t++) {
        for (size_t i = 0; i < half; i++) {
            const float angle = (float)(at ? at[step * t + step - 1] : (int32_t)t) * (float)freq[i];
            y[2 * half * t + i] = (TG_REAL)(tg_cos((double)angle) * scale);
            y[2 * half * t + half + i] = (TG_REAL)(tg_sin((double)angle) * scale);
        }
    }
}

#define CASE(like, half) { .in = { like, TG_T1(F32, half) }, .i32_below = 9, .tol = 1e-7 }
#define ROWS(rows_, half, ...)                                                                     \
    { .in = { TG_T2(I32, rows_, 2), TG_T1(F32, half) },                                            \
      .attr = { .i = { 1 } },                                                                      \
      .at_in = 1,                                                                                  \
      .at = { __VA_ARGS__ },                                                                       \
      .tol = 1e-7 }
TG_CASE_TABLE cases[] = {
    ROWS(1, 1, { 0, 0, 1 }),
    ROWS(1, 32, { 0, 77, 1 }),
    ROWS(17, 5, { 0, 1000, 17 }),
    ROWS(5, 67, { 0, 20000, 5 }),
    ROWS(11, 7, { 2, 9, 4 }, { 0, 0, 1 }, { 1, 30000, 6 }),
    { .in = { TG_T1(I32, 19), TG_T1(F32, 6) },
      .attr = { .i = { TG_ROPE_POSITIONS } },
      .i32_below = 3000,
      .tol = 1e-7 },
    CASE(TG_T2(I32, 2, 1), 1),
    { .in = { TG_T2(I32, 5, 33), TG_T1(F32, 12) }, .attr = { .f = { 1.5f } }, .tol = 2e-7 },
    CASE(TG_T2(I32, 3, 17), 16),
    CASE(TG_T3(F32, 2, 5, 3), 3),
};

static const char *const cos_sin[] = {
#include "ops/rope/cos_sin.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/rope/rope_table.wgsl.h"
};
static const char *const phase[] = {
#include "ops/rope/rope_table_phase.wgsl.h"
};
static const tg_grid grid = { .phase = { {
                                  .call = "rope_table",
                                  .wgsl = { cos_sin, phase },
                                  .states = 1 << 1,
                                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                              } } };
static const tg_shader shaders[] = {
    { .name = "pairs",
      .pass = { { .entry = "main",
                  .wgsl = { cos_sin, wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(rope_table) = {
    .name = "rope_table",
    TG_DOC "cosines and sines of rotary positions",
    .in_names = { "like", "freq" },
    .out_names = { "table" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(rope_table, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    TG_CASES(cases),
};
