/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_writer.c - the head of a GGUF file, and the gaps before its tensors.
 *
 * Offsets of tensors count from where the data begin, which follows from the length of the head; so
 * the head is built twice, once to be measured.
 */
#include "io/gguf/gguf_writer.h"

enum { ALIGNMENT = 32 };

static void put_u32(tg_buf *out, uint32_t x) {
    uint8_t b[4];
    tg_put_u32(b, x);
    tg_buf_append(out, b, sizeof b);
}

static void put_u64(tg_buf *out, uint64_t x) {
    uint8_t b[8];
    tg_put_u64(b, x);
    tg_buf_append(out, b, sizeof b);
}

static void put_text(tg_buf *out, const char *bytes, size_t n_bytes) {
    put_u64(out, n_bytes);
    tg_buf_append(out, bytes, n_bytes);
}

void tg_gguf_add_string(tg_buf *array, const char *bytes, size_t n_bytes) {
    put_text(array, bytes, n_bytes);
}

static void put_value(tg_buf *out, const tg_gguf_value *v) {
    float f = (float)v->real;
    uint32_t bits32;
    uint64_t bits64;
    put_text(out, v->key, strlen(v->key));
    put_u32(out, (uint32_t)v->type);
    switch (v->type) {
    case TG_GGUF_STRING: put_text(out, v->text.bytes, v->text.n_bytes); return;
    case TG_GGUF_ARRAY:
        put_u32(out, (uint32_t)v->element);
        put_u64(out, v->count);
        tg_buf_append(out, v->elements, v->elements_bytes);
        return;
    case TG_GGUF_F32:
        memcpy(&bits32, &f, sizeof bits32);
        put_u32(out, bits32);
        return;
    case TG_GGUF_F64:
        memcpy(&bits64, &v->real, sizeof bits64);
        put_u64(out, bits64);
        return;
    case TG_GGUF_U64:
    case TG_GGUF_I64: put_u64(out, (uint64_t)v->whole); return;
    case TG_GGUF_U32:
    case TG_GGUF_I32: put_u32(out, (uint32_t)v->whole); return;
    case TG_GGUF_U16:
    case TG_GGUF_I16:
        tg_buf_putc(out, (char)(v->whole & 255));
        tg_buf_putc(out, (char)(v->whole >> 8 & 255));
        return;
    default: tg_buf_putc(out, (char)(v->whole & 255)); return;
    }
}

void tg_gguf_put_values(tg_buf *out, const tg_gguf_value *values, size_t n) {
    put_u32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) put_value(out, &values[i]);
}

static uint64_t aligned(uint64_t n) { return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void put_head(tg_buf *out, const tg_gguf_value *values, size_t n_values,
                     const tg_gguf_tensor *tensors, size_t n_tensors, uint64_t data) {
    tg_buf_append(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, n_tensors);
    put_u64(out, n_values);
    for (size_t i = 0; i < n_values; i++) put_value(out, &values[i]);
    for (size_t i = 0; i < n_tensors; i++) {
        const tg_gguf_tensor *t = &tensors[i];
        put_text(out, t->name, strlen(t->name));
        put_u32(out, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++) put_u64(out, t->dim[d]);
        put_u32(out, tg_dtype_table[t->type].number);
        put_u64(out, t->offset - data);
    }
}

tg_status tg_gguf_save_begin(tg_ctx *ctx, const char *path, const tg_gguf_value *values,
                             size_t n_values, tg_gguf_tensor *tensors, size_t n_tensors,
                             tg_save **out) {
    tg_buf head;
    *out = NULL;
    tg_buf_init(&head, &ctx->mem);
    put_head(&head, values, n_values, tensors, n_tensors, 0);
    tg_status s = tg_buf_status(ctx, &head, path); /* before its length is relied upon */
    const uint64_t data = aligned(head.length);
    uint64_t at = data;
    for (size_t i = 0; i < n_tensors; i++) {
        tensors[i].offset = at;
        at = aligned(at + tensors[i].bytes);
    }
    tg_buf_clear(&head);
    if (s == TG_OK) put_head(&head, values, n_values, tensors, n_tensors, data);
    if (s == TG_OK) s = tg_buf_status(ctx, &head, path);
    if (s == TG_OK) s = tg_save_begin(ctx, path, out);
    if (s == TG_OK) s = tg_save_write(*out, head.data, head.length);
    if (s != TG_OK) {
        tg_save_abort(*out);
        *out = NULL;
    }
    tg_buf_deinit(&head);
    return s;
}

tg_status tg_gguf_save_tensor(tg_save *save, const tg_gguf_tensor *t) {
    static const uint8_t zeros[ALIGNMENT];
    return tg_save_write(save, zeros, (size_t)(t->offset - tg_save_offset(save)));
}
