/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiles.h - the small products of attention, on tiles of 64 queries and 64 keys.
 *
 * The lanes of a tile are queries and its rows are keys:
 *
 *                  query 0 ..                     63
 *        key 0   | 16 lanes | 16 lanes | 16 .. | 16 |     scores, probabilities or their gradients,
 *        key 1   |          |          |       |    |     row j at s + j * TILE
 *          ..
 *        key 63  |
 *
 * so that a query's maximum and sum run down a lane, no sum ever crosses lanes, and only the
 * queries (and do) have to be transposed, once for all the keys that they meet. Three products do
 * the work, each on a register tile of ROWS x VECS vectors:
 *
 *   dots       s[j][i]  = sum over c of a[j][c] * bt[c][i]     a keys or values, bt queries or do
 *   over_keys  x[i][c] += sum over j of s[j][i] * b[j][c]      x is o or dq, b values or keys
 *   over_rows  x[j][c] += sum over i of s[j][i] * b[i][c]      x is dv or dk, b do or queries
 *
 * The law: an element is one chain of tg_vfma in rising order of the summed index. Neither the
 * register tile nor the cutting into blocks is seen in the bits, so they are the same on every ISA
 * of a class and for every way in which the work is handed out.
 *
 * Causality: query i of a tile sees key j where j <= i + off, off = (position of query 0) minus
 * (position of key 0). Elements that are not seen take no part in any sum, not even as zeros: a NaN
 * in a later token does not reach an earlier one, and half of the work on the diagonal is saved.
 */
#ifndef TG_OPS_ATTENTION_TILES_H
#define TG_OPS_ATTENTION_TILES_H

#include "ops/kernel.h"
#include "simd/vec.h"

enum { TILE = 64, LANES = 16 };

/* The register tile: its sums, VECS of b and one or two of a fill the registers. ROWS divides
 * LANES, so that no group of rows lies astride two vectors of the diagonal. */
#if TG_NRV >= 2
enum { ROWS = 8, VECS = 2 };
#elif TG_V_ROWS >= 4
enum { ROWS = 4, VECS = 1 };
#else
enum { ROWS = TG_V_ROWS, VECS = 1 };
#endif

/* Sums stay in registers only where every loop over the tile is unrolled in its caller. Where lanes
 * are one by one no register holds a vector, and it would only be more code. */
#define INLINE static inline __attribute__((always_inline))
#if defined(TG_ISA_SCALAR)
#define UNROLL _Pragma("GCC unroll 1")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

/* n held within [0, top]. */
static inline size_t clamp(ptrdiff_t n, size_t top) {
    return n < 0 ? 0 : tg_min_size((size_t)n, top);
}

/* --------------------------------------------------------------------------------------- rows */

/* Rows that lie step elements apart. */
typedef struct rows {
    const float *at;
    size_t step;
} rows;

static inline rows rows_from(rows r, size_t i) { return (rows) { r.at + i * r.step, r.step }; }

/* Columns [c, d) of a row, 16 at most. */
static inline tg_v load_columns(const float *row, size_t c, size_t d) {
    return d - c >= LANES ? tg_vload(row + c) : tg_vload_n(row + c, d - c);
}
static inline void store_columns(float *row, size_t c, size_t d, tg_v x) {
    if (d - c >= LANES)
        tg_vstore(row + c, x);
    else
        tg_vstore_n(row + c, x, d - c);
}

/* The dot product of two rows: one of the few sums that cross lanes. */
static inline float row_dot(const float *x, const float *y, size_t d) {
    tg_v sum = tg_vzero();
    for (size_t c = 0; c < d; c += LANES)
        sum = tg_vfma(load_columns(x, c, d), load_columns(y, c, d), sum);
    return tg_vsum(sum);
}

/*
 * n rows of d elements for a reader that takes whole vectors and n_wanted rows: where they are, if
 * that is what they are; else a copy [n_wanted][width], filled up with zeros.
 */
static inline rows whole_rows(float *copy, size_t width, rows in, size_t n, size_t n_wanted,
                              size_t d) {
    if (d == width && n == n_wanted) return in;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < width; c += LANES)
            tg_vstore(copy + i * width + c, load_columns(in.at + i * in.step, c, d));
    if (n < n_wanted) memset(copy + n * width, 0, (n_wanted - n) * width * sizeof *copy);
    return (rows) { copy, width };
}

/* out[c][i] = in[i][c] for columns c of width and rows i of n, which is whole vectors, too. */
static inline void transpose(float *out, rows in, size_t width, size_t n) {
    for (size_t c = 0; c < width; c += LANES)
        for (size_t i = 0; i < n; i += LANES)
            tg_vturn16(out + c * TILE + i, TILE, in.at + i * in.step + c, in.step);
}

/*
 * Asks for rows [i, i + ROWS) of n in the next d columns: in a row of qkv the next head lies right
 * behind, and it is most often what this worker does next. Heads are cut out of wide rows, of which
 * the processor's own prefetching makes nothing. Every product asks on behalf of its operand, a few
 * lines for some hundred multiplications.
 */
static inline void ask_for_next(rows r, size_t i, size_t n, size_t d) {
    for (const size_t end = tg_min_size(n, i + ROWS); i < end; i++)
        for (size_t c = 0; c < d; c += LANES) TG_PREFETCH(r.at + i * r.step + d + c);
}

/* ----------------------------------------------------------------------------------- products */

/* acc[r] += a[r * a_step] * b for rows [from, to) of the register tile. */
INLINE void add_outer(tg_v acc[ROWS][VECS], const float *a, size_t a_step, const float *b, int from,
                      int to, int vecs) {
    tg_v x[VECS];
    UNROLL
    for (int v = 0; v < vecs; v++) x[v] = tg_vload(b + v * LANES);
    UNROLL
    for (int r = from; r < to; r++) {
        const tg_v y = tg_vset(a[(size_t)r * a_step]);
        UNROLL
        for (int v = 0; v < vecs; v++) acc[r][v] = tg_vfma(y, x[v], acc[r][v]);
    }
}

INLINE void clear_sums(tg_v acc[ROWS][VECS], int vecs) {
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int v = 0; v < vecs; v++) acc[r][v] = tg_vzero();
    }
}
INLINE void load_sums(tg_v acc[ROWS][VECS], const float *x, size_t step, int vecs) {
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int v = 0; v < vecs; v++) acc[r][v] = tg_vload(x + (size_t)r * step + v * LANES);
    }
}
INLINE void store_sums(float *x, size_t step, tg_v acc[ROWS][VECS], int vecs) {
    UNROLL
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int v = 0; v < vecs; v++) tg_vstore(x + (size_t)r * step + v * LANES, acc[r][v]);
    }
}

TG_UNLESS_LONG void dots_tile(float *s, rows a, const float *bt, size_t depth, int vecs) {
    tg_v acc[ROWS][VECS];
    clear_sums(acc, vecs);
    for (size_t c = 0; c < depth; c++)
        add_outer(acc, a.at + c, a.step, bt + c * TILE, 0, ROWS, vecs);
    store_sums(s, TILE, acc, vecs);
}

/*
 * Rows [0, n_keys) of s for queries [0, n_queries): for each group of ROWS keys all vectors of
 * lanes that see any of them; elements that are not seen mean nothing. a and s have rows up to a
 * multiple of ROWS.
 */
static inline void dots(float *s, rows a, const float *bt, size_t depth, size_t n_keys,
                        size_t n_queries, ptrdiff_t off) {
    for (size_t j = 0; j < n_keys; j += ROWS) {
        size_t i = clamp((ptrdiff_t)j - off, TILE) / LANES * LANES;
        ask_for_next(a, j, n_keys, depth);
        for (; i + (VECS - 1) * LANES < n_queries; i += VECS * LANES)
            dots_tile(s + j * TILE + i, rows_from(a, j), bt + i, depth, VECS);
        for (; i < n_queries; i += LANES)
            dots_tile(s + j * TILE + i, rows_from(a, j), bt + i, depth, 1);
    }
}

/* What the sums of over_keys and over_rows begin with. */
typedef enum start { FROM_ZERO, FROM_X } start;

/* Query r of the tile sees keys below end + r: all of them see [0, end), then comes a staircase.
 * keep, unless it is NULL, multiplies what x holds, row by row. */
TG_UNLESS_LONG void over_keys_tile(float *x, size_t step, start from, const float *keep,
                                   const float *s, rows b, size_t n_keys, ptrdiff_t end, int vecs) {
    tg_v acc[ROWS][VECS];
    if (from == FROM_ZERO)
        clear_sums(acc, vecs);
    else
        load_sums(acc, x, step, vecs);
    if (from == FROM_X && keep) UNROLL
    for (int r = 0; r < ROWS; r++) {
        UNROLL
        for (int v = 0; v < vecs; v++) acc[r][v] = tg_vmul(acc[r][v], tg_vset(keep[r]));
    }
    const size_t all = clamp(end, n_keys);
    for (size_t j = 0; j < all; j++)
        add_outer(acc, s + j * TILE, 1, b.at + j * b.step, 0, ROWS, vecs);
    if (all < n_keys) UNROLL
    for (int r = 1; r < ROWS; r++) {
        const ptrdiff_t j = end + r - 1;
        if (j >= 0 && j < (ptrdiff_t)n_keys)
            add_outer(acc, s + j * TILE, 1, b.at + (size_t)j * b.step, r, ROWS, vecs);
    }
    store_sums(x, step, acc, vecs);
}

/* x has rows of width elements for n_queries, up to a multiple of ROWS; b has n_keys rows. */
static inline void over_keys(float *x, size_t step, size_t width, start from, const float *keep,
                             const float *s, rows b, size_t n_keys, size_t n_queries,
                             ptrdiff_t off) {
    for (size_t i = 0; i < n_queries; i += ROWS) {
        const ptrdiff_t end = off + (ptrdiff_t)i + 1;
        const float *kept = keep ? keep + i : NULL;
        float *row = x + i * step;
        size_t c = 0;
        ask_for_next(b, i, n_keys, width);
        for (; c + (VECS - 1) * LANES < width; c += VECS * LANES)
            over_keys_tile(row + c, step, from, kept, s + i, (rows) { b.at + c, b.step }, n_keys,
                           end, VECS);
        for (; c < width; c += LANES)
            over_keys_tile(row + c, step, from, kept, s + i, (rows) { b.at + c, b.step }, n_keys,
                           end, 1);
    }
}

/* Key r of the tile is seen by queries from begin + r on: a staircase, then all of them. */
TG_UNLESS_LONG void over_rows_tile(float *x, size_t step, start from, const float *s, rows b,
                                   size_t n_queries, ptrdiff_t begin, int vecs) {
    tg_v acc[ROWS][VECS];
    if (from == FROM_ZERO)
        clear_sums(acc, vecs);
    else
        load_sums(acc, x, step, vecs);
    const ptrdiff_t all = begin + ROWS - 1;
    if (all > 0) UNROLL
    for (int r = 1; r < ROWS; r++) {
        const ptrdiff_t i = begin + r - 1;
        if (i >= 0 && i < (ptrdiff_t)n_queries)
            add_outer(acc, s + i, TILE, b.at + (size_t)i * b.step, 0, r, vecs);
    }
    for (size_t i = clamp(all, n_queries); i < n_queries; i++)
        add_outer(acc, s + i, TILE, b.at + i * b.step, 0, ROWS, vecs);
    store_sums(x, step, acc, vecs);
}

/* x has rows of width elements for n_keys, up to a multiple of ROWS, as s has; b n_queries rows. */
static inline void over_rows(float *x, size_t step, size_t width, start from, const float *s,
                             rows b, size_t n_keys, size_t n_queries, ptrdiff_t off) {
    for (size_t j = 0; j < n_keys; j += ROWS) {
        const ptrdiff_t begin = (ptrdiff_t)j - off;
        float *row = x + j * step;
        size_t c = 0;
        ask_for_next(b, j, n_queries, width);
        for (; c + (VECS - 1) * LANES < width; c += VECS * LANES)
            over_rows_tile(row + c, step, from, s + j * TILE, (rows) { b.at + c, b.step },
                           n_queries, begin, VECS);
        for (; c < width; c += LANES)
            over_rows_tile(row + c, step, from, s + j * TILE, (rows) { b.at + c, b.step },
                           n_queries, begin, 1);
    }
}

#endif
