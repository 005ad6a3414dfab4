/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_tile.h - the register tile of the blocked product, and what is done to finished sums.
 *
 * A tile is up to TG_MR rows of PANEL columns of y. Its sums stay in registers while k runs:
 *
 *                              PANEL columns of b: one or two registers a step of k
 *                             +--------------------+
 *                             | b[k, 0..PANEL)     |
 *                             +--------------------+
 *     a, one load that        +--------------------+
 *     fills all lanes: a[i,k] | c[i, 0..PANEL)     |  += a[i,k] * b[k, 0..PANEL)    for each row i
 *                             +--------------------+
 *
 * Where a register is a quarter of 16 lanes, a tile may be half a panel wide (TG_TILE_LANES): then
 * two of them, one after the other, make the panel.
 *
 * Every sum is one chain of multiply-adds over rising k, so its bits do not depend on the shape of
 * the tile; and it goes on from stored sums, so that cutting k into blocks changes no bit either.
 *
 * a and b are read where they are or from copies: to the tile these are distances. With operands in
 * bf16 a step is two k: an element of a copy is then a pair of bf16 in the 32 bits of a float, and
 * only the packing and one instruction differ.
 */
#ifndef TG_OPS_MATMUL_TILE_H
#define TG_OPS_MATMUL_TILE_H

#include "simd/vec.h"
#include "simd/vmath.h"

#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/matmul/matmul_operands.h"

enum {
    TILE_COLS = TG_NRV * TG_TILE_LANES,
    PANEL = TILE_COLS < 16 ? 16 : TILE_COLS, /* columns that are packed together */
    STEP_BLOCK = 384, /* steps of k in a block: a strip of a (18 KiB) fits into the first cache */
    STRIP_LD = STEP_BLOCK + 16, /* from row to row of a packed strip: an odd number of lines */
    BASE_ROWS = 3,              /* rows of a that are reached from one pointer: 0, 1, 2 distances */
    PAD = 48,                   /* between packed panels and strips, for the same reason */
};

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define UNROLL        _Pragma("GCC unroll 16")

/* The first n lanes, and no others; 16 for any n from 16 on. Most callers' n is a constant. */
static ALWAYS_INLINE tg_v load_up_to(const float *p, size_t n) {
    return n >= 16 ? tg_vload(p) : tg_vload_n(p, n);
}
static ALWAYS_INLINE void store_up_to(float *p, tg_v x, size_t n) {
    if (n >= 16) {
        tg_vstore(p, x);
    } else {
        tg_vstore_n(p, x, n);
    }
}

/* The product as the kernels see it: sizes, pointers, and what follows the sum. */
typedef struct product {
    size_t m, n, k;
    int trans;          /* 0 and 2: a [m,k], 1: a [k,m];   0 and 1: b [k,n], 2: b [n,k] */
    const float *a, *b; /* rows, as they are stored, are lda and ldb apart */
    size_t lda, ldb;
    const float *bias; /* [n] or NULL */
    const float *res;  /* [m,n] or NULL */
    float *y, *z;      /* [m,n]; z is NULL if what goes into the activation is not kept */
    int act;
    bool acc; /* the sums start from y */
} product;

static product product_of(const tg_args *args) {
    const int trans = args->attr.i[0];
    const size_t rows = tg_type_rows(&args->in_type[0]), cols = tg_type_cols(&args->in_type[0]);
    product p = { .trans = trans, .act = args->attr.i[1], .acc = args->acc & 1 };
    p.m = trans == 1 ? cols : rows;
    p.k = trans == 1 ? rows : cols;
    p.lda = cols;
    p.ldb = tg_type_cols(&args->in_type[1]);
    p.n = trans == 2 ? tg_type_rows(&args->in_type[1]) : p.ldb;
    p.a = args->in[0];
    p.b = args->in[1];
    p.bias = args->in[2];
    p.res = args->in[3];
    p.y = args->out[0];
    p.z = args->attr.i[2] ? args->out[1] : NULL;
    return p;
}

/* ---------------------------------------------------------------------------- the register tile */

/* Where a tile finds its operands and leaves its sums. */
typedef struct tile_args {
    size_t steps;
    const float *a;
    size_t a_row, a_step; /* from row to row and from step to step; one of the two is 1 */
    const float *b;
    size_t b_step;
    const float *from; /* sums so far, NULL: zeros */
    size_t from_ld;
    float *to;
    size_t to_ld;
    const float *bias, *res; /* to be added at the end, at the tile's place, or NULL */
    size_t res_ld;
    /* What of a comes next, fetched while this tile computes: rows, how long they are, and how many
     * floats of each in 16 steps. All at once would hold up the loads of the tile itself. */
    const float *next;
    size_t next_rows, next_ld, next_cols, next_floats;
} tile_args;

static ALWAYS_INLINE void tile_fetch(const tile_args *t, size_t step) {
    const size_t begin = step / 16 * t->next_floats;
    const size_t end = tg_min_size(begin + t->next_floats, t->next_cols);
    for (size_t i = 0; i < t->next_rows; i++)
        for (size_t j = begin; j < end; j += 16) TG_PREFETCH_FAR(t->next + i * t->next_ld + j);
}

/* One step of one row. half is a constant: operands are pairs of bf16. */
static ALWAYS_INLINE void tile_row(const float *a, const tg_t *b, tg_t *c, bool half) {
#ifdef TG_SIMD_BF16
    if (half) {
        UNROLL
        for (int j = 0; j < TG_NRV; j++) c[j] = tg_vdot_bf16(a, b[j], c[j]);
        return;
    }
#else
    (void)half;
#endif
    const tg_t x = tg_tset(*a);
    UNROLL
    for (int j = 0; j < TG_NRV; j++) c[j] = tg_tfma(x, b[j], c[j]);
}

/*
 * rows and half are constants where this is called, and so is a_row when it is 1: rows are then at
 * constant distances. Else an address is a pointer, and once or twice a register: BASE_ROWS rows
 * for each pointer. Left alone, compilers keep a pointer for each row, and have no room for them.
 */
static ALWAYS_INLINE void tile_rows(const tile_args *t, const int rows, size_t a_row, size_t a_step,
                                    bool half, const int base_rows) {
    tg_t c[TG_MR][TG_NRV];
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < TG_NRV; j++) c[i][j] = tg_tzero();
    }
    if (t->from) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < TG_NRV; j++)
                c[i][j] = tg_tload(t->from + (size_t)i * t->from_ld + TG_TILE_LANES * j);
        }
    }
    const float *b = t->b, *base[TG_MR];
    UNROLL
    for (int i = 0; i < rows; i += base_rows) {
        base[i] = t->a + (size_t)i * a_row;
        if (base_rows < rows) TG_OPAQUE(base[i]);
    }
    for (size_t begin = 0; begin < t->steps; begin += 16) {
        tile_fetch(t, begin);
        const size_t end = tg_min_size(begin + 16, t->steps);
        for (size_t k = begin; k < end; k++, b += t->b_step) {
            tg_t row[TG_NRV];
            UNROLL
            for (int j = 0; j < TG_NRV; j++) row[j] = tg_tload(b + TG_TILE_LANES * j);
            UNROLL
            for (int i = 0; i < rows; i++) {
                const int in_base = i % base_rows;
                tile_row(base[i - in_base] + (size_t)in_base * a_row, row, c[i], half);
            }
            UNROLL
            for (int i = 0; i < rows; i += base_rows) base[i] += a_step;
        }
    }
    if (t->bias) {
        UNROLL
        for (int j = 0; j < TG_NRV; j++) {
            const tg_t x = tg_tload(t->bias + TG_TILE_LANES * j);
            UNROLL
            for (int i = 0; i < rows; i++) c[i][j] = tg_tadd(c[i][j], x);
        }
    }
    if (t->res) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int j = 0; j < TG_NRV; j++)
                c[i][j] =
                    tg_tadd(c[i][j], tg_tload(t->res + (size_t)i * t->res_ld + TG_TILE_LANES * j));
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < TG_NRV; j++)
            tg_tstore(t->to + (size_t)i * t->to_ld + TG_TILE_LANES * j, c[i][j]);
    }
}

/*
 * The heights of this ISA's tile, each with code of its own: no row is computed for nothing. Each
 * is a function of its own, too: inlined into the loops around it, the inner loop would have to
 * share the integer registers with them, and it has not one instruction to spare.
 */
#if TG_MR == 12
#define TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif TG_MR == 6
#define TILE_HEIGHTS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif TG_MR == 2
#define TILE_HEIGHTS(X) X(1) X(2)
#elif TG_MR == 1
#define TILE_HEIGHTS(X) X(1)
#else
#error "TILE_HEIGHTS does not know this TG_MR"
#endif

typedef void (*tile_fn)(const tile_args *t);

#define TILE_FUNCTIONS(h)                                                                          \
    static void row_tile_##h(const tile_args *t) {                                                 \
        tile_rows(t, h, t->a_row, 1, false, BASE_ROWS);                                            \
    }                                                                                              \
    static void column_tile_##h(const tile_args *t) { tile_rows(t, h, 1, t->a_step, false, TG_MR); }
TILE_HEIGHTS(TILE_FUNCTIONS)

/* By height. */
#define ROW_TILE(h)    [h] = row_tile_##h,
#define COLUMN_TILE(h) [h] = column_tile_##h,
static const tile_fn row_tile[] = { TILE_HEIGHTS(ROW_TILE) };
static const tile_fn column_tile[] = { TILE_HEIGHTS(COLUMN_TILE) };

#ifdef TG_SIMD_BF16
#define HALF_TILE_FUNCTIONS(h)                                                                     \
    static void half_row_tile_##h(const tile_args *t) {                                            \
        tile_rows(t, h, t->a_row, 1, true, BASE_ROWS);                                             \
    }                                                                                              \
    static void half_column_tile_##h(const tile_args *t) {                                         \
        tile_rows(t, h, 1, t->a_step, true, TG_MR);                                                \
    }
TILE_HEIGHTS(HALF_TILE_FUNCTIONS)

#define HALF_ROW_TILE(h)    [h] = half_row_tile_##h,
#define HALF_COLUMN_TILE(h) [h] = half_column_tile_##h,
static const tile_fn half_row_tile[] = { TILE_HEIGHTS(HALF_ROW_TILE) };
static const tile_fn half_column_tile[] = { TILE_HEIGHTS(HALF_COLUMN_TILE) };
#else
#define half_row_tile    row_tile
#define half_column_tile column_tile
#endif

/* All columns of a panel: one tile, or two beside each other, for which t moves to the right. */
static ALWAYS_INLINE void tile(tile_args *t, size_t rows, bool half) {
    const bool columns = t->a_row == 1 && t->a_step != 1;
    const tile_fn one = half ? (columns ? half_column_tile : half_row_tile)[rows]
                             : (columns ? column_tile : row_tile)[rows];
    one(t);
    for (int col = TILE_COLS; col < PANEL; col += TILE_COLS) {
        t->b += TILE_COLS;
        t->to += TILE_COLS;
        if (t->from) t->from += TILE_COLS;
        if (t->bias) t->bias += TILE_COLS;
        if (t->res) t->res += TILE_COLS;
        one(t);
    }
}

/* -------------------------------------------------------------------------------- after the sum */

/* Sixteen columns of a row, or the first n of them: z = sum + bias, y = act(z) + residual. `at` is
 * the place in y, col the column. act is a constant. */
static ALWAYS_INLINE void finish_lanes(const product *p, tg_v sum, size_t at, size_t col, size_t n,
                                       int act) {
    if (p->bias) sum = tg_vadd(sum, load_up_to(p->bias + col, n));
    if (p->z) store_up_to(p->z + at, sum, n);
    if (act == TG_ACT_GELU_ERF) sum = tg_vgelu_erf(sum);
    if (act == TG_ACT_GELU_TANH) sum = tg_vgelu_tanh(sum);
    if (p->res) sum = tg_vadd(sum, load_up_to(p->res + at, n));
    store_up_to(p->y + at, sum, n);
}

TG_UNLESS_LONG void finish_rows(const product *p, const float *sums, size_t row, size_t rows,
                                size_t col, size_t cols, int act) {
    for (size_t i = 0; i < rows; i++, sums += PANEL) {
        const size_t at = (row + i) * p->n + col;
        size_t j = 0;
        for (; j + 16 <= cols; j += 16)
            finish_lanes(p, tg_vload(sums + j), at + j, col + j, 16, act);
        if (j < cols) finish_lanes(p, tg_vload(sums + j), at + j, col + j, cols - j, act);
    }
}

/* rows x cols sums, PANEL apart, cols <= PANEL, whose place in y is (row, col). */
static void finish(const product *p, const float *sums, size_t row, size_t rows, size_t col,
                   size_t cols) {
    switch (p->act) {
    case TG_ACT_GELU_ERF: finish_rows(p, sums, row, rows, col, cols, TG_ACT_GELU_ERF); break;
    case TG_ACT_GELU_TANH: finish_rows(p, sums, row, rows, col, cols, TG_ACT_GELU_TANH); break;
    default: finish_rows(p, sums, row, rows, col, cols, TG_ACT_NONE);
    }
}

#endif
