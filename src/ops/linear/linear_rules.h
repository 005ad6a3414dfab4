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

/* Weights of K columns: packed, or rows of 16-bit floats. */
static inline bool linear_want_matrix(tg_graph *g, const tg_node *n, int k, size_t depth) {
    const tg_type *t = &n->in[k]->type;
    const bool rows = t->layout == TG_PACK_NONE && (t->dtype == TG_F16 || t->dtype == TG_BF16);
    if (t->n_dims == 2 && t->dim[0] > 0 && t->dim[1] == depth && (rows || t->layout)) return true;
    char text[TG_TYPE_TEXT_BYTES];
    tg_graph_fail(g, n, TG_E_SHAPE, "%s: want a packed matrix with %zu columns, have %s",
                  tg_in_name(n, k), depth, tg_type_text(t, text));
    return false;
}

/* All of them, of K = depth columns; rows gets the sum of theirs. */
static inline bool linear_want_matrices(tg_graph *g, const tg_node *n, size_t depth, size_t *rows) {
    for (int k = LINEAR_W; k < LINEAR_W + LINEAR_PARTS && n->in[k]; k++) {
        if (!linear_want_matrix(g, n, k, depth)) return false;
        *rows += n->in[k]->type.dim[0];
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
    const tg_type *t = &a->in_type[LINEAR_W + k];
    const tg_packing p = t->layout;
    uint8_t *out = (uint8_t *)(uintptr_t)a->in[LINEAR_W + k];
    const size_t n = tg_type_bytes(t), unit = p ? tg_packing_table[p].bytes : 1;
    const bool halves = t->dtype == TG_F16, upper_halves = t->dtype == TG_BF16;
    for (size_t i = 0; i < n; i++) {
        uint32_t x[4];
        tg_philox(7, i, TG_RNG_INIT, (uint32_t)k, x);
        const size_t at = i % unit;
        const bool half = halves || ((p == TG_PACK_C4 || p == TG_PACK_M4) && at >= 256) ||
                          ((p == TG_PACK_C5 || p == TG_PACK_M5) && at >= 320) ||
                          (p == TG_PACK_C8 && at >= 512) || (p == TG_PACK_K4 && at < 64);
        out[i] = (uint8_t)x[0];
        if (at < linear_small_bytes(p) && at % 64 < 4) out[i] = 255;
        if (half && i % 2) out[i] = (uint8_t)(0x20 | (x[0] & 0x83)); /* about 2^-7 */
        if (upper_halves && i % 2) out[i] = (uint8_t)(0x3c | (x[0] & 0x80));
        if (p == TG_PACK_F32 || (p == TG_PACK_S8 && at >= 512)) {
            const float f = ((float)(x[1] % 2001) - 1000) * 1e-4f;
            memcpy(&out[i - i % 4], &f, 4);
            i += 3 - i % 4;
        }
    }
}

/* A case's matrix, by its packing: of the first type that has it. */
#define MATRIX(p, n, k)   MATRIX_##p(n, k)
#define MATRIX_F32(n, k)  TG_PACKED(F32, F32, n, k)
#define MATRIX_F16(n, k)  TG_PACKED(F16, F16, n, k)
#define MATRIX_BF16(n, k) TG_PACKED(BF16, BF16, n, k)
#define MATRIX_C4(n, k)   TG_PACKED(Q4_0, C4, n, k)
#define MATRIX_M4(n, k)   TG_PACKED(Q4_1, M4, n, k)
#define MATRIX_C5(n, k)   TG_PACKED(Q5_0, C5, n, k)
#define MATRIX_M5(n, k)   TG_PACKED(Q5_1, M5, n, k)
#define MATRIX_C8(n, k)   TG_PACKED(Q8_0, C8, n, k)
#define MATRIX_K4(n, k)   TG_PACKED(Q4_K, K4, n, k)
#define MATRIX_S8(n, k)   TG_PACKED(MXFP4, S8, n, k)
#define ROWS(p, n, k)     TG_T2(p, n, k)

#endif
