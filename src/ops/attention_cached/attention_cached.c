/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_cached - attention of new tokens to the KV cache, which holds their own keys already.
 *
 *   in 0   qkv [T,(H+2K)*D], T dynamic; its queries alone are read     in 1  cache [2,K,Tmax,D]
 *   out 0  o [T,H*D]
 *   i[0] H   i[1] K   i[2] D   i[3] W   f[0] scale     run time: pos, the tokens before these
 *
 *   o[t] = sum_j p[t,j] v[j],  p[t,:] = softmax of scale * q[t].k[j]        for j = 0 .. pos + t
 *
 * With a window W above 0, j begins at pos + t + 1 - W where that is above 0. Then the cache may be
 * a ring of fewer rows than there are positions, key j in row j mod Tmax:
 *
 *   row   0 ......... e-1 | e ........ Tmax-1       e = (pos + T) mod Tmax
 *         newest, with T  | oldest                  Tmax >= W - 1 + T, and whole tiles
 *
 * The cache may be packed (ops/attention/kv_row.h). kv_append comes before it. Rows of positions
 * from pos + T on are never read.
 */
#include "base/rng.h"
#include "ops/attention/flash_shader.h"
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/build.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) ||
        !tg_heads_want_qkv(g, n, 0, 2) || !tg_heads_want_cache(g, n, 1))
        return;
    n->out[0].type = tg_type_2d(TG_F32, n->in[0]->type.dim[0], tg_heads_of(&n->attr).q_row);
}

/* What the session sees to, stated where it is relied on. */
static void assert_room(const tg_args *a, size_t rows, size_t t_max) {
    const size_t window = (size_t)a->attr.i[3];
    TG_ASSERT(a->rt->pos >= 0);
    TG_ASSERT((size_t)a->rt->pos + rows <= t_max ||
              (window > 0 && window - 1 + rows <= t_max && t_max % 64 == 0));
    (void)a, (void)rows, (void)t_max, (void)window;
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0], t_max = a->in_type[1].dim[2];
    assert_room(a, rows, t_max);
    for (size_t h = 0; h < s.n_q; h++) {
        memory m = { .d = s.size, .step = s.size, .ring = t_max, .dtype = a->in_type[1].dtype };
        for (size_t t = 0; t < rows; t++) {
            const size_t end = (size_t)a->rt->pos + t + 1, window = (size_t)a->attr.i[3];
            const size_t begin = window > 0 && end > window ? end - window : 0;
            m.begin = begin;
            m.k = (const TG_REAL *)a->in[1] + h / s.group * t_max * s.size;
            m.v = m.k + s.n_kv * t_max * s.size;
            if (m.dtype != TG_F32) {
                const size_t bytes = tg_kv_row_bytes(m.dtype, s.size);
                m.packed_k = (const uint8_t *)a->in[1] + h / s.group * t_max * bytes;
                m.packed_v = m.packed_k + s.n_kv * t_max * bytes;
            }
            m.n = end - begin;
            attend(&m, (double)a->attr.f[0],
                   (const TG_REAL *)a->in[0] + t * s.row + tg_heads_q(&s, h),
                   (TG_REAL *)a->out[0] + t * s.q_row + h * s.size);
        }
    }
}

static double flop(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    return 4 * (double)s.q_row *
           tg_heads_pairs((double)a->in_type[0].dim[0], a->rt ? (double)a->rt->pos : 0);
}

/* One row, a few and many, at the beginning of a cache, inside, and where it ends. */
#define CASE(rows_, pos_, t_max, h, k, d, scale_) WINDOW(rows_, pos_, t_max, h, k, d, scale_, 0)
#define WINDOW(rows_, pos_, t_max, h, k, d, scale_, w)                                             \
    { .in = { TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)), TG_T4(F32, 2, k, t_max, d) },              \
      .attr = { .i = { h, k, d, w }, .f = { scale_ } },                                            \
      .rt = { .rows = (rows_), .pos = (pos_) },                                                    \
      .no_shader = (w) != 0,                                                                       \
      .tol = 3e-6 }
/* Rows of a packed cache are packed numbers of [-1, 1). */
static void prepare(const tg_args *a) {
    const size_t d = (size_t)a->attr.i[2], bytes = tg_kv_row_bytes(a->in_type[1].dtype, d);
    const size_t n = a->in_type[1].dim[0] * a->in_type[1].dim[1] * a->in_type[1].dim[2];
    uint8_t *rows = (uint8_t *)(uintptr_t)a->in[1];
    for (size_t r = 0; r < n; r++) {
        float x[64] = { 0 };
        for (size_t i = 0; i < d; i++) {
            uint32_t bits[4];
            tg_philox(7, r * d + i, TG_RNG_INIT, 1, bits);
            x[i] = (float)((int32_t)(bits[0] % 2000) - 1000) * 1e-3F;
        }
        tg_kv_write(a->in_type[1].dtype, rows + r * bytes, x, d);
    }
}
#define PACKED(dtype, rows_, pos_, t_max, h, k, d, row, scale_, w)                                 \
    { .in = { TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)), TG_T4(dtype, 2, k, t_max, row) },          \
      .attr = { .i = { h, k, d, w }, .f = { scale_ } },                                            \
      .rt = { .rows = (rows_), .pos = (pos_) },                                                    \
      .i32_below = 100,                                                                            \
      .prepare = prepare,                                                                          \
      .no_shader = true,                                                                           \
      .tol = 3e-6 }
static const tg_case cases[] = {
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
    PACKED(F16, 1, 70, 128, 4, 2, 32, 32, 0.1767767f, 0),
    PACKED(F16, 37, 3, 64, 2, 1, 24, 24, 0.2f, 0),
    PACKED(U8, 1, 70, 128, 4, 2, 32, 36, 0.1767767f, 0),
    PACKED(U8, 1, 99, 101, 2, 1, 40, 44, 0.15811388f, 13),
    PACKED(U8, 67, 1, 70, 2, 2, 17, 21, 0.25f, 0),
    PACKED(F16, 5, 150, 64, 2, 1, 24, 24, 0.2f, 33),
    PACKED(U8, 37, 150, 64, 2, 1, 24, 28, 0.2f, 28),
};

static const char *const flash[] = {
#include "ops/attention/flash.wgsl.h"
};
static const char *const forward[] = {
#include "ops/attention/attention_forward.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention_cached/attention_cached.wgsl.h"
};

static size_t groups(const tg_args *a) {
    return (size_t)a->attr.i[0] * tg_shader_parts(a->in_type[0].dim[0], 32);
}

#define PASSES(in_fours, text)                                                                     \
    .pass = { { .entry = "main",                                                                   \
                .wgsl = { flash, wgsl, forward },                                                  \
                .constants = text,                                                                 \
                .fours = in_fours,                                                                 \
                .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0) },                          \
                .groups = groups } }
static const tg_shader shaders[] = { TG_FLASH_SHADERS(PASSES) };

TG_OP_DESC(attention_cached) = {
    .name = "attention_cached",
    .doc = "attention of new tokens to the KV cache",
    .in_names = { "qkv", "cache" },
    .out_names = { "o" },
    .n_in = 2,
    .n_out = 1,
    .infer = infer,
    TG_REFS(attention_cached, ref),
    TG_SHADERS(shaders),
    .flop = flop,
    TG_CASES(cases),
};
