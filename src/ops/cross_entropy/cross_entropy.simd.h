/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy.simd.h - rows by rows, then one sum over the rows.
 *
 *   phase 0   a unit for some rows: maximum, sum of exponentials, lse; the row's loss goes to
 *             scratch [rows] doubles
 *   phase 1   one unit: losses of the rows that count, rows rising
 *
 * A NaN among the logits is passed over by the maximum and comes back through its exponential: the
 * loss is NaN then, as it must be.
 */
#include "base/math.h"
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"
#include "simd/vmath.h"

#define UNIT  4096u
#define BLOCK 8u

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), UNIT);
}

static size_t row_units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

static size_t scratch_bytes(const tg_args *a) {
    return tg_type_rows(&a->in_type[0]) * sizeof(double);
}

/* -FLT_MAX and not -inf: a row of -inf would else give inf - inf. Lanes beyond n repeat the
 * maximum. */
static float row_max(const float *x, size_t n) {
    tg_v max = tg_vset(-FLT_MAX);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) max = tg_vmax(tg_vload(x + i), max);
    const tg_v rest = tg_vselect(tg_vfirst(n - i), tg_vload_n(x + i, n - i), max);
    return tg_vmaxlane(tg_vmax(rest, max));
}

static float row_sum_exp(const float *x, size_t n, float max) {
    const tg_v m = tg_vset(max);
    tg_v sum = tg_vzero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) sum = tg_vadd(sum, tg_vexp(tg_vsub(tg_vload(x + i), m)));
    if (i < n) {
        const tg_v e = tg_vexp(tg_vsub(tg_vload_n(x + i, n - i), m));
        sum = tg_vadd(sum, tg_vselect(tg_vfirst(n - i), e, tg_vzero()));
    }
    return tg_vsum(sum);
}

/* The three passes wait for each other within a row, but not across rows: hence a block at a time.
 */
static void run_block(const tg_args *a, size_t first, size_t last) {
    const size_t n = tg_type_cols(&a->in_type[0]);
    const float *x = a->in[0];
    const int32_t *targets = a->in[1];
    double *loss = a->scratch;
    float *lse = a->out[1], max[BLOCK], sum[BLOCK];
    for (size_t r = first; r < last; r++) max[r - first] = row_max(x + r * n, n);
    for (size_t r = first; r < last; r++)
        sum[r - first] = row_sum_exp(x + r * n, n, max[r - first]);
    for (size_t r = first; r < last; r++) {
        const double row = (double)max[r - first] + tg_log((double)sum[r - first]);
        lse[r] = (float)row;
        loss[r] = targets[r] < 0 ? 0 : row - (double)x[r * n + tg_clamp_id(targets[r], n)];
    }
}

static void run_rows(const tg_args *a, size_t begin, size_t end) {
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    for (size_t r = begin * unit_rows(a); r < stop; r += BLOCK)
        run_block(a, r, tg_min_size(r + BLOCK, stop));
}

static size_t one_unit(const tg_args *a) {
    (void)a;
    return 1;
}

/* Losses are added by one worker in double, so the mean does not depend on how rows were shared. */
static void run_sum(const tg_args *a, size_t begin, size_t end) {
    (void)begin;
    (void)end;
    const size_t rows = tg_type_rows(&a->in_type[0]);
    const double *loss = a->scratch;
    const int32_t *targets = a->in[1];
    float *out = a->out[0];
    double sum = 0;
    size_t counted = 0;
    for (size_t r = 0; r < rows; r++) {
        sum += loss[r];
        counted += targets[r] >= 0;
    }
    const float mean = counted ? (float)(sum / (double)counted * (double)a->attr.f[0]) : 0;
    *out = a->acc & 1 ? *out + mean : mean;
}

static const tg_variant variants[] = {
    { .name = "rows",
      .phase = { { row_units, run_rows }, { one_unit, run_sum } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(cross_entropy, variants);
