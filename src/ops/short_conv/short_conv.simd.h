/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv.simd.h - sixteen columns of some rows at a time.
 */
#include "ir/op.h"
#include "ops/short_conv/conv_taps.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[1], C, a->in_type[1].dim[1], c);
        for (size_t r = begin * unit_rows(a); r < stop; r++) {
            const float *z = (const float *)a->in[0] + r * 3 * C;
            tg_v sum = tg_vzero();
            for (size_t back = tg_min_size(k.L, r % T + 1); back-- > 0;)
                sum = conv_add(&k, back, conv_u(&k, z - back * 3 * C), sum);
            conv_end(&k, z + C, sum, (float *)a->out[0] + r * C);
        }
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv, variants);
