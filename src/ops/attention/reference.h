/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference.h - attention of one query in plain C, for the references of this family of ops.
 *
 * References have no memory, so that scores are computed again wherever they are needed, and o is
 * summed a chunk of columns at a time.
 */
#ifndef TG_OPS_ATTENTION_REFERENCE_H
#define TG_OPS_ATTENTION_REFERENCE_H

#include "base/math.h"
#include "ir/op.h"
#include "ops/activation.h"
#include "ops/attention/cache/kv_row.h"
#include "ops/attention/cache/pages.h"
#include "ops/dropout/mask.h"

/* Columns of a row that a reference sums at a time. */
enum { CHUNK = 64 };

static inline double dot(const TG_REAL *x, const TG_REAL *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Keys and values of one head: n rows of d elements, step apart; or those of a cache, from
 * position `begin` of a sequence on. */
typedef struct memory {
    const TG_REAL *k, *v;
    size_t n, d, step;
    const void *cache; /* NULL: k and v it is */
    tg_paged pages;
    size_t head[2], begin; /* of a page: the keys', the values' */
    tg_dtype dtype;        /* of the cache */
    double cap;            /* of scores; 0: none */
    tg_mask mask;          /* dropout of the weights; kept 0: none */
    size_t tokens, t;      /* of the mask: the sequence, and the query's place */
} memory;

/* Element i of key (part 0) or value (1) j. */
static inline double memory_at(const memory *m, int part, size_t j, size_t i) {
    if (!m->cache) return (double)(part ? m->v : m->k)[j * m->step + i];
    const size_t row = tg_paged_row(&m->pages, m->head[part], m->begin + j);
    if (m->dtype == TG_F32) return (double)((const TG_REAL *)m->cache)[row * m->d + i];
    const uint8_t *bytes = (const uint8_t *)m->cache + row * tg_kv_row_bytes(m->dtype, m->d);
    return (double)tg_kv_at(m->dtype, bytes, m->d, i);
}

static inline double dot_key(const memory *m, const TG_REAL *q, size_t j) {
    double sum = 0;
    for (size_t i = 0; i < m->d; i++) sum += (double)q[i] * memory_at(m, 0, j, i);
    return sum;
}

/* c tanh(x / c): the soft cap of scores, and of logits; c 0: x as it is. */
static inline double soft_cap(double x, double c) { return c > 0 ? act_soft_cap(x, c) : x; }

static inline double score_of(const memory *m, double scale, const TG_REAL *q, size_t j) {
    return soft_cap(scale * dot_key(m, q, j), m->cap);
}

/* o [d] of query q [d]; gives the log of the sum of exponentials of the scaled scores. */
static inline double attend(const memory *m, double scale, const TG_REAL *q, TG_REAL *o) {
    double top = -TG_INF, sum = 0;
    for (size_t j = 0; j < m->n; j++) {
        const double score = score_of(m, scale, q, j);
        if (!(score <= top)) top = score; /* a NaN stays */
    }
    for (size_t j = 0; j < m->n; j++) sum += tg_exp(score_of(m, scale, q, j) - top);
    const double lse = top + tg_log(sum);
    for (size_t begin = 0; begin < m->d; begin += CHUNK) {
        const size_t n = m->d - begin < CHUNK ? m->d - begin : CHUNK;
        double acc[CHUNK] = { 0 };
        for (size_t j = 0; j < m->n; j++) {
            double p = tg_exp(score_of(m, scale, q, j) - lse);
            if (m->mask.kept > 0) {
                const size_t key = m->t + 1 - m->n + j; /* the last key is the query's own */
                p *= tg_mask_at(&m->mask, tg_mask_block(m->tokens, m->t, key), key % 4);
            }
            for (size_t c = 0; c < n; c++) acc[c] += p * memory_at(m, 1, j, begin + c);
        }
        for (size_t c = 0; c < n; c++) o[begin + c] = (TG_REAL)acc[c];
    }
    return lse;
}

#endif
