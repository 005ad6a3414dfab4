/*
 * matmul_few.h - products of few rows, bound by reading b; and the plain fall-back for any product.
 *
 * Few rows (decoding): a unit is some columns of y, for all rows. Sums stay in registers while b
 * streams by, each element used once for each row. Its lines are fetched ahead by hand: a walk down
 * a block of columns leaves a page with every row or two, which no prefetcher follows.
 *
 *   trans 0   b [k,n]: down the rows of b         trans 2   b [n,k]: along 16 rows at a time;
 * blocks n -->                                         k -->      of 16 x 16 are turned over in the
 *    k +----[======]------+                        n +------[]--[]------+   first cache
 *    | |    [======] used |                        | |      []  [] ahead|
 *    v |    [ .... ] ahead|                        v |      []  []      |
 *
 * Each sum is the chain of matmul_tile.h, so a row has the bits that it has in a large product.
 */
#ifndef TG_OPS_MATMUL_FEW_H
#define TG_OPS_MATMUL_FEW_H

#include "ops/matmul/matmul_pack.h"

enum {
    FEW_ROWS = 4,
    FEW_SUMS = TG_MR == 12 ? 16 : 4, /* vectors of sums that this ISA's registers hold */
    FEW_COLS = FEW_SUMS * 16,        /* columns of a unit, at most */
    AHEAD_ROWS = 8,                  /* of b, trans 0 */
    AHEAD_FLOATS = 64,               /* of each row of b, trans 2 */
};

static bool few_fits(const tg_args *args) {
    const product p = product_of(args);
    return p.m <= FEW_ROWS && p.trans != 1;
}

/* Columns of a unit: whole lines, and two units for each worker if there are so many. */
static size_t few_cols(const product *p, unsigned workers) {
    const size_t share = tg_units(p->n, 2 * (size_t)workers);
    return tg_min_size(tg_units(share, 16) * 16, FEW_COLS);
}
static size_t few_units(const tg_args *args) {
    const product p = product_of(args);
    return tg_units(p.n, few_cols(&p, args->workers));
}

/* Sixteen sums, or n of them, as they are before the first k. */
static ALWAYS_INLINE tg_v first_sum(const product *p, size_t row, size_t col, size_t n) {
    return p->acc ? load_up_to(p->y + row * p->n + col, n) : tg_vzero();
}

/* trans 0: `vectors` times 16 columns from col on; where it is one, n of 16. rows and vectors are
 * constants. */
static ALWAYS_INLINE void few_down(const product *p, const int rows, const int vectors, size_t col,
                                   size_t n) {
    tg_v c[FEW_ROWS][FEW_SUMS];
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            c[i][j] = first_sum(p, (size_t)i, col + 16 * (size_t)j, vectors > 1 ? 16 : n);
    }
    for (size_t k = 0; k < p->k; k++) {
        const float *b = p->b + k * p->ldb + col;
        const float *far = b + tg_min_size(AHEAD_ROWS, p->k - 1 - k) * p->ldb;
        UNROLL
        for (int j = 0; j < vectors; j++) {
            TG_PREFETCH(far + 16 * j);
            const tg_v x = vectors > 1 ? tg_vload(b + 16 * j) : load_up_to(b, n);
            UNROLL
            for (int i = 0; i < rows; i++)
                c[i][j] = tg_vfma(tg_vset(p->a[(size_t)i * p->lda + k]), x, c[i][j]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) {
            const size_t at = col + 16 * (size_t)j;
            finish_lanes(p, c[i][j], (size_t)i * p->n + at, at, vectors > 1 ? 16 : n, p->act);
        }
}

/* trans 2: n <= 16 columns of y, which are rows of b. rows is a constant. */
static ALWAYS_INLINE void few_along(const product *p, const int rows, size_t col, size_t n) {
    tg_v c[FEW_ROWS];
    UNROLL
    for (int i = 0; i < rows; i++) c[i] = first_sum(p, (size_t)i, col, n);
    for (size_t k0 = 0; k0 < p->k; k0 += 16) {
        const float *b = p->b + col * p->ldb + k0, *a = p->a + k0;
        const size_t kc = tg_min_size(16, p->k - k0);
        float turned[16 * 16];
        if (k0 + AHEAD_FLOATS < p->k)
            for (size_t i = 0; i < n; i++) TG_PREFETCH(b + i * p->ldb + AHEAD_FLOATS);
        tg_vturn(turned, 16, b, p->ldb, n, kc);
        for (size_t k = 0; k < kc; k++) {
            const tg_v x = tg_vload(turned + 16 * k);
            UNROLL
            for (int i = 0; i < rows; i++)
                c[i] = tg_vfma(tg_vset(a[(size_t)i * p->lda + k]), x, c[i]);
        }
    }
    for (int i = 0; i < rows; i++) finish_lanes(p, c[i], (size_t)i * p->n + col, col, n, p->act);
}

/* Columns [col, end), widest steps first. rows is a constant. */
static ALWAYS_INLINE void few_block(const product *p, const int rows, size_t col, size_t end) {
    const int wide = FEW_SUMS / rows, half = wide > 4 ? 4 : wide;
    const bool down = p->trans == 0;
    for (; down && col + 16 * (size_t)wide <= end; col += 16 * (size_t)wide)
        few_down(p, rows, wide, col, 16);
    for (; down && half > 1 && col + 16 * (size_t)half <= end; col += 16 * (size_t)half)
        few_down(p, rows, half, col, 16);
    for (; col < end; col += 16) {
        if (down)
            few_down(p, rows, 1, col, tg_min_size(16, end - col));
        else
            few_along(p, rows, col, tg_min_size(16, end - col));
    }
}

static void few_run(const tg_args *args, size_t begin, size_t end) {
    const product p = product_of(args);
    const size_t cols = few_cols(&p, args->workers);
    const size_t col = begin * cols, stop = tg_min_size(end * cols, p.n);
    switch (p.m) {
    case 1: few_block(&p, 1, col, stop); break;
    case 2: few_block(&p, 2, col, stop); break;
    case 3: few_block(&p, 3, col, stop); break;
    case 4: few_block(&p, 4, col, stop); break;
    }
}

/* ------------------------------------------------------------------------------ the plain product
 */

/* A unit is 16 columns of y, for all rows; b is read once a row. */
static size_t plain_units(const tg_args *args) {
    const product p = product_of(args);
    return tg_units(p.n, 16);
}

static void plain_run(const tg_args *args, size_t begin, size_t end) {
    const product p = product_of(args);
    const size_t a_row = p.trans == 1 ? 1 : p.lda, a_k = p.trans == 1 ? p.lda : 1;
    for (size_t u = begin; u < end; u++) {
        const size_t col = u * 16, n = tg_min_size(16, p.n - col);
        const float *b = p.b + col;
        size_t ldb = p.ldb;
        if (p.trans == 2) {
            float *turned = args->local;
            for (size_t k = 0; k < p.k; k += 16)
                tg_vturn(turned + 16 * k, 16, p.b + col * p.ldb + k, p.ldb, n,
                         tg_min_size(16, p.k - k));
            b = turned;
            ldb = 16;
        }
        for (size_t i = 0; i < p.m; i++) {
            tg_v c = first_sum(&p, i, col, n);
            for (size_t k = 0; k < p.k; k++)
                c = tg_vfma(tg_vset(p.a[i * a_row + k * a_k]), load_up_to(b + k * ldb, n), c);
            finish_lanes(&p, c, i * p.n + col, col, n, p.act);
        }
    }
}

static size_t plain_room(const tg_args *args) {
    const product p = product_of(args);
    return p.trans == 2 ? p.k * 16 * sizeof(float) : 0;
}

#endif
