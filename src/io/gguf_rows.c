/*
 * gguf_rows.c - rows of a tensor, wherever and however they lie (gguf.h: places).
 */
#include "io/gguf.h"

/* Rows and bytes of one: all dimensions but the first count rows. */
static uint64_t row_bytes_of(const tg_gguf_tensor *t) { return t->bytes / (t->elems / t->dim[0]); }

/* Column by column of the file: each has the wanted elements of one place in all rows. */
static tg_status read_turned(const tg_gguf *g, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                             uint8_t *out) {
    const size_t each = tg_block_table[t->type].bytes;
    const uint64_t rows = t->elems / t->dim[0], cols = t->dim[0];
    uint8_t *piece = tg_alloc(&g->ctx->mem, (size_t)n * each);
    if (!piece) return tg_fail_memory(g->ctx, t->name, (size_t)n * each);
    tg_status s = TG_OK;
    for (uint64_t c = 0; s == TG_OK && c < cols; c++) {
        s = tg_read_at(&t->place->reader, t->offset + (c * rows + first) * each, t->name, piece,
                       (size_t)n * each);
        for (uint64_t r = 0; s == TG_OK && r < n; r++)
            memcpy(out + (r * cols + c) * each, piece + r * each, each);
    }
    tg_free(&g->ctx->mem, piece, (size_t)n * each);
    return s;
}

static void put_f32(uint8_t *out, float x) { memcpy(out, &x, sizeof x); }

/* One row: q, scales and biases as MLX has them, to blocks of ours (blocks.h). q of eight bits gets
 * a sign. */
static void convert_affine(const tg_gguf_tensor *t, const uint8_t *q, const float *scales,
                           const float *biases, uint8_t *out) {
    const tg_gguf_place *p = t->place;
    for (uint64_t k = 0; k < t->dim[0]; k += 32, out += tg_block_table[t->type].bytes) {
        const float scale = scales[k / p->group], bias = biases[k / p->group];
        const uint8_t *from = q + k * p->bits / 8;
        put_f32(out, scale);
        if (p->bits == 8) {
            put_f32(out + 4, bias + 128 * scale);
            for (int i = 0; i < 32; i++) out[8 + i] = (uint8_t)(from[i] ^ 128);
            continue;
        }
        put_f32(out + 4, bias + 8 * scale);
        for (int i = 0; i < 16; i++) {
            const int low = from[i / 2] >> (i % 2 * 4) & 15;
            const int high = from[8 + i / 2] >> (i % 2 * 4) & 15;
            out[8 + i] = (uint8_t)(low | high << 4);
        }
    }
}

static tg_status read_affine(const tg_gguf *g, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                             uint8_t *out) {
    const tg_gguf_place *p = t->place;
    const size_t groups = (size_t)(t->dim[0] / p->group);
    const size_t q_bytes = (size_t)(t->dim[0] * p->bits / 8);
    const size_t scale_bytes = groups * tg_block_table[p->stored_type].bytes;
    const size_t room = q_bytes + scale_bytes + 2 * groups * sizeof(float);
    float *scales = tg_alloc(&g->ctx->mem, room);
    if (!scales) return tg_fail_memory(g->ctx, t->name, room);
    float *biases = scales + groups;
    uint8_t *stored = (uint8_t *)(biases + groups), *q = stored + scale_bytes;
    tg_status s = TG_OK;
    for (uint64_t r = first; s == TG_OK && r < first + n; r++) {
        s = tg_read_at(&p->scales, p->scales_offset + r * scale_bytes, t->name, stored,
                       scale_bytes);
        if (s != TG_OK) break;
        tg_block_to_f32_n(p->stored_type, scales, stored, groups);
        s = tg_read_at(&p->biases, p->biases_offset + r * scale_bytes, t->name, stored,
                       scale_bytes);
        if (s != TG_OK) break;
        tg_block_to_f32_n(p->stored_type, biases, stored, groups);
        s = tg_read_at(&p->reader, t->offset + r * q_bytes, t->name, q, q_bytes);
        if (s == TG_OK) convert_affine(t, q, scales, biases, out + (r - first) * row_bytes_of(t));
    }
    tg_free(&g->ctx->mem, scales, room);
    return s;
}

/* Vectors of floats, whose sum with 1 only f32 can hold. */
static tg_status read_gains(const tg_gguf *g, const tg_gguf_tensor *t, uint8_t *out) {
    const tg_block_type stored = t->place->stored_type;
    const size_t n = (size_t)t->elems, bytes = n * tg_block_table[stored].bytes;
    float *gains = tg_alloc(&g->ctx->mem, n * sizeof *gains + bytes);
    if (!gains) return tg_fail_memory(g->ctx, t->name, n * sizeof *gains + bytes);
    uint8_t *from = (uint8_t *)(gains + n);
    const tg_status s = tg_read_at(&t->place->reader, t->offset, t->name, from, bytes);
    if (s == TG_OK) {
        tg_block_to_f32_n(stored, gains, from, n);
        for (size_t i = 0; i < n; i++) put_f32(out + 4 * i, gains[i] + 1);
    }
    tg_free(&g->ctx->mem, gains, n * sizeof *gains + bytes);
    return s;
}

tg_status tg_gguf_read_rows(const tg_gguf *g, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                            uint8_t *out) {
    const tg_gguf_place *p = t->place;
    if (p && p->bits) return read_affine(g, t, first, n, out);
    if (p && p->turned) return read_turned(g, t, first, n, out);
    if (p && p->plus_one) return read_gains(g, t, out);
    const uint64_t bytes = row_bytes_of(t);
    return tg_read_at(p ? &p->reader : &g->reader, t->offset + first * bytes, t->name, out,
                      (size_t)(n * bytes));
}

const char *tg_gguf_format(const tg_gguf *g) {
    return g->hf ? "safetensors" : g->version == 2 ? "GGUF v2" : "GGUF v3";
}
