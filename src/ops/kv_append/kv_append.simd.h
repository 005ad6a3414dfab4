/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_append.simd.h - copies keys and values of new tokens into the KV cache, or packs them.
 *
 * A unit is some rows with all their heads: a row is read from one place, and a single row, which
 * decoding has, is one unit.
 */
#include "ir/op.h"
#include "ops/attention/heads.h"
#include "ops/attention/kv_row.h"
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
    const size_t t_max = a->in_type[0].dim[2], pos = (size_t)a->rt->pos;
    const tg_dtype dtype = a->in_type[0].dtype;
    const size_t bytes = tg_kv_row_bytes(dtype, s.size), values = s.n_kv * t_max * bytes;
    const size_t last = tg_min_size(end * unit_rows(a), a->in_type[1].dim[0]);
    for (size_t t = begin * unit_rows(a); t < last; t++) {
        const float *row = (const float *)a->in[1] + t * s.row;
        const size_t at = (pos + t) % t_max;
        for (size_t kv = 0; kv < s.n_kv; kv++) {
            uint8_t *key = (uint8_t *)a->out[0] + (kv * t_max + at) * bytes;
            if (dtype != TG_F32) {
                pack(dtype, key, row + tg_heads_k(&s, kv), s.size);
                pack(dtype, key + values, row + tg_heads_v(&s, kv), s.size);
                continue;
            }
            memcpy(key, row + tg_heads_k(&s, kv), bytes);
            memcpy(key + values, row + tg_heads_v(&s, kv), bytes);
        }
    }
}

static const tg_variant variants[] = { { .name = "copy", .phase = { { units, run } } } };
TG_KERNELS(kv_append, variants);
