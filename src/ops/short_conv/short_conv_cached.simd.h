/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv_cached.simd.h - as short_conv.simd.h; what lies before a call's rows is in the cache.
 *
 * Rows of the call are never read from the cache, to which another unit may be writing them.
 */
#include "ir/op.h"
#include "ops/attention/pages.h"
#include "ops/short_conv/conv_taps.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) { return tg_units(a->in_type[0].dim[0], unit_rows(a)); }

/* u of the position `back` before that of row r. */
static tg_v before(const tg_args *a, const conv *k, const tg_paged *p, size_t r, size_t back) {
    const int32_t *at = a->in[2];
    const size_t pos = (size_t)at[2 * r + 1];
    if (back > pos) return tg_vzero();
    if (back <= r && at[2 * (r - back)] == at[2 * r])
        return conv_in(k, (const float *)a->in[0] + (r - back) * 3 * k->C);
    return tg_vload_n((const float *)a->out[1] + tg_paged_row(p, 0, pos - back) * k->C + k->c,
                      k->n);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t C = tg_type_cols(&a->out_type[0]), first = begin * unit_rows(a);
    const size_t stop = tg_min_size(end * unit_rows(a), a->in_type[0].dim[0]);
    const int32_t *at = a->in[2];
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[4], C, a->in_type[4].dim[1], c);
        for (size_t r = first; r < stop; r++) {
            const tg_paged p = tg_paged_of(&a->in_type[1], at, a->in[3], &a->in_type[3], r);
            conv_shift(&k);
            if (r == first || at[2 * r - 2] != at[2 * r])
                for (size_t back = 1; back < k.L; back++)
                    k.u[k.L - 1 - back] = before(a, &k, &p, r, back);
            conv_row(&k, (const float *)a->in[0] + r * 3 * C, (float *)a->out[0] + r * C);
            float *kept = (float *)a->out[1] + tg_paged_row(&p, 0, (size_t)at[2 * r + 1]) * C;
            tg_vstore_n(kept + c, k.u[k.L - 1], k.n);
        }
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv_cached, variants);
