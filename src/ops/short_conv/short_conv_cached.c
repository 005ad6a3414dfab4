/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv_cached - short_conv over rows of sessions, which go on behind what a cache keeps of
 * theirs.
 *
 *   in 0  z [T,3C], T dynamic      in 1  cache [P,1,R,C]: u of positions
 *   in 2  at [T,2] i32             in 3  pages [S,C] i32             in 4  w [C,L]
 *   out 0 y [T,C]                  out 1 the next version of cache, the same memory
 *
 * u of a row is kept at its position (ops/attention/cache/pages.h), and read from there by later
 * calls. Rows that are not named keep what they hold. A ring must have room for a call's rows and
 * the taps before them.
 */
#include "ops/attention/heads_rules.h"
#include "ops/shader.h"
#include "ops/short_conv/conv_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    tg_type y;
    if (!conv_want(g, n, 4, 2, &y) || !tg_want_dims(g, n, 1, TG_F32, 4, 4)) return;
    tg_type cache = n->in[1]->type;
    cache.dim[1] = 1;
    cache.dim[3] = tg_type_cols(&y);
    if (!tg_want_type(g, n, 1, cache) || !tg_heads_want_pages(g, n, 1, 0)) return;
    n->out[0].type = y;
    n->out[1].type = cache;
}

/* Rows rise, so all that a row sees is in the cache by then. */
static void ref(const tg_args *a) {
    const size_t C = tg_type_cols(&a->out_type[0]), L = a->in_type[4].dim[1];
    const int32_t *at = a->in[2];
    const TG_REAL *w = a->in[4];
    TG_REAL *cache = a->out[1];
    for (size_t r = 0; r < a->in_type[0].dim[0]; r++) {
        const tg_paged p = tg_paged_of(&a->in_type[1], at, a->in[3], &a->in_type[3], r);
        const TG_REAL *z = (const TG_REAL *)a->in[0] + r * 3 * C;
        const size_t pos = (size_t)at[2 * r + 1];
        for (size_t c = 0; c < C; c++) {
            double sum = 0;
            cache[tg_paged_row(&p, 0, pos) * C + c] = (TG_REAL)conv_u(z, C, c);
            for (size_t back = 0; back < L && back <= pos; back++)
                sum += (double)w[c * L + L - 1 - back] *
                       (double)cache[tg_paged_row(&p, 0, pos - back) * C + c];
            ((TG_REAL *)a->out[0])[r * C + c] = (TG_REAL)((double)z[C + c] * sum);
        }
    }
}

/* In p pages of r positions, of s sequences of n pages each. */
#define CASE(p, r, s, n, t, c, l, ...)                                                             \
    {                                                                                              \
        .in = { TG_T2(F32, t, 3 * (c)), TG_T4(F32, p, 1, r, c), TG_T2(I32, t, 2),                  \
                TG_T2(I32, s, n), TG_T2(F32, c, l) },                                              \
        .tol = 2e-6, .i32_below = 100, .distinct = 1 << 3, .at_in = 3, .at = {                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 2, { 0, 0, 1 }),
    CASE(1, 40, 1, 1, 33, 16, 4, { 0, 2, 33 }),
    CASE(6, 64, 3, 2, 75, 5, 8, { 1, 63, 2 }, { 0, 0, 1 }, { 2, 1000, 72 }),
    CASE(4, 64, 4, 1, 4, 33, 3, { 3, 9, 1 }, { 0, 63, 1 }, { 1, 64, 1 }, { 2, 0, 1 }),
};

static const char *const pages[] = {
#include "ops/attention/cache/pages.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/short_conv/short_conv_cached.wgsl.h"
};
static const tg_shader shaders[] = {
    { .name = "elements",
      .pass = { { .entry = "main",
                  .wgsl = { pages, wgsl },
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_IN(4),
                            TG_BIND_OUT(0), TG_BIND_OUT(1) },
                  .groups = tg_shader_groups_out0 } } },
};

TG_OP_DESC(short_conv_cached) = {
    .name = "short_conv_cached",
    TG_DOC "short_conv behind what a cache keeps of a sequence",
    .in_names = { "z", "cache", "at", "pages", "w" },
    .out_names = { "y", "cache" },
    .n_in = 5,
    .n_out = 2,
    .state_in = { 0, 2 },
    .infer = infer,
    TG_REFS(short_conv_cached, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
