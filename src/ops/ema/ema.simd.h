/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ema.simd.h - runs of elements in plain floats, which the compiler makes as fast as memory is.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define UNIT 4096u

static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), UNIT); }

/* The average lies in place of its old version, so a refused step leaves it by doing nothing. */
static void run(const tg_args *a, size_t begin, size_t end) {
    if (((const float *)a->in[2])[2] == 0) return;
    const float *average = a->in[0], *w = a->in[1];
    float *out = a->out[0];
    const double least = 9 / (10 + (double)a->rt->step), rest = (double)a->attr.f[0];
    const float r = (float)(rest > least ? rest : least);
    const size_t stop = tg_min_size(end * UNIT, tg_type_elems(&a->in_type[0]));
    for (size_t i = begin * UNIT; i < stop; i++) out[i] = average[i] + r * (w[i] - average[i]);
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(ema, variants);
