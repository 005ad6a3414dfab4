/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column_parts.h - sums over rows in two phases: each chunk of rows leaves its own sums in scratch,
 * then the chunks are added, rising.
 *
 *   scratch   [chunk][sum][S],  S = columns rounded up to 16, so that parts are 64-byte aligned
 *
 * The order of every sum depends on rows and columns alone. What is accumulated into is added last,
 * as everywhere, so that the fused sum has the bits of a separate addition.
 */
#ifndef TG_OPS_COLUMN_PARTS_H
#define TG_OPS_COLUMN_PARTS_H

#include "ops/kernel.h"
#include "simd/vec.h"

enum { CHUNK_ROWS = 32 }; /* part of the result: another number gives other bits */

typedef struct column_parts {
    size_t chunks, n_sums, cols, stride;
} column_parts;

static column_parts column_parts_of(size_t rows, size_t cols, size_t n_sums) {
    return (column_parts) { tg_units(rows, CHUNK_ROWS), n_sums, cols, tg_units(cols, 16) * 16 };
}

static size_t column_parts_bytes(const column_parts *p) {
    return p->chunks * p->n_sums * p->stride * sizeof(float);
}

/* The sums of a chunk, of which the first begins here. */
static float *column_part(const column_parts *p, void *scratch, size_t chunk) {
    return (float *)scratch + chunk * p->n_sums * p->stride;
}

/* Columns of a unit of the second phase. */
static size_t column_parts_step(const column_parts *p) {
    return tg_unit_rows(p->chunks * p->n_sums * 16, TG_UNIT_ELEMS) * 16;
}
static size_t column_parts_units(const column_parts *p) {
    return tg_units(p->stride, column_parts_step(p));
}

/* Units [begin, end) of sum number k, added into out where add says so. out may be NULL. */
static void column_parts_add(const column_parts *p, const void *scratch, size_t k, float *out,
                             bool add, size_t begin, size_t end) {
    const size_t step = column_parts_step(p), stop = tg_min_size(end * step, p->cols);
    for (size_t c = begin * step; out && c < stop; c += 16) {
        const float *part = (const float *)scratch + k * p->stride + c;
        const size_t n = tg_min_size(16, p->cols - c);
        tg_v sum = tg_vzero();
        for (size_t i = 0; i < p->chunks; i++, part += p->n_sums * p->stride)
            sum = tg_vadd(sum, tg_vload(part));
        if (add) sum = tg_vadd(tg_vload_n(out + c, n), sum);
        tg_vstore_n(out + c, sum, n);
    }
}

#endif
