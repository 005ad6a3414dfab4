/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normed.h - what a norm of rope is of: each head of queries or keys, or, as OLMo 2 has it, all of
 * them side by side (i[3]).
 */
#ifndef TG_OPS_ROPE_NORMED_H
#define TG_OPS_ROPE_NORMED_H

#include "ops/attention/heads.h"

/* n pieces of a row, of `size` elements each, the first at `at`. */
typedef struct tg_normed {
    size_t at, n, size;
} tg_normed;

/* which: 0 queries, 1 keys. */
static inline tg_normed tg_normed_of(const tg_attr *attr, int which) {
    const tg_heads s = tg_heads_of(attr);
    const size_t heads = which ? s.n_kv : s.n_q, at = which ? tg_heads_k(&s, 0) : 0;
    if (attr->i[3]) return (tg_normed) { at, 1, heads * s.size };
    return (tg_normed) { at, heads, s.size };
}

#endif
