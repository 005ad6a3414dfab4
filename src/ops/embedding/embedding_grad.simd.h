/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding_grad.simd.h - a unit owns slabs of 16 columns for all of the vocabulary, so that every
 * element is summed by one worker, over rising n, however many workers there are.
 *
 *            columns of a slab                      local [V,16]
 *     dy  [ . . . |======| . . . ]  row n  --add--> [ row ids[n] ]   --write or add--> dtable
 *
 * The sums lie densely in the worker's own memory: in the table their rows are C floats apart, and
 * for a C that is a power of two they would compete for a few sets of the first cache.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define SLAB 16u

static size_t slabs_per_unit(const tg_args *a) {
    const size_t elems = (tg_type_elems(&a->in_type[0]) + a->out_type[0].dim[0]) * SLAB;
    return tg_unit_rows(elems, TG_UNIT_ELEMS);
}

static size_t units(const tg_args *a) {
    return tg_units(a->out_type[0].dim[1], slabs_per_unit(a) * SLAB);
}

static size_t local_bytes(const tg_args *a) { return a->out_type[0].dim[0] * SLAB * sizeof(float); }

static void run_slab(const tg_args *a, size_t column) {
    const int32_t *ids = a->in[0];
    const size_t rows = tg_type_elems(&a->in_type[0]);
    const size_t vocab = a->out_type[0].dim[0], cols = a->out_type[0].dim[1];
    const size_t n = tg_min_size(SLAB, cols - column);
    const float *dy = (const float *)a->in[1] + column;
    const tg_v scale = tg_vset(a->attr.f[0] == 0 ? 1 : a->attr.f[0]);
    float *sum = a->local, *out = (float *)a->out[0] + column;

    memset(sum, 0, local_bytes(a));
    for (size_t r = 0; r < rows; r++) {
        float *to = sum + tg_clamp_id(ids[r], vocab) * SLAB;
        const float *from = dy + r * cols;
        tg_vstore(to, tg_vadd(tg_vload(to), n == SLAB ? tg_vload(from) : tg_vload_n(from, n)));
    }
    for (size_t v = 0; v < vocab; v++) {
        float *to = out + v * cols;
        const tg_v x = tg_vmul(tg_vload(sum + v * SLAB), scale);
        tg_vstore_n(to, a->acc & 1 ? tg_vadd(tg_vload_n(to, n), x) : x, n);
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t step = slabs_per_unit(a) * SLAB;
    const size_t stop = tg_min_size(end * step, a->out_type[0].dim[1]);
    for (size_t column = begin * step; column < stop; column += SLAB) run_slab(a, column);
}

static const tg_variant variants[] = {
    { .name = "slabs", .phase = { { units, run } }, .local_bytes = local_bytes },
};
TG_KERNELS(embedding_grad, variants);
