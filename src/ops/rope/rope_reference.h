/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_reference.h - a head turned by its position in plain C, for the references that turn.
 */
#ifndef TG_OPS_ROPE_REFERENCE_H
#define TG_OPS_ROPE_REFERENCE_H

#include "base/math.h"
#include "ir/op.h"
#include "ops/rope/normed.h"

/* Of a table: see rope_table.c. */
static inline double tg_rope_scale(const tg_attr *attr) {
    return attr->f[0] > 0 ? (double)attr->f[0] : 1;
}

/* What an RMS norm multiplies x [n] with, besides its gains. */
static inline double tg_rope_scale_of(const TG_REAL *x, size_t n, double eps) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return 1 / tg_sqrt(sum / (double)n + eps);
}

/* y [d] of x [d], times scale and norm [d] unless that is NULL; the first `turned` elements by
 * table [turned]: see rope.c. */
static inline void tg_rope_turn(const TG_REAL *x, TG_REAL *y, const TG_REAL *norm,
                                const TG_REAL *table, size_t turned, size_t d, double scale) {
    for (size_t i = turned; i < d; i++)
        y[i] = (TG_REAL)((double)x[i] * scale * (norm ? (double)norm[i] : 1));
    for (size_t i = 0; i < turned / 2; i++) {
        const size_t j = i + turned / 2;
        const double p = (double)x[i] * scale * (norm ? (double)norm[i] : 1);
        const double q = (double)x[j] * scale * (norm ? (double)norm[j] : 1);
        const double c = (double)table[i], s = (double)table[j];
        y[i] = (TG_REAL)(p * c - q * s);
        y[j] = (TG_REAL)(q * c + p * s);
    }
}

#endif
