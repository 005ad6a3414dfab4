/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.h - matrices of weights as kernels read them: sixteen rows side by side.
 *
 * A matrix W [rows, cols] serves y = x W^T. Sixteen of its rows make a group, so that the lanes of
 * a vector are sixteen results, a weight of x goes to all of them at once, and no sum crosses
 * lanes. Rows beyond the last one are zeros. A group is read from end to end, once a product:
 *
 *   floats    | k = 0: 16 rows | k = 1: 16 rows | ..                            (F32, F16, BF16)
 *
 *   integers  a block of 32 columns after the other; of a block, with q cut into fours of columns
 *             (the step of the integer dot products), vectors of 64 bytes = 16 rows * 4 columns:
 *
 *     q4x16 q4mx16   4 vectors: v has fours v (low halves) and v + 4 (high halves)  | d |, m: | m |
 *     q5x16 q5mx16   the same, and 64 bytes of fifth bits: bit j is of four j       | d |, m: | m |
 *     q8x16          8 vectors: four after four                                     | d |
 *     q4kx16         as q4mx16, with 16 bytes of scales and 16 of offsets in place of d and m,
 *                    which for eight blocks lie ahead of them:
 *                    | d | dmin | block 0 | .. | block 7 |
 *     q8mx16         as q8x16, with f32 scales and offsets for the first and the second 16 columns
 *                    | scale 0 | scale 1 | offset 0 | offset 1 |
 *
 * An m in a name stands for offsets, a k for the two steps of scales of q4_k. q is stored without a
 * sign, as the integer dot products want it; a weight is
 *
 *     w = d * (q - zero) + m       zero: q4x16 8   q5x16 16   q8x16, q8mx16 128   others 0
 *
 * d, m and dmin are f16, 16 of them. All of it is exact: no weight changes its value. q8mx16 is the
 * home of types that have no layout of their own yet; it takes 12 bits a weight.
 */
#ifndef TG_DTYPE_PACKED_H
#define TG_DTYPE_PACKED_H

#include "dtype/blocks.h"

enum { TG_PACK_ROWS = 16, TG_PACK_COLS = 32 };

typedef struct tg_packing_desc {
    const char *text;     /* of dumps; "" of NONE */
    uint32_t cols, bytes; /* of the smallest piece of a group */
    int zero, number;
} tg_packing_desc;

extern const tg_packing_desc tg_packing_table[TG_PACKING_COUNT];

/* The bytes in that table, as a constant where p is one. */
static inline size_t tg_packing_bytes(tg_packing p) {
#define TG_PACKING_BYTES(name, text, cols, bytes, zero, number) p == TG_PACK_##name ? (bytes):
    return TG_PACKING_LIST(TG_PACKING_BYTES) 0;
#undef TG_PACKING_BYTES
}

/* Is it made of whole numbers and scales? */
static inline bool tg_packing_is_integer(tg_packing p) { return p >= TG_PACK_Q4X16; }

static inline size_t tg_pack_groups(size_t rows) {
    return (rows + TG_PACK_ROWS - 1) / TG_PACK_ROWS;
}

/* Bytes of a group; cols is a multiple of the packing's. */
static inline size_t tg_pack_group_bytes(tg_packing p, size_t cols) {
    return cols / tg_packing_table[p].cols * tg_packing_table[p].bytes;
}

/* Bytes of a matrix; cols are whole blocks of the type, and units of the packing. */
size_t tg_matrix_bytes(tg_dtype dtype, tg_packing layout, size_t rows, size_t cols);

/* One group: row[i] is a row of a file [cols], NULL beyond the last. */
void tg_pack_group(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                   uint8_t *out);

/* Columns [first, first + n) of a row of a matrix of float weights, as f32: the reference of all
 * kernels. Not packed, they are whole blocks. */
void tg_matrix_to_f32_n(tg_dtype dtype, tg_packing layout, size_t cols, const void *data,
                        size_t row, size_t first, size_t n, float *out);

#endif
