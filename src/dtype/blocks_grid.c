/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_grid.c - IQ1, IQ2 and IQ3: weights of a block by eights or fours, each of which is a point
 * of a grid, up to signs. See the table in blocks.h for what a block means.
 *
 * A file has the place of a point in its grid. Points (grids.def) are numbers: coordinate i is at
 * bit 2i or 3i, and says which of the values of the grid it is:
 *
 *     IQ2      eight of 8, 25, 43
 *     IQ3_XXS  four of 4, 12, 20, .. 52, 62
 *     IQ3_S    four of 1, 3, 5, .. 15
 *     IQ1      eight of -1, 0, 1, plus or minus an eighth; q is eight times that
 *
 * A sign that is set turns a weight over. Seven signs of eight are stored where the eighth makes
 * their number even.
 */
#include "dtype/blocks_grid.h"

#include "dtype/grids.def"

enum { EIGHT = 8, RUNS = TG_BLOCK_MAX / TG_BLOCK_RUN };

static uint32_t u32_at(const uint8_t *p) {
    return tg_block_u16(p) | (uint32_t)tg_block_u16(p + 2) << 16;
}

/* The type's own scale of run r: d times a whole number and a half, or an odd one. */
static void set_scale(tg_block_parts *o, size_t r, float d, float times) {
    o->scale[r] = d * times;
    o->offset[r] = 0;
}

static void set_two_scales(tg_block_parts *o, size_t r, float d, float times) {
    set_scale(o, r, d, times);
    set_scale(o, r + 1, d, times);
}

/* Eight signs of which seven are stored. */
static unsigned even_signs(unsigned seven) {
    unsigned odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return seven | (odd & 1) << 7;
}

/* n weights from the point on; the sign of weight i is bit i. */
static void put_point(int8_t *q, size_t n, const int8_t *values, unsigned bits, unsigned point,
                      unsigned signs) {
    for (size_t i = 0; i < n; i++) {
        const int value = values[point >> (bits * i) & ((1u << bits) - 1)];
        q[i] = (int8_t)(signs >> i & 1 ? -value : value);
    }
}

static void put_eight(int8_t *q, unsigned point, unsigned signs) {
    static const int8_t values[4] = { 8, 25, 43, 0 };
    put_point(q, EIGHT, values, 2, point, signs);
}

static void put_fours(int8_t *q, const int8_t values[8], unsigned first, unsigned second,
                      unsigned signs) {
    put_point(q, 4, values, 3, first, signs);
    put_point(q + 4, 4, values, 3, second, signs >> 4);
}

/* IQ2_XXS | d | of each 32 weights: four points of a byte each, four times seven signs, and four
 * bits of scale above them | */
void tg_grid_take_iq2_xxs(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b);
    for (size_t k = 0; k < 8; k++) {
        const uint8_t *points = b + 2 + 8 * k;
        const uint32_t signs = u32_at(points + 4);
        set_two_scales(o, 2 * k, d, ((float)(signs >> 28) + 0.5f) * 0.25f);
        for (size_t i = 0; i < 4; i++)
            put_eight(o->q + 32 * k + EIGHT * i, grid_iq2_xxs[points[i]],
                      even_signs(signs >> (7 * i) & 127));
    }
}

/* IQ2_XS | d | 32 points of nine bits, with seven signs above them | 8 pairs of scales | */
void tg_grid_take_iq2_xs(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b);
    for (size_t r = 0; r < RUNS; r++)
        set_scale(o, r, d, ((float)(b[66 + r / 2] >> (r % 2 * 4) & 15) + 0.5f) * 0.25f);
    for (size_t i = 0; i < 32; i++) {
        const unsigned point = tg_block_u16(b + 2 + 2 * i);
        put_eight(o->q + EIGHT * i, grid_iq2_xs[point & 511], even_signs(point >> 9));
    }
}

/* IQ2_S | d | low bytes of 32 points | 32 bytes of signs | their high pairs, four a byte | 8 pairs
 * of scales | */
void tg_grid_take_iq2_s(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b);
    for (size_t r = 0; r < RUNS; r++)
        set_scale(o, r, d, ((float)(b[74 + r / 2] >> (r % 2 * 4) & 15) + 0.5f) * 0.25f);
    for (size_t i = 0; i < 32; i++) {
        const unsigned high = b[66 + i / 4] >> (i % 4 * 2) & 3;
        put_eight(o->q + EIGHT * i, grid_iq2_s[b[2 + i] | high << 8], b[34 + i]);
    }
}

/* IQ3_XXS | d | 64 points of a byte | of each 32 weights four times seven signs, and four bits of
 * scale above them | */
void tg_grid_take_iq3_xxs(const uint8_t *b, tg_block_parts *o) {
    static const int8_t values[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };
    const float d = tg_block_f16(b);
    for (size_t k = 0; k < 8; k++) {
        const uint32_t signs = u32_at(b + 66 + 4 * k);
        set_two_scales(o, 2 * k, d, ((float)(signs >> 28) + 0.5f) * 0.5f);
        for (size_t i = 0; i < 4; i++) {
            const uint8_t *points = b + 2 + 8 * k + 2 * i;
            put_fours(o->q + 32 * k + EIGHT * i, values, grid_iq3_xxs[points[0]],
                      grid_iq3_xxs[points[1]], even_signs(signs >> (7 * i) & 127));
        }
    }
}

/* IQ3_S | d | low bytes of 64 points | their ninth bits | 32 bytes of signs | 4 pairs of scales |
 */
void tg_grid_take_iq3_s(const uint8_t *b, tg_block_parts *o) {
    static const int8_t values[8] = { 1, 3, 5, 7, 9, 11, 13, 15 };
    const float d = tg_block_f16(b);
    for (size_t k = 0; k < 8; k++)
        set_two_scales(o, 2 * k, d, (float)(2 * (b[106 + k / 2] >> (k % 2 * 4) & 15) + 1));
    for (size_t i = 0; i < 32; i++) {
        const unsigned ninths = b[66 + i / 4] >> (i % 4 * 2);
        put_fours(o->q + EIGHT * i, values, grid_iq3_s[b[2 + 2 * i] | (ninths & 1) << 8],
                  grid_iq3_s[b[3 + 2 * i] | (ninths >> 1 & 1) << 8], b[74 + i]);
    }
}

/* Eight of IQ1, an eighth above the point or, if down, below it. */
static void put_ternary(int8_t *q, unsigned point, bool down) {
    for (size_t i = 0; i < EIGHT; i++)
        q[i] = (int8_t)(8 * ((int)(point >> (2 * i) & 3) - 1) + (down ? -1 : 1));
}

/* IQ1_S | d | low bytes of 32 points | of each 32 weights 16 bits: four times the high three bits,
 * three bits of scale, and whether eighths are taken off | */
void tg_grid_take_iq1_s(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b);
    for (size_t k = 0; k < 8; k++) {
        const unsigned high = tg_block_u16(b + 34 + 2 * k);
        set_two_scales(o, 2 * k, d, (float)(2 * (high >> 12 & 7) + 1) * 0.125f);
        for (size_t i = 0; i < 4; i++)
            put_ternary(o->q + 32 * k + EIGHT * i,
                        grid_iq1_s[b[2 + 4 * k + i] | (high >> (3 * i) & 7) << 8], high >> 15);
    }
}

/* IQ1_M | low bytes of 32 points | half a byte each: their high three bits, and whether eighths are
 * taken off | four times 16 bits: four scales of three bits each, and four bits of d above them |
 */
void tg_grid_take_iq1_m(const uint8_t *b, tg_block_parts *o) {
    unsigned bits = 0;
    for (size_t i = 0; i < 4; i++) bits |= (unsigned)(b[49 + 2 * i] >> 4) << (4 * i);
    const float d = tg_f16_to_f32((uint16_t)bits);
    for (size_t r = 0; r < RUNS; r++) {
        const unsigned scale = tg_block_u16(b + 48 + r / 4 * 2) >> (r % 4 * 3) & 7;
        set_scale(o, r, d, (float)(2 * scale + 1) * 0.125f);
    }
    for (size_t i = 0; i < 32; i++) {
        const unsigned high = b[32 + i / 2] >> (i % 2 * 4);
        put_ternary(o->q + EIGHT * i, grid_iq1_s[b[i] | (high & 7) << 8], high >> 3 & 1);
    }
}
