/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_rows.h - products of x with sixteen rows of 16-bit floats that lie as a file has them.
 *
 * Eight columns of the rows are turned in registers, so that a vector has one column of all rows as
 * a packed group has it, and is used at once: the sums are those of packed_float.h, bit for bit.
 * Sixteen rows are more streams than the processor's own fetching follows from page to page of a
 * file: so their lines are asked for.
 *
 *     f16   | row 0, 8 columns | row 8, 8 columns |         after three rounds of pairs
 *           | row 1            | row 9            |   ->    | column 0 of rows 0..15 |
 *           ..                                              ..
 */
#ifndef TG_OPS_PACKED_ROWS_H
#define TG_OPS_PACKED_ROWS_H

#include "ops/matmul/packed/packed_float.h"

/* The rows of a group; beyond the last, that again. */
static void row_table(const uint8_t *group, size_t row_bytes, size_t n, const uint8_t *row[16]) {
    for (size_t i = 0; i < 16; i++) row[i] = group + (i < n ? i : n - 1) * row_bytes;
}

enum { HALF_BYTES = 2 };

INLINE tg_v one_column(tg_dtype t, const uint8_t *const row[16], size_t k) {
    float f[16];
    for (int i = 0; i < 16; i++) tg_block_to_f32_n(t, &f[i], row[i] + k * HALF_BYTES, 1);
    return tg_vload(f);
}

#if defined(__wasm__)
/* Modules map no files, so that nothing but the cases of the op has such matrices there. */
INLINE bool rows_few(tg_dtype t, const uint8_t *group, size_t n, const float *x, size_t step,
                     size_t depth, size_t m, tg_v *y) {
    (void)t, (void)group, (void)n, (void)x, (void)step, (void)depth, (void)m, (void)y;
    return false;
}
static void rows_panel(tg_dtype t, size_t depth, const uint8_t *group, size_t n, float *panel) {
    const uint8_t *row[16];
    row_table(group, HALF_BYTES * depth, n, row);
    for (size_t k = 0; k < depth; k++) tg_vstore(panel + 16 * k, one_column(t, row, k));
}
#else
enum { ROWS_AT_ONCE = 4, TURNED = 8 };
_Static_assert(CHAIN % TURNED == 0, "a sum ends between two turns");

typedef uint16_t halves_8 __attribute__((vector_size(16)));
typedef uint16_t halves_16 __attribute__((vector_size(32)));
typedef uint32_t pairs_8 __attribute__((vector_size(32)));
typedef uint64_t fours_4 __attribute__((vector_size(32)));

#define SHUFFLE __builtin_shufflevector

INLINE halves_16 two_rows(const uint8_t *a, const uint8_t *b) {
    halves_8 x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return SHUFFLE(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* Eight columns, of 16 bits, of sixteen rows. */
INLINE void turn(const uint8_t *const row[16], size_t at, tg_dtype t, tg_v out[TURNED]) {
    halves_16 r[8], a[8], b[8];
    UNROLL
    for (int i = 0; i < 8; i++) r[i] = two_rows(row[i] + at, row[i + 8] + at);
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        a[i] = SHUFFLE(r[i], r[i + 1], 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
        a[i + 1] =
            SHUFFLE(r[i], r[i + 1], 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        UNROLL
        for (int j = 0; j < 2; j++) {
            const pairs_8 x = (pairs_8)a[i + j], y = (pairs_8)a[i + j + 2];
            b[i + 2 * j] = (halves_16)SHUFFLE(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
            b[i + 2 * j + 1] = (halves_16)SHUFFLE(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
        }
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        const fours_4 x = (fours_4)b[i], y = (fours_4)b[i + 4];
        const fours_4 columns[2] = { SHUFFLE(x, y, 0, 4, 2, 6), SHUFFLE(x, y, 1, 5, 3, 7) };
        UNROLL
        for (int j = 0; j < 2; j++) {
            uint16_t bits[16];
            memcpy(bits, &columns[j], sizeof bits);
            out[2 * i + j] = t == TG_F16 ? tg_vload_f16(bits) : tg_vload_bf16(bits);
        }
    }
}

/* A line of each row comes with every 64 bytes of it: some rows at a time, a few lines ahead, which
 * at the end of a row is the beginning of the one sixteen rows on. */
enum { FETCH_BYTES = 512 };
INLINE void fetch_rows(const uint8_t *group, size_t row_bytes, size_t at, const size_t bytes) {
    const size_t ahead = at + FETCH_BYTES, first = at / bytes * (bytes / 4) % 16;
    const size_t to = ahead < row_bytes ? ahead : ahead + 15 * row_bytes;
    UNROLL
    for (size_t i = 0; i < bytes / 4; i++)
        TG_PREFETCH((const void *)((uintptr_t)group + (first + i) * row_bytes + to));
}

INLINE void rows_tile(tg_dtype t, const uint8_t *group, size_t n, const float *x, size_t step,
                      size_t depth, const int rows, tg_v *y) {
    const uint8_t *row[16];
    row_table(group, HALF_BYTES * depth, n, row);
    UNROLL
    for (int i = 0; i < rows; i++) y[i] = tg_vzero();
    for (size_t k = 0, end; k < depth; k = end) {
        end = tg_min_size(k + CHAIN, depth);
        tg_v sum[ROWS_AT_ONCE];
        UNROLL
        for (int i = 0; i < rows; i++) sum[i] = tg_vzero();
        for (; k + TURNED <= end; k += TURNED) {
            tg_v w[TURNED];
            fetch_rows(group, HALF_BYTES * depth, HALF_BYTES * k, HALF_BYTES * TURNED);
            turn(row, HALF_BYTES * k, t, w);
            UNROLL
            for (int j = 0; j < TURNED; j++) {
                UNROLL
                for (int i = 0; i < rows; i++)
                    sum[i] = tg_vfma(tg_vset(x[(size_t)i * step + k + (size_t)j]), w[j], sum[i]);
            }
        }
        for (; k < end; k++) {
            const tg_v w = one_column(t, row, k);
            UNROLL
            for (int i = 0; i < rows; i++)
                sum[i] = tg_vfma(tg_vset(x[(size_t)i * step + k]), w, sum[i]);
        }
        UNROLL
        for (int i = 0; i < rows; i++) y[i] = tg_vadd(y[i], sum[i]);
    }
}

/* m rows of x with a group of n <= 16 rows; false: they are too many for this. */
static bool rows_few(tg_dtype t, const uint8_t *group, size_t n, const float *x, size_t step,
                     size_t depth, size_t m, tg_v *y) {
#define ROWS_CASE(type)                                                                            \
    if (m == 1) rows_tile(type, group, n, x, step, depth, 1, y);                                   \
    if (m == 2) rows_tile(type, group, n, x, step, depth, 2, y);                                   \
    if (m == 3) rows_tile(type, group, n, x, step, depth, 3, y);                                   \
    if (m == 4) rows_tile(type, group, n, x, step, depth, 4, y)
    if (m > ROWS_AT_ONCE) return false;
    if (t == TG_F16) {
        ROWS_CASE(TG_F16);
    } else {
        ROWS_CASE(TG_BF16);
    }
    return true;
#undef ROWS_CASE
}

/* For many: the group as [depth][16] floats. */
INLINE void rows_turned(tg_dtype t, size_t depth, const uint8_t *group, size_t n, float *panel) {
    const uint8_t *row[16];
    row_table(group, HALF_BYTES * depth, n, row);
    size_t k = 0;
    for (; k + TURNED <= depth; k += TURNED) {
        tg_v w[TURNED];
        fetch_rows(group, HALF_BYTES * depth, HALF_BYTES * k, HALF_BYTES * TURNED);
        turn(row, HALF_BYTES * k, t, w);
        UNROLL
        for (int j = 0; j < TURNED; j++) tg_vstore(panel + 16 * (k + (size_t)j), w[j]);
    }
    for (; k < depth; k++) tg_vstore(panel + 16 * k, one_column(t, row, k));
}

static void rows_panel(tg_dtype t, size_t depth, const uint8_t *group, size_t n, float *panel) {
    if (t == TG_F16)
        rows_turned(TG_F16, depth, group, n, panel);
    else
        rows_turned(TG_BF16, depth, group, n, panel);
}

#undef SHUFFLE
#endif
#endif
