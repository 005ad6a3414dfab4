/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding.simd.h - copies rows of the table, or takes multiples of them, a unit for some rows of
 * y.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_elems(&a->in_type[0]),
                    tg_unit_rows(a->in_type[1].dim[1], TG_UNIT_ELEMS));
}

/* memcpy moves bits, so a NaN in the table keeps its payload on every ISA. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const int32_t *ids = a->in[0];
    const float *table = a->in[1];
    float *y = a->out[0];
    const size_t vocab = a->in_type[1].dim[0], cols = a->in_type[1].dim[1];
    const size_t step = tg_unit_rows(cols, TG_UNIT_ELEMS);
    const size_t stop = tg_min_size(end * step, tg_type_elems(&a->in_type[0]));
    const bool scaled = a->attr.f[0] != 0 && a->attr.f[0] != 1;
    const tg_v scale = tg_vset(a->attr.f[0]);
    for (size_t r = begin * step; r < stop; r++) {
        const float *from = table + tg_clamp_id(ids[r], vocab) * cols;
        if (!scaled) memcpy(y + r * cols, from, cols * sizeof *y);
        for (size_t c = 0; scaled && c < cols; c += 16) {
            const size_t n = tg_min_size(16, cols - c);
            tg_vstore_n(y + r * cols + c, tg_vmul(tg_vload_n(from + c, n), scale), n);
        }
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(embedding, variants);
