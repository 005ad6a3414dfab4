/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flash.h - attention of a block of queries by tiles of keys with a running softmax (Milakov and
 * Gimelshein 2018; Dao et al. 2022). Shared by attention and attention_cached.
 *
 * A query meets its keys in tiles of 64, counted from position 0. m is the largest dot product so
 * far, l the sum of exp(scale (dot - m)), o the sum of these weights times v:
 *
 *   new m  = max(m, dot products of the tile)      keep = exp(scale (m - new m))      (cap.h)
 *   p[j]   = exp(scale (dot[j] - new m))
 *   l      = l * keep, then + p[j]  for the keys j of the tile, one after the other
 *   o      = o * keep, then + p[j] v[j]  likewise
 *   in the end  o / l,  lse = scale m + log l
 *
 * Here lanes are queries; attention_cached.simd.h has the same order with lanes for keys. So the
 * bits of a row depend on its query and on the keys that it sees, not on the block that it came in:
 * a prompt gives the same bits in chunks of any size, and the same as in training.
 *
 * With a window a query's keys begin later, at a multiple of 64 at most 63 before the first that it
 * sees; keys of the tile that it does not see weigh nothing. FLASH_OF_CACHE, defined before: keys
 * and values are those of a sequence in a cache, which may be packed.
 */
#ifndef TG_OPS_ATTENTION_FLASH_H
#define TG_OPS_ATTENTION_FLASH_H

#include "ops/attention/cache/kv_row.h"
#include "ops/attention/cache/pages.h"
#include "ops/attention/cap.h"
#include "ops/attention/flash/tiles.h"
#include "ops/attention/softmax.h"
#if !defined(FLASH_OF_CACHE)
#include "ops/attention/drop.h"
#endif
#include "simd/vmath.h"

/* Queries of one head, and all keys and values from position 0 on. */
typedef struct flash_head {
    size_t d;
    float scale, cap;
    rows q, k, v;
    float *o;
    size_t o_step;
    float *lse;    /* may be NULL */
    ptrdiff_t low; /* the first key that the first query sees, the next query one more;
                      -TILE or less: there is no window */
#if !defined(FLASH_OF_CACHE)
    drop drop;
#endif
    /* ---- in place of k and v, of a cache */
    const uint8_t *cache;
    tg_dtype dtype;
    tg_paged pages;
    size_t head[2]; /* of a page: the keys', the values' */
} flash_head;

/* Memory of a worker. width is d rounded up to LANES. */
typedef struct flash_local {
    size_t width;
    float *s;            /* [TILE][TILE]  dot products, then p */
    float *qt;           /* [width][TILE] queries, transposed */
    float *o;            /* [TILE][width] */
    float *copy[2];      /* [TILE][width] rows that can't be read where they are */
    float *m, *l, *keep; /* [TILE] */
} flash_local;

static size_t flash_local_elems(size_t d) {
    return TILE * TILE + 4 * TILE * round_up(d, LANES) + 3 * TILE;
}

static flash_local flash_local_at(float *at, size_t d) {
    const size_t width = round_up(d, LANES), n = TILE * width;
    float *const vectors = at + TILE * TILE + 4 * n;
    return (flash_local) {
        .width = width,
        .s = at,
        .qt = at + TILE * TILE,
        .o = at + TILE * TILE + n,
        .copy = { at + TILE * TILE + 2 * n, at + TILE * TILE + 3 * n },
        .m = vectors,
        .l = vectors + TILE,
        .keep = vectors + 2 * TILE,
    };
}

/* The lanes that don't see key j, where lane 0 sees keys below all. */
static inline tg_vm hidden(size_t j, ptrdiff_t all) {
    return tg_vfirst(clamp((ptrdiff_t)j - all + 1, LANES));
}

/*
 * The running softmax of 16 queries, lanes of s from column i on, over n keys. Keys below all are
 * seen by all of them, key j from there on by the lanes from j - all + 1 on; all may be negative.
 */
static inline void softmax_lanes(const flash_local *f, size_t i, ptrdiff_t all, size_t n,
                                 float scale) {
    float *s = f->s + i;
    const size_t n_all = clamp(all, n);
    const tg_v m = tg_vload(f->m + i), c = tg_vset(scale * LOG2_E), none = tg_vset(MINUS_INF);
    tg_v top = m, odd = m; /* two chains, for the time that a maximum takes */
    for (size_t j = 0; j + 1 < n_all; j += 2) {
        top = tg_vmax(tg_vload(s + j * TILE), top);
        odd = tg_vmax(tg_vload(s + (j + 1) * TILE), odd);
    }
    if (n_all % 2) top = tg_vmax(tg_vload(s + (n_all - 1) * TILE), top);
    top = tg_vmax(odd, top);
    for (size_t j = n_all; j < n; j++)
        top = tg_vmax(tg_vselect(hidden(j, all), none, tg_vload(s + j * TILE)), top);
    const tg_v keep = power_of_2(tg_vmul(tg_vsub(m, top), c));
    tg_v sum = tg_vmul(tg_vload(f->l + i), keep);
    for (size_t j = 0; j < n_all; j++) {
        const tg_v p = power_of_2(tg_vmul(tg_vsub(tg_vload(s + j * TILE), top), c));
        tg_vstore(s + j * TILE, p);
        sum = tg_vadd(sum, p);
    }
    for (size_t j = n_all; j < n; j++) {
        const tg_v p = power_of_2(tg_vmul(tg_vsub(tg_vload(s + j * TILE), top), c));
        tg_vstore(s + j * TILE, p);
        sum = tg_vadd(sum, tg_vselect(hidden(j, all), tg_vzero(), p));
    }
    tg_vstore(f->m + i, top);
    tg_vstore(f->l + i, sum);
    tg_vstore(f->keep + i, keep);
}

/*
 * The same of a tile whose first keys are behind the window of some queries: lane 0 of s sees keys
 * from `low` on, lane 1 from low + 1. Keys below first are nobody's. A query that has seen none so
 * far has -inf for m, and 0 for l and keep; what it adds here is 0, too.
 */
static inline void softmax_window(const flash_local *f, size_t i, ptrdiff_t low, ptrdiff_t all,
                                  size_t first, size_t n, float scale) {
    float *s = f->s + i;
    const tg_v m = tg_vload(f->m + i), c = tg_vset(scale * LOG2_E), none = tg_vset(MINUS_INF);
    tg_v top = m;
    for (size_t j = first; j < n; j++) {
        const tg_vm seen = tg_vfirst(clamp((ptrdiff_t)j - low - (ptrdiff_t)i + 1, LANES));
        tg_v x = tg_vselect(seen, tg_vload(s + j * TILE), none);
        x = tg_vselect(hidden(j, all), none, x);
        tg_vstore(s + j * TILE, x);
        top = tg_vmax(x, top);
    }
    const tg_v base = tg_vselect(tg_veq(top, none), tg_vzero(), top);
    const tg_v keep = power_of_2(tg_vmul(tg_vsub(m, base), c));
    tg_v sum = tg_vmul(tg_vload(f->l + i), keep);
    for (size_t j = first; j < n; j++) {
        const tg_v p = power_of_2(tg_vmul(tg_vsub(tg_vload(s + j * TILE), base), c));
        tg_vstore(s + j * TILE, p);
        sum = tg_vadd(sum, tg_vselect(hidden(j, all), tg_vzero(), p));
    }
    tg_vstore(f->m + i, top);
    tg_vstore(f->l + i, sum);
    tg_vstore(f->keep + i, keep);
}

#if defined(FLASH_OF_CACHE)
/* n <= 16 numbers of a packed row, at p, and zeros behind them. Inlined, since a copy of a constant
 * n, as all but a row's last columns are, is a load. */
static inline __attribute__((always_inline)) tg_v load_packed(tg_dtype dtype, const uint8_t *p,
                                                              float scale, size_t n) {
    if (dtype == TG_F16) {
        uint16_t half[LANES] = { 0 };
        memcpy(half, p, 2 * n);
        return tg_vload_f16(half);
    }
    int8_t q[LANES] = { 0 };
    memcpy(q, p, n);
    return tg_vmul(tg_vset(scale), tg_vfloat(tg_viload_s8(q)));
}

static inline __attribute__((always_inline)) void unpack_row(tg_dtype dtype, float *out,
                                                             const uint8_t *row, size_t d) {
    const size_t each = dtype == TG_F16 ? 2 : 1;
    float scale = 1;
    if (dtype != TG_F16) memcpy(&scale, row + d, sizeof scale);
    size_t c = 0;
    for (; c + LANES <= d; c += LANES)
        tg_vstore(out + c, load_packed(dtype, row + each * c, scale, LANES));
    if (c < d) tg_vstore(out + c, load_packed(dtype, row + each * c, scale, d - c));
}

/* memory_rows of a packed cache. One copy of it for all callers: it is much code. */
static __attribute__((noinline)) rows packed_rows(const flash_head *x, size_t first, float *copy,
                                                  size_t width, size_t n, size_t n_wanted) {
    const size_t bytes = tg_kv_row_bytes(x->dtype, x->d);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *row = x->cache + (first + i) * bytes;
        if (x->dtype == TG_F16) /* known where it is inlined: a loop of its own */
            unpack_row(TG_F16, copy + i * width, row, x->d);
        else
            unpack_row(x->dtype, copy + i * width, row, x->d);
    }
    if (n < n_wanted) memset(copy + n * width, 0, (n_wanted - n) * width * sizeof *copy);
    return (rows) { copy, width };
}
#endif

/* Keys (0) or values (1) of positions [begin, begin + n), which are of one tile, as whole_rows
 * gives them. */
static inline rows memory_rows(const flash_head *x, int part, float *copy, size_t width,
                               size_t begin, size_t n, size_t n_wanted) {
#if defined(FLASH_OF_CACHE)
    const size_t first = tg_paged_row(&x->pages, x->head[part], begin);
    if (x->dtype != TG_F32) return packed_rows(x, first, copy, width, n, n_wanted);
    const rows in = { (const float *)x->cache + first * x->d, x->d };
#else
    const rows in = rows_from(part ? x->v : x->k, begin);
#endif
    return whole_rows(copy, width, in, n, n_wanted, x->d);
}

/* What dropout leaves of the weights in f->s, once they are summed. */
static inline void drop_weights(const flash_head *x, const flash_local *f, size_t begin, size_t n,
                                size_t n_queries, ptrdiff_t off) {
#if !defined(FLASH_OF_CACHE)
    if (x->drop.mask.kept > 0)
        drop_tile(&x->drop, f->s, NULL, begin + (size_t)off, n_queries, begin, n);
#else
    (void)x, (void)f, (void)begin, (void)n, (void)n_queries, (void)off;
#endif
}

/* flash_tile where a window cuts the tile's first keys. */
static void window_tile(const flash_head *x, const flash_local *f, size_t begin, size_t n,
                        size_t n_queries, ptrdiff_t off, start from) {
    const ptrdiff_t low = x->low - (ptrdiff_t)begin;
    const size_t first = clamp(low, n);
    const rows k = memory_rows(x, 0, f->copy[0], f->width, begin, n, round_up(n, ROWS));
    dots(f->s, k, f->qt, x->d, n, n_queries, off);
    if (x->cap > 0) cap_tile(f->s, x->scale, x->cap, n, n_queries, off);
    for (size_t i = 0; i < n_queries; i += LANES)
        softmax_window(f, i, low, off + (ptrdiff_t)i + 1, first, n, x->scale);
    drop_weights(x, f, begin, n, n_queries, off);
    const rows v = memory_rows(x, 1, f->copy[1], f->width, begin, n, n);
    over_keys(f->o, f->width, f->width, from, f->keep, f->s + first * TILE, rows_from(v, first),
              n - first, n_queries, off - (ptrdiff_t)first);
}

/* Keys [begin, begin + n) for all queries of the block; off as in tiles.h. */
static void flash_tile(const flash_head *x, const flash_local *f, size_t begin, size_t n,
                       size_t n_queries, ptrdiff_t off) {
    const size_t top = x->low > 0 ? (size_t)x->low / TILE * TILE : 0;
    const start from = begin > top ? FROM_X : FROM_ZERO;
    if (x->low + (ptrdiff_t)n_queries - 1 > (ptrdiff_t)begin) {
        window_tile(x, f, begin, n, n_queries, off, from);
        return;
    }
    const rows k = memory_rows(x, 0, f->copy[0], f->width, begin, n, round_up(n, ROWS));
    dots(f->s, k, f->qt, x->d, n, n_queries, off);
    if (x->cap > 0) cap_tile(f->s, x->scale, x->cap, n, n_queries, off);
    for (size_t i = 0; i < n_queries; i += LANES) {
        const ptrdiff_t all = off + (ptrdiff_t)i + 1;
        softmax_lanes(f, i, all, clamp(all + LANES - 1, n), x->scale);
    }
    drop_weights(x, f, begin, n, n_queries, off);
    const rows v = memory_rows(x, 1, f->copy[1], f->width, begin, n, n);
    over_keys(f->o, f->width, f->width, from, f->keep, f->s, v, n, n_queries, off);
}

/* The first n <= TILE queries of x, the first one at position pos. */
static void flash_block(const flash_head *x, const flash_local *f, size_t pos, size_t n) {
    const size_t n_lanes = round_up(n, LANES), end = pos + n;
    transpose(f->qt, whole_rows(f->copy[0], f->width, x->q, n, n_lanes, x->d), f->width, n_lanes);
    for (size_t i = 0; i < n_lanes; i += LANES) {
        tg_vstore(f->m + i, tg_vset(MINUS_INF));
        tg_vstore(f->l + i, tg_vzero());
    }
    size_t begin = x->low > 0 ? (size_t)x->low / TILE * TILE : 0;
    for (; begin < end; begin += TILE)
        flash_tile(x, f, begin, tg_min_size(TILE, end - begin), n,
                   (ptrdiff_t)pos - (ptrdiff_t)begin);
    for (size_t i = 0; i < n_lanes; i += LANES) {
        const tg_v l = tg_vload(f->l + i);
        tg_vstore(f->keep + i, tg_vdiv(tg_vset(1), l));
        if (x->lse)
            store_columns(x->lse, i, n, tg_vfma(tg_vload(f->m + i), tg_vset(x->scale), tg_vlog(l)));
    }
    for (size_t i = 0; i < n; i++) {
        const tg_v factor = tg_vset(f->keep[i]);
        for (size_t c = 0; c < x->d; c += LANES)
            store_columns(x->o + i * x->o_step, c, x->d,
                          tg_vmul(tg_vload(f->o + i * f->width + c), factor));
    }
}

#endif
