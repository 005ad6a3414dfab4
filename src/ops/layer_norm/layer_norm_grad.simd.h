/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm_grad.simd.h - dx by rows; dw and db by fixed chunks of rows, then over the chunks.
 *
 *   phase 0   a unit is a chunk of 32 rows: dx of each row, and the chunk's part of dw and db
 *   phase 1   a unit is some columns: the parts, chunks rising, give dw and db (column_parts.h)
 *
 * Rows go through in blocks of ROWS, so that w, dw and db are loaded once for them; within a chunk
 * they are still added one by one.
 */
#include "ir/op.h"
#include "ops/column_parts.h"

#define ROWS (TG_MR == 1 ? 1u : 4u) /* no part of the result */

static column_parts parts_of(const tg_args *a) {
    return column_parts_of(tg_type_rows(&a->in_type[0]), tg_type_cols(&a->in_type[0]), 2);
}
static size_t scratch_bytes(const tg_args *a) {
    const column_parts p = parts_of(a);
    return column_parts_bytes(&p);
}
static size_t chunk_units(const tg_args *a) { return parts_of(a).chunks; }

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

static void run_block(const tg_args *a, const column_parts *p, size_t row, unsigned rows,
                      float *part) {
    const size_t at = row * p->cols;
    const float *res = a->in[5];
    block k = { .x = (const float *)a->in[0] + at,
                .w = a->in[1],
                .dy = (const float *)a->in[4] + at,
                .res = res ? res + at : NULL,
                .dx = (float *)a->out[0] + at,
                .dw = part,
                .db = part + p->stride,
                .cols = p->cols };
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
    const column_parts p = parts_of(a);
    for (size_t k = begin; k < end; k++) {
        float *part = column_part(&p, a->scratch, k);
        memset(part, 0, p.n_sums * p.stride * sizeof *part);
        const size_t stop = tg_min_size((k + 1) * CHUNK_ROWS, tg_type_rows(&a->in_type[0]));
        size_t row = k * CHUNK_ROWS;
        for (; row + ROWS <= stop; row += ROWS) run_block(a, &p, row, ROWS, part);
        for (; row < stop; row++) run_block(a, &p, row, 1, part);
    }
}

static size_t column_units(const tg_args *a) {
    const column_parts p = parts_of(a);
    return column_parts_units(&p);
}
static void run_columns(const tg_args *a, size_t begin, size_t end) {
    const column_parts p = parts_of(a);
    column_parts_add(&p, a->scratch, 0, a->out[1], a->acc & 2, begin, end);
    column_parts_add(&p, a->scratch, 1, a->out[2], a->acc & 4, begin, end);
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunk_units, run_chunks }, { column_units, run_columns } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(layer_norm_grad, variants);
