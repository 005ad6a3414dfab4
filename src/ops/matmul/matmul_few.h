/*
 * matmul_few.h - products of few rows, bound by reading b once; and the plain fall-back for any.
 *
 * few rows (decoding):  every unit is some columns of y, for all rows. Sums stay in registers; b
 * streams by, each element used once for each row, its lines fetched ahead by hand, since the walk
 * down a block of columns leaves a page with every row or two.
 *
 *   trans 0   b [k,n]: down the rows of b          trans 2   b [n,k]: along 16 rows at a time; blocks
 *      n -->                                                 k -->      of 16 x 16 are turned over
 *    k +----[======]-----+                          n +------------[]---+  in the first cache
 *    | |    [======]     |  k+8: fetched              |  16 rows  [  ]  |
 *    v |    [ .. ] ahead |                            |           [  ]  |
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
    AHEAD_ROWS = 8,                  /* trans 0: rows of b */
    AHEAD_LINES = 4,                 /* trans 2: lines of each row */
};

static bool few_fits(const tg_args *args) {
    const product p = product_of(args);
    return p.m <= FEW_ROWS && p.trans != 1;
}

/* Columns of a unit: a multiple of 16, and two units for each worker if there are so many. */
static size_t few_cols(const product *p, unsigned workers) {
    const size_t share = tg_units(p->n, 2 * (size_t)workers);
    return tg_min_size(tg_units(share, 16) * 16, FEW_COLS);
}
static size_t few_units(const tg_args *args) {
    const product p = product_of(args);
    return tg_units(p.n, few_cols(&p, args->workers));
}

/* trans 0: `vectors` times 16 columns from col on, the last n lanes of the last one; all rows.
 * rows and vectors are constants. */
static ALWAYS_INLINE void few_down(const product *p, size_t col, size_t n, const int rows,
                                   const int vectors) {
    tg_v c[FEW_SUMS];
    UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = p->acc ? load_up_to(p->y + (size_t)(i / vectors) * p->n + col + 16 * (i % vectors),
                                   i % vectors == vectors - 1 ? n : 16)
                      : tg_vzero();
    const float *b = p->b + col;
    for (size_t k = 0; k < p->k; k++, b += p->ldb) {
        const float *far = b + tg_min_size(AHEAD_ROWS, p->k - 1 - k) * p->ldb;
        UNROLL
        for (int j = 0; j < vectors; j++) {
            TG_PREFETCH(far + 16 * j);
            const tg_v x = j == vectors - 1 ? load_up_to(b + 16 * j, n) : tg_vload(b + 16 * j);
            UNROLL
            for (int i = 0; i < rows; i++)
                c[i * vectors + j] = tg_vfma(tg_vset(p->a[(size_t)i * p->lda + k]), x, c[i * vectors + j]);
        }
    }
    UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        const size_t at = (size_t)(i / vectors) * p->n, j = col + 16 * (size_t)(i % vectors);
        const size_t lanes = i % vectors == vectors - 1 ? n : 16;
        finish_lanes(p, c[i], at + j, j, lanes, p->act);
    }
}

#endif
