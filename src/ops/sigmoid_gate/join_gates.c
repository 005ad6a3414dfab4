/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_gates - the gradient of split_gates: the same elements the other way.
 *
 *   in 0  dqkv [..,(H+2K)*D]     in 1  dgates [..,H*D], or 0     out 0  dx [..,(2H+2K)*D]
 *   i[0] H   i[1] K   i[2] D
 */
#include "ops/sigmoid_gate/gates_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    tg_type rows;
    if (!gates_want(g, n, 0, 0, &rows)) return;
    const gates s = gates_of(&n->attr);
    if (!tg_want_type(g, n, 1, gates_type(&rows, s.HD))) return;
    n->out[0].type = gates_type(&rows, s.row + s.HD);
}

static void ref(const tg_args *a) {
    const gates s = gates_of(&a->attr);
    TG_REAL *dx = a->out[0];
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
        for (size_t i = 0; i < s.row + s.HD; i++) {
            const size_t at = gates_place(&s, i);
            const TG_REAL *from = a->in[at >= s.row];
            dx[r * (s.row + s.HD) + i] = at < s.row ? from[r * s.row + at]
                                         : from     ? from[r * s.HD + at - s.row]
                                                    : 0;
        }
}

TG_CASE_TABLE cases[] = {
    { .in = { TG_T2(F32, 1, 6), TG_T2(F32, 1, 2) }, .attr = { .i = { 1, 1, 2 } } },
    { .in = { TG_T2(F32, 2, 40), TG_ABSENT }, .attr = { .i = { 4, 2, 5 } } },
    { .in = { TG_T2(F32, 3, 40), TG_T2(F32, 3, 20) }, .attr = { .i = { 4, 2, 5 } } },
    { .in = { TG_T3(F32, 2, 67, 85), TG_T3(F32, 2, 67, 51) }, .attr = { .i = { 3, 1, 17 } } },
};

static const char *const wgsl[] = {
#include "ops/sigmoid_gate/gates_copy.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "join",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_OUT(0), TG_BIND_IN(0), TG_BIND_IN(1) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(join_gates) = {
    .name = "join_gates",
    TG_DOC "gradient of split_gates",
    .in_names = { "dqkv", "dgates" },
    .out_names = { "dx" },
    .n_in = 2,
    .n_in_optional = 1,
    .n_out = 1,
    .infer = infer,
    TG_REFS(join_gates, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
