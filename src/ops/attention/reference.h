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

/* Columns of a row that a reference sums at a time. */
enum { CHUNK = 64 };

static inline double dot(const TG_REAL *x, const TG_REAL *y, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Keys and values of one head: n rows of d elements, step apart. */
typedef struct memory {
    const TG_REAL *k, *v;
    size_t n, d, step;
} memory;

/* o [d] of query q [d]; gives the log of the sum of exponentials of the scaled scores. */
static inline double attend(const memory *m, double scale, const TG_REAL *q, TG_REAL *o) {
    double top = -TG_INF, sum = 0;
    for (size_t j = 0; j < m->n; j++) {
        const double score = scale * dot(q, m->k + j * m->step, m->d);
        if (!(score <= top)) top = score; /* a NaN stays */
    }
    for (size_t j = 0; j < m->n; j++) sum += tg_exp(scale * dot(q, m->k + j * m->step, m->d) - top);
    const double lse = top + tg_log(sum);
    for (size_t begin = 0; begin < m->d; begin += CHUNK) {
        const size_t n = m->d - begin < CHUNK ? m->d - begin : CHUNK;
        double acc[CHUNK] = { 0 };
        for (size_t j = 0; j < m->n; j++) {
            const double p = tg_exp(scale * dot(q, m->k + j * m->step, m->d) - lse);
            for (size_t c = 0; c < n; c++) acc[c] += p * (double)m->v[j * m->step + begin + c];
        }
        for (size_t c = 0; c < n; c++) o[begin + c] = (TG_REAL)acc[c];
    }
    return lse;
}

#endif
