/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_append.simd.h - copies keys and values of new tokens into the KV cache, or packs them.
 *
 * A unit is some rows with all their heads: a row is read from one place, and a single row, which
 * decoding has, is one unit.
 */
#include "ir/op.h"
#include "ops/attention/cache/kv_row.h"
#include "ops/attention/cache/pages.h"
#include "ops/attention/heads.h"
#include "ops/kernel.h"
#include "simd/vec.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(2 * (size_t)a->attr.i[1] * (size_t)a->attr.i[2], TG_UNIT_ELEMS);
}

static size_t units(const tg_args *a) { return tg_units(a->in_type[1].dim[0], unit_rows(a)); }

static __attribute__((noinline)) void pack(tg_dtype dtype, uint8_t *row, const float *x, size_t d) {
    tg_kv_write(dtype, row, x, d);
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const int32_t *at = a->in[2];
    const tg_dtype dtype = a->in_type[0].dtype;
    const size_t bytes = tg_kv_row_bytes(dtype, s.size), head = a->in_type[0].dim[2] * bytes;
    const size_t last = tg_min_size(end * unit_rows(a), a->in_type[1].dim[0]);
    for (size_t t = begin * unit_rows(a); t < last; t++) {
        const float *row = (const float *)a->in[1] + t * s.row;
        const tg_paged p = tg_paged_of(&a->in_type[0], at, a->in[3], &a->in_type[3], t);
        uint8_t *to = (uint8_t *)a->out[0] + tg_paged_row(&p, 0, (size_t)at[2 * t + 1]) * bytes;
        for (size_t i = 0; i < 2 * s.n_kv; i++, to += head) {
            const float *from = row + tg_heads_k(&s, 0) + i * s.size;
            if (dtype == TG_F32)
                memcpy(to, from, bytes);
            else
                pack(dtype, to, from, s.size);
        }
    }
}

static const tg_variant variants[] = { { .name = "copy", .phase = { { units, run } } } };
TG_KERNELS(kv_append, variants);
