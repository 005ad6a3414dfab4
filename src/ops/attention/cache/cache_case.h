/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_case.h - packed KV caches of test cases.
 */
#ifndef TG_OPS_ATTENTION_CACHE_CASE_H
#define TG_OPS_ATTENTION_CACHE_CASE_H

#include "base/rng.h"
#include "ir/op.h"
#include "ops/attention/cache/kv_row.h"

/* Rows of input k, a packed cache of heads of d <= 64 elements, get numbers of [-1, 1). */
static inline void tg_case_fill_cache(const tg_args *a, int k, size_t d) {
    const tg_type *t = &a->in_type[k];
    const size_t bytes = tg_kv_row_bytes(t->dtype, d), n = t->dim[0] * t->dim[1] * t->dim[2];
    uint8_t *rows = (uint8_t *)(uintptr_t)a->in[k];
    for (size_t r = 0; r < n; r++) {
        float x[64] = { 0 };
        for (size_t i = 0; i < d; i++) {
            uint32_t bits[4];
            tg_philox(7, r * d + i, TG_RNG_INIT, 1, bits);
            x[i] = (float)((int32_t)(bits[0] % 2000) - 1000) * 1e-3F;
        }
        tg_kv_write(t->dtype, rows + r * bytes, x, d);
    }
}

#endif
