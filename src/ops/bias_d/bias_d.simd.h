/*
 * bias_d.simd.h - column sums in two phases: partial sums of fixed chunks of rows, then the chunks
 * in rising order.
 *
 *   scratch   [chunks][C rounded up to 16]
 */
#include "simd/vec.h"

#include "ir/op.h"
#include "ops/kernel.h"

/* Part of the result: sums end at chunks, so another number gives other bits. */
enum { CHUNK_ROWS = 128 };

static size_t padded(size_t C) { return (C + 15) / 16 * 16; }

static size_t chunks(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), CHUNK_ROWS);
}

/* Four strips of 16 columns at a time, so that a row is read in pieces of four cache lines. */
static void sum_rows(const float *dy, size_t rows, size_t C, size_t col, float *out) {
    tg_v s[4] = { tg_vzero(), tg_vzero(), tg_vzero(), tg_vzero() };
    const size_t n = tg_min_size(C - col, 64);
    for (size_t r = 0; r < rows; r++) {
        const float *x = dy + r * C + col;
        if (n == 64) {
            for (int j = 0; j < 4; j++) s[j] = tg_vadd(s[j], tg_vload(x + 16 * j));
        } else {
            for (size_t j = 0; j * 16 < n; j++)
                s[j] = tg_vadd(s[j], tg_vload_n(x + 16 * j, tg_min_size(n - 16 * j, 16)));
        }
    }
    for (size_t j = 0; j * 16 < n; j++) tg_vstore(out + col + 16 * j, s[j]);
}

static void run_chunks(const tg_args *a, size_t begin, size_t end) {
    const size_t rows = tg_type_rows(&a->in_type[0]), C = tg_type_cols(&a->in_type[0]);
    for (size_t u = begin; u < end; u++) {
        const size_t first = u * CHUNK_ROWS, n = tg_min_size(rows - first, CHUNK_ROWS);
        float *out = (float *)a->scratch + u * padded(C);
        for (size_t col = 0; col < C; col += 64)
            sum_rows((const float *)a->in[0] + first * C, n, C, col, out);
    }
}

static size_t one(const tg_args *a) {
    (void)a;
    return 1;
}

/* One unit for all columns: the partials are 1/128 of what phase 0 has read, so a second hand-over
 * to the workers would cost more than it saves. What is accumulated into is added last, as
 * everywhere, so that the fused sum has the bits of a separate addition. */
static void run_sum(const tg_args *a, size_t begin, size_t end) {
    const size_t C = tg_type_cols(&a->in_type[0]), n_chunks = chunks(a);
    float *db = a->out[0];
    (void)begin;
    (void)end;
    for (size_t col = 0; col < C; col += 16) {
        const size_t n = tg_min_size(C - col, 16);
        tg_v s = tg_vzero();
        for (size_t u = 0; u < n_chunks; u++)
            s = tg_vadd(s, tg_vload((const float *)a->scratch + u * padded(C) + col));
        if (a->acc & 1) s = tg_vadd(tg_vload_n(db + col, n), s);
        tg_vstore_n(db + col, s, n);
    }
}

static size_t scratch_bytes(const tg_args *a) {
    return chunks(a) * padded(tg_type_cols(&a->in_type[0])) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunks, run_chunks }, { one, run_sum } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(bias_d, variants);
