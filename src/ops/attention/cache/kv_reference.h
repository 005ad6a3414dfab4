/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_reference.h - a row of the KV cache written in plain C, for the references that keep one.
 */
#ifndef TG_OPS_ATTENTION_KV_REFERENCE_H
#define TG_OPS_ATTENTION_KV_REFERENCE_H

#include "base/libc.h"
#include "ir/op.h"
#include "ops/attention/cache/kv_row.h"

/* Elements of a head that a packed cache takes: the references have a row of them on the stack. */
enum { TG_KV_SIZE_MAX = 1024 };

/* in [size] becomes row number `row` of cache; see kv_row.h. What is packed goes through floats,
 * whatever TG_REAL is. */
static inline void tg_kv_keep(tg_dtype dtype, void *cache, size_t row, const TG_REAL *in,
                              size_t size) {
    if (dtype == TG_F32) {
        memcpy((TG_REAL *)cache + row * size, in, size * sizeof *in);
        return;
    }
    float x[TG_KV_SIZE_MAX];
    for (size_t i = 0; i < size; i++) x[i] = (float)in[i];
    tg_kv_write(dtype, (uint8_t *)cache + row * tg_kv_row_bytes(dtype, size), x, size);
}

#endif
