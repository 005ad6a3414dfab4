/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position_add.simd.h - y = x + p, a unit for some rows.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}

static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

/* Row by row: x runs through all rows, while p begins anew with every sequence. Where 16 divides C
 * the tail has n - i = 0 lanes, and touches nothing. */
static void add_row(float *y, const float *x, const float *p, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) tg_vstore(y + i, tg_vadd(tg_vload(x + i), tg_vload(p + i)));
    tg_vstore_n(y + i, tg_vadd(tg_vload_n(x + i, n - i), tg_vload_n(p + i, n - i)), n - i);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_type *type = &a->in_type[0];
    const size_t cols = tg_type_cols(type), tokens = type->dim[type->n_dims == 3];
    const int32_t *at = a->in[2];
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(type));
    for (size_t r = begin * unit_rows(a); r < stop; r++)
        add_row((float *)a->out[0] + r * cols, (const float *)a->in[0] + r * cols,
                (const float *)a->in[1] + (at ? (size_t)at[2 * r + 1] : r % tokens) * cols, cols);
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(position_add, variants);
