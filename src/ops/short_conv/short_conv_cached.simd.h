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
    if (back <= r && at[2 * (r - back)] == at[2 * r])
        return conv_u(k, (const float *)a->in[0] + (r - back) * 3 * k->C);
    const size_t row = tg_paged_row(p, 0, (size_t)at[2 * r + 1] - back);
    return tg_vload_n((const float *)a->out[1] + row * k->C + k->c, k->n);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t C = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), a->in_type[0].dim[0]);
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[4], C, a->in_type[4].dim[1], c);
        for (size_t r = begin * unit_rows(a); r < stop; r++) {
            const tg_paged p = tg_paged_of(&a->in_type[1], a->in[2], a->in[3], &a->in_type[3], r);
            const size_t pos = (size_t)((const int32_t *)a->in[2])[2 * r + 1];
            tg_v u = tg_vzero(), sum = u;
            for (size_t back = tg_min_size(k.L, pos + 1); back-- > 0;) {
                u = before(a, &k, &p, r, back);
                sum = conv_add(&k, back, u, sum);
            }
            conv_end(&k, (const float *)a->in[0] + (3 * r + 1) * C, sum,
                     (float *)a->out[0] + r * C);
            tg_vstore_n((float *)a->out[1] + tg_paged_row(&p, 0, pos) * C + c, u, k.n);
        }
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv_cached, variants);
