/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_table.simd.h - the reference's arithmetic, shared among the workers by rows.
 */
#include "base/math.h"
#include "ir/op.h"
#include "ops/build.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) { return tg_units(a->out_type[0].dim[0], 4); }

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t half = a->in_type[1].dim[0];
    const size_t stop = tg_min_size(4 * end, a->out_type[0].dim[0]);
    const int32_t *at = a->attr.i[0] ? a->in[0] : NULL;
    const size_t step = a->attr.i[0] == TG_ROPE_AT ? 2 : 1;
    const float *freq = a->in[1];
    const double scale = a->attr.f[0] > 0 ? (double)a->attr.f[0] : 1;
    for (size_t t = 4 * begin; t < stop; t++) {
        float *y = (float *)a->out[0] + 2 * half * t;
        for (size_t i = 0; i < half; i++) {
            const float angle = (float)(at ? at[step * t + step - 1] : (int32_t)t) * freq[i];
            y[i] = (float)(tg_cos((double)angle) * scale);
            y[half + i] = (float)(tg_sin((double)angle) * scale);
        }
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(rope_table, variants);
