/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bias_grad.simd.h - column sums in two phases: partial sums of fixed chunks of rows, then the
 * chunks in rising order.
 *
 *     dy [rows, C]   +-----------+
 *       128 rows     |  chunk 0  |   phase 0: a unit adds up its chunk, row by row -> partial 0
 *       128 rows     |  chunk 1  |                                                 -> partial 1
 *       the rest     +-----------+   phase 1: the partials, in order
 *
 * A chunk is read as it lies in memory, 8 rows at a time over sums that wait in its partial; a walk
 * down some columns would be half as fast.
 */
#include "simd/vec.h"

#include "ir/op.h"
#include "ops/kernel.h"

/* Part of the result: sums end at chunks, so another number gives other bits. */
enum { CHUNK_ROWS = 128 };
enum { TURN_ROWS = 8 };

/* Partials begin 64 bytes apart, so that workers never write to one line. */
static size_t partial_elems(const tg_args *a) {
    return tg_units(tg_type_cols(&a->in_type[0]), 16) * 16;
}
static size_t chunks(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), CHUNK_ROWS);
}
static size_t scratch_bytes(const tg_args *a) {
    return chunks(a) * partial_elems(a) * sizeof(float);
}

/* sums[0, cols) += n rows of dy, cols apart, the first one first. n is a constant. */
static inline __attribute__((always_inline)) void add_rows(float *sums, const float *dy,
                                                           size_t cols, size_t n) {
    size_t c = 0;
    for (; c + 16 <= cols; c += 16) {
        tg_v s = tg_vload(sums + c);
        for (size_t r = 0; r < n; r++) s = tg_vadd(s, tg_vload(dy + r * cols + c));
        tg_vstore(sums + c, s);
    }
    if (c == cols) return;
    tg_v s = tg_vload(sums + c);
    for (size_t r = 0; r < n; r++) s = tg_vadd(s, tg_vload_n(dy + r * cols + c, cols - c));
    tg_vstore(sums + c, s);
}

static void sum_chunks(const tg_args *a, size_t begin, size_t end) {
    const size_t rows = tg_type_rows(&a->in_type[0]), cols = tg_type_cols(&a->in_type[0]);
    for (size_t u = begin; u < end; u++) {
        float *sums = (float *)a->scratch + u * partial_elems(a);
        memset(sums, 0, partial_elems(a) * sizeof(float));
        const size_t stop = tg_min_size((u + 1) * CHUNK_ROWS, rows);
        const float *dy = (const float *)a->in[0] + u * CHUNK_ROWS * cols;
        size_t r = u * CHUNK_ROWS;
        for (; r + TURN_ROWS <= stop; r += TURN_ROWS, dy += TURN_ROWS * cols)
            add_rows(sums, dy, cols, TURN_ROWS);
        for (; r < stop; r++, dy += cols) add_rows(sums, dy, cols, 1);
    }
}

static size_t one(const tg_args *a) {
    (void)a;
    return 1;
}

/* One unit for all columns: the partials are 1/128 of what phase 0 has read, so handing them out
 * would cost more than it saves. What is accumulated into is added last, as everywhere, so that the
 * fused sum has the bits of a separate addition. */
static void sum_partials(const tg_args *a, size_t begin, size_t end) {
    const size_t cols = tg_type_cols(&a->in_type[0]), n_chunks = chunks(a), ld = partial_elems(a);
    float *db = a->out[0];
    (void)begin;
    (void)end;
    for (size_t c = 0; c < cols; c += 16) {
        const float *partial = (const float *)a->scratch + c;
        const size_t n = tg_min_size(16, cols - c);
        tg_v s = tg_vload(partial);
        for (size_t u = 1; u < n_chunks; u++) s = tg_vadd(s, tg_vload(partial + u * ld));
        if (a->acc & 1) s = tg_vadd(tg_vload_n(db + c, n), s);
        tg_vstore_n(db + c, s, n);
    }
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunks, sum_chunks }, { one, sum_partials } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(bias_grad, variants);
