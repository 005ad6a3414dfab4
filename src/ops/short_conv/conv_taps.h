/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_taps.h - sixteen columns of a short convolution: one description for whole sequences and for
 * rows behind a cache, which so have the same bits.
 */
#ifndef TG_OPS_SHORT_CONV_TAPS_H
#define TG_OPS_SHORT_CONV_TAPS_H

#include "ops/build.h"
#include "ops/kernel.h"
#include "simd/vec.h"

/* The columns [c, c + n) of w [C,L]: taps [L][16], zeros beyond n; u [L] the newest inputs, the
 * oldest first. */
typedef struct conv {
    size_t C, L, c, n;
    float taps[TG_CONV_TAPS_MAX * 16];
    tg_v u[TG_CONV_TAPS_MAX];
} conv;

static inline void conv_begin(conv *k, const float *w, size_t C, size_t L, size_t c) {
    k->C = C;
    k->L = L;
    k->c = c;
    k->n = tg_min_size(16, C - c);
    for (size_t j = 0; j < L; j++) k->u[j] = tg_vzero();
    tg_vturn(k->taps, 16, w + c * L, L, k->n, L);
}

/* Of a row of z. */
static inline tg_v conv_in(const conv *k, const float *z) {
    return tg_vmul(tg_vload_n(z + k->c, k->n), tg_vload_n(z + 2 * k->C + k->c, k->n));
}

static inline tg_v conv_sum(const conv *k) {
    tg_v sum = tg_vmul(tg_vload(k->taps), k->u[0]);
    for (size_t j = 1; j < k->L; j++) sum = tg_vfma(tg_vload(k->taps + 16 * j), k->u[j], sum);
    return sum;
}

/* The oldest input makes room for that of row z, whose result goes to y. */
static inline void conv_row(conv *k, const float *z, float *y) {
    k->u[k->L - 1] = conv_in(k, z);
    tg_vstore_n(y + k->c, tg_vmul(tg_vload_n(z + k->C + k->c, k->n), conv_sum(k)), k->n);
}
static inline void conv_shift(conv *k) {
    for (size_t j = 0; j + 1 < k->L; j++) k->u[j] = k->u[j + 1];
}

#endif
