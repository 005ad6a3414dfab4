/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding_packed.simd.h - the reference's work, shared among the workers by rows of y.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), 8); }

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_type *t = &a->in_type[1];
    const size_t vocab = t->dim[0], cols = t->dim[1];
    const size_t stop = tg_min_size(end * 8, tg_type_elems(&a->in_type[0]));
    const tg_v scale = tg_vset(a->attr.f[0]);
    for (size_t r = begin * 8; r < stop; r++) {
        float *y = (float *)a->out[0] + r * cols;
        const size_t id = tg_clamp_id(((const int32_t *)a->in[0])[r], vocab);
        tg_matrix_to_f32_n(t->dtype, t->layout, cols, a->in[1], id, 0, cols, y);
        for (size_t c = 0; c < cols; c += 16) {
            const size_t n = tg_min_size(16, cols - c);
            tg_vstore_n(y + c, tg_vmul(tg_vload_n(y + c, n), scale), n);
        }
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(embedding_packed, variants);
