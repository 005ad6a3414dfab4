/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_norm.simd.h - a unit for some rows; a row, or a group of its columns, is read twice while it
 * is near.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "ops/rms_norm/rms_groups.h"
#include "ops/rms_norm/rms_row.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

/* Columns [i, i + n) of y, which may be x. */
static inline void write(float *y, const float *x, const float *w, const float *residual,
                         tg_v scale, size_t i, size_t n) {
    tg_v v = tg_vmul(tg_vmul(tg_vload_n(x + i, n), scale), tg_vload_n(w + i, n));
    if (residual) v = tg_vadd(v, tg_vload_n(residual + i, n));
    tg_vstore_n(y + i, v, n);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t n = rms_cols(a), groups = rms_groups(&a->attr);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    for (size_t r = begin * unit_rows(a) * groups; r < stop * groups; r++) {
        const float *x = (const float *)a->in[0] + r * n;
        const float *residual = a->in[2] ? (const float *)a->in[2] + r * n : NULL;
        const tg_v scale = tg_vset(rms_scale(x, n, a->attr.f[0]));
        for (size_t i = 0; i < n; i += 16)
            write((float *)a->out[0] + r * n, x, (const float *)a->in[1] + r % groups * n, residual,
                  scale, i, tg_min_size(16, n - i));
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(rms_norm, variants);
