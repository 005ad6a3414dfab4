/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_gates - queries, keys and values apart from the gates of attention's outputs, which one
 * product gives together (gates_rules.h).
 *
 *   in 0  x [..,(2H+2K)*D]     out 0  qkv [..,(H+2K)*D]     out 1  gates [..,H*D]
 *   i[0] H   i[1] K   i[2] D
 */
#include "ops/sigmoid_gate/gates_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    tg_type rows;
    if (!gates_want(g, n, 0, 1, &rows)) return;
    const gates s = gates_of(&n->attr);
    n->out[0].type = gates_type(&rows, s.row);
    n->out[1].type = gates_type(&rows, s.HD);
}

static void ref(const tg_args *a) {
    const gates s = gates_of(&a->attr);
    const TG_REAL *x = a->in[0];
    for (size_t r = 0; r < tg_type_rows(&a->in_type[0]); r++)
        for (size_t i = 0; i < s.row + s.HD; i++) {
            const size_t at = gates_place(&s, i);
            TG_REAL *to = at < s.row ? (TG_REAL *)a->out[0] + r * s.row + at
                                     : (TG_REAL *)a->out[1] + r * s.HD + at - s.row;
            *to = x[r * (s.row + s.HD) + i];
        }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    if (dy[0]) din[0] = tg_join_gates(g, dy[0], dy[1], &n->attr);
}

TG_CASE_TABLE cases[] = {
    { .in = { TG_T2(F32, 1, 8) }, .attr = { .i = { 1, 1, 2 } } },
    { .in = { TG_T2(F32, 3, 60) }, .attr = { .i = { 4, 2, 5 } } },
    { .in = { TG_T3(F32, 2, 67, 136) }, .attr = { .i = { 3, 1, 17 } } },
};

static const char *const wgsl[] = {
#include "ops/sigmoid_gate/gates_copy.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "split",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_OUT(0), TG_BIND_OUT(1) },
                  .groups = tg_shader_groups_in0 } } },
};

TG_OP_DESC(split_gates) = {
    .name = "split_gates",
    TG_DOC "queries, keys and values apart from the gates of attention's outputs",
    .in_names = { "x" },
    .out_names = { "qkv", "gates" },
    .n_in = 1,
    .n_out = 2,
    .infer = infer,
    TG_REFS(split_gates, ref),
    TG_SHADERS(shaders),
    .grad = grad,
    TG_CASES(cases),
};
