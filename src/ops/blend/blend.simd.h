/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blend.simd.h - y = (p x + q z) / max(norm, floor), by runs of elements. Bound by memory, and as
 * fast as the compiler makes it: plain floats, since a module for the web has little room.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]), TG_UNIT_ELEMS);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const float *x = a->in[0], *z = a->in[1], *stats = a->in[2];
    float *y = a->out[0];
    const float p = a->attr.f[0], q = a->attr.f[1], least = a->attr.f[2];
    const float norm = !stats ? 1 : stats[0] > least ? stats[0] : least;
    const size_t stop = tg_min_size(end * TG_UNIT_ELEMS, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * TG_UNIT_ELEMS; i < stop; i++)
        y[i] = (z ? p * x[i] + q * z[i] : p * x[i]) / norm;
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(blend, variants);
