/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_int8.h - products of rounded x with packed whole numbers.
 *
 * A tile is some rows of x and one group: the lanes are the group's sixteen rows of W. The group is
 * read block by block, taken apart into vectors of bytes, and multiplied with the block of each row
 * of x, whose bytes are broadcast from memory (packed_whole.h; packed_pieces.h where registers are
 * short):
 *
 *     sum   = start + sum over the 8 fours of  u * q          exact, in 32 bits
 *     y    += (d_w * d_x) * sum                               one fused multiply-add
 *     y    += m * d_sum                                       another, where there are offsets
 *
 * in the order of the blocks; so a row's bits depend neither on the tile nor on the ISA.
 */
#ifndef TG_OPS_PACKED_INT8_H
#define TG_OPS_PACKED_INT8_H

#include "ops/matmul/packed/packed_x.h"

/* Rows of x of a tile: their sums, eight vectors of bytes, scale and offset fill the registers. */
#if defined(TG_ISA_AVX512)
enum { TILE_ROWS = 12 };
#else
enum { TILE_ROWS = 4 };
#endif

/* A block of W in registers. */
typedef struct w_block {
    tg_b64 u[8];
    tg_v scale[2], offset[2]; /* [1] of q8mx16 alone: of the second 16 columns */
} w_block;

INLINE bool has_offset(tg_packing p) {
    return p == TG_PACK_Q4MX16 || p == TG_PACK_Q5MX16 || p == TG_PACK_Q4KX16 || p == TG_PACK_Q8MX16;
}
INLINE bool is_bytes(tg_packing p) { return p == TG_PACK_Q8X16 || p == TG_PACK_Q8MX16; }

INLINE tg_v load_half(const uint8_t *p) { return tg_vload_f16((const uint16_t *)(const void *)p); }
INLINE tg_v load_float(const uint8_t *p) { return tg_vload((const float *)(const void *)p); }

/* Sixteen bytes as floats. */
INLINE tg_v load_bytes(const uint8_t *p) {
#if defined(TG_ISA_AVX512)
    return _mm512_cvtepi32_ps(
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
#else
    int32_t x[16];
    for (int i = 0; i < 16; i++) x[i] = p[i];
    return tg_vfloat(tg_viload(x));
#endif
}

INLINE tg_b64 shifted(tg_b64 x, int left, uint8_t mask) {
    typedef uint16_t words __attribute__((vector_size(64)));
    const words w = left >= 0 ? (words)x << left : (words)x >> -left;
    return (tg_b64)w & mask;
}

INLINE void take_nibbles(const uint8_t *b, w_block *w) {
    UNROLL
    for (int v = 0; v < 4; v++) {
        const tg_b64 x = tg_b64_load(b + 64 * v);
        w->u[v] = x & 15;
        w->u[v + 4] = shifted(x, -4, 15);
    }
}

/* Block `at` of a group. p is a constant. */
INLINE void take_block(tg_packing p, const uint8_t *group, size_t at, w_block *w) {
    if (p == TG_PACK_Q4KX16) {
        const uint8_t *super = group + at / 8 * 2368, *b = super + 64 + at % 8 * 288;
        take_nibbles(b, w);
        w->scale[0] = tg_vmul(load_half(super), load_bytes(b + 256));
        w->offset[0] = tg_vneg(tg_vmul(load_half(super + 32), load_bytes(b + 272)));
        return;
    }
    const uint8_t *b = group + at * tg_packing_bytes(p);
    if (is_bytes(p)) {
        UNROLL
        for (int v = 0; v < 8; v++) w->u[v] = tg_b64_load(b + 64 * v);
        b += 512;
    } else {
        take_nibbles(b, w);
        b += 256;
    }
    if (p == TG_PACK_Q5X16 || p == TG_PACK_Q5MX16) {
        const tg_b64 bits = tg_b64_load(b);
        UNROLL
        for (int j = 0; j < 8; j++) w->u[j] |= shifted(bits, 4 - j, 16);
        b += 64;
    }
    if (p == TG_PACK_Q8MX16) {
        w->scale[0] = load_float(b);
        w->scale[1] = load_float(b + 64);
        w->offset[0] = load_float(b + 128);
        w->offset[1] = load_float(b + 192);
        return;
    }
    w->scale[0] = load_half(b);
    if (has_offset(p)) w->offset[0] = load_half(b + 32);
}

/* Where a block's sum of whole numbers starts: what x times the zero of the packing is. */
INLINE int32_t start_of(tg_packing p, const x_block *x) {
    return p == TG_PACK_Q4X16    ? x->minus_8
           : p == TG_PACK_Q5X16  ? x->minus_16
           : p == TG_PACK_Q8X16  ? x->minus_128
           : p == TG_PACK_Q8MX16 ? x->minus_128_first
                                 : 0;
}

INLINE size_t block_bytes(tg_packing p) {
    return tg_packing_bytes(p) / (p == TG_PACK_Q4KX16 ? 8 : 1);
}

#ifdef TG_SIMD_PIECES
#include "ops/matmul/packed/packed_pieces.h"
#else
#include "ops/matmul/packed/packed_whole.h"
#endif

/* The products of TILE_ROWS rows of x with a group; those of a row with n <= STREAMS groups. */
typedef void (*tile_fn)(const uint8_t *group, const x_block *x, size_t blocks, tg_v *y);
typedef void (*one_fn)(const uint8_t *const *groups, size_t n, const x_block *x, size_t blocks,
                       tg_v *y);

/* Both for each packing. Without vectors nothing is kept in registers from row to row, so that a
 * tile is its rows one by one: it would be as large again. */
#if TG_MR == 1
#define TILE(p, vnni, group, x, blocks, y)                                                         \
    for (size_t i = 0; i < TILE_ROWS; i++) one_##p(&group, 1, x + i * blocks, blocks, y + i)
#else
#define TILE(p, vnni, group, x, blocks, y) tile(TG_PACK_##p, vnni, group, x, blocks, y)
#endif
#define TILE_FNS(p, suffix, vnni)                                                                  \
    static void one_##p##suffix(const uint8_t *const *groups, size_t n, const x_block *x,          \
                                size_t blocks, tg_v *y) {                                          \
        one_row(TG_PACK_##p, vnni, groups, n, x, blocks, y);                                       \
    }                                                                                              \
    static void all_##p##suffix(const uint8_t *group, const x_block *x, size_t blocks, tg_v *y) {  \
        TILE(p, vnni, group, x, blocks, y);                                                        \
    }
#define TILE_ENTRIES(what, suffix)                                                                 \
    { [TG_PACK_Q4X16] = what##_Q4X16##suffix,  [TG_PACK_Q4MX16] = what##_Q4MX16##suffix,           \
      [TG_PACK_Q5X16] = what##_Q5X16##suffix,  [TG_PACK_Q5MX16] = what##_Q5MX16##suffix,           \
      [TG_PACK_Q8X16] = what##_Q8X16##suffix,  [TG_PACK_Q4KX16] = what##_Q4KX16##suffix,           \
      [TG_PACK_Q8MX16] = what##_Q8MX16##suffix }
typedef struct tiles {
    one_fn one[TG_PACKING_COUNT];
    tile_fn all[TG_PACKING_COUNT];
} tiles;

TILE_FNS(Q4X16, , false)
TILE_FNS(Q4MX16, , false)
TILE_FNS(Q5X16, , false)
TILE_FNS(Q5MX16, , false)
TILE_FNS(Q8X16, , false)
TILE_FNS(Q4KX16, , false)
TILE_FNS(Q8MX16, , false)
static const tiles plain_tiles = { TILE_ENTRIES(one, ), TILE_ENTRIES(all, ) };

#ifdef TG_SIMD_VNNI
TILE_FNS(Q4X16, _vnni, true)
TILE_FNS(Q4MX16, _vnni, true)
TILE_FNS(Q5X16, _vnni, true)
TILE_FNS(Q5MX16, _vnni, true)
TILE_FNS(Q8X16, _vnni, true)
TILE_FNS(Q4KX16, _vnni, true)
TILE_FNS(Q8MX16, _vnni, true)
static const tiles vnni_tiles = { TILE_ENTRIES(one, _vnni), TILE_ENTRIES(all, _vnni) };
#endif

#endif
