/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_rules.h - the shape rule of packed matrices, and those of test cases: what linear and its
 * gradient share.
 */
#ifndef TG_OPS_LINEAR_RULES_H
#define TG_OPS_LINEAR_RULES_H

#include "base/rng.h"
#include "ops/linear/linear_parts.h"
#include "ops/rules.h"

/* The matrix at input k is what its attribute says, of K columns. */
static inline bool linear_want_matrix(tg_graph *g, const tg_node *n, int k, size_t depth) {
    const int32_t code = n->attr.i[k - LINEAR_W];
    const tg_packing p = tg_packed_attr_packing(code);
    if (!n->in[k] != !code ||
        (code && (p >= TG_PACKING_COUNT || code < 16 || depth % tg_packing_table[p].cols != 0))) {
        tg_graph_fail(g, n, TG_E_SHAPE, "%s: want a packed matrix with %zu columns, have code %d",
                      tg_in_name(n, k), depth, (int)code);
        return false;
    }
    if (!code) return true;
    return tg_want_type(g, n, k,
                        tg_type_2d(TG_U8, tg_pack_pieces(p, tg_packed_attr_rows(code)),
                                   tg_pack_piece_bytes(p, depth)));
}

/* All of them, of K = depth columns; rows gets the sum of theirs. */
static inline bool linear_want_matrices(tg_graph *g, const tg_node *n, size_t depth, size_t *rows) {
    for (int k = 0; k < LINEAR_PARTS; k++) {
        if (!linear_want_matrix(g, n, LINEAR_W + k, depth)) return false;
        *rows += tg_packed_attr_rows(n->attr.i[k]);
    }
    return true;
}

/* Of a block of four or five bits: the bytes that hold them. Where the first row of a group meets
 * the first block of x, their sums are as large as they get. */
static inline size_t linear_small_bytes(tg_packing p) {
    return p == TG_PACK_C4 || p == TG_PACK_M4 ? 256 : p == TG_PACK_C5 || p == TG_PACK_M5 ? 320 : 0;
}

/*
 * Packed matrices of a case are made of random bytes, with the 16-bit floats' exponents held near
 * 1/16; what is f32 in S8 is made by hand.
 */
static inline void linear_fill_packed(const tg_args *a, int k) {
    const tg_packing p = tg_packed_attr_packing(a->attr.i[k]);
    uint8_t *out = (uint8_t *)(uintptr_t)a->in[LINEAR_W + k];
    const size_t n = tg_type_elems(&a->in_type[LINEAR_W + k]);
    const size_t unit = tg_packing_table[p].bytes;
    for (size_t i = 0; i < n; i++) {
        uint32_t x[4];
        tg_philox(7, i, TG_RNG_INIT, (uint32_t)k, x);
        const size_t at = i % unit;
        const bool half = p == TG_PACK_F16 || p == TG_PACK_ROWS_F16 ||
                          ((p == TG_PACK_C4 || p == TG_PACK_M4) && at >= 256) ||
                          ((p == TG_PACK_C5 || p == TG_PACK_M5) && at >= 320) ||
                          (p == TG_PACK_C8 && at >= 512) || (p == TG_PACK_K4 && at < 64);
        out[i] = (uint8_t)x[0];
        if (at < linear_small_bytes(p) && at % 64 < 4) out[i] = 255;
        if (half && i % 2) out[i] = (uint8_t)(0x20 | (x[0] & 0x83)); /* about 2^-7 */
        if ((p == TG_PACK_BF16 || p == TG_PACK_ROWS_BF16) && i % 2)
            out[i] = (uint8_t)(0x3c | (x[0] & 0x80));
        if (p == TG_PACK_F32 || p == TG_PACK_ROWS_F32 || (p == TG_PACK_S8 && at >= 512)) {
            const float f = ((float)(x[1] % 2001) - 1000) * 1e-4f;
            memcpy(&out[i - i % 4], &f, 4);
            i += 3 - i % 4;
        }
    }
}

#define CODE(packing, rows) (16 * (rows) + TG_PACK_##packing)
#define BYTES_F32(k)        (64 * (k))
#define BYTES_F16(k)        (32 * (k))
#define BYTES_BF16(k)       (32 * (k))
#define BYTES_C4(k)         (288 * (k) / 32)
#define BYTES_M4(k)         (320 * (k) / 32)
#define BYTES_C5(k)         (352 * (k) / 32)
#define BYTES_M5(k)         (384 * (k) / 32)
#define BYTES_C8(k)         (544 * (k) / 32)
#define BYTES_K4(k)         (2368 * (k) / 256)
#define BYTES_S8(k)         (768 * (k) / 32)
#define MATRIX(p, n, k)     TG_T2(U8, ((n) + 15) / 16, BYTES_##p(k))
#define ROWS(bytes, n, k)   TG_T2(U8, n, (bytes) * (k))

#endif
