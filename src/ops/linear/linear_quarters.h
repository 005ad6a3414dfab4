/*
 * linear_quarters.h - the tile of linear_int8.h where a register holds four lanes.
 *
 * A block taken apart would fill 32 registers, more than there are. So a tile is made of quarters,
 * four of the group's sixteen rows, and each vector of bytes is used as soon as it is made:
 *
 *     many rows of x   one quarter after the other, each through all blocks, which stay in the
 * first cache: sums of the rows in registers one row          all four quarters of a block
 * together, since W is read only once
 */
#ifndef TG_OPS_LINEAR_QUARTERS_H
#define TG_OPS_LINEAR_QUARTERS_H

INLINE tg_b16 load_quarter(const uint8_t *p) {
    tg_b16 x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE tg_b16 shifted_quarter(tg_b16 x, int left, uint8_t mask) {
    typedef uint16_t words __attribute__((vector_size(16)));
    const words w = left >= 0 ? (words)x << left : (words)x >> -left;
    return (tg_b16)w & mask;
}

/* Bytes j of 8 of quarter q of a block. */
INLINE tg_b16 take_bytes(tg_packing p, const uint8_t *b, int j, int q) {
    if (is_bytes(p)) return load_quarter(b + 64 * j + 16 * q);
    const tg_b16 x = load_quarter(b + 64 * (j % 4) + 16 * q);
    const tg_b16 u = j < 4 ? x & 15 : shifted_quarter(x, -4, 15);
    if (p != TG_PACK_C5 && p != TG_PACK_M5) return u;
    return u | shifted_quarter(load_quarter(b + 256 + 16 * q), 4 - j, 16);
}

INLINE tg_f4 splat(float x) { return (tg_f4) { x, x, x, x }; }
INLINE tg_f4 whole(tg_i4 x) { return __builtin_convertvector(x, tg_f4); }

INLINE tg_f4 four_floats(const uint8_t *p) {
    tg_f4 x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE tg_f4 four_bytes(const uint8_t *p) { return whole((tg_i4) { p[0], p[1], p[2], p[3] }); }

/* Where a block lies, and the super-block that it belongs to, if the packing has those. */
typedef struct w_place {
    const uint8_t *super, *bytes;
} w_place;

INLINE w_place place_of(tg_packing p, const uint8_t *group, size_t at) {
    if (p != TG_PACK_K4) return (w_place) { NULL, group + at * tg_packing_table[p].bytes };
    const uint8_t *super = group + at / 8 * 2368;
    return (w_place) { super, super + 64 + at % 8 * 288 };
}

/* Of quarter q; half: of S8, the first or the second 16 columns. */
INLINE tg_f4 scale_of(tg_packing p, w_place w, int half, int q) {
    if (p == TG_PACK_K4) return tg_qhalf(w.super + 8 * q) * four_bytes(w.bytes + 256 + 4 * q);
    if (p == TG_PACK_S8) return four_floats(w.bytes + 512 + 64 * half + 16 * q);
    const int body = p == TG_PACK_C8 ? 512 : p == TG_PACK_C5 || p == TG_PACK_M5 ? 320 : 256;
    return tg_qhalf(w.bytes + body + 8 * q);
}
INLINE tg_f4 offset_of(tg_packing p, w_place w, int half, int q) {
    if (p == TG_PACK_K4)
        return -(tg_qhalf(w.super + 32 + 8 * q) * four_bytes(w.bytes + 272 + 4 * q));
    if (p == TG_PACK_S8) return four_floats(w.bytes + 640 + 64 * half + 16 * q);
    return tg_qhalf(w.bytes + (p == TG_PACK_M5 ? 320 : 256) + 32 + 8 * q);
}

/* Of `rows` rows and `width` quarters: products with small bytes are added in 16 bits, as many as
 * fit, and those in 32. */
typedef struct sums {
    tg_h8 pairs[TILE_ROWS][4];
    tg_i4 whole[TILE_ROWS][4];
} sums;

INLINE void add_four(tg_packing p, sums *s, int i, int k, tg_b16 u, const int8_t *four) {
    if (is_bytes(p))
        s->whole[i][k] = tg_qdot_bytes(s->whole[i][k], u, four);
    else
        s->pairs[i][k] = tg_qpairs(s->pairs[i][k], u, four);
}

INLINE void empty_pairs(sums *s, const int rows, const int width) {
    const tg_h8 none = { 0, 0, 0, 0, 0, 0, 0, 0 };
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int k = 0; k < width; k++) {
            s->whole[i][k] = tg_qpairs_sum(s->whole[i][k], s->pairs[i][k]);
            s->pairs[i][k] = none;
        }
    }
}

/* Adds a block, or of S8 a half of one, to `rows` sums of `width` quarters from q on. */
INLINE void add_block(tg_packing p, const int rows, const int width, w_place w, int half,
                      const x_block *x, size_t blocks, int q, tg_f4 y[TILE_ROWS][4]) {
    const bool halves = p == TG_PACK_S8;
    const int fours = p == TG_PACK_C5 || p == TG_PACK_M5 ? 4 : 8;
    sums s = { .pairs = { { { 0 } } } };
    UNROLL
    for (int i = 0; i < rows; i++) {
        const x_block *block = x + (size_t)i * blocks;
        int32_t start = start_of(p, block);
        if (half) start = block->minus_128 - block->minus_128_first;
        UNROLL
        for (int k = 0; k < width; k++) s.whole[i][k] = (tg_i4) { start, start, start, start };
    }
    UNROLL
    for (int n = 0; n < 8; n++) {
        if (halves && n >= 4) continue;
        /* Nibbles of the same bytes one after the other. */
        const int j = halves ? 4 * half + n : is_bytes(p) ? n : n / 2 + n % 2 * 4;
        UNROLL
        for (int k = 0; k < width; k++) {
            const tg_b16 u = take_bytes(p, w.bytes, j, q + k);
            UNROLL
            for (int i = 0; i < rows; i++)
                add_four(p, &s, i, k, u, x[(size_t)i * blocks].q + 4 * j);
        }
        if (!is_bytes(p) && n % fours == fours - 1) empty_pairs(&s, rows, width);
    }
    UNROLL
    for (int k = 0; k < width; k++) {
        const tg_f4 scale = scale_of(p, w, half, q + k);
        UNROLL
        for (int i = 0; i < rows; i++)
            y[i][k] =
                tg_qfma(scale * splat(x[(size_t)i * blocks].d), whole(s.whole[i][k]), y[i][k]);
        if (!has_offset(p)) continue;
        const tg_f4 offset = offset_of(p, w, half, q + k);
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
INLINE void tile(tg_packing p, bool vnni, const int rows, const uint8_t *group, const x_block *x,
                 size_t blocks, tg_v y[TILE_ROWS]) {
    (void)vnni;
    const int width = rows == 1 ? 4 : 1;
    tg_f4 all[TILE_ROWS][4];
    UNROLL
    for (int q = 0; q < 4; q += width) {
        tg_f4 sum[TILE_ROWS][4];
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int k = 0; k < width; k++) sum[i][k] = splat(0);
        }
        for (size_t b = 0; b < blocks; b++) {
            const w_place w = place_of(p, group, b);
            if (rows == 1) fetch_ahead(p, group, b);
            add_block(p, rows, width, w, 0, x + b, blocks, q, sum);
            if (p == TG_PACK_S8) add_block(p, rows, width, w, 1, x + b, blocks, q, sum);
        }
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int k = 0; k < width; k++) all[i][q + k] = sum[i][k];
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) y[i] = (tg_v) { all[i][0], all[i][1], all[i][2], all[i][3] };
}

#endif
