/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2_cached - mamba2 over rows of sessions, which go on from the states that those before left.
 *
 *   in 0  z [T,2I+2GN+H], T dynamic     in 1  states [P,1,1,E]: mamba2_rules.h
 *   in 2  at [T,2] i32                  in 3  slots [S,2] i32
 *   in 4  w [K,L]    in 5  bias [K]     in 6  heads [3H]
 *   out 0 y [T,I]                       out 1 the next version of states, the same memory
 *
 * Rows of a sequence stand together. They go on from states[slots[s,0]], or from zeros at position
 * 0, and what they leave goes to states[slots[s,1]], another one: so the state before a call is
 * there after it, for a sequence that goes back. States that are not named keep what they hold.
 */
#include "ops/attention/cache/pages.h"
#include "ops/mamba2/mamba2_rules.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (!mamba_want(g, n, 4, 2, &m) || !tg_want_dims(g, n, 1, TG_F32, 4, 4) ||
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

/* Column c of the convolution behind L-1 rows before. */
static double ref_conv(const tg_args *a, const mamba *m, const TG_REAL *z, const TG_REAL *before,
                       size_t c) {
    const TG_REAL *w = (const TG_REAL *)a->in[4] + c * m->L;
    double sum = (double)((const TG_REAL *)a->in[5])[c];
    for (size_t j = 0; j + 1 < m->L; j++) sum += (double)w[j] * (double)before[j * m->K + c];
    return act_silu(sum + (double)w[m->L - 1] * (double)z[m->I + c]);
}

/* One row, on the state that the rows before it left. */
static void ref_row(const tg_args *a, const mamba *m, const TG_REAL *z, TG_REAL *state,
                    TG_REAL *y) {
    const TG_REAL *heads = a->in[6];
    for (size_t i = 0; i < m->I; i++) {
        const size_t h = i / m->P, b = mamba_b(m, h);
        const double x = ref_conv(a, m, z, state, i), step = mamba_step(m, z, heads, h);
        const double kept = tg_exp(step * mamba_decay(m, heads, h));
        double sum = (double)heads[2 * m->H + h] * x;
        for (size_t n = 0; n < m->N; n++) {
            TG_REAL *s = state + mamba_at(m, h, i % m->P, n);
            *s = (TG_REAL)((double)*s * kept + step * x * ref_conv(a, m, z, state, b + n));
            sum += (double)*s * ref_conv(a, m, z, state, b + m->G * m->N + n);
        }
        y[i] = (TG_REAL)(sum * act_silu((double)z[i]));
    }
    memmove(state, state + m->K, (m->L - 2) * m->K * sizeof *state);
    memcpy(state + (m->L - 2) * m->K, z + m->I, m->K * sizeof *state);
}

static void ref(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    TG_REAL *state = NULL;
    for (size_t r = 0; r < a->in_type[0].dim[0]; r++) {
        state = mamba_state_of(a, &m, r, state);
        ref_row(a, &m, (const TG_REAL *)a->in[0] + r * m.Z, state, (TG_REAL *)a->out[0] + r * m.I);
    }
}

/* In p states of e elements, of s sequences. */
#define CASE(p, e, s, t, h, c, g, n, l, ...)                                                       \
    {                                                                                              \
        .in = { TG_T2(F32, t, 2 * (h) * (c) + 2 * (g) * (n) + (h)),                                \
                TG_T4(F32, p, 1, 1, e),                                                            \
                TG_T2(I32, t, 2),                                                                  \
                TG_T2(I32, s, 2),                                                                  \
                TG_T2(F32, (h) * (c) + 2 * (g) * (n), l),                                          \
                TG_T1(F32, (h) * (c) + 2 * (g) * (n)),                                             \
                TG_T1(F32, 3 * (h)) },                                                             \
        .attr = { .i = { h, c, g, n } }, .tol = 1e-5, .i32_below = 100, .distinct = 1 << 3,        \
        .at_in = 3, .at = {                                                                        \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
TG_CASE_TABLE cases[] = {
    CASE(2, 4, 1, 1, 1, 1, 1, 1, 2, { 0, 0, 1 }),
    CASE(2, 42, 1, 5, 2, 3, 1, 2, 4, { 0, 2, 5 }),
    CASE(9, 164, 3, 33, 4, 2, 2, 3, 8, { 1, 63, 2 }, { 0, 0, 1 }, { 2, 1000, 30 }),
    CASE(8, 742, 4, 7, 2, 17, 1, 16, 4, { 3, 9, 1 }, { 0, 0, 4 }, { 1, 64, 1 }, { 2, 0, 1 }),
};

static const char *const common[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const places[] = {
#include "ops/mamba2/mamba2_states.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/mamba2/mamba2_cached.wgsl.h"
};
static size_t conv_groups(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    return tg_shader_parts(a->in_type[0].dim[0] * m.K, TG_SHADER_ELEMS);
}
static size_t scan_groups(const tg_args *a) {
    return (size_t)a->attr.i[0] * tg_shader_parts((size_t)a->attr.i[1], 64);
}
static size_t keep_groups(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    return tg_shader_parts(m.K, 64);
}
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = mamba_sizes(a, 4);
    return sizeof(float) * a->in_type[0].dim[0] * m.K;
}
/* More than a pass may bind; each leaves out what it does not read. */
#define PASS(name, count, a, b)                                                                    \
    { .entry = name,                                                                               \
      .wgsl = { common, places, wgsl },                                                            \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(2), TG_BIND_IN(3), a, b, TG_BIND_OUT(1),                 \
                TG_BIND_SCRATCH },                                                                 \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("conv", conv_groups, TG_BIND_IN(4), TG_BIND_IN(5)),
                PASS("scan", scan_groups, TG_BIND_IN(6), TG_BIND_OUT(0)),
                PASS("keep", keep_groups, TG_BIND_IN(4), TG_BIND_IN(5)) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(mamba2_cached) = {
    .name = "mamba2_cached",
    TG_DOC "mamba2 on from the state that a cache keeps of a sequence",
    .in_names = { "z", "states", "at", "slots", "w", "bias", "heads" },
    .out_names = { "y", "states" },
    .n_in = 7,
    .n_out = 2,
    .state_in = { 0, 2 },
    .infer = infer,
    TG_REFS(mamba2_cached, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
