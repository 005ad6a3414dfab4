/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_taps.h - sixteen columns of a short convolution: one description for whole sequences and for
 * rows behind a cache, which so have the same bits.
 *
 * What is summed over is computed for each tap anew, and the parts are calls: a convolution takes a
 * fiftieth of a layer's time, and a module for the web has little room.
 */
#ifndef TG_OPS_SHORT_CONV_TAPS_H
#define TG_OPS_SHORT_CONV_TAPS_H

#include "ops/build.h"
#include "ops/kernel.h"
#include "simd/vec.h"

/* The columns [c, c + n) of w [C,L]: taps [L][16], the oldest first, zeros beyond n. */
typedef struct conv {
    size_t C, L, c, n;
    float taps[TG_CONV_TAPS_MAX * 16];
} conv;

TG_OUT_OF_LINE void conv_begin(conv *k, const float *w, size_t C, size_t L, size_t c) {
    k->C = C;
    k->L = L;
    k->c = c;
    k->n = tg_min_size(16, C - c);
    for (size_t j = 0; j < L; j++)
        for (size_t i = 0; i < 16; i++) k->taps[16 * j + i] = i < k->n ? w[(c + i) * L + j] : 0;
}

/* a * b of the columns in two rows. */
TG_OUT_OF_LINE tg_v conv_times(const conv *k, const float *a, const float *b) {
    return tg_vmul(tg_vload_n(a + k->c, k->n), tg_vload_n(b + k->c, k->n));
}

/* u of a row of z. */
static inline tg_v conv_u(const conv *k, const float *z) { return conv_times(k, z, z + 2 * k->C); }

/* sum + u times the tap that is `back` before the newest. */
TG_OUT_OF_LINE tg_v conv_add(const conv *k, size_t back, tg_v u, tg_v sum) {
    return tg_vfma(tg_vload(k->taps + 16 * (k->L - 1 - back)), u, sum);
}

/* The columns of row y: gate * sum. */
TG_OUT_OF_LINE void conv_end(const conv *k, const float *gate, tg_v sum, float *y) {
    tg_vstore_n(y + k->c, tg_vmul(tg_vload_n(gate + k->c, k->n), sum), k->n);
}

#endif
