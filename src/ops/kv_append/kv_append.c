/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_append - keys and values of new tokens go into the KV cache, behind those of earlier ones.
 *
 *   in 0   cache [2,K,Tmax,D]   in 1  qkv [T,(H+2K)*D], T dynamic
 *   out 0  the next version of cache, the same memory
 *   i[0] H   i[1] K   i[2] D    run time: pos, the tokens that the cache holds
 *
 *   cache[0, kv, r, :] = key head kv of row t      cache[1, kv, r, :] = its value head
 *   r = (pos + t) mod Tmax: a cache of a layer with a window is a ring, see attention_cached.
 *
 * A cache of fewer bits has its rows packed (ops/attention/kv_row.h).
 *
 * Rows that are not named keep what they hold, and nothing else is read of the cache. T <= Tmax.
 */
#include "ops/attention/heads_rules.h"
#include "ops/build.h"
#include "ops/shader.h"

/* Elements of a head that a packed cache takes: the reference has a row of them on its stack. */
enum { SIZE_MAX_HERE = 1024 };

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_cache(g, n, 0) || !tg_heads_want_qkv(g, n, 1, 2)) return;
    if (n->in[0]->type.dtype != TG_F32 && n->attr.i[2] > SIZE_MAX_HERE) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want heads of at most %d elements in a packed cache",
                      SIZE_MAX_HERE);
        return;
    }
    n->out[0].type = n->in[0]->type;
}

/* Through floats, whatever TG_REAL is: a reference has no memory of its own but the stack. */
static void write_packed(const tg_args *a, const tg_heads *s, const TG_REAL *row, size_t kv,
                         size_t position) {
    const tg_dtype dtype = a->in_type[0].dtype;
    const size_t t_max = a->in_type[0].dim[2], bytes = tg_kv_row_bytes(dtype, s->size);
    for (size_t part = 0; part < 2; part++) {
        const TG_REAL *in = row + (part ? tg_heads_v(s, kv) : tg_heads_k(s, kv));
        float x[SIZE_MAX_HERE];
        for (size_t i = 0; i < s->size; i++) x[i] = (float)in[i];
        tg_kv_write(dtype,
                    (uint8_t *)a->out[0] + ((part * s->n_kv + kv) * t_max + position) * bytes, x,
                    s->size);
    }
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[1].dim[0], t_max = a->in_type[0].dim[2];
    const size_t pos = (size_t)a->rt->pos;
    TG_ASSERT(rows <= t_max);
    const tg_dtype dtype = a->in_type[0].dtype;
    for (size_t t = 0; t < rows; t++) {
        const TG_REAL *row = (const TG_REAL *)a->in[1] + t * s.row;
        for (size_t kv = 0; kv < s.n_kv; kv++) {
            if (dtype != TG_F32) {
                write_packed(a, &s, row, kv, (pos + t) % t_max);
                continue;
            }
            TG_REAL *key = (TG_REAL *)a->out[0] + (kv * t_max + (pos + t) % t_max) * s.size;
            memcpy(key, row + tg_heads_k(&s, kv), s.size * sizeof *key);
            memcpy(key + s.n_kv * t_max * s.size, row + tg_heads_v(&s, kv), s.size * sizeof *key);
        }
    }
}

#define CASE(rows_, pos_, t_max, h, k, d)                                                          \
    {                                                                                              \
        .in = { TG_T4(F32, 2, k, t_max, d), TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)) },            \
        .attr = { .i = { h, k, d } }, .rt = {                                                      \
            .rows = (rows_),                                                                       \
            .pos = (pos_)                                                                          \
        }                                                                                          \
    }
#define PACKED(dtype, rows_, pos_, t_max, h, k, d, row)                                            \
    {                                                                                              \
        .in = { TG_T4(dtype, 2, k, t_max, row), TG_T2(F32, rows_, ((h) + 2 * (k)) * (d)) },        \
        .attr = { .i = { h, k, d } }, .i32_below = 100, .no_shader = true, .rt = {                 \
            .rows = (rows_),                                                                       \
            .pos = (pos_)                                                                          \
        }                                                                                          \
    }
static const tg_case cases[] = {
    CASE(1, 0, 1, 1, 1, 1),
    CASE(1, 6, 7, 2, 2, 8),
    CASE(3, 0, 8, 4, 2, 16),
    CASE(15, 1, 16, 3, 1, 17),
    CASE(16, 16, 40, 2, 2, 32),
    CASE(17, 5, 67, 6, 3, 40),
    CASE(97, 3, 101, 3, 3, 64),
    CASE(37, 1000, 64, 2, 1, 24),
    PACKED(F16, 1, 6, 7, 2, 2, 8, 8),
    PACKED(F16, 17, 5, 67, 6, 3, 40, 40),
    PACKED(U8, 1, 0, 1, 1, 1, 1, 5),
    PACKED(U8, 3, 0, 8, 4, 2, 16, 20),
    PACKED(U8, 33, 5, 67, 6, 3, 40, 44),
    PACKED(U8, 33, 117, 64, 2, 1, 24, 28),
};

static const char *const wgsl[] = {
#include "ops/kv_append/kv_append.wgsl.h"
};
/* Keys and values: less than a row of qkv has. */
static size_t append_groups(const tg_args *a) { return tg_shader_elem_groups(&a->in_type[1]); }

static bool of_floats(const tg_args *a) { return a->in_type[0].dtype == TG_F32; }

static const tg_shader shaders[] = {
    { .name = "elements",
      .fits = of_floats,
      .pass = { { .entry = "main",
                  .wgsl = { wgsl },
                  .bind = { TG_BIND_IN(1), TG_BIND_OUT(0) },
                  .groups = append_groups } } },
};

TG_OP_DESC(kv_append) = {
    .name = "kv_append",
    .doc = "keys and values of new tokens go into the KV cache",
    .in_names = { "cache", "qkv" },
    .out_names = { "cache" },
    .n_in = 2,
    .n_out = 1,
    .state_in = { 1 },
    .ends_rows = true,
    .infer = infer,
    TG_REFS(kv_append, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
