/*
 * packed.c - from the bytes of a file to the layout of kernels, and the slow way back.
 */
#include "dtype/packed.h"

#include "dtype/dtype.h"

const tg_packing_desc tg_packing_table[TG_PACKING_COUNT] = {
#define PACKING_ROW(name, cols, bytes, zero) [TG_PACK_##name] = { #name, cols, bytes, zero },
    TG_PACKING_LIST(PACKING_ROW)
#undef PACKING_ROW
};

tg_packing tg_packing_of(tg_block_type type) {
    static const tg_packing packing[TG_BLOCK_TYPE_COUNT] = {
        [TG_BLOCK_F32] = TG_PACK_F32,  [TG_BLOCK_F16] = TG_PACK_F16, [TG_BLOCK_BF16] = TG_PACK_BF16,
        [TG_BLOCK_Q4_0] = TG_PACK_C4,  [TG_BLOCK_Q4_1] = TG_PACK_M4, [TG_BLOCK_Q5_0] = TG_PACK_C5,
        [TG_BLOCK_Q5_1] = TG_PACK_M5,  [TG_BLOCK_Q8_0] = TG_PACK_C8, [TG_BLOCK_IQ4_NL] = TG_PACK_C8,
        [TG_BLOCK_Q4_K] = TG_PACK_K4,  [TG_BLOCK_Q2_K] = TG_PACK_S8, [TG_BLOCK_Q3_K] = TG_PACK_S8,
        [TG_BLOCK_Q5_K] = TG_PACK_S8,  [TG_BLOCK_Q6_K] = TG_PACK_S8, [TG_BLOCK_IQ4_XS] = TG_PACK_S8,
        [TG_BLOCK_MXFP4] = TG_PACK_S8, [TG_BLOCK_MLX4] = TG_PACK_S8, [TG_BLOCK_MLX8] = TG_PACK_S8,
    };
    return packing[type];
}

/* ---------------------------------------------------------------------------------------- packing
 */

/* Four bytes of sixteen are a lane of a vector. */
static void put_lane(uint8_t *vectors, size_t v, size_t row, const void *four) {
    memcpy(vectors + 64 * v + 4 * row, four, 4);
}

static void put_float(uint8_t *at, size_t row, float x) {
    memcpy(at + row * sizeof x, &x, sizeof x);
}

/* 16 bytes of halves as Q4_0 has them: weight i low, weight i + 16 high. They stay as they are. */
static void put_halves(uint8_t *vectors, size_t row, const uint8_t *halves) {
    for (size_t v = 0; v < 4; v++) put_lane(vectors, v, row, halves + 4 * v);
}

/* 32 fifth bits in the order of the weights. */
static void put_fifth_bits(uint8_t *vector, size_t row, const uint8_t *bits) {
    uint8_t four[4] = { 0 };
    for (size_t k = 0; k < 32; k++)
        four[k % 4] |= (uint8_t)((bits[k / 8] >> (k % 8) & 1) << (k / 4));
    put_lane(vector, 0, row, four);
}

/* 32 whole numbers, made unsigned. */
static void put_bytes(uint8_t *vectors, size_t row, const int8_t *q) {
    uint8_t u[32];
    for (size_t k = 0; k < 32; k++) u[k] = (uint8_t)(q[k] + 128);
    for (size_t v = 0; v < 8; v++) put_lane(vectors, v, row, u + 4 * v);
}

static void put_half_float(uint8_t *at, size_t row, const uint8_t *bits) {
    memcpy(at + 2 * row, bits, 2);
}

/* A row of K4: eight blocks of 32, whose halves are brought into the order of Q4_0. */
static void pack_k4(const uint8_t *b, size_t row, uint8_t *out) {
    put_half_float(out, row, b);
    put_half_float(out + 32, row, b + 2);
    for (size_t r = 0; r < 8; r++) {
        uint8_t *block = out + 64 + 288 * r, halves[16];
        const uint8_t *s = b + 4, *q = b + 16 + r / 2 * 32;
        const int shift = r % 2 ? 4 : 0;
        for (size_t i = 0; i < 16; i++)
            halves[i] = (uint8_t)((q[i] >> shift & 15) | (q[i + 16] >> shift & 15) << 4);
        put_halves(block, row, halves);
        /* blocks.c draws where the six bits lie */
        block[256 + row] = (uint8_t)(r < 4 ? s[r] & 63 : (s[4 + r] & 15) | (s[r - 4] >> 6) << 4);
        block[272 + row] = (uint8_t)(r < 4 ? s[4 + r] & 63 : s[4 + r] >> 4 | (s[r] >> 6) << 4);
    }
}

static void pack_s8(tg_block_type type, const uint8_t *b, size_t row, uint8_t *out) {
    tg_block_parts p;
    tg_block_take_apart(type, b, &p);
    for (size_t k = 0; k < tg_block_table[type].weights; k += 32, out += 768) {
        put_bytes(out, row, p.q + k);
        for (size_t half = 0; half < 2; half++) {
            const size_t run = k / TG_BLOCK_RUN + half;
            put_float(out + 512 + 64 * half, row, p.scale[run]);
            put_float(out + 640 + 64 * half, row, p.has_offset ? p.offset[run] : 0);
        }
    }
}

/* One block of one row. out: where the row's group has the block. */
static void pack_block(tg_block_type type, const uint8_t *b, size_t row, uint8_t *out) {
    switch (type) {
    case TG_BLOCK_Q4_0:
        put_halves(out, row, b + 2);
        put_half_float(out + 256, row, b);
        break;
    case TG_BLOCK_Q4_1:
        put_halves(out, row, b + 4);
        put_half_float(out + 256, row, b);
        put_half_float(out + 288, row, b + 2);
        break;
    case TG_BLOCK_Q5_0:
        put_halves(out, row, b + 6);
        put_fifth_bits(out + 256, row, b + 2);
        put_half_float(out + 320, row, b);
        break;
    case TG_BLOCK_Q5_1:
        put_halves(out, row, b + 8);
        put_fifth_bits(out + 256, row, b + 4);
        put_half_float(out + 320, row, b);
        put_half_float(out + 352, row, b + 2);
        break;
    case TG_BLOCK_Q8_0:
    case TG_BLOCK_IQ4_NL: {
        tg_block_parts p;
        tg_block_take_apart(type, b, &p);
        put_bytes(out, row, p.q);
        put_half_float(out + 512, row, b);
        break;
    }
    case TG_BLOCK_Q4_K: pack_k4(b, row, out); break;
    default: pack_s8(type, b, row, out); break;
    }
}

/* Block by block through all rows, so that what is written stays near. Absent rows are zeros
 * altogether: scales of zero make weights of zero. */
void tg_pack_group(tg_block_type type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],
                   uint8_t *out) {
    const tg_packing p = tg_packing_of(type);
    const tg_block_desc *d = &tg_block_table[type];
    const size_t step = d->weights / tg_packing_table[p].cols * tg_packing_table[p].bytes;
    for (size_t at = 0; at < cols / d->weights; at++, out += step) {
        if (!row[TG_PACK_ROWS - 1]) memset(out, 0, step);
        for (size_t r = 0; r < TG_PACK_ROWS && row[r]; r++) {
            const uint8_t *b = row[r] + at * d->bytes;
            if (tg_packing_is_integer(p))
                pack_block(type, b, r, out);
            else
                memcpy(out + r * d->bytes, b, d->bytes);
        }
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
    case TG_PACK_C4: return half_at(b + 256, row) * (float)(nibble(b, row, k) - d->zero);
    case TG_PACK_M4:
        return half_at(b + 256, row) * (float)nibble(b, row, k) + half_at(b + 288, row);
    case TG_PACK_C5:
    case TG_PACK_M5: {
        const int q = nibble(b, row, k) | (b[256 + lane] >> (k / 4) & 1) << 4;
        const float x = half_at(b + 320, row) * (float)(q - d->zero);
        return p == TG_PACK_C5 ? x : x + half_at(b + 352, row);
    }
    case TG_PACK_C8: return half_at(b + 512, row) * (float)(b[k / 4 * 64 + lane] - d->zero);
    case TG_PACK_K4: {
        const uint8_t *block = b + 64 + col % 256 / 32 * 288;
        const float scale = half_at(b, row) * (float)block[256 + row];
        const float offset = half_at(b + 32, row) * (float)block[272 + row];
        return scale * (float)nibble(block, row, k) - offset;
    }
    case TG_PACK_S8:
    default:
        return float_at(b + 512 + k / 16 * 64, row) * (float)(b[k / 4 * 64 + lane] - d->zero) +
               float_at(b + 640 + k / 16 * 64, row);
    }
}

void tg_packed_to_f32_n(tg_packing p, size_t cols, const uint8_t *packed, size_t row, size_t first,
                        size_t n, float *out) {
    const uint8_t *group = packed + row / TG_PACK_ROWS * tg_pack_group_bytes(p, cols);
    for (size_t i = 0; i < n; i++) out[i] = weight(p, group, row % TG_PACK_ROWS, first + i);
}
