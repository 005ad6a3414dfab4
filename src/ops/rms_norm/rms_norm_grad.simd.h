/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_norm_grad.simd.h - dx by rows; dw by fixed chunks of rows, then over the chunks.
 *
 *   phase 0   a unit is a chunk of rows: dx of each row, and the chunk's part of dw
 *   phase 1   a unit is some columns: the parts, chunks rising, give dw (column_parts.h)
 *
 * Rows go through in blocks of ROWS, so that w and dw are loaded once for them; within a chunk they
 * are still added one by one.
 */
#include "ir/op.h"
#include "ops/column_parts.h"
#include "ops/rms_norm/rms_groups.h"
#include "ops/rms_norm/rms_row.h"

#define ROWS (TG_MR == 1 ? 1u : 4u) /* no part of the result */

static column_parts parts_of(const tg_args *a) {
    return column_parts_of(tg_type_rows(&a->in_type[0]), tg_type_cols(&a->in_type[0]), 1);
}
static size_t scratch_bytes(const tg_args *a) {
    const column_parts p = parts_of(a);
    return column_parts_bytes(&p);
}
static size_t chunk_units(const tg_args *a) { return parts_of(a).chunks; }

/* What one block of rows, or of a group of their columns, reads and writes, and its row values. */
typedef struct block {
    const float *x, *w, *dy, *res;
    float *dx, *dw;
    size_t cols, stride; /* of a row, from one to the next */
    tg_v scale[ROWS], sum[ROWS];
} block;

/* n is 16 in all but the last columns, and a constant there once this is inlined. */
static inline tg_v load(const float *p, size_t n) {
    return n == 16 ? tg_vload(p) : tg_vload_n(p, n);
}

static inline void store(float *p, tg_v v, size_t n) {
    if (n == 16)
        tg_vstore(p, v);
    else
        tg_vstore_n(p, v, n);
}

/* Sixteen columns, n of them real, of the sums. */
TG_UNLESS_LONG void sum_columns(block *k, unsigned rows, size_t c, size_t n) {
    const tg_v w = load(k->w + c, n);
    tg_v dw = load(k->dw + c, n);
    for (unsigned i = 0; i < rows; i++) {
        const size_t at = i * k->stride + c;
        const tg_v dy = load(k->dy + at, n), h = tg_vmul(load(k->x + at, n), k->scale[i]);
        k->sum[i] = tg_vfma(tg_vmul(dy, w), h, k->sum[i]);
        dw = tg_vfma(dy, h, dw);
    }
    store(k->dw + c, dw, n);
}

/* Sixteen columns, n of them real, of dx. */
TG_UNLESS_LONG void write_columns(const block *k, unsigned rows, size_t c, size_t n) {
    const tg_v w = load(k->w + c, n);
    for (unsigned i = 0; i < rows; i++) {
        const size_t at = i * k->stride + c;
        const tg_v h = tg_vmul(load(k->x + at, n), k->scale[i]);
        const tg_v e = tg_vmul(load(k->dy + at, n), w);
        tg_v dx = tg_vmul(tg_vfnma(h, k->sum[i], e), k->scale[i]);
        if (k->res) dx = tg_vadd(load(k->res + at, n), dx);
        store(k->dx + at, dx, n);
    }
}

/* block comes by value, and rows is a constant at both calls: so the arrays in it become registers.
 * dx may lie where dy is, since the second pass reads a vector of each before it stores. */
static inline __attribute__((always_inline)) void run_rows(block k, unsigned rows, float eps) {
    const size_t cols = k.cols;
    for (unsigned i = 0; i < rows; i++) {
        k.scale[i] = tg_vset(rms_scale(k.x + i * k.stride, cols, eps));
        k.sum[i] = tg_vzero();
    }
    size_t c = 0;
    for (; c + 16 <= cols; c += 16) sum_columns(&k, rows, c, 16);
    if (c < cols) sum_columns(&k, rows, c, cols - c);
    for (unsigned i = 0; i < rows; i++) k.sum[i] = tg_vset(tg_vsum(k.sum[i]) / (float)cols);
    for (c = 0; c + 16 <= cols; c += 16) write_columns(&k, rows, c, 16);
    if (c < cols) write_columns(&k, rows, c, cols - c);
}

static void run_block(const tg_args *a, size_t row, unsigned rows, float *part) {
    const size_t stride = tg_type_cols(&a->in_type[0]), cols = rms_cols(a);
    const float *res = a->in[3];
    for (size_t first = 0; first < stride; first += cols) {
        const size_t at = row * stride + first;
        const block k = { .x = (const float *)a->in[0] + at,
                          .w = (const float *)a->in[1] + first,
                          .dy = (const float *)a->in[2] + at,
                          .res = res ? res + at : NULL,
                          .dx = (float *)a->out[0] + at,
                          .dw = part + first,
                          .cols = cols,
                          .stride = stride };
        if (rows == ROWS)
            run_rows(k, ROWS, a->attr.f[0]);
        else
            run_rows(k, 1, a->attr.f[0]);
    }
}

static void run_chunks(const tg_args *a, size_t begin, size_t end) {
    const column_parts p = parts_of(a);
    for (size_t k = begin; k < end; k++) {
        float *part = column_part(&p, a->scratch, k);
        memset(part, 0, p.stride * sizeof *part);
        const size_t stop = tg_min_size((k + 1) * CHUNK_ROWS, tg_type_rows(&a->in_type[0]));
        size_t row = k * CHUNK_ROWS;
        for (; row + ROWS <= stop; row += ROWS) run_block(a, row, ROWS, part);
        for (; row < stop; row++) run_block(a, row, 1, part);
    }
}

static size_t column_units(const tg_args *a) {
    const column_parts p = parts_of(a);
    return column_parts_units(&p);
}
static void run_columns(const tg_args *a, size_t begin, size_t end) {
    const column_parts p = parts_of(a);
    column_parts_add(&p, a->scratch, 0, a->out[1], a->acc & 2, begin, end);
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunk_units, run_chunks }, { column_units, run_columns } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(rms_norm_grad, variants);
