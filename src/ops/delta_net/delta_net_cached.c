/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net_cached - delta_net over rows of sessions, which go on from the states that those before
 * left: as mamba2_cached does, whose words on states and slots hold here.
 *
 *   in 0  z [T,I+K], T dynamic          in 1  states [P,1,1,E]
 *   in 2  at [T,2] i32                  in 3  slots [S,2] i32
 *   in 4  w [K,L]    in 5  heads [2H+P]     in 6  ba [T,2H]
 *   out 0 y [T,I]                       out 1 the next version of states, the same memory
 */
#include "ops/attention/cache/pages.h"
#include "ops/delta_net/delta_net_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (!delta_want(g, n, 4, 6, 2, &m) || !tg_want_dims(g, n, 1, TG_F32, 4, 4) ||
        !tg_want_dims(g, n, 3, TG_I32, 2, 2))
        return;
    const tg_type states = { TG_F32, 4, { n->in[1]->type.dim[0], 1, 1, mamba_state_elems(&m) } };
    const size_t T = n->in[0]->type.dim[0], S = n->in[3]->type.dim[0];
    if (!tg_want_type(g, n, 1, states) || !tg_want_type(g, n, 2, tg_type_2d(TG_I32, T, 2)) ||
        !tg_want_type(g, n, 3, tg_type_2d(TG_I32, S, 2)))
        return;
    n->out[0].type = mamba_y(&n->in[0]->type, &m);
    n->out[1].type = states;
}

/* One row, on the state that the rows before it left. */
static void ref_row(const tg_args *a, const mamba *m, size_t row, TG_REAL *state) {
    const TG_REAL *z = (const TG_REAL *)a->in[0] + row * m->Z, *w = a->in[4], *heads = a->in[5];
    const delta_row r = { z, state, 0 };
    TG_REAL *y = (TG_REAL *)a->out[0] + row * m->I;
    delta_head k;
    for (size_t i = 0; i < m->I; i++) {
        const size_t h = i / m->P, p = i % m->P;
        const double v = act_silu(delta_conv(m, &r, w, delta_v(m, h) + p));
        double recalled = 0, sum = 0;
        delta_head_at(m, &a->attr, &r, (const TG_REAL *)a->in[6] + row * 2 * m->H, w, heads, h, &k);
        for (size_t n = 0; n < m->N; n++)
            recalled += k.k[n] * k.kept * (double)state[mamba_at(m, h, p, n)];
        for (size_t n = 0; n < m->N; n++) {
            TG_REAL *s = state + mamba_at(m, h, p, n);
            *s = (TG_REAL)((double)*s * k.kept + k.k[n] * k.write * (v - recalled));
            sum += k.q[n] * (double)*s;
        }
        y[i] = (TG_REAL)sum;
    }
    for (size_t h = 0; h < m->H; h++) delta_gate(m, &a->attr, z, heads, h, y + h * m->P);
    memmove(state, state + m->K, (m->L - 2) * m->K * sizeof *state);
    memcpy(state + (m->L - 2) * m->K, z + m->I, m->K * sizeof *state);
}

static void ref(const tg_args *a) {
    const mamba m = delta_sizes(a, 4);
    TG_REAL *state = NULL;
    for (size_t r = 0; r < a->in_type[0].dim[0]; r++) {
        state = mamba_state_of(a, &m, r, state);
        ref_row(a, &m, r, state);
    }
}

/* In p states of e elements, of s sequences. */
#define CASE(p, e, s, t, h, c, g, n, l, order, ...)                                                \
    {                                                                                              \
        .in = { TG_T2(F32, t, 2 * (h) * (c) + 2 * (g) * (n)),                                      \
                TG_T4(F32, p, 1, 1, e),                                                            \
                TG_T2(I32, t, 2),                                                                  \
                TG_T2(I32, s, 2),                                                                  \
                TG_T2(F32, (h) * (c) + 2 * (g) * (n), l),                                          \
                TG_T1(F32, 2 * (h) + (c)),                                                         \
                TG_T2(F32, t, 2 * (h)) },                                                          \
        .attr = { .i = { h, c, g, n, order }, .f = { 1e-6f } }, .tol = 2e-5, .i32_below = 100,     \
        .distinct = 1 << 3, .at_in = 3, .at = {                                                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
TG_CASE_TABLE cases[] = {
    CASE(2, 4, 1, 1, 1, 1, 1, 1, 2, 0, { 0, 0, 1 }),
    CASE(2, 42, 1, 5, 2, 3, 1, 2, 4, 0, { 0, 2, 5 }),
    CASE(9, 164, 3, 33, 4, 2, 2, 3, 8, 1, { 1, 63, 2 }, { 0, 0, 1 }, { 2, 1000, 30 }),
    CASE(8, 742, 4, 7, 2, 17, 1, 16, 4, 0, { 3, 9, 1 }, { 0, 0, 4 }, { 1, 64, 1 }, { 2, 0, 1 }),
    CASE(4, 12100, 2, 3, 2, 80, 1, 70, 4, 0, { 1, 9, 2 }, { 0, 0, 1 }),
};

static const char *const sizes[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const places[] = {
#include "ops/delta_net/delta_net_common.wgsl.h"
};
static const char *const states[] = {
#include "ops/mamba2/mamba2_states.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/delta_net/delta_net_cached.wgsl.h"
};
static const char *const rows[] = {
#include "ops/delta_net/delta_net_rows.wgsl.h"
};
static const char *const gate[] = {
#include "ops/delta_net/delta_net_gate.wgsl.h"
};
static size_t scan_groups(const tg_args *a) {
    return (size_t)a->attr.i[0] * tg_shader_parts((size_t)a->attr.i[1], 16);
}
static size_t gate_groups(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
static size_t keep_groups(const tg_args *a) {
    const mamba m = delta_sizes(a, 4);
    return tg_shader_parts(m.K, 64);
}
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 4);
    return sizeof(float) * a->in_type[0].dim[0] * m.K;
}
#define PASS(name, count, rows_of, taps)                                                           \
    { .entry = name,                                                                               \
      .wgsl = { sizes, places, states, wgsl, rows, gate },                                         \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(rows_of), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_IN(taps),               \
                TG_BIND_OUT(1), TG_BIND_SCRATCH, TG_BIND_OUT(0) },                                 \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("rows", delta_row_groups, 0, 4), PASS("scan", scan_groups, 6, 5),
                PASS("gate", gate_groups, 0, 5), PASS("keep", keep_groups, 0, 4) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(delta_net_cached) = {
    .name = "delta_net_cached",
    TG_DOC "delta_net on from the state that a cache keeps of a sequence",
    .in_names = { "z", "states", "at", "slots", "w", "heads", "ba" },
    .out_names = { "y", "states" },
    .n_in = 7,
    .n_out = 2,
    .state_in = { 0, 2 },
    .infer = infer,
    TG_REFS(delta_net_cached, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
