/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_few.h - products of few rows, bound by reading b; and the plain fall-back for any product.
 *
 * Few rows (decoding): a unit is some columns of y, for all rows; there are as many as workers. b
 * streams by once, as far as possible in the order in which it lies in memory:
 *
 *   trans 0   b [k,n]: 8 rows of b at a time go     trans 2   b [n,k]: 16 rows of b, 16 columns of
 *   over all sums, which wait in y                  y, at a time; blocks of 16 x 16 are turned over
 *        n -->                                           k -->
 *    k +--[==============]--+                        n +--[]--[]--[]------+
 *    | |  [==============]  | 8 rows                 | |  []  []  []      | 16 rows
 *    v |  [ .. fetched . ]  | the next 8             v |  fetched         | the next 16
 *
 * Lines are fetched by hand, well ahead and into the second cache: with a first cache that can wait
 * for some twenty lines, what it waits for itself would not fill the memory's pipe. Where nothing
 * can be fetched by hand (WebAssembly), all depends on what the processor fetches by itself, and
 * that is one stream without gaps for each worker. b [k,n] has none for two of them. So either one
 * worker takes it row after row, whole, or b is copied for those who come again: 16 columns of all
 * k, then the next 16, of which each worker has a run. Of a model of 38 MB, whole rows on one
 * worker read 18 GB/s, such a copy 38 GB/s on two; half of each row on each of two reads 5 GB/s,
 * half of 8 rows 11 GB/s, whether or not the next rows are touched or copied first. Only a small b,
 * which is likely to lie in a cache still, is faster by two rows at a time: sums are then loaded
 * and stored half as often.
 *
 * Each sum is the chain of matmul_tile.h, so a row has the bits that it has in a large product.
 */
#ifndef TG_OPS_MATMUL_FEW_H
#define TG_OPS_MATMUL_FEW_H

#include "ops/matmul/matmul_pack.h"

#if defined(TG_NO_PREFETCH) && !defined(TG_ISA_SCALAR)
#define FEW_COPIES  /* where one number at a time is computed, reading is not what takes the time  \
                     */
#endif

enum {
    FEW_ROWS = 4,
    /* Rows whose sums fit into registers. */
    FEW_AT_ONCE = TG_V_ROWS < FEW_ROWS ? TG_V_ROWS : FEW_ROWS,
#ifdef TG_NO_PREFETCH
    FEW_LINEAR = 1,
#else
    FEW_LINEAR = 0,
#endif
    FEW_STEPS = FEW_LINEAR ? 2 : 8, /* rows of b that go over the sums together */
    FEW_AHEAD_BYTES = 16384,        /* at least, of a unit's columns */
    FEW_NEAR_BYTES = 192 << 10,     /* of a small b */
};

static bool few_fits(const tg_args *args) {
    const product p = product_of(args);
    return matmul_b_is_floats(args) && p.m <= FEW_ROWS && p.trans != 1;
}

/* What lies in a cache still is read in the time that two workers need to meet. */
static bool few_near(const product *p) { return p->k * p->n * sizeof(float) <= FEW_NEAR_BYTES; }

/* Columns of a unit: the wider, the longer the pieces that are read in a row. */
static size_t few_cols(const product *p, const tg_args *args) {
    if (FEW_LINEAR && (args->copy ? few_near(p) : p->trans == 0)) return p->n;
    return tg_units(tg_units(p->n, args->workers), 16) * 16;
}
static size_t few_units(const tg_args *args) {
    const product p = product_of(args);
    return tg_units(p.n, few_cols(&p, args));
}

/* Sixteen sums, or n of them, as they are before the first k. */
static ALWAYS_INLINE tg_v first_sum(const product *p, size_t row, size_t col, size_t n) {
    return p->acc ? load_up_to(p->y + row * p->n + col, n) : tg_vzero();
}

/* trans 0: `steps` rows of b, from k on, go over the sums of n <= 16 columns from col on. rows and
 * steps are constants, n mostly. The address that is fetched may lie behind b: it is no pointer,
 * and what lies there is likely to be the next weights. */
static ALWAYS_INLINE void few_turn(const product *p, const int rows, const int steps, size_t k,
                                   size_t col, size_t n, uintptr_t ahead_bytes) {
    tg_v c[FEW_ROWS];
    UNROLL
    for (int i = 0; i < rows; i++) c[i] = load_up_to(p->y + (size_t)i * p->n + col, n);
    UNROLL
    for (int s = 0; s < steps; s++) {
        const float *b = p->b + (k + (size_t)s) * p->ldb + col;
        TG_PREFETCH_FAR((const void *)((uintptr_t)b + ahead_bytes));
        const tg_v x = load_up_to(b, n);
        UNROLL
        for (int i = 0; i < rows; i++)
            c[i] = tg_vfma(tg_vset(p->a[(size_t)i * p->lda + k + (size_t)s]), x, c[i]);
    }
    UNROLL
    for (int i = 0; i < rows; i++) store_up_to(p->y + (size_t)i * p->n + col, c[i], n);
}

/* The same for all columns of [col, end), a multiple of 16. */
static ALWAYS_INLINE void few_turns(const product *p, const int rows, const int steps, size_t k,
                                    size_t col, size_t end) {
    const size_t turn_bytes = FEW_STEPS * (end - col) * sizeof(float);
    const size_t ahead_rows = FEW_STEPS * tg_units(FEW_AHEAD_BYTES, turn_bytes);
    const uintptr_t ahead_bytes = ahead_rows * p->ldb * sizeof(float);
    for (; col < end; col += 16) few_turn(p, rows, steps, k, col, 16, ahead_bytes);
}

/* Out of line: what may follow a sum is long, and the places that end one are many. */
static __attribute__((noinline)) void few_finish(const product *p, tg_v sum, size_t row, size_t col,
                                                 size_t n) {
    finish_lanes(p, sum, row * p->n + col, col, n, p->act);
}

static ALWAYS_INLINE void few_down(const product *p, const int rows, size_t col, size_t end) {
    const size_t whole = col + (end - col) / 16 * 16;
    for (size_t i = 0; i < p->m && !p->acc; i++)
        memset(p->y + i * p->n + col, 0, (end - col) * sizeof(float));
    if (col < whole) {
        size_t k = 0;
        const bool far = FEW_LINEAR && !few_near(p);
        for (; !far && k + FEW_STEPS <= p->k; k += FEW_STEPS)
            few_turns(p, rows, FEW_STEPS, k, col, whole);
        for (; k < p->k; k++) few_turns(p, rows, 1, k, col, whole);
    }
    for (size_t k = 0; whole < end && k < p->k; k++) few_turn(p, rows, 1, k, whole, end - whole, 0);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = col; j < end; j += 16) {
            const size_t n = tg_min_size(16, end - j);
            few_finish(p, load_up_to(p->y + i * p->n + j, n), i, j, n);
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
        if (col + 32 <= p->n) {
            const float *next = p->b + (col + 16) * p->ldb + k0 * 16;
            for (size_t i = 0; i < kc; i++) TG_PREFETCH_FAR(next + 16 * i);
        }
        tg_vturn(turned, 16, b, p->ldb, n, kc);
        for (size_t k = 0; k < kc; k++) {
            const tg_v x = tg_vload(turned + 16 * k);
            UNROLL
            for (int i = 0; i < rows; i++)
                c[i] = tg_vfma(tg_vset(a[(size_t)i * p->lda + k]), x, c[i]);
        }
    }
    for (int i = 0; i < rows; i++) few_finish(p, c[i], (size_t)i, col, n);
}

/* The columns [col, end). rows is a constant. */
static ALWAYS_INLINE void few_block(const product *p, const int rows, size_t col, size_t end) {
    if (p->trans == 0)
        few_down(p, rows, col, end);
    else
        for (; col < end; col += 16) few_along(p, rows, col, tg_min_size(16, end - col));
}

static product few_part(const product *p, size_t row, size_t rows) {
    product part = *p;
    part.m = rows;
    part.a += row * p->lda;
    part.y += row * p->n;
    if (p->z) part.z += row * p->n;
    if (p->res) part.res += row * p->n;
    return part;
}

#ifdef FEW_COPIES
/* Of one row alone: more of them read b less often than they compute with it. */
static size_t few_copy_bytes(const tg_args *args) {
    const product p = product_of(args);
    return p.m == 1 ? tg_units(p.n, 16) * 16 * p.k * sizeof(float) : 0;
}

/* [n / 16][k][16]. Lanes beyond the last column are never stored, whatever they are. */
static void few_copy(const tg_args *args, void *to) {
    const product p = product_of(args);
    const size_t step = p.trans == 0 ? 1 : 16;
    for (size_t k = 0; k < p.k; k += step)
        for (size_t col = 0; col < p.n; col += 16) {
            float *out = (float *)to + col * p.k + k * 16;
            const size_t n = tg_min_size(16, p.n - col);
            if (p.trans == 0)
                tg_vstore(out, load_up_to(p.b + k * p.ldb + col, n));
            else
                tg_vturn(out, 16, p.b + col * p.ldb + k, p.ldb, n, tg_min_size(16, p.k - k));
        }
}

static void few_copied(const product *p, const float *b, size_t col, size_t end) {
    for (; col < end; col += 16) {
        const float *w = b + col * p->k;
        const size_t n = tg_min_size(16, p->n - col);
        tg_v c = first_sum(p, 0, col, n);
        for (size_t k = 0; k < p->k; k++) c = tg_vfma(tg_vset(p->a[k]), tg_vload(w + 16 * k), c);
        few_finish(p, c, 0, col, n);
    }
}
#endif

static void few_run(const tg_args *args, size_t begin, size_t end) {
    const product p = product_of(args);
    const size_t cols = few_cols(&p, args);
    const size_t col = begin * cols, stop = tg_min_size(end * cols, p.n);
#ifdef FEW_COPIES
    if (args->copy) {
        few_copied(&p, args->copy, col, stop);
        return;
    }
#endif
    for (size_t row = 0; row < p.m; row += FEW_AT_ONCE) {
        const product part = few_part(&p, row, tg_min_size(FEW_AT_ONCE, p.m - row));
        switch (part.m) {
        case 1: few_block(&part, 1, col, stop); break;
#if TG_V_ROWS > 1
        case 2: few_block(&part, 2, col, stop); break;
#endif
#if TG_V_ROWS > 2
        case 3: few_block(&part, 3, col, stop); break;
        case 4: few_block(&part, 4, col, stop); break;
#endif
        }
    }
}

/* ---------------------------------------------------------------------------- the plain product */

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
            few_finish(&p, c, i, col, n);
        }
    }
}

static size_t plain_room(const tg_args *args) {
    const product p = product_of(args);
    return p.trans == 2 ? p.k * 16 * sizeof(float) : 0;
}

#endif
