/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate.simd.h - state = x or state + x, by runs of elements. Bound by memory.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]), TG_UNIT_ELEMS);
}

/* Whether to add is known at run time only, so one plan serves the first micro-step and the others.
 * memmove, since the planner may have put x where the state is. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const float *state = a->in[0], *x = a->in[1];
    float *out = a->out[0];
    const size_t stop = tg_min_size(end * TG_UNIT_ELEMS, tg_type_elems(&a->in_type[0]));
    size_t i = begin * TG_UNIT_ELEMS;
    if (!a->rt->accumulate) {
        memmove(out + i, x + i, (stop - i) * sizeof *x);
        return;
    }
    for (; i + 16 <= stop; i += 16)
        tg_vstore(out + i, tg_vadd(tg_vload(state + i), tg_vload(x + i)));
    const size_t n = stop - i;
    tg_vstore_n(out + i, tg_vadd(tg_vload_n(state + i, n), tg_vload_n(x + i, n)), n);
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(accumulate, variants);
