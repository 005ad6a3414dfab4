/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.simd.h - packs the types that files have most of, four rows at a time.
 *
 * Sixteen bytes of a row are four lanes. Turned with those of three other rows, a vector has one
 * four of each, which is a quarter of what packed.h calls a vector:
 *
 *     a0 a1 a2 a3                       a0 b0 c0 d0    of row a, b, c and d
 *     b0 b1 b2 b3      become           a1 b1 c1 d1
 *     ..                                ..
 *
 * Vectors are the compilers' own, of a size that every ISA has; bytes are moved and masked as in
 * packed.c, which remains the reference, and packs what is not here: other types, groups that lack
 * rows, and floats in widths that are no multiple of eight.
 */
#include "dtype/dtype.h"
#include "simd/pack.h"
#include "simd/vec.h"

#pragma GCC diagnostic ignored "-Wpsabi" /* no vector crosses files */
#define INLINE  static inline __attribute__((always_inline))
#define SHUFFLE __builtin_shufflevector

typedef uint32_t fours __attribute__((vector_size(16)));
typedef int32_t numbers __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
typedef uint16_t halves __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));
typedef const uint8_t *const *rows; /* of four rows, or of all */

/* So much of a group is packed for four rows, then for the next four: the first cache holds it. */
enum { PIECE_BYTES = 8192 };

INLINE fours load(const uint8_t *p) {
    fours x;
    memcpy(&x, p, sizeof x);
    return x;
}
INLINE void put(uint8_t *p, fours x) { memcpy(p, &x, sizeof x); }
INLINE void put_lane(uint8_t *p, uint32_t x) { memcpy(p, &x, sizeof x); }
INLINE uint16_t half_at(const uint8_t *p) {
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

INLINE void turn(rows row, size_t at, fours out[4]) {
    const fours a = load(row[0] + at), b = load(row[1] + at);
    const fours c = load(row[2] + at), d = load(row[3] + at);
    const fours ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
    const fours ab_high = SHUFFLE(a, b, 2, 6, 3, 7), cd_high = SHUFFLE(c, d, 2, 6, 3, 7);
    out[0] = SHUFFLE(ab, cd, 0, 1, 4, 5);
    out[1] = SHUFFLE(ab, cd, 2, 3, 6, 7);
    out[2] = SHUFFLE(ab_high, cd_high, 0, 1, 4, 5);
    out[3] = SHUFFLE(ab_high, cd_high, 2, 3, 6, 7);
}

/* ---------------------------------------------------------------------------- parts of a block */

/* n vectors, a multiple of 4, as they lie from `at` on. out: the quarter of the first. */
INLINE void put_bytes(uint8_t *out, rows row, size_t at, size_t n, uint32_t change) {
    for (size_t v = 0; v < n; v += 4) {
        fours x[4];
        turn(row, at + 4 * v, x);
        for (size_t i = 0; i < 4; i++) put(out + 64 * (v + i), x[i] ^ change);
    }
}

INLINE void put_halves(uint8_t *out, rows row, size_t at) {
    const uint64_t x = half_at(row[0] + at) | (uint64_t)half_at(row[1] + at) << 16 |
                       (uint64_t)half_at(row[2] + at) << 32 | (uint64_t)half_at(row[3] + at) << 48;
    memcpy(out, &x, sizeof x);
}

/* Bits of x that mask names change places with those that are `by` higher. */
INLINE fours swapped(fours x, int by, uint32_t mask) {
    const fours t = (x ^ x >> by) & mask;
    return x ^ t ^ t << by;
}

/* Bit 4 j + c becomes bit 8 c + j: the number of a bit, of five bits, is turned by two. */
INLINE void put_fifth_bits(uint8_t *out, rows row, size_t at) {
    uint32_t bits[4];
    for (size_t r = 0; r < 4; r++) memcpy(&bits[r], row[r] + at, sizeof bits[r]);
    fours x = { bits[0], bits[1], bits[2], bits[3] };
    x = swapped(x, 14, 0x0000cccc);
    x = swapped(x, 7, 0x00aa00aa);
    x = swapped(x, 2, 0x0c0c0c0c);
    put(out, swapped(x, 1, 0x22222222));
}

/* ------------------------------------------------------------------------------------- blocks
 * One block of each of four rows. out: where the group has it; q: which four they are.
 */

/* Halves of bytes from `at` on, with fifth bits ahead of them or without, and offsets or none. */
INLINE void block_of_halves(rows row, uint8_t *out, size_t q, size_t at, bool fifths,
                            bool offsets) {
    const size_t scales = fifths ? 320 : 256;
    put_bytes(out + 16 * q, row, at, 4, 0);
    if (fifths) put_fifth_bits(out + 256 + 16 * q, row, at - 4);
    put_halves(out + scales + 8 * q, row, 0);
    if (offsets) put_halves(out + scales + 32 + 8 * q, row, 2);
}
#define block_q4_0(row, out, q) block_of_halves(row, out, q, 2, false, false)
#define block_q4_1(row, out, q) block_of_halves(row, out, q, 4, false, true)
#define block_q5_0(row, out, q) block_of_halves(row, out, q, 6, true, false)
#define block_q5_1(row, out, q) block_of_halves(row, out, q, 8, true, true)

INLINE void block_q8_0(rows row, uint8_t *out, size_t q) {
    put_bytes(out + 16 * q, row, 2, 8, 0x80808080);
    put_halves(out + 512 + 8 * q, row, 0);
}

/* Lane r of x has row r's bytes for four blocks of 32, `step` apart from `out` on. */
INLINE void put_scales(uint8_t *out, fours x) {
    const bytes b = (bytes)x;
    const fours y = (fours)SHUFFLE(b, b, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (size_t i = 0; i < 4; i++) put_lane(out + 288 * i, y[i]);
}

/* blocks.c draws where the six bits of scales and offsets lie. */
INLINE void block_q4_k(rows row, uint8_t *out, size_t q) {
    uint8_t *const blocks = out + 64;
    fours s[4];
    put_halves(out + 8 * q, row, 0);
    put_halves(out + 32 + 8 * q, row, 2);
    turn(row, 0, s); /* s[0]: d and dmin */
    put_scales(blocks + 256 + 4 * q, s[1] & 0x3f3f3f3f);
    put_scales(blocks + 272 + 4 * q, s[2] & 0x3f3f3f3f);
    put_scales(blocks + 4 * 288 + 256 + 4 * q, (s[3] & 0x0f0f0f0f) | (s[1] >> 6 & 0x03030303) << 4);
    put_scales(blocks + 4 * 288 + 272 + 4 * q, (s[3] >> 4 & 0x0f0f0f0f) | (s[2] >> 6 & 0x03030303)
                                                                              << 4);
    for (size_t pair = 0; pair < 4; pair++) {
        uint8_t *const even = blocks + 576 * pair + 16 * q, *const odd = even + 288;
        fours low[4], high[4];
        turn(row, 16 + 32 * pair, low);
        turn(row, 32 + 32 * pair, high);
        for (size_t v = 0; v < 4; v++) {
            put(even + 64 * v, (low[v] & 0x0f0f0f0f) | (high[v] & 0x0f0f0f0f) << 4);
            put(odd + 64 * v, (low[v] >> 4 & 0x0f0f0f0f) | (high[v] & 0xf0f0f0f0));
        }
    }
}

/* Into q8mx16: six bits, of which 32 are to be taken and 128 added, and scales as floats. */
INLINE void scales_q6_k(rows row, uint8_t *out) {
    const floats d = { tg_f16_to_f32(half_at(row[0] + 208)), tg_f16_to_f32(half_at(row[1] + 208)),
                       tg_f16_to_f32(half_at(row[2] + 208)), tg_f16_to_f32(half_at(row[3] + 208)) };
    fours s[4];
    turn(row, 192, s);
    for (size_t i = 0; i < 16; i++) {
        const numbers scale = (numbers)(s[i / 4] << (24 - i % 4 * 8)) >> 24;
        const floats x = d * __builtin_convertvector(scale, floats);
        put(out + i / 2 * 768 + 512 + i % 2 * 64, (fours)x);
        put(out + i / 2 * 768 + 640 + i % 2 * 64, (fours) { 0 });
    }
}

INLINE void block_q6_k(rows row, uint8_t *out, size_t q) {
    scales_q6_k(row, out + 16 * q);
    for (size_t part = 0; part < 4; part++) { /* 16 bytes of high pairs: 16 of each 32 columns */
        uint8_t *const to = out + part / 2 * 4 * 768 + part % 2 * 4 * 64 + 16 * q;
        const size_t at = part / 2 * 64 + part % 2 * 16;
        fours high[4], near[4], far[4];
        turn(row, 128 + 16 * part, high);
        turn(row, at, near);
        turn(row, at + 32, far);
        for (size_t v = 0; v < 4; v++) {
            const fours h = high[v], n = near[v], f = far[v];
            const fours x[4] = { (n & 0x0f0f0f0f) | (h & 0x03030303) << 4,
                                 (f & 0x0f0f0f0f) | (h & 0x0c0c0c0c) << 2,
                                 (n >> 4 & 0x0f0f0f0f) | (h & 0x30303030),
                                 (f >> 4 & 0x0f0f0f0f) | (h >> 2 & 0x30303030) };
            for (size_t i = 0; i < 4; i++) put(to + 768 * i + 64 * v, x[i] + 0x60606060);
        }
    }
}

/* ------------------------------------------------------------------------- rows of floats */

static void pack_f32(rows row, size_t n, size_t ahead, uint8_t *out) {
    (void)ahead;
    for (size_t q = 0; q < 4; q++)
        for (size_t k = 0; k < n; k += 4)
            put_bytes(out + 64 * k + 16 * q, row + 4 * q, 4 * k, 4, 0);
}

/* Eight columns of eight rows: pairs of rows, pairs of pairs, and so on. */
INLINE void turn_halves(rows row, size_t at, fours out[8]) {
    fours a[8], b[8];
    for (size_t i = 0; i < 8; i += 2) {
        const halves x = (halves)load(row[i] + at), y = (halves)load(row[i + 1] + at);
        a[i] = (fours)SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
        a[i + 1] = (fours)SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (size_t i = 0; i < 8; i += 4) {
        for (size_t j = 0; j < 2; j++) {
            b[i + 2 * j] = SHUFFLE(a[i + j], a[i + j + 2], 0, 4, 1, 5);
            b[i + 2 * j + 1] = SHUFFLE(a[i + j], a[i + j + 2], 2, 6, 3, 7);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        out[2 * i] = SHUFFLE(b[i], b[i + 4], 0, 1, 4, 5);
        out[2 * i + 1] = SHUFFLE(b[i], b[i + 4], 2, 3, 6, 7);
    }
}

static void pack_f16(rows row, size_t n, size_t ahead, uint8_t *out) {
    (void)ahead;
    for (size_t first = 0; first < TG_PACK_ROWS; first += 8) {
        for (size_t k = 0; k < n; k += 8) {
            fours x[8];
            turn_halves(row + first, 2 * k, x);
            for (size_t i = 0; i < 8; i++) put(out + 32 * (k + i) + 2 * first, x[i]);
        }
    }
}

/* -------------------------------------------------------------------------------------- table
 * n blocks of sixteen rows. ahead: bytes to where the next group has the same block, if it follows
 * in memory: it is asked for, since a file's pages come without the processor's guessing.
 */

#define PACKER(type, block_bytes, step)                                                            \
    static void pack_##type(rows row, size_t n, size_t ahead, uint8_t *out) {                      \
        for (size_t q = 0; q < 4; q++) {                                                           \
            const uint8_t *r[4] = { row[4 * q], row[4 * q + 1], row[4 * q + 2], row[4 * q + 3] };  \
            for (size_t i = 0; i < n; i++) {                                                       \
                block_##type(r, out + i * (step), q);                                              \
                for (size_t k = 0; k < 4; k++) {                                                   \
                    TG_PREFETCH_FAR(r[k] + ahead);                                                 \
                    r[k] += (block_bytes);                                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
PACKER(q4_0, 18, 288)
PACKER(q4_1, 20, 320)
PACKER(q5_0, 22, 352)
PACKER(q5_1, 24, 384)
PACKER(q8_0, 34, 544)
PACKER(q4_k, 144, 2368)
PACKER(q6_k, 210, 8 * 768)

typedef void (*packer)(rows row, size_t n, size_t ahead, uint8_t *out);
static const packer packers[TG_DTYPE_COUNT] = {
    [TG_F32] = pack_f32,   [TG_F16] = pack_f16,   [TG_BF16] = pack_f16,  [TG_Q4_0] = pack_q4_0,
    [TG_Q4_1] = pack_q4_1, [TG_Q5_0] = pack_q5_0, [TG_Q5_1] = pack_q5_1, [TG_Q8_0] = pack_q8_0,
    [TG_Q4_K] = pack_q4_k, [TG_Q6_K] = pack_q6_k,
};

void TG_CAT(tg_pack__, TG_ISA)(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                               uint8_t *out);
void TG_CAT(tg_pack__, TG_ISA)(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                               uint8_t *out) {
    const packer pack = packers[type];
    if (!pack || !row[TG_PACK_ROWS - 1] || cols % 8 != 0) {
        tg_pack_group(type, cols, row, out);
        return;
    }
    const tg_dtype_desc *d = &tg_dtype_table[type];
    const tg_packing_desc *p = &tg_packing_table[d->packing];
    const size_t n = cols / d->cols, step = d->cols / p->cols * p->bytes;
    const size_t piece = step < PIECE_BYTES ? PIECE_BYTES / step : 1;
    for (size_t i = 0; i < n; i += piece) {
        const uint8_t *r[TG_PACK_ROWS];
        for (size_t k = 0; k < TG_PACK_ROWS; k++) r[k] = row[k] + i * d->bytes;
        pack(r, n - i < piece ? n - i : piece, TG_PACK_ROWS * n * d->bytes, out + i * step);
    }
}
