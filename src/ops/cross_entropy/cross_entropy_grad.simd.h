/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cross_entropy_grad.simd.h - probabilities times one factor, which is then taken off the target's
 * column.
 *
 *   phase 0   one unit: how many rows have a target, to scratch
 *   phase 1   a unit for some rows
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"
#include "simd/vmath.h"

#define UNIT 4096u

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), UNIT);
}

static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

/* exp(x - lse) needs no maximum: lse is at least the largest logit, so nothing overflows. The
 * factor is formed in double, with the mean's 1 / rows, and rounded once; subtracting it after the
 * product, in one column, is what the reference's (p - 1) * factor is compared to. Output in place
 * of the logits is fine, as the target's column is touched last. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t n = tg_type_cols(&a->in_type[0]), rows = tg_type_rows(&a->in_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), rows);
    const int32_t *targets = a->in[1];
    const float *lse = a->in[2];
    const size_t counted = *(const size_t *)a->scratch;
    const float factor =
        (float)((double)((const float *)a->in[3])[0] * (double)a->attr.f[0] / (double)counted);
    const tg_v f = tg_vset(factor);
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const float *x = (const float *)a->in[0] + r * n;
        float *out = (float *)a->out[0] + r * n;
        if (targets[r] < 0) {
            memset(out, 0, n * sizeof *out);
            continue;
        }
        const tg_v m = tg_vset(lse[r]);
        size_t i = 0;
        for (; i + 16 <= n; i += 16)
            tg_vstore(out + i, tg_vmul(tg_vexp(tg_vsub(tg_vload(x + i), m)), f));
        if (i < n)
            tg_vstore_n(out + i, tg_vmul(tg_vexp(tg_vsub(tg_vload_n(x + i, n - i), m)), f), n - i);
        out[tg_clamp_id(targets[r], n)] -= factor;
    }
}

static size_t one_unit(const tg_args *a) {
    (void)a;
    return 1;
}

static void run_count(const tg_args *a, size_t begin, size_t end) {
    (void)begin;
    (void)end;
    const size_t rows = tg_type_rows(&a->in_type[0]);
    const int32_t *targets = a->in[1];
    size_t counted = 0;
    for (size_t r = 0; r < rows; r++) counted += targets[r] >= 0;
    *(size_t *)a->scratch = counted;
}

static size_t scratch_bytes(const tg_args *a) {
    (void)a;
    return sizeof(size_t);
}

static const tg_variant variants[] = {
    { .name = "rows",
      .phase = { { one_unit, run_count }, { units, run } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(cross_entropy_grad, variants);
