/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_norm.simd.h - a unit for some rows; a row is read three times while it is near: for its
 * mean, for its variance, for y. Sums run in 16 lanes, lane i over the columns i, i + 16, ...
 *
 * Each of the three waits for the one before, but not for other rows: taken for a block of rows at
 * a time, they keep the processor busy with several rows at once. Memory would stand idle until the
 * next block begins, so while one is written the lines of the next are fetched.
 */
#include "base/math.h"
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

/* Rows in flight. The result does not depend on it. */
#define BLOCK 8u

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}

static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

static float row_mean(const float *x, size_t n) {
    tg_v sum = tg_vzero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) sum = tg_vadd(sum, tg_vload(x + i));
    sum = tg_vadd(sum, tg_vload_n(x + i, n - i));
    return tg_vsum(sum) / (float)n;
}

/* The lanes beyond n are cleared after the mean was taken off: before, they would count as mean^2.
 * The root is taken in double of one number a row, which costs nothing; 1 / sqrt in float would
 * round twice. */
static float row_rstd(const float *x, size_t n, float mean, float eps) {
    const tg_v m = tg_vset(mean);
    tg_v sum = tg_vzero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const tg_v d = tg_vsub(tg_vload(x + i), m);
        sum = tg_vfma(d, d, sum);
    }
    const tg_v d = tg_vselect(tg_vfirst(n - i), tg_vsub(tg_vload_n(x + i, n - i), m), tg_vzero());
    sum = tg_vfma(d, d, sum);
    return (float)(1 / tg_sqrt((double)tg_vsum(sum) / (double)n + (double)eps));
}

/* y may be x. The bias enters through the fused multiply-add, so y is rounded once. `ahead` floats
 * on is what will be wanted next, of x and of y. */
static void write_row(float *y, const float *x, const float *w, const float *b, size_t n,
                      float mean, float rstd, size_t ahead) {
    const tg_v m = tg_vset(mean), s = tg_vset(rstd);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        TG_PREFETCH(x + ahead + i);
        TG_PREFETCH(y + ahead + i);
        const tg_v h = tg_vmul(tg_vsub(tg_vload(x + i), m), s);
        tg_vstore(y + i, tg_vfma(h, tg_vload(w + i), tg_vload(b + i)));
    }
    if (i == n) return;
    const tg_v h = tg_vmul(tg_vsub(tg_vload_n(x + i, n - i), m), s);
    tg_vstore_n(y + i, tg_vfma(h, tg_vload_n(w + i, n - i), tg_vload_n(b + i, n - i)), n - i);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t n = tg_type_cols(&a->in_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    const float *x = a->in[0], *w = a->in[1], *b = a->in[2];
    float *y = a->out[0], *mean = a->out[1], *rstd = a->out[2];
    for (size_t first = begin * unit_rows(a); first < stop; first += BLOCK) {
        const size_t last = tg_min_size(first + BLOCK, stop);
        const size_t ahead = last + BLOCK <= stop ? BLOCK * n : 0;
        for (size_t r = first; r < last; r++) mean[r] = row_mean(x + r * n, n);
        for (size_t r = first; r < last; r++)
            rstd[r] = row_rstd(x + r * n, n, mean[r], a->attr.f[0]);
        for (size_t r = first; r < last; r++)
            write_row(y + r * n, x + r * n, w, b, n, mean[r], rstd[r], ahead);
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(layer_norm, variants);
