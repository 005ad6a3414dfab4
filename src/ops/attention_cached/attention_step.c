/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_step - one new token: its heads turned, its key and value kept, and its attention to
 * the KV cache, in one op.
 *
 *   in 0   qkv [1,(H+2K)*D]      in 1  cache [P,2K,R,D]
 *   in 2   at [1,2] i32          in 3  pages [S,C] i32
 *   in 4   table [1,D] of rope_table, optional: without it nothing is turned
 *   in 5   q_norm [D] optional   in 6  k_norm [D] optional
 *   out 0  o [1,H*D]             out 1  the next version of cache, the same memory
 *   i[0] H   i[1] K   i[2] D, of a multiple of 4 up to 256   i[3] W   f[0] scale   f[1] eps of
 *   norms   f[2] cap of scores, 0: none
 *
 *   attention_cached(q, kv_append(cache, q)),  q = rope(qkv)
 *
 * attention_cached takes the other two in (lever fused_decode) for a plan of one row on a GPU. What
 * it keeps has the bits that they keep, and so has what it gives: plans of one row and of more go
 * on in each other's caches.
 */
#include "ops/attention/cache/cache_case.h"
#include "ops/attention/cache/kv_reference.h"
#include "ops/attention/flash/flash_shader.h"
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/attention_cached/one_shader.h"
#include "ops/rope/rope_reference.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) ||
        !tg_heads_want_qkv(g, n, 0, 2) || !tg_heads_want_cache(g, n, 1) ||
        !tg_heads_want_pages(g, n, 1, 0))
        return;
    const size_t d = (size_t)n->attr.i[2];
    if (n->in[0]->type.dim[0] != 1 || d % 4 != 0 || d > TG_STEP_SIZE_MAX) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "want one row, and heads of a multiple of 4 up to %d elements, have %zu rows "
                      "and heads of %zu",
                      TG_STEP_SIZE_MAX, n->in[0]->type.dim[0], d);
        return;
    }
    if (!tg_want_type(g, n, 4, tg_type_2d(TG_F32, 1, d)) ||
        !tg_want_type(g, n, 5, tg_type_1d(TG_F32, d)) ||
        !tg_want_type(g, n, 6, tg_type_1d(TG_F32, d)))
        return;
    n->out[0].type = tg_type_2d(TG_F32, 1, tg_heads_of(&n->attr).q_row);
    n->out[1].type = n->in[1]->type;
}

/* Head x as it is, or turned, with a norm or without. */
static void turn(const tg_args *a, const TG_REAL *x, const TG_REAL *norm, TG_REAL *y) {
    const size_t d = (size_t)a->attr.i[2];
    if (a->in[4])
        tg_rope_turn(x, y, norm, a->in[4], d, d,
                     norm ? tg_rope_scale_of(x, d, (double)a->attr.f[1]) : 1);
    else
        memcpy(y, x, d * sizeof *y);
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const int32_t *at = a->in[2];
    const TG_REAL *qkv = a->in[0];
    const tg_dtype dtype = a->in_type[1].dtype;
    const tg_paged p = tg_paged_of(&a->in_type[1], at, a->in[3], &a->in_type[3], 0);
    const size_t end = (size_t)at[1] + 1, window = (size_t)a->attr.i[3];
    TG_REAL x[TG_STEP_SIZE_MAX];
    for (size_t head = 0; head < s.n_kv; head++) {
        turn(a, qkv + tg_heads_k(&s, head), a->in[6], x);
        tg_kv_keep(dtype, a->out[1], tg_paged_row(&p, head, end - 1), x, s.size);
        tg_kv_keep(dtype, a->out[1], tg_paged_row(&p, s.n_kv + head, end - 1),
                   qkv + tg_heads_v(&s, head), s.size);
    }
    memory m = { .d = s.size,
                 .cache = a->out[1],
                 .pages = p,
                 .begin = window > 0 && end > window ? end - window : 0,
                 .dtype = dtype,
                 .cap = (double)a->attr.f[2] };
    m.n = end - m.begin;
    for (size_t h = 0; h < s.n_q; h++) {
        m.head[0] = h / s.group;
        m.head[1] = s.n_kv + h / s.group;
        turn(a, qkv + tg_heads_q(&s, h), a->in[5], x);
        attend(&m, (double)a->attr.f[0], x, (TG_REAL *)a->out[0] + h * s.size);
    }
}

static void prepare(const tg_args *a) {
    if (a->in_type[1].dtype != TG_F32) tg_case_fill_cache(a, 1, (size_t)a->attr.i[2]);
}

/* A token of sequence s_at of s at position pos, whose pages, c each of r positions, are in any
 * order; rows of the cache have `row` elements. */
#define CASE(dtype, s, c, r, row, h, k, d, w, s_at, pos, ...)                                      \
    CAPPED(0, dtype, s, c, r, row, h, k, d, w, s_at, pos, __VA_ARGS__)
#define CAPPED(cap, dtype, s, c, r, row, h, k, d, w, s_at, pos, ...)                               \
    { .in = { TG_T2(F32, 1, ((h) + 2 * (k)) * (d)), TG_T4(dtype, (s) * (c), 2 * (k), r, row),      \
              TG_T2(I32, 1, 2), TG_T2(I32, s, c), __VA_ARGS__ },                                   \
      .attr = { .i = { h, k, d, w }, .f = { 0.25f, 1e-5f, cap } },                                 \
      .prepare = prepare,                                                                          \
      .i32_below = 100,                                                                            \
      .distinct = 1 << 3,                                                                          \
      .at_in = 3,                                                                                  \
      .at = { { s_at, pos, 1 } },                                                                  \
      .tol = 1e-5 }
#define TURNED(d) TG_T2(F32, 1, d)
#define NORM(d)   TG_T1(F32, d)
TG_CASE_TABLE cases[] = {
    CASE(F32, 1, 1, 1, 4, 1, 1, 4, 0, 0, 0, TURNED(4)),
    CASE(F32, 1, 1, 64, 16, 2, 1, 16, 0, 0, 63, TURNED(16)),
    CASE(F32, 1, 2, 64, 64, 9, 3, 64, 0, 0, 64, TURNED(64)),
    CASE(F32, 3, 3, 64, 24, 6, 2, 24, 0, 1, 150, TURNED(24), NORM(24), NORM(24)),
    CASE(F32, 1, 1, 67, 256, 2, 1, 256, 0, 0, 40, TURNED(256), TG_ABSENT, NORM(256)),
    CASE(F32, 1, 1, 101, 80, 4, 4, 80, 0, 0, 100, TURNED(80), NORM(80)),
    CASE(F32, 2, 2, 64, 32, 4, 2, 32, 40, 1, 1000, TURNED(32)),
    CASE(F32, 1, 1, 64, 24, 2, 1, 24, 64, 0, 200, TURNED(24), NORM(24), NORM(24)),
    CASE(F32, 2, 1, 64, 12, 3, 3, 12, 0, 1, 17, TG_ABSENT),
    CAPPED(0.5f, F32, 1, 2, 64, 32, 4, 2, 32, 40, 0, 100, TURNED(32)),
    CAPPED(1, F16, 1, 2, 64, 16, 2, 1, 16, 0, 0, 90, TG_ABSENT),
    CASE(F16, 1, 2, 64, 32, 4, 2, 32, 0, 0, 70, TURNED(32)),
    CASE(F16, 3, 2, 64, 24, 2, 1, 24, 33, 2, 150, TG_ABSENT),
    CASE(U8, 1, 1, 64, 20, 4, 2, 16, 0, 0, 0, TG_ABSENT),
    CASE(U8, 2, 2, 64, 44, 6, 3, 40, 0, 1, 99, TG_ABSENT),
    CASE(U8, 1, 2, 64, 36, 2, 1, 32, 50, 0, 300, TG_ABSENT),
};

static const char *const pages[] = {
#include "ops/attention/cache/pages.wgsl.h"
};
static const char *const kv_floats[] = {
#include "ops/attention/cache/kv_floats.wgsl.h"
};
static const char *const kv_packed[] = {
#include "ops/attention/cache/kv_packed.wgsl.h"
};
static const char *const kv_round[] = {
#include "ops/attention/cache/kv_round.wgsl.h"
};
static const char *const step_floats[] = {
#include "ops/attention_cached/step_floats.wgsl.h"
};
static const char *const step_packed[] = {
#include "ops/attention_cached/step_packed.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention_cached/attention_step.wgsl.h"
};

/* infer has seen to the heads. */
static bool is_packed(const tg_args *a) { return !tg_flash_fours_any(a); }

#define PASSES(...)                                                                                \
    { { .entry = "parts",                                                                          \
        .wgsl = { pages, __VA_ARGS__, keys, wgsl, one },                                           \
        .reduces = true,                                                                           \
        .fours = true,                                                                             \
        .bind = { TG_BIND_IN(0), TG_BIND_OUT(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_IN(4),      \
                  TG_BIND_SCRATCH, TG_BIND_IN(5), TG_BIND_IN(6) },                                 \
        .groups = tg_one_tile_groups },                                                            \
      TG_ONE_WHOLE }
static const tg_shader shaders[] = {
    { .name = "one row",
      .fits = tg_flash_fours_any,
      .word = tg_one_word,
      .pass = PASSES(kv_floats, step_floats),
      .scratch_bytes = tg_one_bytes },
    { .name = "one row, packed",
      .fits = is_packed,
      .word = tg_one_word,
      .pass = PASSES(kv_packed, kv_round, step_packed),
      .scratch_bytes = tg_one_bytes },
};

/* In one dispatch with all other steps: so many parts of the keys of a head at most. */
enum { GRID_PARTS = 16 };
static const char *const grid_once[] = {
#include "ops/attention_cached/attention_phase_once.wgsl.h"
};
static const char *const grid_phase[] = {
#include "ops/attention_cached/attention_phase.wgsl.h"
};
static uint32_t grid_word(const tg_args *a) {
    return tg_one_word(a) < GRID_PARTS ? tg_one_word(a) : GRID_PARTS;
}
static bool fits_grid(const tg_args *a) { return a->in_type[1].dtype == TG_F32; }
static size_t grid_bytes(const tg_args *a) {
    return (size_t)a->attr.i[0] * grid_word(a) * ((size_t)a->attr.i[2] + 2) * sizeof(float);
}
static const tg_grid grid = {
    .fits = fits_grid,
    .word = grid_word,
    .scratch_bytes = grid_bytes,
    .phase = { { .call = "attention_parts",
                 .wgsl = { grid_once, grid_phase },
                 .bind = { TG_BIND_IN(0), TG_BIND_OUT(1), TG_BIND_IN(2), TG_BIND_IN(3),
                           TG_BIND_IN(4), TG_BIND_SCRATCH, TG_BIND_IN(5), TG_BIND_IN(6) },
                 .states = 1 << 1 | 1 << 6 | 1 << 7,
                 .reads_old = 1 << 1 },
               { .call = "attention_whole",
                 .wgsl = { grid_once, grid_phase },
                 .bind = { TG_BIND_NONE, TG_BIND_OUT(0), TG_BIND_SCRATCH },
                 .gives_row = true } },
};

TG_OP_DESC(attention_step) = {
    .name = "attention_step",
    TG_DOC "a new token's heads turned, kept, and its attention to the KV cache",
    .in_names = { "qkv", "cache", "at", "pages", "table", "q_norm", "k_norm" },
    .out_names = { "o", "cache" },
    .n_in = 7,
    .n_in_optional = 3,
    .n_out = 2,
    .state_in = { 0, 2 },
    .scalar_only = true,
    .infer = infer,
    TG_REFS(attention_step, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    TG_CASES(cases),
};
