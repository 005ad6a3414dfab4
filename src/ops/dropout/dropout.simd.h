/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.simd.h - y = x * mask (+ around). A unit is a run of elements of one sequence.
 */
#include "ops/dropout/mask_lanes.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define UNIT 4096u
enum { BLOCKS = 64 }; /* elements of sixteen blocks */

static size_t elems(const tg_args *a) {
    return tg_type_elems(&a->in_type[0]) / a->in_type[0].dim[0];
}
static size_t units(const tg_args *a) { return a->in_type[0].dim[0] * tg_units(elems(a), UNIT); }

/* n <= 16 elements of factors f. */
static inline void some(float *y, const float *x, const float *around, const float *f, size_t n) {
    const tg_v kept = tg_vmul(tg_vload_n(x, n), tg_vload(f));
    tg_vstore_n(y, around ? tg_vadd(kept, tg_vload_n(around, n)) : kept, n);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t n = elems(a), each = tg_units(n, UNIT);
    for (size_t u = begin; u < end; u++) {
        const size_t sequence = u / each, stop = tg_min_size((u % each + 1) * UNIT, n);
        const size_t at = sequence * n;
        const tg_mask m = tg_mask_of(a, a->attr.f[0], sequence, (uint32_t)a->attr.i[0]);
        const float *x = (const float *)a->in[0] + at;
        const float *around = a->in[1] ? (const float *)a->in[1] + at : NULL;
        float *y = (float *)a->out[0] + at;
        for (size_t i = u % each * UNIT; i < stop; i += BLOCKS) {
            float word[4][16], f[BLOCKS];
            mask_lanes(&m, (uint32_t)(i / 4), 1, word);
            for (size_t e = 0; e < BLOCKS; e++) f[e] = word[e % 4][e / 4];
            for (size_t e = 0; e < BLOCKS && i + e < stop; e += 16)
                some(y + i + e, x + i + e, around ? around + i + e : NULL, f + e,
                     tg_min_size(16, stop - i - e));
        }
    }
}

static const tg_variant variants[] = { { .name = "elements", .phase = { { units, run } } } };
TG_KERNELS(dropout, variants);
