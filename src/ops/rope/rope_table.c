/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_table - the angles of rotary positions, once for all layers that turn by the same ones.
 *
 *   in 0   like, of which only the shape is looked at                     in 1  freq [D/2]
 *   out 0  table [T,D]: cosines [D/2], then sines [D/2], of the angle (pos + t) * freq[i]
 *   i[0]   1: like is [T] or [T,..], T dynamic, rows of a session; pos is the run-time scalar
 *          0: like is [B,T] or [B,T,..], whole sequences; pos is 0
 *
 * The angle is rounded to f32, as transformers does; its functions are computed in double. Su et
 * al. 2021. Scaled positions are scaled frequencies, which whoever makes the model's states has
 * done.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    const tg_type *like = &n->in[0]->type;
    const int at = n->attr.i[0] ? 0 : 1;
    if (like->n_dims <= at) {
        tg_graph_fail(g, n, TG_E_SHAPE, "like: want more than %d dimensions, have %d", at,
                      like->n_dims);
        return;
    }
    if (!tg_want_dims(g, n, 1, TG_F32, 1, 1)) return;
    n->out[0].type = tg_type_2d(TG_F32, like->dim[at], 2 * n->in[1]->type.dim[0]);
}

static void ref(const tg_args *a) {
    const size_t rows = a->out_type[0].dim[0], half = a->in_type[1].dim[0];
    const int32_t pos = a->attr.i[0] ? a->rt->pos : 0;
    const TG_REAL *freq = a->in[1];
    TG_REAL *y = a->out[0];
    for (size_t t = 0; t < rows; t++) {
        for (size_t i = 0; i < half; i++) {
            const float angle = (float)(pos + (int32_t)t) * (float)freq[i];
            y[2 * half * t + i] = (TG_REAL)tg_cos((double)angle);
            y[2 * half * t + half + i] = (TG_REAL)tg_sin((double)angle);
        }
    }
}

#define CASE(like, use_pos, pos_, half)                                                            \
    { .in = { like, TG_T1(F32, half) },                                                            \
      .attr = { .i = { use_pos } },                                                                \
      .rt = { .pos = (pos_) },                                                                     \
      .i32_below = 9,                                                                              \
      .tol = 1e-7 }
static const tg_case cases[] = {
    CASE(TG_T1(I32, 1), 1, 0, 1),       CASE(TG_T1(I32, 1), 1, 77, 32),
    CASE(TG_T1(I32, 17), 1, 1000, 5),   CASE(TG_T1(I32, 5), 1, 20000, 67),
    CASE(TG_T2(F32, 3, 2), 1, 9, 7),    CASE(TG_T2(I32, 2, 1), 0, 9, 1),
    CASE(TG_T2(I32, 3, 17), 0, 77, 16), CASE(TG_T3(F32, 2, 5, 3), 0, 0, 3),
};

static const char *const wgsl[] = {
#include "ops/rope/rope_table.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "pairs",
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(rope_table) = {
    .name = "rope_table",
    .doc = "cosines and sines of rotary positions",
    .in_names = { "like", "freq" },
    .out_names = { "table" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(rope_table, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
