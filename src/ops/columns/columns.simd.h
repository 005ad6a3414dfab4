/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.simd.h - columns, by rows, and times, by runs of elements. Both are bound by memory, and
 * as fast as the compiler makes them.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t rows_of_unit(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->out_type[0]), TG_UNIT_ELEMS);
}
static size_t row_units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->out_type[0]), rows_of_unit(a));
}

static void put_row(const tg_args *a, const float *x, const float *base, float *y) {
    const size_t n = (size_t)a->attr.i[1], N = tg_type_cols(&a->out_type[0]);
    const float scale = a->attr.f[0] == 0 ? 1 : a->attr.f[0];
    if (!base)
        memset(y, 0, N * sizeof *y);
    else if (base != y)
        memcpy(y, base, N * sizeof *y);
    x += a->attr.i[0];
    y += a->attr.i[2];
    for (size_t i = 0; i < n; i++) y[i] += scale * x[i];
}

static void run_columns(const tg_args *a, size_t begin, size_t end) {
    const size_t C = tg_type_cols(&a->in_type[0]), N = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * rows_of_unit(a), tg_type_rows(&a->out_type[0]));
    for (size_t r = begin * rows_of_unit(a); r < stop; r++)
        put_row(a, (const float *)a->in[0] + r * C,
                a->in[1] ? (const float *)a->in[1] + r * N : NULL, (float *)a->out[0] + r * N);
}

static size_t elem_units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]), TG_UNIT_ELEMS);
}

static void run_times(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0], s = *(const float *)a->in[1];
    float *y = a->out[0];
    const size_t stop = tg_min_size(end * TG_UNIT_ELEMS, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * TG_UNIT_ELEMS; i < stop; i++) y[i] = s * x[i];
}

static const tg_variant columns[] = { { .name = "rows", .phase = { { row_units, run_columns } } } };
TG_KERNELS(columns, columns);
static const tg_variant times[] = { { .name = "elements",
                                      .phase = { { elem_units, run_times } } } };
TG_KERNELS(times, times);
