/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_cached - attention of new tokens to the KV cache, which holds their own keys already.
 *
 *   in 0   qkv [T,(H+2K)*D], T dynamic; its queries alone are read     in 1  cache [P,2K,R,D]
 *   in 2   at [T,2] i32                                                in 3  pages [S,C] i32
 *   out 0  o [T,H*D]
 *   i[0] H   i[1] K   i[2] D   i[3] W   f[0] scale   f[2] cap of scores, 0: none
 *
 *   o[t] = sum_j p[t,j] v[j],  p[t,:] = softmax of scale * q[t].k[j]        for j = 0 .. pos[t]
 *   with a cap c of c tanh(scale * q[t].k[j] / c)
 *
 * k and v are those of the sequence of row t, whose position is pos[t]: at, pages and cache are
 * laid out in ops/attention/cache/pages.h. So rows of several sequences may stand in one call, and
 * the bits of each depend on its own sequence alone.
 *
 * With a window W above 0, j begins at pos[t] + 1 - W where that is above 0. Then the pages may be
 * a ring of fewer positions than the sequence has, key j in row j mod CR:
 *
 *   row   0 ......... e-1 | e ........ CR-1        e = behind the newest position, mod CR
 *         newest, with T  | oldest                 CR >= W - 1 + T
 *
 * The cache may be packed (ops/attention/cache/kv_row.h). kv_append comes before it. Keys of
 * positions behind a row's own are never read.
 */
#include "ops/attention/cache/cache_case.h"
#include "ops/attention/flash/flash_shader.h"
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/attention_cached/one_shader.h"
#include "ops/build.h"
#include "ops/kernel.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) ||
        !tg_heads_want_qkv(g, n, 0, 2) || !tg_heads_want_cache(g, n, 1) ||
        !tg_heads_want_pages(g, n, 1, 0))
        return;
    n->out[0].type = tg_type_2d(TG_F32, n->in[0]->type.dim[0], tg_heads_of(&n->attr).q_row);
}

/* What the session sees to, stated where it is relied on. n rows of a sequence up to position
 * `last`.
 */
static void assert_room(const tg_args *a, size_t n, size_t last) {
    const size_t window = (size_t)a->attr.i[3];
    const size_t room = a->in_type[3].dim[1] * a->in_type[1].dim[2];
    TG_ASSERT(last < room || (window > 0 && window - 1 + n <= room && room % TG_PAGE_TILE == 0));
    (void)n, (void)last, (void)window, (void)room;
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const int32_t *at = a->in[2];
    const size_t rows = a->in_type[0].dim[0], window = (size_t)a->attr.i[3];
    for (size_t t = 0; t < rows; t++) {
        const size_t end = (size_t)at[2 * t + 1] + 1;
        const size_t n = tg_paged_run(at, t, rows);
        assert_room(a, n, end - 1 + n - 1);
        memory m = { .d = s.size,
                     .cache = a->in[1],
                     .pages = tg_paged_of(&a->in_type[1], at, a->in[3], &a->in_type[3], t),
                     .begin = window > 0 && end > window ? end - window : 0,
                     .dtype = a->in_type[1].dtype,
                     .cap = (double)a->attr.f[2] };
        m.n = end - m.begin;
        for (size_t h = 0; h < s.n_q; h++) {
            m.head[0] = h / s.group;
            m.head[1] = s.n_kv + h / s.group;
            attend(&m, (double)a->attr.f[0],
                   (const TG_REAL *)a->in[0] + t * s.row + tg_heads_q(&s, h),
                   (TG_REAL *)a->out[0] + t * s.q_row + h * s.size);
        }
    }
}

/* ---------------------------------------------------------------------------------------- fusion
 */

/*
 * One row: keeping its key and value, and the turning before that, move in here, since a dispatch
 * costs a GPU more than to turn a head once more.
 *
 *     qkv -- rope --+-- kv_append -- attention_cached      =>      qkv -- attention_step
 *                   '-----------------'
 */
static bool fuse(tg_graph *g, tg_node *n) {
    tg_value *const qkv = n->in[0];
    tg_node *const keep = n->in[1]->node, *const rope = qkv->node;
    const int32_t size = n->attr.i[2];
    if (!(g->levers & TG_LEVER_BIT(fused_decode)) || qkv->type.dim[0] != 1 || size % 4 != 0 ||
        size > TG_STEP_SIZE_MAX)
        return false;
    if (keep->op != TG_OP_kv_append || keep->in[1] != qkv || keep->in[2] != n->in[2] ||
        keep->in[3] != n->in[3] || tg_single_user(g, n->in[1]) != n)
        return false;
    const bool turns = rope->op == TG_OP_rope && tg_count_uses(g, qkv) == 2 &&
                       rope->in[1]->type.dim[1] == (size_t)size && !rope->attr.i[3];
    n->op = TG_OP_attention_step;
    n->n_in = 7;
    n->n_out = 2;
    n->in[1] = keep->in[0];
    n->out[1] = keep->out[0];
    n->out[1].node = n;
    n->out[1].index = 1;
    tg_replace_uses(g, &keep->out[0], &n->out[1], NULL);
    tg_node_remove(g, keep);
    if (!turns) return true;
    n->attr.f[1] = rope->attr.f[0];
    n->in[0] = rope->in[0];
    for (int i = 1; i < rope->n_in; i++) n->in[3 + i] = rope->in[i];
    tg_node_remove(g, rope);
    return true;
}

/* Positions are known once there are inputs. */
static double flop(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const int32_t *at = a->in[2];
    const double rows = (double)a->in_type[0].dim[0];
    return 4 * (double)s.q_row * tg_heads_pairs(rows, at ? (double)at[1] : 0);
}

#define IN(dtype, p, r, row, s, c, rows_, h, k, d)                                                 \
    { TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)), TG_T4(dtype, p, 2 * (k), r, row),                  \
      TG_T2(I32, rows_, 2), TG_T2(I32, s, c) }
#define OF(h, k, d, scale_, w, ...) OF_CAPPED(h, k, d, scale_, w, 0, __VA_ARGS__)
#define OF_CAPPED(h, k, d, scale_, w, cap, ...)                                                    \
    .attr = { .i = { h, k, d, w }, .f = { scale_, 0, cap } }, .at_in = 3, .distinct = 1 << 3,      \
    .tol = 3e-6, .at = { __VA_ARGS__ }
/* One row, a few and many of one sequence, at the beginning of a cache of one page, inside, and
 * where it ends. */
#define CASE(rows_, pos_, r, h, k, d, scale_) WINDOW(rows_, pos_, r, h, k, d, scale_, 0)
#define WINDOW(rows_, pos_, r, h, k, d, scale_, w)                                                 \
    { .in = IN(F32, 1, r, d, 1, 1, rows_, h, k, d), OF(h, k, d, scale_, w, { 0, pos_, rows_ }) }
/* Of s sequences with c pages each, of 64 positions, in any order. */
#define PAGES(s, c, rows_, h, k, d, scale_, w, ...)                                                \
    { .in = IN(F32, (s) * (c), 64, d, s, c, rows_, h, k, d), OF(h, k, d, scale_, w, __VA_ARGS__) }
#define CAPPED(s, c, rows_, h, k, d, scale_, w, cap, alone, ...)                                   \
    { .in = IN(F32, (s) * (c), 64, d, s, c, rows_, h, k, d),                                       \
      .rows_alone = alone,                                                                         \
      OF_CAPPED(h, k, d, scale_, w, cap, __VA_ARGS__) }
/* Rows that a GPU takes one by one. */
#define ALONE(s, c, rows_, h, k, d, scale_, w, ...)                                                \
    { .in = IN(F32, (s) * (c), 64, d, s, c, rows_, h, k, d),                                       \
      .rows_alone = true,                                                                          \
      OF(h, k, d, scale_, w, __VA_ARGS__) }
static void prepare(const tg_args *a) { tg_case_fill_cache(a, 1, (size_t)a->attr.i[2]); }
#define PACKED(dtype, rows_, r, h, k, d, row, scale_, w, ...)                                      \
    PACKED_PAGES(dtype, 1, 1, r, rows_, h, k, d, row, scale_, w, __VA_ARGS__)
#define PACKED_PAGES(dtype, s, c, r, rows_, h, k, d, row, scale_, w, ...)                          \
    { .in = IN(dtype, (s) * (c), r, row, s, c, rows_, h, k, d),                                    \
      .attr = { .i = { h, k, d, w }, .f = { scale_ } },                                            \
      .i32_below = 100,                                                                            \
      .prepare = prepare,                                                                          \
      .no_shader = (d) % 4 != 0,                                                                   \
      .distinct = 1 << 3,                                                                          \
      .at_in = 3,                                                                                  \
      .at = { __VA_ARGS__ },                                                                       \
      .tol = 3e-6 }
TG_CASE_TABLE cases[] = {
    CASE(1, 0, 1, 1, 1, 1, 1),
    CASE(1, 0, 9, 3, 3, 8, 0.35355339f),
    CASE(1, 15, 16, 2, 1, 16, 0.25f),
    CASE(1, 64, 128, 4, 2, 32, 0.1767767f),
    CASE(1, 190, 193, 2, 2, 80, 0.1118034f),
    CASE(2, 61, 67, 2, 1, 40, 0.15811388f),
    CASE(3, 127, 130, 2, 2, 64, 0.125f),
    CASE(5, 0, 5, 6, 2, 24, 0.20412415f),
    CASE(16, 50, 101, 2, 2, 32, 0.1767767f),
    CASE(17, 64, 97, 3, 3, 32, 0.1767767f),
    CASE(63, 1, 64, 2, 2, 64, 0.125f),
    CASE(64, 0, 64, 1, 1, 128, 0.08838835f),
    CASE(67, 33, 131, 4, 1, 5, 0.4472136f),
    CASE(131, 0, 192, 2, 2, 16, 1),
    WINDOW(1, 99, 128, 2, 1, 32, 0.1767767f, 1),
    WINDOW(1, 200, 256, 4, 2, 16, 0.25f, 65),
    WINDOW(1, 63, 64, 1, 1, 24, 0.2f, 64),
    WINDOW(67, 30, 128, 2, 2, 16, 0.25f, 40),
    WINDOW(9, 0, 16, 2, 1, 8, 0.35f, 4),
    WINDOW(1, 1000, 64, 2, 1, 24, 0.2f, 40),
    WINDOW(1, 127, 64, 1, 1, 8, 0.35f, 64),
    WINDOW(67, 93, 128, 2, 2, 16, 0.25f, 62),
    WINDOW(65, 63, 128, 2, 1, 16, 0.25f, 3),
    WINDOW(80, 110, 192, 2, 1, 16, 0.25f, 100),
    WINDOW(70, 100, 192, 2, 1, 24, 0.2f, 128),
    WINDOW(150, 1000, 320, 2, 2, 16, 0.25f, 171),
    PACKED(F16, 1, 128, 4, 2, 32, 32, 0.1767767f, 0, { 0, 70, 1 }),
    PACKED(F16, 37, 64, 2, 1, 24, 24, 0.2f, 0, { 0, 3, 37 }),
    PACKED(U8, 1, 128, 4, 2, 32, 36, 0.1767767f, 0, { 0, 70, 1 }),
    PACKED(U8, 1, 101, 2, 1, 40, 44, 0.15811388f, 13, { 0, 99, 1 }),
    PACKED(U8, 67, 70, 2, 2, 17, 21, 0.25f, 0, { 0, 1, 67 }),
    PACKED(F16, 5, 64, 2, 1, 24, 24, 0.2f, 33, { 0, 150, 5 }),
    PACKED(U8, 37, 64, 2, 1, 24, 28, 0.2f, 28, { 0, 150, 37 }),
    PAGES(1, 4, 1, 4, 2, 32, 0.1767767f, 0, { 0, 255, 1 }),
    PAGES(1, 3, 131, 2, 2, 16, 0.25f, 0, { 0, 60, 131 }),
    PAGES(2, 1, 2, 2, 1, 8, 0.35f, 0, { 1, 0, 1 }, { 0, 63, 1 }),
    PAGES(3, 2, 3, 6, 2, 24, 0.2f, 0, { 2, 64, 1 }, { 0, 1, 1 }, { 1, 127, 1 }),
    PAGES(4, 2, 8, 18, 2, 16, 0.25f, 0, { 3, 0, 1 }, { 1, 70, 2 }, { 0, 99, 4 }, { 2, 63, 1 }),
    PAGES(3, 2, 97, 3, 3, 32, 0.1767767f, 0, { 1, 31, 90 }, { 2, 0, 1 }, { 0, 64, 6 }),
    PAGES(2, 3, 71, 2, 1, 20, 0.2236068f, 0, { 0, 0, 33 }, { 1, 150, 38 }),
    PAGES(3, 2, 7, 4, 2, 16, 0.25f, 40, { 2, 1000, 1 }, { 0, 5, 5 }, { 1, 127, 1 }),
    PAGES(2, 4, 75, 2, 1, 16, 0.25f, 129, { 1, 300, 70 }, { 0, 0, 5 }),
    ALONE(3, 2, 3, 6, 2, 24, 0.2f, 0, { 2, 64, 1 }, { 0, 1, 1 }, { 1, 127, 1 }),
    ALONE(2, 3, 17, 4, 2, 32, 0.1767767f, 0, { 1, 60, 16 }, { 0, 191, 1 }),
    ALONE(3, 2, 7, 4, 1, 16, 0.25f, 40, { 2, 1000, 1 }, { 0, 5, 5 }, { 1, 127, 1 }),
    CAPPED(1, 3, 1, 4, 2, 16, 1, 0, 2, false, { 0, 150, 1 }),
    CAPPED(2, 2, 67, 2, 1, 20, 1, 0, 1.5f, false, { 1, 20, 66 }, { 0, 70, 1 }),
    CAPPED(2, 3, 5, 4, 2, 24, 1, 33, 2, true, { 1, 120, 4 }, { 0, 0, 1 }),
    PACKED_PAGES(F16, 2, 2, 64, 9, 4, 2, 16, 16, 0.25f, 0, { 1, 120, 8 }, { 0, 0, 1 }),
    PACKED_PAGES(U8, 3, 2, 64, 5, 2, 1, 24, 28, 0.2f, 33, { 0, 64, 1 }, { 2, 400, 3 }, { 1, 9, 1 }),
};

static const char *const flash[] = {
#include "ops/attention/flash/flash.wgsl.h"
};
static const char *const forward[] = {
#include "ops/attention/attention_forward.wgsl.h"
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
static const char *const wgsl[] = {
#include "ops/attention_cached/attention_cached.wgsl.h"
};

/* Blocks of 32 rows, of which each sequence may end one. */
static size_t groups(const tg_args *a) {
    const size_t rows = a->in_type[0].dim[0], n = tg_min_size(a->in_type[3].dim[0], rows);
    return (size_t)a->attr.i[0] * (n > 1 ? rows / 32 + n : tg_shader_parts(rows, 32));
}

#define PASSES_OF(kv, in_fours, text)                                                              \
    .pass = { { .entry = "main",                                                                   \
                .wgsl = { flash, pages, kv, wgsl, forward },                                       \
                .constants = text,                                                                 \
                .fours = in_fours,                                                                 \
                .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),              \
                          TG_BIND_OUT(0) },                                                        \
                .groups = groups } }
/* Nothing is dropped here: of the other two texts there are none. */
#define PASSES(in_fours, text, ...) PASSES_OF(kv_floats, in_fours, text)
/* Of a packed cache, whose rows are whole fours. Heads of 32 and fewer go with those of 64. */
static bool packed_of(const tg_args *a, int32_t size) {
    return a->in_type[1].dtype != TG_F32 && a->attr.i[2] % 4 == 0 && a->attr.i[2] <= size;
}
static bool packed_64(const tg_args *a) { return packed_of(a, 64); }
static bool packed_256(const tg_args *a) { return packed_of(a, 256); }
#define PACKED_SHADER(size, pairs)                                                                 \
    { .name = "flash, packed " #size,                                                              \
      .fits = packed_##size,                                                                       \
      PASSES_OF(kv_packed, true,                                                                   \
                TG_FLASH_KEEPS "const FOURS = true; const NARROW = false; const PAIRS = " #pairs   \
                               "u;\n") }
/* Rows one by one: tiles of 64 keys side by side, and what they found added up. A tile lies in one
 * page. */
static const char *const rows[] = {
#include "ops/attention_cached/attention_rows.wgsl.h"
};
static bool one_by_one(const tg_args *a) { return a->in_type[0].dim[0] == 1 || a->rows_alone; }
static bool fits_one(const tg_args *a) { return one_by_one(a) && tg_flash_fours_any(a); }
static bool fits_one_packed(const tg_args *a) { return one_by_one(a) && packed_256(a); }
#define ONE(kv)                                                                                    \
    { { .entry = "parts",                                                                          \
        .wgsl = { pages, kv, keys, rows, one },                                                    \
        .reduces = true,                                                                           \
        .fours = true,                                                                             \
        .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_NONE,        \
                  TG_BIND_SCRATCH },                                                               \
        .groups = tg_one_tile_groups },                                                            \
      TG_ONE_WHOLE }

static const tg_shader shaders[] = {
    { .name = "rows one by one",
      .fits = fits_one,
      .word = tg_one_word,
      .pass = ONE(kv_floats),
      .scratch_bytes = tg_one_bytes },
    { .name = "rows one by one, packed",
      .fits = fits_one_packed,
      .word = tg_one_word,
      .pass = ONE(kv_packed),
      .scratch_bytes = tg_one_bytes },
    TG_FLASH_SHADERS(PASSES),
    PACKED_SHADER(64, 1),
    PACKED_SHADER(256, 4),
};

TG_OP_DESC(attention_cached) = {
    .name = "attention_cached",
    TG_DOC "attention of new tokens to the KV cache",
    .in_names = { "qkv", "cache", "at", "pages" },
    .out_names = { "o" },
    .n_in = 4,
    .n_out = 1,
    .infer = infer,
    TG_REFS(attention_cached, ref),
    TG_SHADERS(shaders),
    .fuse = fuse,
    .flop = flop,
    TG_CASES(cases),
};
