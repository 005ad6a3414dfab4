/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_rows.c - rows of a tensor, wherever and however they lie (gguf.h: places).
 */
#include "io/gguf/gguf.h"

/* Rows and bytes of one: all dimensions but the first count rows. */
/* A reader may be used by several threads once each has errors of its own. */
tg_status tg_gguf_read_at(tg_ctx *ctx, const tg_reader *r, const tg_gguf_tensor *t, uint64_t offset,
                          void *out, size_t n_bytes) {
    tg_reader own = *r;
    own.ctx = ctx;
    return tg_read_at(&own, offset, t->name, out, n_bytes);
}

tg_status tg_gguf_read_part(tg_ctx *ctx, const tg_gguf_tensor *t, const tg_gguf_part *part,
                            uint64_t first, size_t n, uint8_t *stored, float *out) {
    const size_t each = tg_dtype_table[part->type].bytes;
    TG_TRY(tg_gguf_read_at(ctx, &part->reader, t, part->offset + first * each, stored, n * each));
    tg_block_to_f32_n(part->type, out, stored, n);
    return TG_OK;
}

/* Column by column of the file: each has the wanted elements of one place in all rows.
 * piece [n elements] */
static tg_status read_turned(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                             uint8_t *out, uint8_t *piece) {
    const size_t each = tg_dtype_table[t->type].bytes;
    const uint64_t rows = t->elems / t->dim[0], cols = t->dim[0];
    for (uint64_t c = 0; c < cols; c++) {
        TG_TRY(tg_gguf_read_at(ctx, &t->place->reader, t, t->offset + (c * rows + first) * each,
                               piece, (size_t)n * each));
        for (uint64_t r = 0; r < n; r++)
            memcpy(out + (r * cols + c) * each, piece + r * each, each);
    }
    return TG_OK;
}

/* Floats whose product with a number, or sum with 1, only f32 can hold. scratch: a row of them, and
 * as it is stored. */
static tg_status read_changed(tg_ctx *ctx, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                              uint8_t *out, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    const size_t cols = (size_t)t->dim[0], bytes = cols * tg_dtype_table[p->stored_type].bytes;
    const tg_gguf_times *times = p->times;
    float *row = (float *)(void *)scratch;
    uint8_t *from = (uint8_t *)(row + cols);
    for (uint64_t r = first; r < first + n; r++, out += 4 * cols) {
        TG_TRY(tg_gguf_read_at(ctx, &p->reader, t, t->offset + r * bytes, from, bytes));
        tg_block_to_f32_n(p->stored_type, row, from, cols);
        while (times && r >= times->end) times++;
        for (size_t i = 0; times && i < cols; i++) row[i] *= times->by;
        for (size_t i = 0; p->plus_one && i < cols; i++) row[i] += 1;
        memcpy(out, row, 4 * cols);
    }
    return TG_OK;
}

/* Are its numbers others than the stored ones? */
static bool is_changed(const tg_gguf_place *p) { return p->plus_one || p->times; }

/* Rows of one expert after the other. */
static tg_status read_experts(tg_ctx *ctx, const tg_gguf *g, const tg_gguf_tensor *t,
                              uint64_t first, uint64_t n, uint8_t *out, uint8_t *scratch) {
    const uint64_t bytes = tg_gguf_row_bytes(t), rows = t->dim[1];
    while (n > 0) {
        const uint64_t at = first % rows, here = rows - at < n ? rows - at : n;
        TG_TRY(tg_gguf_read_rows_into(ctx, g, &t->place->experts[first / rows], at, here, out,
                                      scratch));
        out += here * bytes;
        first += here;
        n -= here;
    }
    return TG_OK;
}

/* Experts need not be stored alike: some may be quantised, by groups of other sizes. */
const tg_gguf_form *tg_gguf_form_of(const tg_gguf_tensor *t) {
    const tg_gguf_place *p = t->place;
    const tg_gguf_form *form = p ? p->form : NULL;
    for (uint64_t e = 0; p && p->experts && !form && e < t->dim[2]; e++)
        form = p->experts[e].place->form;
    return form;
}

size_t tg_gguf_scratch_bytes(const tg_gguf_tensor *t, uint64_t n) {
    const tg_gguf_place *p = t->place;
    size_t most = 0;
    for (uint64_t e = 0; p && p->experts && e < t->dim[2]; e++) {
        const size_t bytes = tg_gguf_scratch_bytes(&p->experts[e], n);
        if (bytes > most) most = bytes;
    }
    if (p && p->experts) return most;
    if (p && p->form) return p->form->scratch_bytes(t, n);
    if (p && p->turned) return (size_t)n * tg_dtype_table[t->type].bytes;
    if (p && is_changed(p))
        return (size_t)t->dim[0] * (sizeof(float) + tg_dtype_table[p->stored_type].bytes);
    return 0;
}

/* A maker that failed holds nothing. */
static tg_status make(const tg_gguf_place *p) {
    tg_gguf_maker *m = p->maker;
    if (m->holds == p) return TG_OK;
    m->holds = NULL;
    TG_TRY(m->make(m, p->number));
    m->holds = p;
    return TG_OK;
}

tg_status tg_gguf_read_rows_into(tg_ctx *ctx, const tg_gguf *g, const tg_gguf_tensor *t,
                                 uint64_t first, uint64_t n, uint8_t *out, uint8_t *scratch) {
    const tg_gguf_place *p = t->place;
    if (p && p->maker) TG_TRY(make(p));
    if (p && p->experts) return read_experts(ctx, g, t, first, n, out, scratch);
    if (p && p->form) return p->form->read(ctx, t, first, n, out, scratch);
    if (p && p->turned) return read_turned(ctx, t, first, n, out, scratch);
    if (p && is_changed(p)) return read_changed(ctx, t, first, n, out, scratch);
    const uint64_t bytes = tg_gguf_row_bytes(t);
    return tg_gguf_read_at(ctx, p ? &p->reader : &g->reader, t, t->offset + first * bytes, out,
                           (size_t)(n * bytes));
}

tg_status tg_gguf_read_rows(const tg_gguf *g, const tg_gguf_tensor *t, uint64_t first, uint64_t n,
                            uint8_t *out) {
    const size_t room = tg_gguf_scratch_bytes(t, n);
    uint8_t *scratch = room ? tg_alloc(&g->ctx->mem, room) : NULL;
    if (room && !scratch) return tg_fail_memory(g->ctx, t->name, room);
    const tg_status s = tg_gguf_read_rows_into(g->ctx, g, t, first, n, out, scratch);
    tg_free(&g->ctx->mem, scratch, room);
    return s;
}

const tg_os_file *tg_gguf_lies_in_rows(const tg_gguf *g, const tg_gguf_tensor *t) {
    const tg_gguf_place *p = t->place;
    if (p && (p->turned || is_changed(p) || p->form || p->experts)) return NULL;
    const tg_os_file *file = (p ? &p->reader : &g->reader)->file;
    return file && tg_os_file_can_be_mapped(file) ? file : NULL;
}

const tg_os_file *tg_gguf_lies_plain(const tg_gguf *g, const tg_gguf_tensor *t) {
    const tg_dtype_desc *d = &tg_dtype_table[t->type];
    return d->cols == 1 && t->offset % d->bytes == 0 ? tg_gguf_lies_in_rows(g, t) : NULL;
}

const char *tg_gguf_format(const tg_gguf *g) {
    return g->checks.crc     ? "tinygpt v3"
           : g->hf           ? "safetensors"
           : g->version == 2 ? "GGUF v2"
                             : "GGUF v3";
}

const char *tg_gguf_kind(const tg_gguf *g) {
    return g->checks.crc ? "tinygpt v3" : g->hf ? "safetensors" : "gguf";
}

tg_status tg_gguf_read_floats(const tg_gguf *g, const tg_gguf_tensor *t, uint8_t *buffer,
                              float *out) {
    TG_TRY(tg_gguf_read_rows(g, t, 0, t->elems / t->dim[0], buffer));
    tg_block_to_f32_n(t->type, out, buffer, (size_t)t->elems);
    return TG_OK;
}

static size_t new_bytes(const tg_gguf_tensor *t) {
    return (size_t)t->elems * sizeof(float) + (size_t)t->bytes;
}

tg_status tg_gguf_new_floats(const tg_gguf *g, const tg_gguf_tensor *t, float **out) {
    *out = tg_alloc(&g->ctx->mem, new_bytes(t));
    if (!*out) return tg_fail_memory(g->ctx, t->name, new_bytes(t));
    const tg_status s = tg_gguf_read_floats(g, t, (uint8_t *)(*out + t->elems), *out);
    if (s != TG_OK) tg_gguf_free_floats(g, t, *out);
    return s;
}

void tg_gguf_free_floats(const tg_gguf *g, const tg_gguf_tensor *t, float *floats) {
    tg_free(&g->ctx->mem, floats, new_bytes(t));
}
