/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_pieces.h - the tile of packed_int8.h where a register holds fewer than sixteen lanes.
 *
 * A block taken apart would fill 16 or 32 registers, more than there are. So a tile is made of
 * pieces, halves or quarters of the group's sixteen rows, and each vector of bytes is used as soon
 * as it is made:
 *
 *     many rows of x   one piece after the other, each through all blocks, which stay in the first
 *                      cache: sums of the rows in registers
 *     one row          all pieces of a block together, since W is read only once; a block of each
 *                      of some groups in turn
 */
#ifndef TG_OPS_PACKED_PIECES_H
#define TG_OPS_PACKED_PIECES_H

INLINE tg_pbytes load_piece(const uint8_t *p) {
    tg_pbytes x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE tg_pbytes shifted_piece(tg_pbytes x, int left, uint8_t mask) {
    typedef uint16_t words __attribute__((vector_size(64 / TG_SIMD_PIECES)));
    const words w = left >= 0 ? (words)x << left : (words)x >> -left;
    return (tg_pbytes)w & mask;
}

enum { PIECES = TG_SIMD_PIECES, LANES = 16 / PIECES };

/* Bytes j of 8 of piece q of a block. */
INLINE tg_pbytes take_bytes(tg_packing p, const uint8_t *b, int j, int q) {
    if (is_bytes(p)) return load_piece(b + 64 * j + 4 * LANES * q);
    const tg_pbytes x = load_piece(b + 64 * (j % 4) + 4 * LANES * q);
    const tg_pbytes u = j < 4 ? x & 15 : shifted_piece(x, -4, 15);
    if (p != TG_PACK_Q5X16 && p != TG_PACK_Q5MX16) return u;
    return u | shifted_piece(load_piece(b + 256 + 4 * LANES * q), 4 - j, 16);
}

INLINE tg_pfloats splat(float x) { return x - (tg_pfloats) { 0 }; }
INLINE tg_pfloats whole(tg_pints x) { return __builtin_convertvector(x, tg_pfloats); }

INLINE tg_pfloats some_floats(const uint8_t *p) {
    tg_pfloats x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Where a block lies, and the super-block that it belongs to, if the packing has those. */
typedef struct w_place {
    const uint8_t *super, *bytes;
} w_place;

INLINE w_place place_of(tg_packing p, const uint8_t *group, size_t at) {
    if (p != TG_PACK_Q4KX16) return (w_place) { NULL, group + at * tg_packing_bytes(p) };
    const uint8_t *super = group + at / 8 * 2368;
    return (w_place) { super, super + 64 + at % 8 * 288 };
}

/* Of piece q; half: of q8mx16, the first or the second 16 columns. */
INLINE tg_pfloats scale_of(tg_packing p, w_place w, int half, int q) {
    if (p == TG_PACK_Q4KX16)
        return tg_qhalf(w.super + 2 * LANES * q) * whole(tg_qbytes(w.bytes + 256 + LANES * q));
    if (p == TG_PACK_Q8MX16) return some_floats(w.bytes + 512 + 64 * half + 4 * LANES * q);
    const int body = p == TG_PACK_Q8X16                          ? 512
                     : p == TG_PACK_Q5X16 || p == TG_PACK_Q5MX16 ? 320
                                                                 : 256;
    return tg_qhalf(w.bytes + body + 2 * LANES * q);
}
INLINE tg_pfloats offset_of(tg_packing p, w_place w, int half, int q) {
    if (p == TG_PACK_Q4KX16)
        return -(tg_qhalf(w.super + 32 + 2 * LANES * q) *
                 whole(tg_qbytes(w.bytes + 272 + LANES * q)));
    if (p == TG_PACK_Q8MX16) return some_floats(w.bytes + 640 + 64 * half + 4 * LANES * q);
    return tg_qhalf(w.bytes + (p == TG_PACK_Q5MX16 ? 320 : 256) + 32 + 2 * LANES * q);
}

/* Of `rows` rows and `width` pieces: products with small bytes are added in 16 bits, as many as
 * fit, and those in 32. */
typedef struct sums {
    tg_pshorts pairs[TILE_ROWS][PIECES];
    tg_pints whole[TILE_ROWS][PIECES];
} sums;

INLINE void add_four(tg_packing p, sums *s, int i, int k, tg_pbytes u, const int8_t *four) {
    if (is_bytes(p))
        s->whole[i][k] = tg_qdot_bytes(s->whole[i][k], u, four);
    else
        s->pairs[i][k] = tg_qpairs(s->pairs[i][k], u, four);
}

INLINE void empty_pairs(sums *s, const int rows, const int width) {
    const tg_pshorts none = { 0 };
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int k = 0; k < width; k++) {
            s->whole[i][k] = tg_qpairs_sum(s->whole[i][k], s->pairs[i][k]);
            s->pairs[i][k] = none;
        }
    }
}

/* Adds a block, or of q8mx16 a half of one, to `rows` sums of `width` pieces from q on. */
INLINE void add_block(tg_packing p, const int rows, const int width, w_place w, int half,
                      const x_block *x, size_t blocks, int q, tg_pfloats y[TILE_ROWS][PIECES]) {
    const bool halves = p == TG_PACK_Q8MX16;
    const int fours = p == TG_PACK_Q5X16 || p == TG_PACK_Q5MX16 ? 4 : 8;
    sums s = { .pairs = { { { 0 } } } };
    UNROLL
    for (int i = 0; i < rows; i++) {
        const x_block *block = x + (size_t)i * blocks;
        int32_t start = start_of(p, block);
        if (half) start = block->minus_128 - block->minus_128_first;
        if (is_bytes(p) && TG_SIMD_ZERO) start = 0;
        UNROLL
        for (int k = 0; k < width; k++) s.whole[i][k] = start - (tg_pints) { 0 };
    }
    UNROLL
    for (int n = 0; n < 8; n++) {
        if (halves && n >= 4) continue;
        /* Nibbles of the same bytes one after the other. */
        const int j = halves ? 4 * half + n : is_bytes(p) ? n : n / 2 + n % 2 * 4;
        UNROLL
        for (int k = 0; k < width; k++) {
            const tg_pbytes u = take_bytes(p, w.bytes, j, q + k);
            UNROLL
            for (int i = 0; i < rows; i++)
                add_four(p, &s, i, k, u, x[(size_t)i * blocks].q + 4 * j);
        }
        if (!is_bytes(p) && n % fours == fours - 1) empty_pairs(&s, rows, width);
    }
    UNROLL
    for (int k = 0; k < width; k++) {
        const tg_pfloats scale = scale_of(p, w, half, q + k);
        UNROLL
        for (int i = 0; i < rows; i++)
            y[i][k] =
                tg_qfma(scale * splat(x[(size_t)i * blocks].d), whole(s.whole[i][k]), y[i][k]);
        if (!has_offset(p)) continue;
        const tg_pfloats offset = offset_of(p, w, half, q + k);
        UNROLL
        for (int i = 0; i < rows; i++) {
            const x_block *block = x + (size_t)i * blocks;
            const float first = block->d_sum_first;
            const float d_sum = !halves ? block->d_sum : half ? block->d_sum - first : first;
            y[i][k] = tg_qfma(offset, splat(d_sum), y[i][k]);
        }
    }
}

/* y[i] = the products of rows of x, `blocks` apart, with a group; all but x and y are constants. */
INLINE void tile(tg_packing p, bool vnni, const uint8_t *group, const x_block *x, size_t blocks,
                 tg_v y[TILE_ROWS]) {
    (void)vnni;
    tg_pfloats all[TILE_ROWS][PIECES];
    for (int q = 0; q < PIECES; q++) { /* not unrolled: a piece goes through all blocks */
        tg_pfloats sum[TILE_ROWS][PIECES];
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++) sum[i][0] = splat(0);
        for (size_t b = 0; b < blocks; b++) {
            const w_place w = place_of(p, group, b);
            add_block(p, TILE_ROWS, 1, w, 0, x + b, blocks, q, sum);
            if (p == TG_PACK_Q8MX16) add_block(p, TILE_ROWS, 1, w, 1, x + b, blocks, q, sum);
        }
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++) all[i][q] = sum[i][0];
    }
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) y[i] = tg_qjoin(all[i]);
}

#if defined(__wasm__)
/* There is no instruction for it, so a byte of each line of the next block is loaded, for nobody:
 * in the order of their addresses, which the processor's own fetching follows; the loads of a block
 * come in the order that compilers like. Near, since a load is waited for. */
enum { STREAMS = 1 };
INLINE void fetch_ahead(const uint8_t *block, size_t bytes, bool last) {
    const volatile uint8_t *next = block + (last ? 0 : bytes);
    UNROLL
    for (size_t i = 0; i < bytes; i += 64) (void)next[i];
}
#else
/* Two groups far from each other are read faster than one: the processor's own fetching follows
 * both. Lines a little ahead are asked for besides, of the next group where this one ends; the
 * address may lie behind the matrix, too: it is no pointer. */
enum { STREAMS = 2, AHEAD_BYTES = 1024 };
INLINE void fetch_ahead(const uint8_t *block, size_t bytes, bool last) {
    (void)last;
    const uintptr_t line = ((uintptr_t)block + AHEAD_BYTES) / 64 * 64;
    UNROLL
    for (size_t i = 0; i < (bytes + 63) / 64; i++) TG_PREFETCH((const void *)(line + 64 * i));
}
#endif

/* y[i] = the product of a row of x with group i of n. */
INLINE void one_row(tg_packing p, bool vnni, const uint8_t *const *groups, size_t n,
                    const x_block *x, size_t blocks, tg_v y[STREAMS]) {
    (void)vnni;
    tg_pfloats all[STREAMS][PIECES];
    memset(all, 0, sizeof all);
    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < (STREAMS == 1 ? 1 : n); i++) {
            const w_place w = place_of(p, groups[i], b);
            tg_pfloats sum[TILE_ROWS][PIECES];
            fetch_ahead(w.bytes, block_bytes(p), b + 1 == blocks);
            UNROLL
            for (int k = 0; k < PIECES; k++) sum[0][k] = all[i][k];
            add_block(p, 1, PIECES, w, 0, x + b, blocks, 0, sum);
            if (p == TG_PACK_Q8MX16) add_block(p, 1, PIECES, w, 1, x + b, blocks, 0, sum);
            UNROLL
            for (int k = 0; k < PIECES; k++) all[i][k] = sum[0][k];
        }
    }
    for (size_t i = 0; i < n; i++) y[i] = tg_qjoin(all[i]);
}

#endif
