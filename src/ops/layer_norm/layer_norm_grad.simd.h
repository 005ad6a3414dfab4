/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm_grad.simd.h - dx by rows; dw and db by fixed chunks of rows, then over the chunks.
 *
 *   phase 0   a unit is a chunk of 32 rows: dx of each row, and the chunk's part of dw and db
 *   phase 1   a unit is some columns: the parts, chunks rising, give dw and db
 *
 *   scratch   [chunk][ dw part: S floats | db part: S floats ],  S = C rounded up to 16
 *
 * The order of every sum depends on rows and columns alone. Rows go through in blocks of ROWS, so
 * that w, dw and db are loaded once for them; within a chunk they are still added one by one.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define CHUNK 32u                    /* part of the result: another number gives other bits */
#define ROWS  (TG_MR == 1 ? 1u : 4u) /* not so */

typedef struct shape {
    size_t rows, cols, chunks, stride;
} shape;

static shape shape_of(const tg_args *a) {
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    return (shape) { rows, cols, tg_units(rows, CHUNK), tg_units(cols, 16) * 16 };
}

/* A chunk's rows of scratch are 64-byte aligned, as the stride is a multiple of 16 floats. */
static size_t scratch_bytes(const tg_args *a) {
    const shape s = shape_of(a);
    return s.chunks * 2 * s.stride * sizeof(float);
}

static size_t chunk_units(const tg_args *a) { return shape_of(a).chunks; }

/* What one block of rows reads and writes, and its row values. */
typedef struct block {
    const float *x, *w, *dy, *res;
    float *dx, *dw, *db;
    size_t cols;
    tg_v mean[ROWS], rstd[ROWS];
    tg_v sum_e[ROWS], sum_eh[ROWS];
} block;

/* n is 16 in all but the last columns, and a constant there once this is inlined. */
static inline tg_v load(const float *p, size_t n) {
    return n == 16 ? tg_vload(p) : tg_vload_n(p, n);
}

/* Sixteen columns, n of them real, of the sums. Beyond n, dy and w are 0, and so is what they add.
 */
TG_UNLESS_LONG void sum_columns(block *k, unsigned rows, size_t c, size_t n) {
    const tg_v w = load(k->w + c, n);
    tg_v dw = tg_vload(k->dw + c), db = tg_vload(k->db + c);
    for (unsigned i = 0; i < rows; i++) {
        const tg_v dy = load(k->dy + i * k->cols + c, n), x = load(k->x + i * k->cols + c, n);
        const tg_v h = tg_vmul(tg_vsub(x, k->mean[i]), k->rstd[i]), e = tg_vmul(dy, w);
        k->sum_e[i] = tg_vadd(k->sum_e[i], e);
        k->sum_eh[i] = tg_vfma(e, h, k->sum_eh[i]);
        dw = tg_vfma(dy, h, dw);
        db = tg_vadd(db, dy);
    }
    tg_vstore(k->dw + c, dw);
    tg_vstore(k->db + c, db);
}

/* Sixteen columns, n of them real, of dx. */
TG_UNLESS_LONG void write_columns(const block *k, unsigned rows, size_t c, size_t n) {
    const tg_v w = load(k->w + c, n);
    for (unsigned i = 0; i < rows; i++) {
        const size_t at = i * k->cols + c;
        const tg_v h = tg_vmul(tg_vsub(load(k->x + at, n), k->mean[i]), k->rstd[i]);
        const tg_v e = tg_vsub(tg_vmul(load(k->dy + at, n), w), k->sum_e[i]);
        tg_v dx = tg_vmul(tg_vfnma(h, k->sum_eh[i], e), k->rstd[i]);
        if (k->res) dx = tg_vadd(load(k->res + at, n), dx);
        if (n == 16)
            tg_vstore(k->dx + at, dx);
        else
            tg_vstore_n(k->dx + at, dx, n);
    }
}

/* block comes by value, and rows is a constant at both calls: so the arrays in it become registers,
 * and the loops over rows disappear. dx may lie where dy is, since the second pass reads a vector
 * of each before it stores; that is also why all sums come first. */
static inline __attribute__((always_inline)) void run_rows(block k, unsigned rows) {
    const size_t cols = k.cols;
    for (unsigned i = 0; i < rows; i++) k.sum_e[i] = k.sum_eh[i] = tg_vzero();
    size_t c = 0;
    for (; c + 16 <= cols; c += 16) sum_columns(&k, rows, c, 16);
    if (c < cols) sum_columns(&k, rows, c, cols - c);
    for (unsigned i = 0; i < rows; i++) {
        k.sum_e[i] = tg_vset(tg_vsum(k.sum_e[i]) / (float)cols);
        k.sum_eh[i] = tg_vset(tg_vsum(k.sum_eh[i]) / (float)cols);
    }
    for (c = 0; c + 16 <= cols; c += 16) write_columns(&k, rows, c, 16);
    if (c < cols) write_columns(&k, rows, c, cols - c);
}

static void run_block(const tg_args *a, const shape *s, size_t row, unsigned rows, float *part) {
    const size_t at = row * s->cols;
    const float *res = a->in[5];
    block k = { .x = (const float *)a->in[0] + at,
                .w = a->in[1],
                .dy = (const float *)a->in[4] + at,
                .res = res ? res + at : NULL,
                .dx = (float *)a->out[0] + at,
                .dw = part,
                .db = part + s->stride,
                .cols = s->cols };
    for (unsigned i = 0; i < rows; i++) {
        k.mean[i] = tg_vset(((const float *)a->in[2])[row + i]);
        k.rstd[i] = tg_vset(((const float *)a->in[3])[row + i]);
    }
    if (rows == ROWS)
        run_rows(k, ROWS);
    else
        run_rows(k, 1);
}

static void run_chunks(const tg_args *a, size_t begin, size_t end) {
    const shape s = shape_of(a);
    for (size_t k = begin; k < end; k++) {
        float *part = (float *)a->scratch + k * 2 * s.stride;
        memset(part, 0, 2 * s.stride * sizeof *part);
        const size_t stop = tg_min_size((k + 1) * CHUNK, s.rows);
        size_t row = k * CHUNK;
        for (; row + ROWS <= stop; row += ROWS) run_block(a, &s, row, ROWS, part);
        for (; row < stop; row++) run_block(a, &s, row, 1, part);
    }
}

/* Groups of 16 columns of a unit of phase 1. */
static size_t unit_groups(const shape *s) {
    return tg_unit_rows(s->chunks * 2 * 16, TG_UNIT_ELEMS);
}

static size_t column_units(const tg_args *a) {
    const shape s = shape_of(a);
    return tg_units(s.stride / 16, unit_groups(&s));
}

/* The chunks are added from 0, then to what was there: see bias_grad. */
static void add_parts(const shape *s, const float *part, float *out, size_t n, bool add) {
    tg_v sum = tg_vzero();
    for (size_t k = 0; k < s->chunks; k++) sum = tg_vadd(sum, tg_vload(part + k * 2 * s->stride));
    if (add) sum = tg_vadd(tg_vload_n(out, n), sum);
    tg_vstore_n(out, sum, n);
}

static void run_columns(const tg_args *a, size_t begin, size_t end) {
    const shape s = shape_of(a);
    const size_t step = unit_groups(&s) * 16, stop = tg_min_size(end * step, s.cols);
    const float *part = a->scratch;
    for (size_t c = begin * step; c < stop; c += 16) {
        const size_t n = tg_min_size(16, s.cols - c);
        add_parts(&s, part + c, (float *)a->out[1] + c, n, a->acc & 2);
        add_parts(&s, part + s.stride + c, (float *)a->out[2] + c, n, a->acc & 4);
    }
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunk_units, run_chunks }, { column_units, run_columns } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(layer_norm_grad, variants);
