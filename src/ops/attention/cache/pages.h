/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - where keys and values of a sequence are: in pages of a cache, which a table names.
 *
 *   cache  [P,2K,R,D]   P pages. Of each: the keys of K heads, then their values, at R positions
 *   at     [T,2] i32    sequence and position of each row of a call
 *   pages  [S,C] i32    of each sequence its pages: position j is in row j mod R of page
 *                       pages[s, j / R mod C]
 *
 *   position   0 .. R-1   | R .. 2R-1 | ..... | (C-1)R .. CR-1 | CR ..
 *   page       pages[s,0] | pages[s,1]| ..... | pages[s,C-1]   | pages[s,0]: a ring
 *
 * Attention goes through keys in tiles of 64, counted from position 0. So that no tile lies in two
 * pages, R is a multiple of 64, or all positions lie in one page, which is then no ring.
 *
 * Rows of one sequence stand together in a call, each one position behind the one before.
 */
#ifndef TG_OPS_ATTENTION_PAGES_H
#define TG_OPS_ATTENTION_PAGES_H

#include "ir/op.h"

enum { TG_PAGE_TILE = 64 };

/* The pages of one sequence. */
typedef struct tg_paged {
    const int32_t *page; /* [n_cols] */
    size_t n_cols;
    size_t heads; /* 2K, of a page */
    size_t rows;  /* R, of a head in a page */
} tg_paged;

/* Of the sequence of row t. */
static inline tg_paged tg_paged_of(const tg_type *cache, const int32_t *at, const int32_t *pages,
                                   const tg_type *pages_type, size_t t) {
    const size_t n_cols = pages_type->dim[1];
    return (tg_paged) { pages + (size_t)at[2 * t] * n_cols, n_cols, cache->dim[1], cache->dim[2] };
}

/* The number, among all rows of the cache, of the one that has this head (below 2K) at a position:
 * the next positions up to the next multiple of 64 lie behind it. */
static inline size_t tg_paged_row(const tg_paged *p, size_t head, size_t position) {
    const size_t page = (size_t)p->page[position / p->rows % p->n_cols];
    return (page * p->heads + head) * p->rows + position % p->rows;
}

/* How many rows from `row` on, before `end`, are of one sequence. */
static inline size_t tg_paged_run(const int32_t *at, size_t row, size_t end) {
    size_t n = 1;
    while (row + n < end && at[2 * (row + n)] == at[2 * row]) n++;
    return n;
}

#endif
