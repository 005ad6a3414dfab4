/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_append - keys and values of new tokens go into the KV cache, behind those of earlier ones.
 *
 *   in 0   cache [P,2K,R,D]     in 1  qkv [T,(H+2K)*D], T dynamic
 *   in 2   at [T,2] i32         in 3  pages [S,C] i32
 *   out 0  the next version of cache, the same memory
 *   i[0] H   i[1] K   i[2] D
 *
 *   cache[p, kv, r, :] = key head kv of row t      cache[p, K + kv, r, :] = its value head
 *
 * Page p and row r are those of the sequence and the position of row t:
 * ops/attention/cache/pages.h. A cache of fewer bits has its rows packed
 * (ops/attention/cache/kv_row.h).
 *
 * Rows that are not named keep what they hold, and nothing else is read of the cache. No two rows
 * of a call have the same place.
 */
#include "ops/attention/cache/kv_reference.h"
#include "ops/attention/heads_rules.h"
#include "ops/build.h"
#include "ops/shader.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_cache(g, n, 0) || !tg_heads_want_qkv(g, n, 1, 2) ||
        !tg_heads_want_pages(g, n, 0, 1))
        return;
    if (n->in[0]->type.dtype != TG_F32 && n->attr.i[2] > TG_KV_SIZE_MAX) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want heads of at most %d elements in a packed cache",
                      TG_KV_SIZE_MAX);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const int32_t *at = a->in[2];
    for (size_t t = 0; t < a->in_type[1].dim[0]; t++) {
        const tg_paged p = tg_paged_of(&a->in_type[0], at, a->in[3], &a->in_type[3], t);
        TG_ASSERT(at[2 * t] >= 0 && (size_t)at[2 * t] < a->in_type[3].dim[0] && at[2 * t + 1] >= 0);
        for (size_t head = 0; head < p.heads; head++) {
            const size_t row = tg_paged_row(&p, head, (size_t)at[2 * t + 1]);
            const TG_REAL *in =
                (const TG_REAL *)a->in[1] + t * s.row + tg_heads_k(&s, 0) + head * s.size;
            TG_ASSERT(row / (p.heads * p.rows) < a->in_type[0].dim[0]);
            tg_kv_keep(a->in_type[0].dtype, a->out[0], row, in, s.size);
        }
    }
}

#define CACHE(dtype, p, k, r, row, s, c, rows_, h, d)                                              \
    { TG_T4(dtype, p, 2 * (k), r, row), TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)),                  \
      TG_T2(I32, rows_, 2), TG_T2(I32, s, c) }
/* One sequence from a position on, in one page. */
#define CASE(rows_, pos_, r, h, k, d)                                                              \
    {                                                                                              \
        .in = CACHE(F32, 1, k, r, d, 1, 1, rows_, h, d), .attr = { .i = { h, k, d } }, .at_in = 3, \
        .at = {                                                                                    \
            { 0, pos_, rows_ }                                                                     \
        }                                                                                          \
    }
/* Some, in any order of their c pages of 64 each, of p pages in all. */
#define PAGES(dtype, p, s, c, rows_, h, k, d, row, ...)                                            \
    {                                                                                              \
        .in = CACHE(dtype, p, k, 64, row, s, c, rows_, h, d), .attr = { .i = { h, k, d } },        \
        .no_shader = TG_##dtype != TG_F32 && (d) % 4 != 0, .i32_below = 100, .distinct = 1 << 3,   \
        .at_in = 3, .at = {                                                                        \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define PACKED(dtype, rows_, pos_, r, h, k, d, row)                                                \
    {                                                                                              \
        .in = CACHE(dtype, 1, k, r, row, 1, 1, rows_, h, d), .attr = { .i = { h, k, d } },         \
        .no_shader = (d) % 4 != 0, .i32_below = 100, .distinct = 1 << 3, .at_in = 3, .at = {       \
            { 0, pos_, rows_ }                                                                     \
        }                                                                                          \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 0, 1, 1, 1, 1),
    CASE(1, 6, 7, 2, 2, 8),
    CASE(3, 0, 8, 4, 2, 16),
    CASE(15, 1, 16, 3, 1, 17),
    CASE(16, 16, 40, 2, 2, 32),
    CASE(17, 5, 67, 6, 3, 40),
    CASE(97, 3, 101, 3, 3, 64),
    CASE(37, 1000, 64, 2, 1, 24),
    PAGES(F32, 6, 1, 6, 131, 2, 2, 8, 8, { 0, 70, 131 }),
    PAGES(F32, 6, 3, 2, 75, 2, 1, 5, 5, { 1, 63, 2 }, { 0, 0, 1 }, { 2, 1000, 72 }),
    PACKED(F16, 1, 6, 7, 2, 2, 8, 8),
    PACKED(F16, 17, 5, 67, 6, 3, 40, 40),
    PACKED(U8, 1, 0, 1, 1, 1, 1, 5),
    PACKED(U8, 3, 0, 8, 4, 2, 16, 20),
    PACKED(U8, 33, 5, 67, 6, 3, 40, 44),
    PACKED(U8, 33, 117, 64, 2, 1, 24, 28),
    PAGES(F16, 4, 2, 2, 67, 2, 1, 8, 8, { 1, 62, 66 }, { 0, 3, 1 }),
    PAGES(U8, 4, 4, 1, 4, 4, 2, 16, 20, { 3, 9, 1 }, { 0, 63, 1 }, { 1, 64, 1 }, { 2, 0, 1 }),
};

static const char *const pages[] = {
#include "ops/attention/cache/pages.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/kv_append/kv_append.wgsl.h"
};
/* Keys and values: less than a row of qkv has. */
static size_t append_groups(const tg_args *a) { return tg_shader_elem_groups(&a->in_type[1]); }

static const char *const rounding[] = {
#include "ops/attention/cache/kv_round.wgsl.h"
};
static const char *const packed[] = {
#include "ops/kv_append/kv_append_packed.wgsl.h"
};
/* Rows that are whole words. */
static bool of_words(const tg_args *a) {
    return a->in_type[0].dtype != TG_F32 && a->attr.i[2] % 4 == 0;
}
static size_t packed_groups(const tg_args *a) {
    return a->in_type[1].dim[0] * a->in_type[0].dim[1];
}

static bool of_floats(const tg_args *a) { return a->in_type[0].dtype == TG_F32; }

static const tg_shader shaders[] = {
    { .name = "elements",
      .fits = of_floats,
      .pass = { { .entry = "main",
                  .wgsl = { pages, wgsl },
                  .bind = { TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0) },
                  .groups = append_groups } } },
    { .name = "heads, packed",
      .fits = of_words,
      .pass = { { .entry = "main",
                  .wgsl = { pages, rounding, packed },
                  .reduces = true,
                  .bind = { TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0) },
                  .groups = packed_groups } } },
};

TG_OP_DESC(kv_append) = {
    .name = "kv_append",
    TG_DOC "keys and values of new tokens go into the KV cache",
    .in_names = { "cache", "qkv", "at", "pages" },
    .out_names = { "cache" },
    .n_in = 4,
    .n_out = 1,
    .state_in = { 1 },
    .ends_rows = true,
    .infer = infer,
    TG_REFS(kv_append, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
