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
#include "ops/attention/kv_row.h"

/* Columns of a row that a reference sums at a time. */
enum { CHUNK = 64 };

static inline double dot(const TG_REAL *x, const TG_REAL *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Keys and values of one head: n rows of d elements, step apart; or packed rows of a cache, the
 * first of which is row `begin` of a ring of `ring` rows (0: none). */
typedef struct memory {
    const TG_REAL *k, *v;
    size_t n, d, step, begin, ring;
    const uint8_t *packed_k, *packed_v; /* NULL: k and v it is */
    tg_dtype dtype;
} memory;

static inline size_t row_of(const memory *m, size_t j) {
    return m->ring > 0 ? (m->begin + j) % m->ring : j;
}

static inline double dot_key(const memory *m, const TG_REAL *q, size_t j) {
    if (!m->packed_k) return dot(q, m->k + row_of(m, j) * m->step, m->d);
    const uint8_t *row = m->packed_k + row_of(m, j) * tg_kv_row_bytes(m->dtype, m->d);
    double sum = 0;
    for (size_t i = 0; i < m->d; i++)
        sum += (double)q[i] * (double)tg_kv_at(m->dtype, row, m->d, i);
    return sum;
}

static inline double value_at(const memory *m, size_t j, size_t i) {
    const size_t row = row_of(m, j);
    if (!m->packed_v) return (double)m->v[row * m->step + i];
    return (double)tg_kv_at(m->dtype, m->packed_v + row * tg_kv_row_bytes(m->dtype, m->d), m->d, i);
}

/* o [d] of query q [d]; gives the log of the sum of exponentials of the scaled scores. */
static inline double attend(const memory *m, double scale, const TG_REAL *q, TG_REAL *o) {
    double top = -TG_INF, sum = 0;
    for (size_t j = 0; j < m->n; j++) {
        const double score = scale * dot_key(m, q, j);
        if (!(score <= top)) top = score; /* a NaN stays */
    }
    for (size_t j = 0; j < m->n; j++) sum += tg_exp(scale * dot_key(m, q, j) - top);
    const double lse = top + tg_log(sum);
    for (size_t begin = 0; begin < m->d; begin += CHUNK) {
        const size_t n = m->d - begin < CHUNK ? m->d - begin : CHUNK;
        double acc[CHUNK] = { 0 };
        for (size_t j = 0; j < m->n; j++) {
            const double p = tg_exp(scale * dot_key(m, q, j) - lse);
            for (size_t c = 0; c < n; c++) acc[c] += p * value_at(m, j, begin + c);
        }
        for (size_t c = 0; c < n; c++) o[begin + c] = (TG_REAL)acc[c];
    }
    return lse;
}

#endif
