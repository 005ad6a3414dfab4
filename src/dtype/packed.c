/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed.c - from the bytes of a file to the layout of kernels, and the slow way back.
 */
#include "dtype/packed.h"

#include "base/err.h"
#include "dtype/dtype.h"

const tg_packing_desc tg_packing_table[TG_PACKING_COUNT] = {
#define PACKING_ROW(name, text, cols, bytes, zero, number)                                         \
    [TG_PACK_##name] = { text, cols, bytes, zero, number },
    TG_PACKING_LIST(PACKING_ROW)
#undef PACKING_ROW
};

size_t tg_matrix_bytes(tg_dtype dtype, tg_packing layout, size_t rows, size_t cols) {
    const tg_dtype_desc *d = &tg_dtype_table[dtype];
    return layout == TG_PACK_NONE ? rows * (cols / d->cols * d->bytes)
                                  : tg_pack_groups(rows) * tg_pack_group_bytes(layout, cols);
}

/* ---------------------------------------------------------------------------------------- packing
 */

/*
 * A block of all sixteen rows at a time: four bytes of each row, side by side, are a vector, so
 * that what is written goes straight on. Bytes are moved and masked by fours, as numbers of 32
 * bits; nothing crosses from one byte into another.
 */
typedef const uint8_t *const *blocks; /* [TG_PACK_ROWS] the block of each row */

static uint32_t four(const uint8_t *p) {
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static void put_four(uint8_t *vectors, size_t v, size_t row, uint32_t x) {
    memcpy(vectors + 64 * v + 4 * row, &x, sizeof x);
}

/* n vectors of bytes as they lie from `at` on; change: 0, or 0x80808080 to make them unsigned. */
static void put_bytes(uint8_t *restrict out, blocks b, size_t at, size_t n, uint32_t change) {
    for (size_t v = 0; v < n; v++)
        for (size_t r = 0; r < TG_PACK_ROWS; r++)
            put_four(out, v, r, four(b[r] + at + 4 * v) ^ change);
}

static void put_half_floats(uint8_t *restrict out, blocks b, size_t at) {
    for (size_t r = 0; r < TG_PACK_ROWS; r++) memcpy(out + 2 * r, b[r] + at, 2);
}

/* Four bits as the lowest ones of four bytes, the first bit in the first byte. */
static uint32_t spread(uint32_t bits) { return (bits & 15) * 0x00204081 & 0x01010101; }

/* 32 fifth bits in the order of the weights: byte c of a lane has those of weights c, c + 4, .. */
static void put_fifth_bits(uint8_t *restrict out, blocks b, size_t at) {
    for (size_t r = 0; r < TG_PACK_ROWS; r++) {
        const uint8_t *bits = b[r] + at;
        uint32_t x = 0;
        for (size_t j = 0; j < 8; j++) x |= spread((uint32_t)(bits[j / 2] >> (j % 2 * 4))) << j;
        put_four(out, 0, r, x);
    }
}

/* Eight blocks of 32, whose halves are brought into the order of Q4_0. */
static void pack_q4kx16(blocks b, uint8_t *restrict out) {
    put_half_floats(out, b, 0);
    put_half_floats(out + 32, b, 2);
    for (size_t i = 0; i < 8; i++) {
        uint8_t *block = out + 64 + 288 * i;
        const int shift = i % 2 ? 4 : 0;
        for (size_t v = 0; v < 4; v++) {
            for (size_t r = 0; r < TG_PACK_ROWS; r++) {
                const uint8_t *q = b[r] + 16 + i / 2 * 32 + 4 * v;
                const uint32_t low = four(q) >> shift & 0x0f0f0f0f;
                const uint32_t high = four(q + 16) >> shift & 0x0f0f0f0f;
                put_four(block, v, r, low | high << 4);
            }
        }
        for (size_t r = 0; r < TG_PACK_ROWS; r++) {
            /* blocks.c draws where the six bits lie */
            const uint8_t *s = b[r] + 4;
            block[256 + r] = (uint8_t)(i < 4 ? s[i] & 63 : (s[4 + i] & 15) | (s[i - 4] >> 6) << 4);
            block[272 + r] = (uint8_t)(i < 4 ? s[4 + i] & 63 : s[4 + i] >> 4 | (s[i] >> 6) << 4);
        }
    }
}

static void put_whole(uint8_t *vectors, size_t row, const int8_t *q) {
    for (size_t v = 0; v < 8; v++)
        put_four(vectors, v, row, four((const uint8_t *)q + 4 * v) ^ 0x80808080);
}

static void put_float(uint8_t *at, size_t row, float x) {
    memcpy(at + row * sizeof x, &x, sizeof x);
}

static void pack_q8mx16(tg_dtype type, const uint8_t *b, size_t row, uint8_t *out) {
    tg_block_parts p;
    tg_block_take_apart(type, b, &p);
    for (size_t k = 0; k < tg_dtype_table[type].cols; k += 32, out += 768) {
        put_whole(out, row, p.q + k);
        for (size_t half = 0; half < 2; half++) {
            const size_t run = k / TG_BLOCK_RUN + half;
            put_float(out + 512 + 64 * half, row, p.scale[run]);
            put_float(out + 640 + 64 * half, row, p.has_offset ? p.offset[run] : 0);
        }
    }
}

/* One block of each row. out: where the group has it. */
static void pack_blocks(tg_dtype type, blocks b, uint8_t *restrict out) {
    switch (type) {
    case TG_Q4_0:
        put_bytes(out, b, 2, 4, 0);
        put_half_floats(out + 256, b, 0);
        break;
    case TG_Q4_1:
        put_bytes(out, b, 4, 4, 0);
        put_half_floats(out + 256, b, 0);
        put_half_floats(out + 288, b, 2);
        break;
    case TG_Q5_0:
        put_bytes(out, b, 6, 4, 0);
        put_fifth_bits(out + 256, b, 2);
        put_half_floats(out + 320, b, 0);
        break;
    case TG_Q5_1:
        put_bytes(out, b, 8, 4, 0);
        put_fifth_bits(out + 256, b, 4);
        put_half_floats(out + 320, b, 0);
        put_half_floats(out + 352, b, 2);
        break;
    case TG_Q8_0:
        put_bytes(out, b, 2, 8, 0x80808080);
        put_half_floats(out + 512, b, 0);
        break;
    case TG_IQ4_NL:
        for (size_t r = 0; r < TG_PACK_ROWS; r++) {
            tg_block_parts p;
            tg_block_take_apart(type, b[r], &p);
            put_whole(out, r, p.q);
        }
        put_half_floats(out + 512, b, 0);
        break;
    case TG_Q4_K: pack_q4kx16(b, out); break;
    case TG_F32: put_bytes(out, b, 0, 1, 0); break;
    case TG_F16:
    case TG_BF16: put_half_floats(out, b, 0); break;
    default:
        for (size_t r = 0; r < TG_PACK_ROWS; r++) pack_q8mx16(type, b[r], r, out);
        break;
    }
}

/* Absent rows are read from a block of zeros, which has scales of zero in every type. */
void tg_pack_group(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                   uint8_t *out) {
    static const uint8_t absent[256] = { 0 };
    const tg_dtype_desc *d = &tg_dtype_table[type];
    const tg_packing p = d->packing;
    const size_t step = d->cols / tg_packing_table[p].cols * tg_packing_table[p].bytes;
    TG_ASSERT(d->bytes <= sizeof absent);
    for (size_t at = 0; at < cols / d->cols; at++, out += step) {
        const uint8_t *b[TG_PACK_ROWS];
        for (size_t r = 0; r < TG_PACK_ROWS; r++) b[r] = row[r] ? row[r] + at * d->bytes : absent;
        pack_blocks(type, b, out);
    }
}

/* --------------------------------------------------------------------------------- the way back
 */

static float half_at(const uint8_t *p, size_t row) {
    return tg_f16_to_f32((uint16_t)(p[2 * row] | p[2 * row + 1] << 8));
}

static float float_at(const uint8_t *p, size_t row) {
    float x;
    memcpy(&x, p + row * sizeof x, sizeof x);
    return x;
}

static int nibble(const uint8_t *vectors, size_t row, size_t k) {
    return vectors[k % 16 / 4 * 64 + 4 * row + k % 4] >> (k / 16 * 4) & 15;
}

static float weight(tg_packing p, const uint8_t *group, size_t row, size_t col) {
    const tg_packing_desc *d = &tg_packing_table[p];
    const uint8_t *b = group + col / d->cols * d->bytes;
    const size_t k = col % TG_PACK_COLS;
    const uint8_t lane = (uint8_t)(4 * row + k % 4);
    switch (p) {
    case TG_PACK_F32: return float_at(b, row);
    case TG_PACK_F16: return half_at(b, row);
    case TG_PACK_BF16: return tg_bf16_to_f32((uint16_t)(b[2 * row] | b[2 * row + 1] << 8));
    case TG_PACK_Q4X16: return half_at(b + 256, row) * (float)(nibble(b, row, k) - d->zero);
    case TG_PACK_Q4MX16:
        return half_at(b + 256, row) * (float)nibble(b, row, k) + half_at(b + 288, row);
    case TG_PACK_Q5X16:
    case TG_PACK_Q5MX16: {
        const int q = nibble(b, row, k) | (b[256 + lane] >> (k / 4) & 1) << 4;
        const float x = half_at(b + 320, row) * (float)(q - d->zero);
        return p == TG_PACK_Q5X16 ? x : x + half_at(b + 352, row);
    }
    case TG_PACK_Q8X16: return half_at(b + 512, row) * (float)(b[k / 4 * 64 + lane] - d->zero);
    case TG_PACK_Q4KX16: {
        const uint8_t *block = b + 64 + col % 256 / 32 * 288;
        const float scale = half_at(b, row) * (float)block[256 + row];
        const float offset = half_at(b + 32, row) * (float)block[272 + row];
        return scale * (float)nibble(block, row, k) - offset;
    }
    case TG_PACK_Q8MX16:
    default:
        return float_at(b + 512 + k / 16 * 64, row) * (float)(b[k / 4 * 64 + lane] - d->zero) +
               float_at(b + 640 + k / 16 * 64, row);
    }
}

void tg_matrix_to_f32_n(tg_dtype dtype, tg_packing layout, size_t cols, const void *data,
                        size_t row, size_t first, size_t n, float *out) {
    const uint8_t *bytes = data;
    if (layout == TG_PACK_NONE) {
        const tg_dtype_desc *d = &tg_dtype_table[dtype];
        tg_block_to_f32_n(dtype, out, bytes + (row * cols + first) / d->cols * d->bytes, n);
        return;
    }
    const uint8_t *group = bytes + row / TG_PACK_ROWS * tg_pack_group_bytes(layout, cols);
    for (size_t i = 0; i < n; i++) out[i] = weight(layout, group, row % TG_PACK_ROWS, first + i);
}
