/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale.simd.h - y = scale * x, by runs of elements. Bound by memory.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]), TG_UNIT_ELEMS);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0];
    float *y = a->out[0];
    const tg_v scale = tg_vset(a->attr.f[0]);
    const size_t stop = tg_min_size(end * TG_UNIT_ELEMS, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * TG_UNIT_ELEMS, n; i < stop; i += n) {
        n = tg_min_size(16, stop - i);
        tg_vstore_n(y + i, tg_vmul(scale, tg_vload_n(x + i, n)), n);
    }
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(scale, variants);
