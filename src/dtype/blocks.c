/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c - the reference decoders of GGUF's block types: see the table in blocks.h.
 *
 * Each decoder fills whole numbers and scales, and no more, so that both uses of a block - as f32,
 * and as what kernels multiply (packed.h) - come from one place. Where the weights of a block lie
 * is drawn above each.
 */
#include "dtype/blocks.h"

#include "dtype/blocks_grid.h"

/* The scale and offset of 32 weights that begin at run r. */
static void set_pair(tg_block_parts *o, size_t r, float scale, float offset) {
    o->scale[r] = o->scale[r + 1] = scale;
    o->offset[r] = o->offset[r + 1] = offset;
}

/* 16 bytes, each with weight i in its low half and weight i + 16 in its high half. */
static void nibbles_16(int8_t *q, const uint8_t *in, int zero) {
    for (size_t i = 0; i < 16; i++) {
        q[i] = (int8_t)((in[i] & 15) - zero);
        q[i + 16] = (int8_t)((in[i] >> 4) - zero);
    }
}

/* The same with a fifth bit: bit i of a word of 32 belongs to weight i. */
static void fifth_bits(int8_t *q, const uint8_t *bits) {
    for (size_t i = 0; i < 32; i++)
        if (bits[i / 8] >> (i % 8) & 1) q[i] = (int8_t)(q[i] + 16);
}

static void take_q4_0(const uint8_t *b, tg_block_parts *o) {
    set_pair(o, 0, tg_block_f16(b), 0);
    nibbles_16(o->q, b + 2, 8);
}

static void take_q4_1(const uint8_t *b, tg_block_parts *o) {
    o->has_offset = true;
    set_pair(o, 0, tg_block_f16(b), tg_block_f16(b + 2));
    nibbles_16(o->q, b + 4, 0);
}

static void take_q5_0(const uint8_t *b, tg_block_parts *o) {
    set_pair(o, 0, tg_block_f16(b), 0);
    nibbles_16(o->q, b + 6, 16);
    fifth_bits(o->q, b + 2);
}

static void take_q5_1(const uint8_t *b, tg_block_parts *o) {
    o->has_offset = true;
    set_pair(o, 0, tg_block_f16(b), tg_block_f16(b + 2));
    nibbles_16(o->q, b + 8, 0);
    fifth_bits(o->q, b + 4);
}

static void take_q8_0(const uint8_t *b, tg_block_parts *o) {
    set_pair(o, 0, tg_block_f16(b), 0);
    memcpy(o->q, b + 2, 32);
}

const int8_t tg_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113 };

static void values_16(int8_t *q, const uint8_t *in, const int8_t values[16]) {
    for (size_t i = 0; i < 16; i++) {
        q[i] = values[in[i] & 15];
        q[i + 16] = values[in[i] >> 4];
    }
}

static void take_iq4_nl(const uint8_t *b, tg_block_parts *o) {
    set_pair(o, 0, tg_block_f16(b), 0);
    values_16(o->q, b + 2, tg_iq4_values);
}

/* Twice the values of a 4-bit float (sign, two bits of exponent, one of fraction), so that they are
 * whole; the scale is half of 2^(e - 127), a subnormal for the lowest two exponents. */
static void take_mxfp4(const uint8_t *b, tg_block_parts *o) {
    static const int8_t values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    const uint32_t e = b[0];
    const uint32_t bits = e < 2 ? UINT32_C(0x00200000) << e : (e - 1) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    set_pair(o, 0, scale, 0);
    values_16(o->q, b + 1, values);
}

/*
 * Q2_K   | 16 scales: low half scale, high half offset | 64 bytes of q | d | dmin |
 * A byte of q holds weights i, i + 32, i + 64, i + 96 of a half of 128, two bits each.
 */
static void take_q2_k(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b + 80), dmin = tg_block_f16(b + 82);
    o->has_offset = true;
    for (size_t r = 0; r < 16; r++) {
        o->scale[r] = d * (float)(b[r] & 15);
        o->offset[r] = -(dmin * (float)(b[r] >> 4));
    }
    for (size_t i = 0; i < 256; i++)
        o->q[i] = (int8_t)(b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
}

/* TQ2_0  | 64 bytes of q | d |, q as in Q2_K */
static void take_tq2_0(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b + 64);
    for (size_t r = 0; r < 16; r += 2) set_pair(o, r, d, 0);
    for (size_t i = 0; i < 256; i++)
        o->q[i] = (int8_t)((b[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) - 1);
}

/*
 * TQ1_0  | 48 bytes of fives | 4 bytes of fours | d |
 * A byte is a fraction of 256 whose digits, to the base of three, are weights: those of equal place
 * are neighbours, over 32 bytes, then 16, then 4. 256 * 3^-5 is more than 1, so nothing is lost.
 */
static void take_tq1_0(const uint8_t *b, tg_block_parts *o) {
    static const struct {
        uint8_t at, bytes, digits;
    } parts[] = { { 0, 32, 5 }, { 32, 16, 5 }, { 48, 4, 4 } };
    const float d = tg_block_f16(b + 52);
    int8_t *q = o->q;
    for (size_t r = 0; r < 16; r += 2) set_pair(o, r, d, 0);
    for (size_t p = 0; p < 3; p++) {
        unsigned times = 1;
        for (size_t digit = 0; digit < parts[p].digits; digit++, times *= 3)
            for (size_t i = 0; i < parts[p].bytes; i++)
                *q++ = (int8_t)((int)((b[parts[p].at + i] * times & 255) * 3 >> 8) - 1);
    }
}

/* Q1_0   | d | 16 bytes of signs, the lowest bits first |, a set one stands for +d */
static void take_q1_0(const uint8_t *b, tg_block_parts *o) {
    for (size_t r = 0; r < 8; r += 2) set_pair(o, r, tg_block_f16(b), 0);
    for (size_t i = 0; i < 128; i++) o->q[i] = b[2 + i / 8] >> (i % 8) & 1 ? 1 : -1;
}

/* Q2_0   | d | 16 bytes of q |, weights i, i + 1, i + 2, i + 3 from the low end of a byte up */
static void take_q2_0(const uint8_t *b, tg_block_parts *o) {
    for (size_t r = 0; r < 4; r += 2) set_pair(o, r, tg_block_f16(b), 0);
    for (size_t i = 0; i < 64; i++) o->q[i] = (int8_t)((b[2 + i / 4] >> (i % 4 * 2) & 3) - 1);
}

/*
 * Q3_K   | 32 bytes of third bits | 64 bytes of q | 12 bytes of scales | d |
 * Scales have their low four bits in bytes 0..7 (scale r and r + 8), their high two in bytes 8..11
 * (scales r, r + 4, r + 8, r + 12). A third bit that is not set takes 4 off.
 */
static void take_q3_k(const uint8_t *b, tg_block_parts *o) {
    const uint8_t *s = b + 96;
    const float d = tg_block_f16(b + 108);
    for (size_t r = 0; r < 16; r++) {
        const int low = s[r % 8] >> (r / 8 * 4) & 15, high = s[8 + r % 4] >> (r / 4 * 2) & 3;
        o->scale[r] = d * (float)((low | high << 4) - 32);
        o->offset[r] = 0;
    }
    for (size_t i = 0; i < 256; i++) {
        const int q = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        o->q[i] = (int8_t)(q - (b[i % 32] >> (i / 32) & 1 ? 0 : 4));
    }
}

/*
 * Scales and offsets of Q4_K and Q5_K, six bits each, of eight runs of 32 in 12 bytes:
 *
 *   bytes 0..3   scale r in the low six bits, the high two of scale r + 4 above them
 *   bytes 4..7   the same of the offsets
 *   bytes 8..11  the low four bits of scale r + 4, then those of offset r + 4
 */
static void six_bits(const uint8_t *s, size_t r, int *scale, int *offset) {
    if (r < 4) {
        *scale = s[r] & 63;
        *offset = s[4 + r] & 63;
    } else {
        *scale = (s[8 + r - 4] & 15) | (s[r - 4] >> 6) << 4;
        *offset = s[8 + r - 4] >> 4 | (s[r] >> 6) << 4;
    }
}

static void take_six_bits(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b), dmin = tg_block_f16(b + 2);
    o->has_offset = true;
    for (size_t r = 0; r < 8; r++) {
        int scale, offset;
        six_bits(b + 4, r, &scale, &offset);
        set_pair(o, 2 * r, d * (float)scale, -(dmin * (float)offset));
    }
}

/* Q4_K   | d | dmin | 12 bytes of scales | 128 bytes of q |
 * 32 bytes of q hold a run in their low halves, and the next one in their high halves. */
static void take_q4_k(const uint8_t *b, tg_block_parts *o) {
    take_six_bits(b, o);
    for (size_t i = 0; i < 256; i++)
        o->q[i] = (int8_t)(b[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15);
}

/* Q5_K   | d | dmin | 12 bytes of scales | 32 bytes of fifth bits | 128 bytes of q | */
static void take_q5_k(const uint8_t *b, tg_block_parts *o) {
    take_six_bits(b, o);
    for (size_t i = 0; i < 256; i++) {
        const int low = b[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
        o->q[i] = (int8_t)(low | (b[16 + i % 32] >> (i / 32) & 1) << 4);
    }
}

/*
 * Q6_K   | 128 bytes of low halves | 64 bytes of high pairs | 16 scales | d |
 * In a half of 128 weights, weight i has its low four bits in byte i % 64, high or low half by
 * i / 64, and its high two in byte i % 32, at bit 2 (i / 32).
 */
static void take_q6_k(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b + 208);
    for (size_t r = 0; r < 16; r++) {
        o->scale[r] = d * (float)(int8_t)b[192 + r];
        o->offset[r] = 0;
    }
    for (int k = 0; k < 8; k++) { /* runs of 32 of one shift each: whole vectors for compilers */
        const uint8_t *lows = b + k / 4 * 64 + k % 2 * 32, *highs = b + 128 + k / 4 * 32;
        const int low_shift = k % 4 / 2 * 4, high_shift = k % 4 * 2;
        for (int i = 0; i < 32; i++) {
            const int low = lows[i] >> low_shift & 15, high = highs[i] >> high_shift & 3;
            o->q[32 * k + i] = (int8_t)((low | high << 4) - 32);
        }
    }
}

/* IQ4_XS   | d | 8 high pairs of scales | 8 low halves of scales | 128 bytes of q, 16 a run | */
static void take_iq4_xs(const uint8_t *b, tg_block_parts *o) {
    const float d = tg_block_f16(b);
    const uint16_t high = tg_block_u16(b + 2);
    for (size_t r = 0; r < 8; r++) {
        const int scale = (b[4 + r / 2] >> (r % 2 * 4) & 15) | (high >> (2 * r) & 3) << 4;
        set_pair(o, 2 * r, d * (float)(scale - 32), 0);
        values_16(o->q + 32 * r, b + 8 + 16 * r, tg_iq4_values);
    }
}

static float f32_at(const uint8_t *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

static void take_mlx4(const uint8_t *b, tg_block_parts *o) {
    o->has_offset = true;
    set_pair(o, 0, f32_at(b), f32_at(b + 4));
    nibbles_16(o->q, b + 8, 8);
}

static void take_mlx8(const uint8_t *b, tg_block_parts *o) {
    o->has_offset = true;
    set_pair(o, 0, f32_at(b), f32_at(b + 4));
    memcpy(o->q, b + 8, 32);
}

void tg_block_take_apart(tg_dtype type, const uint8_t *block, tg_block_parts *out) {
    static void (*const take[TG_DTYPE_COUNT])(const uint8_t *, tg_block_parts *) = {
#define TG_DTYPE(suffix, name, number, cols, bytes, packing)
#define TG_BLOCK(suffix, name, number, cols, bytes, packing) [TG_##suffix] = take_##name,
#define TG_GRID(suffix, name, number, cols, bytes, packing)  [TG_##suffix] = tg_grid_take_##name,
#include "dtype/types.def"
    };
    out->has_offset = false;
    take[type](block, out);
}

/* The offset is left out where there is none: adding it would turn -0 into +0. */
static void blocks_to_f32(tg_dtype type, float *out, const uint8_t *in, size_t n) {
    const tg_dtype_desc *d = &tg_dtype_table[type];
    tg_block_parts p;
    for (size_t at = 0; at < n; at += d->cols, in += d->bytes) {
        tg_block_take_apart(type, in, &p);
        for (size_t i = 0; i < d->cols; i++) {
            const float x = p.scale[i / TG_BLOCK_RUN] * (float)p.q[i];
            out[at + i] = p.has_offset ? x + p.offset[i / TG_BLOCK_RUN] : x;
        }
    }
}

void tg_block_to_f32_n(tg_dtype type, float *out, const uint8_t *in, size_t n) {
    switch (type) {
    case TG_F32: memcpy(out, in, n * sizeof *out); break;
    case TG_F16:
        for (size_t i = 0; i < n; i++) out[i] = tg_block_f16(in + 2 * i);
        break;
    case TG_BF16:
        for (size_t i = 0; i < n; i++) out[i] = tg_bf16_to_f32(tg_block_u16(in + 2 * i));
        break;
    default: blocks_to_f32(type, out, in, n); break;
    }
}
