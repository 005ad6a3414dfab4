/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heads.h - how queries, keys and values lie in a row: what all ops of attention share.
 *
 *   a row of qkv   | q 0 | q 1 | .. | q H-1 | k 0 | .. | k K-1 | v 0 | .. | v K-1 |   D each
 *   a row of o     | o 0 | o 1 | .. | o H-1 |
 *   the KV cache   pages.h
 *
 * Query head h reads the keys and values of head h / (H/K): with K = H each has its own, with K = 1
 * all of them read one.
 */
#ifndef TG_OPS_ATTENTION_HEADS_H
#define TG_OPS_ATTENTION_HEADS_H

#include "ir/op.h"

typedef struct tg_heads {
    size_t n_q;   /* H, heads of queries */
    size_t n_kv;  /* K, heads of keys and of values */
    size_t size;  /* D, elements of a head */
    size_t group; /* H/K, query heads that read one key head */
    size_t q_row; /* H*D, elements of a row of o */
    size_t row;   /* (H+2K)*D, elements of a row of qkv */
} tg_heads;

/* attr.i = H, K, D, which the shape rule has checked. */
static inline tg_heads tg_heads_of(const tg_attr *attr) {
    const size_t h = (size_t)attr->i[0], k = (size_t)attr->i[1], d = (size_t)attr->i[2];
    return (tg_heads) {
        .n_q = h, .n_kv = k, .size = d, .group = h / k, .q_row = h * d, .row = (h + 2 * k) * d
    };
}

/* Where in a row of qkv query head h begins, and the key and the value head that it reads. */
static inline size_t tg_heads_q(const tg_heads *s, size_t h) { return h * s->size; }
static inline size_t tg_heads_k(const tg_heads *s, size_t kv) { return (s->n_q + kv) * s->size; }
static inline size_t tg_heads_v(const tg_heads *s, size_t kv) {
    return (s->n_q + s->n_kv + kv) * s->size;
}

/* The first key that the query at position t sees, with a window attr.i[3] (0: none) that lets it
 * see so many; `least` where that would be below. */
static inline ptrdiff_t tg_heads_low(const tg_attr *attr, size_t t, ptrdiff_t least) {
    const ptrdiff_t low = (ptrdiff_t)t + 1 - attr->i[3];
    return attr->i[3] > 0 && low > least ? low : least;
}

/* Pairs of a query and a key it may see, of n tokens with a window (0: none). */
static inline double tg_heads_window_pairs(double n, double window) {
    if (!(window > 0) || window >= n) window = n;
    return window * (n - (window - 1) / 2);
}

/* Pairs of a query and a key it may see, when n queries follow pos earlier tokens. */
static inline double tg_heads_pairs(double n, double pos) { return n * (pos + (n + 1) / 2); }

#endif
