/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_pack.h - copies of a and b in the order in which the register tile reads them.
 *
 *   panels of b    PANEL columns each, step after step; zeros beyond column n
 *                    step 0 [PANEL]  step 1 [PANEL] ...  PAD  | next panel ...
 *   strip of a     TG_MR rows, each of the steps of one block, STRIP_LD apart
 *   columns of a   strips again, but step after step: step 0 [TG_MR]  step 1 [TG_MR] ...  PAD |
 *
 * Distances are never a multiple of 4 KiB: lines that far apart share eight places of the first
 * cache, and a load is held up by a store at the same place in another page.
 *
 * With half, a step is two k and an element a pair of bf16: (k, k + 1), the lower half first; the
 * partner of an odd last k is 0.
 */
#ifndef TG_OPS_MATMUL_PACK_H
#define TG_OPS_MATMUL_PACK_H

#include "ops/matmul/matmul_tile.h"

enum { PACK_AHEAD = 16 }; /* rows that are fetched ahead of the one that is copied */

/* n floats that will be read soon. */
static ALWAYS_INLINE void fetch_line(const float *p, size_t n) {
    for (size_t i = 0; i < n; i += 16) TG_PREFETCH_FAR(p + i);
}

/* ------------------------------------------------------------------------------------------ f32 */

static void pack_strip(const product *p, size_t row, size_t rows, size_t k0, size_t kc,
                       float *out) {
    for (size_t i = 0; i < rows; i++, out += STRIP_LD) {
        const float *from = p->a + (row + i) * p->lda + k0;
        size_t k = 0;
        for (; k + 16 <= kc; k += 16) tg_vstore(out + k, tg_vload(from + k));
        if (k < kc) tg_vstore(out + k, tg_vload_n(from + k, kc - k));
    }
}

static void pack_columns(const product *p, size_t row, size_t rows, size_t k0, size_t kc,
                         float *out) {
    const size_t whole = rows / TG_MR, rest = rows % TG_MR;
    for (size_t k = 0; k < kc; k++) {
        const float *from = p->a + (k0 + k) * p->lda + row;
        float *to = out + k * TG_MR;
        fetch_line(from + (tg_min_size(k + PACK_AHEAD, kc - 1) - k) * p->lda, rows);
        for (size_t s = 0; s < whole; s++, from += TG_MR, to += kc * TG_MR + PAD)
            memcpy(to, from, TG_MR * sizeof(float));
        if (rest) memcpy(to, from, rest * sizeof(float));
    }
}

/* Panels of b [k,n]: `panels` of them from column col on. */
static void pack_rows_of_b(const product *p, size_t col, size_t panels, size_t k0, size_t kc,
                           float *out) {
    const size_t whole = tg_min_size(panels, (p->n - col) / PANEL);
    const size_t rest = whole < panels ? p->n - col - whole * PANEL : 0;
    for (size_t k = 0; k < kc; k++) {
        const float *from = p->b + (k0 + k) * p->ldb + col;
        float *to = out + k * PANEL;
        fetch_line(from + (tg_min_size(k + PACK_AHEAD, kc - 1) - k) * p->ldb, whole * PANEL);
        for (size_t s = 0; s < whole; s++, from += PANEL, to += kc * PANEL + PAD)
            memcpy(to, from, PANEL * sizeof(float));
        for (size_t j = 0; rest && j < PANEL; j += 16)
            tg_vstore(to + j, j < rest ? load_up_to(from + j, rest - j) : tg_vzero());
    }
}

/* A panel of b [n,k]: blocks of 16 by 16, turned over. */
static void pack_columns_of_b(const product *p, size_t col, size_t k0, size_t kc, float *out) {
    for (size_t j = 0; j < PANEL; j += 16) {
        const size_t rows = p->n > col + j ? tg_min_size(16, p->n - col - j) : 0;
        const float *from = p->b + (rows ? (col + j) * p->ldb + k0 : 0);
        for (size_t k = 0; k < kc; k += 16)
            tg_vturn(out + k * PANEL + j, PANEL, from + k, p->ldb, rows, tg_min_size(16, kc - k));
    }
}

/* ----------------------------------------------------------------------------------------- bf16 */
#ifdef TG_SIMD_BF16

static void pack_strip_half(const product *p, size_t row, size_t rows, size_t k0, size_t kc,
                            float *out) {
    for (size_t i = 0; i < rows; i++, out += STRIP_LD) {
        const float *from = p->a + (row + i) * p->lda + k0;
        for (size_t k = 0; k < kc; k += 32) {
            const tg_v low = load_up_to(from + k, kc - k);
            const tg_v high = kc - k > 16 ? load_up_to(from + k + 16, kc - k - 16) : tg_vzero();
            tg_vstore(out + k / 2, tg_vfrombits(tg_vbf16(low, high)));
        }
    }
}

static void pack_columns_half(const product *p, size_t row, size_t rows, size_t k0, size_t kc,
                              float *out) {
    const size_t steps = tg_units(kc, 2);
    for (size_t s = 0; s < steps; s++) {
        const float *even = p->a + (k0 + 2 * s) * p->lda + row;
        const bool both = 2 * s + 1 < kc;
        float *to = out + s * TG_MR;
        for (size_t i = 0; i < rows; i += TG_MR, to += steps * TG_MR + PAD) {
            const size_t n = tg_min_size(TG_MR, rows - i);
            const tg_v odd = both ? tg_vload_n(even + p->lda + i, n) : tg_vzero();
            tg_vstore_n(to, tg_vfrombits(tg_vbf16_pairs(tg_vload_n(even + i, n), odd)), TG_MR);
        }
    }
}

static void pack_rows_of_b_half(const product *p, size_t col, size_t panels, size_t k0, size_t kc,
                                float *out) {
    const size_t steps = tg_units(kc, 2), cols = tg_min_size(panels * PANEL, p->n - col);
    for (size_t s = 0; s < steps; s++) {
        const float *even = p->b + (k0 + 2 * s) * p->ldb + col;
        const bool both = 2 * s + 1 < kc;
        for (size_t j = 0; j < panels * PANEL; j += 16) {
            float *to = out + j / PANEL * (steps * PANEL + PAD) + s * PANEL + j % PANEL;
            const size_t n = cols > j ? cols - j : 0;
            const tg_v odd = both && n ? load_up_to(even + p->ldb + j, n) : tg_vzero();
            const tg_v x = n ? load_up_to(even + j, n) : tg_vzero();
            tg_vstore(to, tg_vfrombits(tg_vbf16_pairs(x, odd)));
        }
    }
}

static void pack_columns_of_b_half(const product *p, size_t col, size_t k0, size_t kc, float *out) {
    for (size_t j = 0; j < PANEL; j += 16) {
        const size_t rows = p->n > col + j ? tg_min_size(16, p->n - col - j) : 0;
        for (size_t k = 0; k < kc; k += 32) {
            float pairs[16 * 16];
            for (size_t i = 0; i < rows; i++) {
                const float *from = p->b + (col + j + i) * p->ldb + k0 + k;
                const tg_v low = load_up_to(from, kc - k);
                const tg_v high = kc - k > 16 ? load_up_to(from + 16, kc - k - 16) : tg_vzero();
                tg_vstore(pairs + i * 16, tg_vfrombits(tg_vbf16(low, high)));
            }
            const size_t steps = tg_min_size(16, tg_units(kc - k, 2));
            tg_vturn(out + k / 2 * PANEL + j, PANEL, pairs, 16, rows, steps);
        }
    }
}

#else
/* Never called: no variant of this ISA takes bf16. They keep the driver free of conditions. */
#define pack_strip_half        pack_strip
#define pack_columns_half      pack_columns
#define pack_rows_of_b_half    pack_rows_of_b
#define pack_columns_of_b_half pack_columns_of_b
#endif

#endif
