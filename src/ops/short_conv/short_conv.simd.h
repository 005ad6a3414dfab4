/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv.simd.h - sixteen columns of some rows at a time; what a unit needs of the rows before
 * it is computed again.
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
    const size_t first = begin * unit_rows(a);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[1], C, a->in_type[1].dim[1], c);
        for (size_t r = first; r < stop; r++) {
            const float *z = (const float *)a->in[0] + r * 3 * C;
            const size_t t = r % T;
            conv_shift(&k);
            for (size_t back = 1; (r == first || t == 0) && back < k.L; back++)
                k.u[k.L - 1 - back] = back <= t ? conv_in(&k, z - back * 3 * C) : tg_vzero();
            conv_row(&k, z, (float *)a->out[0] + r * C);
        }
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv, variants);
