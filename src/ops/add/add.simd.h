/* SPDX-License-Identifier: Apache-2.0 */
/*
 * add.simd.h - y = a + b, by runs of elements. Bound by memory.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]), TG_UNIT_ELEMS);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0], *z = a->in[1];
    float *y = a->out[0];
    const size_t stop = tg_min_size(end * TG_UNIT_ELEMS, tg_type_elems(&a->in_type[0]));
    size_t i = begin * TG_UNIT_ELEMS;
    for (; i + 16 <= stop; i += 16) tg_vstore(y + i, tg_vadd(tg_vload(x + i), tg_vload(z + i)));
    const size_t n = stop - i;
    tg_vstore_n(y + i, tg_vadd(tg_vload_n(x + i, n), tg_vload_n(z + i, n)), n);
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(add, variants);
