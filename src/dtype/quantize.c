/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantize.c - floats to blocks: see the table in blocks.h for what the bytes mean.
 *
 * A type says how blocks are read, and leaves open which scale is written. Those with a scale alone
 * of 32 weights (Q8_0, Q4_0, Q5_0) take the largest weight of a block to the end of the range, as
 * everybody does; Q5_1 has its smallest and its largest weight at both ends. Superblocks and IQ4_NL
 * are fitted: of several scales around that one, each made the best for the whole numbers that it
 * gives by least squares, the one with the smallest error is taken.
 *
 * With an importance of the columns all of them but Q8_0 are fitted, and an error weighs by a rule
 * of llama.cpp's (ggml-quants.c): the importance h[i] of its column, which is the mean square of
 * what it is multiplied with, times a measure of the weight itself, since what is large matters
 * more than its share of a sum of squares:
 *
 *     Q6_K                    h[i]
 *     the others              h[i] sqrt(s + x[i]^2)      s: the mean of x^2, of a row where blocks
 *                                                        have 32 weights, twice that of 256 in Q4_K
 *                                                        and Q5_K, and of IQ4_NL's block
 */
#include "dtype/quantize.h"

#include "base/math.h"
#include "dtype/dtype.h"

enum { RUN = 32, RUNS = 8, TRIES = 12 };

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

/* The weight that is largest without its sign. */
static float end_of(const float *in, int n) {
    float end = 0;
    for (int i = 0; i < n; i++)
        if ((in[i] < 0 ? -in[i] : in[i]) > (end < 0 ? -end : end)) end = in[i];
    return end;
}

/* The low four bits of 32 whole numbers, in 16 bytes. */
static void put_halves(uint8_t *out, const int q[RUN]) {
    for (int i = 0; i < RUN / 2; i++) out[i] = (uint8_t)((q[i] & 15) | (q[i + RUN / 2] & 15) << 4);
}

/* The fifth ones, in four bytes. */
static void put_fifths(uint8_t *out, const int q[RUN]) {
    memset(out, 0, 4);
    for (int i = 0; i < RUN; i++) out[i / 8] |= (uint8_t)((q[i] >> 4 & 1) << (i % 8));
}

/* ------------------------------------------------------------------------ a scale alone, fitted */

/* The number of a type that is nearest to x, and its value. */
typedef int (*nearest_fn)(float x, int *value);

static int nearest_six_bits(float x, int *value) {
    *value = whole(x, -32, 31);
    return *value + 32;
}

static int nearest_four_bits(float x, int *value) {
    *value = whole(x, -8, 7);
    return *value + 8;
}

static int nearest_five_bits(float x, int *value) {
    *value = whole(x, -16, 15);
    return *value + 16;
}

static int nearest_iq4(float x, int *value) {
    int at = 0;
    while (at < 15 && x > 0.5f * (float)(tg_iq4_values[at] + tg_iq4_values[at + 1])) at++;
    *value = tg_iq4_values[at];
    return at;
}

/* The scale with the smallest error, of those that take the largest weight near `end`. With whole
 * numbers q that are given, xq / qq is the best scale, and its error xx - xq * xq / qq. w: what a
 * square weighs; NULL: as any other. Weights of which no square counts, as those of a column that
 * was always 0, are fitted as if all did. */
static float fit_scale(const float *in, const float *w, int n, float end, float step,
                       nearest_fn nearest) {
    const float most = end_of(in, n);
    double best = 0;
    float scale = 0;
    if (!(most < 0 || most > 0)) return 0;
    for (int k = -TRIES; k <= TRIES; k++) {
        const float inverse = (end + step * (float)k) / most;
        double xq = 0, qq = 0;
        for (int i = 0; i < n; i++) {
            int q;
            nearest(in[i] * inverse, &q);
            const double weight = w ? (double)w[i] : 1;
            xq += weight * (double)in[i] * q;
            qq += weight * q * q;
        }
        if (qq > 0 && xq * xq > best * qq) {
            best = xq * xq / qq;
            scale = (float)(xq / qq);
        }
    }
    return w && !(best > 0) ? fit_scale(in, NULL, n, end, step, nearest) : scale;
}

static void put_iq4_nl(uint8_t *out, const float *in, const float *w) {
    const uint16_t bits = tg_f16_from_f32(fit_scale(in, w, RUN, -127, w ? 1.5f : 4, nearest_iq4));
    const float scale = tg_f16_to_f32(bits), inverse = scale < 0 || scale > 0 ? 1 / scale : 0;
    int q[RUN], value;
    for (int i = 0; i < RUN; i++) q[i] = nearest_iq4(in[i] * inverse, &value);
    put_u16(out, bits);
    put_halves(out + 2, q);
}

/* The layout is drawn at blocks.c's take_q6_k. */
static void put_q6_k(uint8_t *out, const float *in, const float *w) {
    enum { SIXTEEN = 16 };
    float scale[SIXTEEN];
    for (int r = 0; r < SIXTEEN; r++)
        scale[r] = fit_scale(in + r * SIXTEEN, w ? w + r * SIXTEEN : NULL, SIXTEEN, -32,
                             w ? 0.1f : 0.25f, nearest_six_bits);
    const float end = end_of(scale, SIXTEEN);
    const uint16_t bits = tg_f16_from_f32(end / -128);
    const float d = tg_f16_to_f32(bits);
    memset(out, 0, 208);
    put_u16(out + 208, bits);
    for (int r = 0; r < SIXTEEN; r++) {
        const int s = d < 0 || d > 0 ? whole(scale[r] / d, -128, 127) : 0;
        const float inverse = s ? 1 / (d * (float)s) : 0;
        out[192 + r] = (uint8_t)(int8_t)s;
        for (int i = r * SIXTEEN; i < (r + 1) * SIXTEEN; i++) {
            int value;
            const int q = nearest_six_bits(in[i] * inverse, &value), half = i / 128, at = i % 128;
            out[half * 64 + at % 64] |= (uint8_t)((q & 15) << (at / 64 * 4));
            out[128 + half * 32 + at % 32] |= (uint8_t)(q >> 4 << (at / 32 * 2));
        }
    }
}

/* Q4_0 (top 8) and Q5_0 (16): the largest weight becomes -top, the end that has no counterpart, or
 * what fits best near it. */
static void put_q_0(uint8_t *out, const float *in, const float *w, int top) {
    float scale = end_of(in, RUN) / (float)-top;
    if (w)
        scale = fit_scale(in, w, RUN, (float)-top, 0.1f,
                          top == 16 ? nearest_five_bits : nearest_four_bits);
    const float inverse = scale < 0 || scale > 0 ? 1 / scale : 0;
    int q[RUN];
    for (int i = 0; i < RUN; i++) q[i] = whole(in[i] * inverse, -top, top - 1) + top;
    put_u16(out, tg_f16_from_f32(scale));
    if (top == 16) put_fifths(out + 2, q);
    put_halves(out + (top == 16 ? 6 : 2), q);
}

/* --------------------------------------------------------------------------- a scale and an offset
 */

/* w = scale * q - offset, offset of 0 or more. */
typedef struct fit {
    float scale, offset;
} fit;

static double error_of(const float *in, const float *w, int top, fit f) {
    const float inverse = f.scale > 0 ? 1 / f.scale : 0;
    double sum = 0;
    for (int i = 0; i < RUN; i++) {
        const int q = whole((in[i] + f.offset) * inverse, 0, top);
        const double d = (double)in[i] - ((double)f.scale * q - (double)f.offset);
        sum += w ? (double)w[i] * d * d : d * d;
    }
    return sum;
}

/* The best scale and offset for the q that a first guess gives: two equations of least squares. */
static fit refine(const float *in, const float *w, int top, fit f) {
    const float inverse = f.scale > 0 ? 1 / f.scale : 0;
    double n = 0, q1 = 0, q2 = 0, x1 = 0, xq = 0;
    for (int i = 0; i < RUN; i++) {
        const double q = whole((in[i] + f.offset) * inverse, 0, top), x = (double)in[i];
        const double weight = w ? (double)w[i] : 1;
        n += weight;
        q1 += weight * q;
        q2 += weight * q * q;
        x1 += weight * x;
        xq += weight * x * q;
    }
    const double det = n * q2 - q1 * q1;
    if (!(det > 0)) return f;
    const double scale = (n * xq - q1 * x1) / det, offset = (q1 * xq - q2 * x1) / det;
    if (offset >= 0 && scale > 0) return (fit) { (float)scale, (float)offset };
    return (fit) { q2 > 0 && xq > 0 ? (float)(xq / q2) : f.scale, 0 };
}

static fit fit_run(const float *in, const float *w, int top) {
    float low = 0, high = 0;
    for (int i = 0; i < RUN; i++) {
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
    }
    fit best = { (high - low) / (float)top, -low };
    if (!(high > low)) return (fit) { 0, 0 };
    double least = error_of(in, w, top, best);
    for (int k = 0; k < TRIES; k++) {
        const fit guess = { (high - low) / ((float)top - 1 + 0.2f * (float)k), -low };
        const fit f = refine(in, w, top, guess);
        const double error = error_of(in, w, top, f);
        if (error < least) {
            least = error;
            best = f;
        }
    }
    return best;
}

static void put_q5_1(uint8_t *out, const float *in, const float *w) {
    float low = in[0], high = in[0];
    for (int i = 1; i < RUN; i++) {
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
    }
    fit f = { (high - low) / 31, -low };
    if (w) f = fit_run(in, w, 31);
    const float scale = f.scale, inverse = scale > 0 ? 1 / scale : 0;
    low = -f.offset;
    int q[RUN];
    for (int i = 0; i < RUN; i++) q[i] = whole((in[i] - low) * inverse, 0, 31);
    put_u16(out, tg_f16_from_f32(scale));
    put_u16(out + 2, tg_f16_from_f32(low));
    put_fifths(out + 4, q);
    put_halves(out + 8, q);
}

/* The twelve bytes of blocks.c's six_bits. */
static void put_six_bits(uint8_t *s, const int scale[RUNS], const int offset[RUNS]) {
    for (int r = 0; r < 4; r++) {
        s[r] = (uint8_t)(scale[r] | (scale[r + 4] >> 4) << 6);
        s[4 + r] = (uint8_t)(offset[r] | (offset[r + 4] >> 4) << 6);
        s[8 + r] = (uint8_t)((scale[r + 4] & 15) | (offset[r + 4] & 15) << 4);
    }
}

/* The scale of the runs' scales, or of their offsets, all of 0 or more, as six bits; w [RUNS] what
 * the square of an error of each weighs, or NULL. */
static float fit_runs(const float x[RUNS], const double *w) {
    enum { TOP = 63 };
    float most = 0;
    for (int r = 0; r < RUNS; r++) most = x[r] > most ? x[r] : most;
    float scale = most / (float)TOP;
    double best = 0;
    for (int k = -TRIES; w && most > 0 && k <= TRIES; k++) {
        double xq = 0, qq = 0;
        for (int r = 0; r < RUNS; r++) {
            const double q = whole(x[r] * (((float)TOP + 0.1f * (float)k) / most), 0, TOP);
            xq += w[r] * (double)x[r] * q;
            qq += w[r] * q * q;
        }
        if (qq > 0 && best * qq < xq * xq) {
            best = xq * xq / qq;
            scale = (float)(xq / qq);
        }
    }
    return scale;
}

/* Q4_K (top 15) and Q5_K (31). */
static void put_superblock(uint8_t *out, const float *in, const float *w, int top) {
    fit f[RUNS];
    int scale[RUNS], offset[RUNS];
    float scales[RUNS], offsets[RUNS];
    double sums[RUNS] = { 0 };
    for (int r = 0; r < RUNS; r++) {
        f[r] = fit_run(in + r * RUN, w ? w + r * RUN : NULL, top);
        scales[r] = f[r].scale;
        offsets[r] = f[r].offset;
        for (int i = 0; w && i < RUN; i++) sums[r] += (double)w[r * RUN + i];
    }
    const uint16_t d_bits = tg_f16_from_f32(fit_runs(scales, w ? sums : NULL));
    const uint16_t m_bits = tg_f16_from_f32(fit_runs(offsets, w ? sums : NULL));
    const float d = tg_f16_to_f32(d_bits), m = tg_f16_to_f32(m_bits);
    put_u16(out, d_bits);
    put_u16(out + 2, m_bits);
    uint8_t *fifths = out + 16, *halves = top > 15 ? out + 48 : out + 16;
    memset(out + 16, 0, top > 15 ? 160 : 128);
    for (int r = 0; r < RUNS; r++) {
        scale[r] = d > 0 ? whole(f[r].scale / d, 0, 63) : 0;
        offset[r] = m > 0 ? whole(f[r].offset / m, 0, 63) : 0;
        const float s = d * (float)scale[r], inverse = s > 0 ? 1 / s : 0;
        for (int i = 0; i < RUN; i++) {
            const int q = whole((in[r * RUN + i] + m * (float)offset[r]) * inverse, 0, top);
            halves[r / 2 * RUN + i] |= (uint8_t)((q & 15) << (r % 2 * 4));
            if (q > 15) fifths[i] |= (uint8_t)(1 << r);
        }
    }
    put_six_bits(out + 4, scale, offset);
}

/* ------------------------------------------------------------------------------------ the whole */

static double mean_square(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum / (double)n;
}

/* What the squares of a block's errors weigh: the table at the file's head. row: the mean square of
 * the row. */
static void weigh(tg_dtype type, const float *in, const float *importance, double row, float *w) {
    const size_t n = tg_dtype_table[type].cols;
    const double s = n == 256 || type == TG_IQ4_NL ? 2 * mean_square(in, n) : row;
    for (size_t i = 0; i < n; i++)
        w[i] = type == TG_Q6_K
                   ? importance[i]
                   : (float)((double)importance[i] * tg_sqrt(s + (double)in[i] * (double)in[i]));
}

bool tg_block_weighs(tg_dtype type) {
    return type == TG_Q4_0 || type == TG_Q5_0 || type == TG_Q5_1 || type == TG_IQ4_NL ||
           type == TG_Q4_K || type == TG_Q5_K || type == TG_Q6_K;
}

void tg_block_from_f32_n(tg_dtype type, uint8_t *out, const float *in, size_t n,
                         const float *importance) {
    enum { MOST = 256 };
    const tg_dtype_desc *desc = &tg_dtype_table[type];
    float weights[MOST];
    const float *w = importance && tg_block_weighs(type) ? weights : NULL;
    const double row = w ? mean_square(in, n) : 0;
    for (size_t i = 0; i < n; i += desc->cols, out += desc->bytes) {
        if (w) weigh(type, in + i, importance + i, row, weights);
        switch (type) {
        case TG_F32: memcpy(out, in + i, sizeof *in); break;
        case TG_F16: put_u16(out, tg_f16_from_f32(in[i])); break;
        case TG_BF16: put_u16(out, tg_bf16_from_f32(in[i])); break;
        case TG_Q8_0: put_q8_0(out, in + i); break;
        case TG_Q4_0: put_q_0(out, in + i, w, 8); break;
        case TG_Q5_0: put_q_0(out, in + i, w, 16); break;
        case TG_Q5_1: put_q5_1(out, in + i, w); break;
        case TG_IQ4_NL: put_iq4_nl(out, in + i, w); break;
        case TG_Q6_K: put_q6_k(out, in + i, w); break;
        default: put_superblock(out, in + i, w, type == TG_Q5_K ? 31 : 15); break;
        }
    }
}
