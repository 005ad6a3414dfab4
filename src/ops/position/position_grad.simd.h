/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position_grad.simd.h - a unit owns some rows of dp; every element is one chain over rising b.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t tokens_of(const tg_args *a) { return a->in_type[0].dim[a->in_type[0].n_dims == 3]; }

static size_t unit_rows(const tg_args *a) {
    const size_t batch = tg_type_rows(&a->in_type[0]) / tokens_of(a);
    return tg_unit_rows(batch * tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}

static size_t units(const tg_args *a) { return tg_units(a->out_type[0].dim[0], unit_rows(a)); }

/* batch rows, step elements apart, are added to one. The sum is kept in a register over all of
 * them, so dp is touched once, whatever the batch. */
static void sum_row(float *out, const float *dy, size_t step, size_t batch, size_t cols, bool add) {
    for (size_t c = 0; c < cols; c += 16) {
        const size_t n = tg_min_size(16, cols - c);
        tg_v sum = tg_vzero();
        for (size_t b = 0; b < batch; b++) {
            const float *from = dy + b * step + c;
            sum = tg_vadd(sum, n == 16 ? tg_vload(from) : tg_vload_n(from, n));
        }
        if (add) sum = tg_vadd(tg_vload_n(out + c, n), sum);
        tg_vstore_n(out + c, sum, n);
    }
}

/* Rows of dp from T on have no dy: a batch of 0 gives them the empty sum, in the same code. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t cols = tg_type_cols(&a->in_type[0]), tokens = tokens_of(a);
    const size_t batch = tg_type_rows(&a->in_type[0]) / tokens;
    const size_t stop = tg_min_size(end * unit_rows(a), a->out_type[0].dim[0]);
    for (size_t t = begin * unit_rows(a); t < stop; t++)
        sum_row((float *)a->out[0] + t * cols, (const float *)a->in[0] + t * cols, tokens * cols,
                t < tokens ? batch : 0, cols, a->acc & 1);
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(position_grad, variants);
