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

/* memcpy moves bits, so a NaN in a table of floats keeps its payload on every ISA. Out of another
 * layout rows come the slow way, which is fast enough for a few of them a call. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const int32_t *ids = a->in[0];
    const tg_type *t = &a->in_type[1];
    const bool floats = t->dtype == TG_F32 && tg_type_is_plain(t);
    const size_t vocab = t->dim[0], cols = t->dim[1];
    const size_t step = tg_unit_rows(cols, TG_UNIT_ELEMS);
    const size_t stop = tg_min_size(end * step, tg_type_elems(&a->in_type[0]));
    const bool scaled = a->attr.f[0] != 0 && a->attr.f[0] != 1;
    const tg_v scale = tg_vset(a->attr.f[0]);
    for (size_t r = begin * step; r < stop; r++) {
        const size_t id = tg_clamp_id(ids[r], vocab);
        float *y = (float *)a->out[0] + r * cols;
        const float *from = floats ? (const float *)a->in[1] + id * cols : y;
        if (!floats) tg_matrix_to_f32_n(t->dtype, t->layout, cols, a->in[1], id, 0, cols, y);
        if (floats && !scaled) memcpy(y, from, cols * sizeof *y);
        for (size_t c = 0; scaled && c < cols; c += 16) {
            const size_t n = tg_min_size(16, cols - c);
            tg_vstore_n(y + c, tg_vmul(tg_vload_n(from + c, n), scale), n);
        }
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(embedding, variants);
