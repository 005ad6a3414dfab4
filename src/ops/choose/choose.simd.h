/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.simd.h - copies pieces of rows, a unit for some rows of y.
 */
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->out_type[0]),
                    tg_unit_rows(tg_type_cols(&a->out_type[0]), TG_UNIT_ELEMS));
}

/* Pieces are copied as bits. y may lie where x does: a piece that is chosen from there stays. */
static void run(const tg_args *a, size_t begin, size_t end) {
    const int32_t *mode = a->in[0];
    const float *const sources[] = { a->in[1], a->in[2], a->in[3] };
    const size_t cols = tg_type_cols(&a->out_type[0]), groups = a->in_type[0].dim[1];
    const size_t piece = cols / groups, step = tg_unit_rows(cols, TG_UNIT_ELEMS);
    const size_t stop = tg_min_size(end * step, tg_type_rows(&a->out_type[0])) * groups;
    for (size_t i = begin * step * groups; i < stop; i++) {
        const float *from = mode[i] >= 0 && mode[i] < 3 ? sources[mode[i]] : NULL;
        float *y = (float *)a->out[0] + i * piece;
        if (!from)
            memset(y, 0, piece * sizeof *y);
        else if (from + i * piece != y)
            memcpy(y, from + i * piece, piece * sizeof *y);
    }
}

static const tg_variant variants[] = { { .name = "pieces", .phase = { { units, run } } } };
TG_KERNELS(choose, variants);
