/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantize.c - floats to blocks: see the table in blocks.h for what the bytes mean.
 *
 * A type says how blocks are read, and leaves open which scale is written. Q8_0 and Q4_0 take the
 * largest weight of a block to the end of the range, as everybody does. Q4_K is fitted: of several
 * scales around that one, each with the best offset for it by least squares, the one with the
 * smallest error is taken.
 */
#include "dtype/quantize.h"

#include "dtype/dtype.h"

enum { RUN = 32, RUNS = 8, TRIES = 12 };

bool tg_block_writes(tg_dtype type) {
    switch (type) {
    case TG_F32:
    case TG_F16:
    case TG_BF16:
    case TG_Q8_0:
    case TG_Q4_0:
    case TG_Q4_K: return true;
    default: return false;
    }
}

static void put_u16(uint8_t *out, uint16_t x) {
    out[0] = (uint8_t)x;
    out[1] = (uint8_t)(x >> 8);
}

/* The nearest whole number, halves away from zero, held in [low, high]. */
static int whole(float x, int low, int high) {
    const float y = x < 0 ? x - 0.5f : x + 0.5f;
    return y <= (float)low ? low : y >= (float)high ? high : (int)y;
}

static void put_q8_0(uint8_t *out, const float *in) {
    float most = 0;
    for (int i = 0; i < RUN; i++) {
        const float x = in[i] < 0 ? -in[i] : in[i];
        if (x > most) most = x;
    }
    const float scale = most / 127, inverse = scale > 0 ? 1 / scale : 0;
    put_u16(out, tg_f16_from_f32(scale));
    for (int i = 0; i < RUN; i++) out[2 + i] = (uint8_t)(int8_t)whole(in[i] * inverse, -127, 127);
}

/* The weight that is largest without its sign becomes -8, the end that has no counterpart. */
static void put_q4_0(uint8_t *out, const float *in) {
    float end = 0;
    for (int i = 0; i < RUN; i++)
        if ((in[i] < 0 ? -in[i] : in[i]) > (end < 0 ? -end : end)) end = in[i];
    const float scale = end / -8, inverse = end < 0 || end > 0 ? 1 / scale : 0;
    put_u16(out, tg_f16_from_f32(scale));
    for (int i = 0; i < RUN / 2; i++) {
        const int low = whole(in[i] * inverse, -8, 7) + 8;
        const int high = whole(in[i + RUN / 2] * inverse, -8, 7) + 8;
        out[2 + i] = (uint8_t)(low | high << 4);
    }
}

/* ---------------------------------------------------------------------------------------- Q4_K */

/* w = scale * q - offset, offset of 0 or more. */
typedef struct fit {
    float scale, offset;
} fit;

static double error_of(const float *in, fit f) {
    const float inverse = f.scale > 0 ? 1 / f.scale : 0;
    double sum = 0;
    for (int i = 0; i < RUN; i++) {
        const int q = whole((in[i] + f.offset) * inverse, 0, 15);
        const double d = (double)in[i] - ((double)f.scale * q - (double)f.offset);
        sum += d * d;
    }
    return sum;
}

/* The best scale and offset for the q that a first guess gives: two equations of least squares. */
static fit refine(const float *in, fit f) {
    const float inverse = f.scale > 0 ? 1 / f.scale : 0;
    double q1 = 0, q2 = 0, x1 = 0, xq = 0;
    for (int i = 0; i < RUN; i++) {
        const double q = whole((in[i] + f.offset) * inverse, 0, 15), x = (double)in[i];
        q1 += q;
        q2 += q * q;
        x1 += x;
        xq += x * q;
    }
    const double n = (double)RUN, det = n * q2 - q1 * q1;
    if (!(det > 0)) return f;
    const double scale = (n * xq - q1 * x1) / det, offset = (q1 * xq - q2 * x1) / det;
    if (offset >= 0 && scale > 0) return (fit) { (float)scale, (float)offset };
    return (fit) { q2 > 0 && xq > 0 ? (float)(xq / q2) : f.scale, 0 };
}

static fit fit_run(const float *in) {
    float low = 0, high = 0;
    for (int i = 0; i < RUN; i++) {
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
    }
    fit best = { (high - low) / 15, -low };
    if (!(high > low)) return (fit) { 0, 0 };
    double least = error_of(in, best);
    for (int k = 0; k < TRIES; k++) {
        const fit guess = { (high - low) / (14.0f + 0.2f * (float)k), -low };
        const fit f = refine(in, guess);
        const double error = error_of(in, f);
        if (error < least) {
            least = error;
            best = f;
        }
    }
    return best;
}

/* The twelve bytes of blocks.c's six_bits. */
static void put_six_bits(uint8_t *s, const int scale[RUNS], const int offset[RUNS]) {
    for (int r = 0; r < 4; r++) {
        s[r] = (uint8_t)(scale[r] | (scale[r + 4] >> 4) << 6);
        s[4 + r] = (uint8_t)(offset[r] | (offset[r + 4] >> 4) << 6);
        s[8 + r] = (uint8_t)((scale[r + 4] & 15) | (offset[r + 4] & 15) << 4);
    }
}

static void put_q4_k(uint8_t *out, const float *in) {
    fit f[RUNS];
    int scale[RUNS], offset[RUNS];
    float top_scale = 0, top_offset = 0;
    for (int r = 0; r < RUNS; r++) {
        f[r] = fit_run(in + r * RUN);
        top_scale = f[r].scale > top_scale ? f[r].scale : top_scale;
        top_offset = f[r].offset > top_offset ? f[r].offset : top_offset;
    }
    const uint16_t d_bits = tg_f16_from_f32(top_scale / 63);
    const uint16_t m_bits = tg_f16_from_f32(top_offset / 63);
    const float d = tg_f16_to_f32(d_bits), m = tg_f16_to_f32(m_bits);
    put_u16(out, d_bits);
    put_u16(out + 2, m_bits);
    memset(out + 16, 0, 128);
    for (int r = 0; r < RUNS; r++) {
        scale[r] = d > 0 ? whole(f[r].scale / d, 0, 63) : 0;
        offset[r] = m > 0 ? whole(f[r].offset / m, 0, 63) : 0;
        const float s = d * (float)scale[r], inverse = s > 0 ? 1 / s : 0;
        for (int i = 0; i < RUN; i++) {
            const int q = whole((in[r * RUN + i] + m * (float)offset[r]) * inverse, 0, 15);
            out[16 + r / 2 * RUN + i] |= (uint8_t)(q << (r % 2 * 4));
        }
    }
    put_six_bits(out + 4, scale, offset);
}

void tg_block_from_f32_n(tg_dtype type, uint8_t *out, const float *in, size_t n) {
    const tg_dtype_desc *desc = &tg_dtype_table[type];
    for (size_t i = 0; i < n; i += desc->cols, out += desc->bytes) {
        switch (type) {
        case TG_F32: memcpy(out, in + i, sizeof *in); break;
        case TG_F16: put_u16(out, tg_f16_from_f32(in[i])); break;
        case TG_BF16: put_u16(out, tg_bf16_from_f32(in[i])); break;
        case TG_Q8_0: put_q8_0(out, in + i); break;
        case TG_Q4_0: put_q4_0(out, in + i); break;
        default: put_q4_k(out, in + i); break;
        }
    }
}
