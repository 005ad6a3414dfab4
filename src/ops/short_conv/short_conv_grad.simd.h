/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv_grad.simd.h - a unit is sixteen columns of all sequences, each from its last row to
 * its first; so no sum crosses units. dw is summed up in pieces of 32 rows, which keeps floats
 * exact enough.
 */
#include "ir/op.h"
#include "ops/short_conv/conv_taps.h"

enum { PIECE_ROWS = 32 }; /* part of the result: another number gives other bits */

/* The columns' sums. */
typedef struct back {
    conv k;
    tg_v piece[TG_CONV_TAPS_MAX], dw[TG_CONV_TAPS_MAX]; /* as the taps, the newest first */
} back;

static size_t units(const tg_args *a) { return tg_units(tg_type_cols(&a->in_type[2]), 16); }

static void end_piece(back *b) {
    for (size_t j = 0; j < b->k.L; j++) {
        b->dw[j] = tg_vadd(b->dw[j], b->piece[j]);
        b->piece[j] = tg_vzero();
    }
}

/* Row t of T. */
static void run_row(back *b, const float *z, const float *dy, float *dz, size_t t, size_t T) {
    const conv *k = &b->k;
    const size_t C = k->C;
    const tg_v d = conv_times(k, dy, z + C);
    tg_v sum = tg_vzero(), du = sum;
    for (size_t i = 0; i < k->L; i++) {
        if (i <= t) {
            const tg_v u = conv_u(k, z - i * 3 * C);
            sum = conv_add(k, i, u, sum);
            b->piece[i] = tg_vfma(d, u, b->piece[i]);
        }
        if (t + i < T) du = conv_add(k, i, conv_times(k, dy + i * C, z + (3 * i + 1) * C), du);
    }
    conv_end(k, dy, sum, dz + C);
    conv_end(k, z + 2 * C, du, dz);
    conv_end(k, z, du, dz + 2 * C);
}

static void store_dw(const back *b, float *dw, bool add) {
    for (size_t j = 0; j < b->k.L; j++) {
        float sums[16];
        tg_vstore(sums, b->dw[j]);
        for (size_t i = 0; i < b->k.n; i++) {
            float *to = dw + (b->k.c + i + 1) * b->k.L - 1 - j;
            *to = add ? *to + sums[i] : sums[i];
        }
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->in_type[2]);
    for (size_t unit = begin; unit < end; unit++) {
        back b;
        conv_begin(&b.k, a->in[1], C, a->in_type[1].dim[1], 16 * unit);
        for (size_t j = 0; j < b.k.L; j++) b.dw[j] = b.piece[j] = tg_vzero();
        for (size_t first = 0; first < tg_type_rows(&a->in_type[0]); first += T)
            for (size_t t = 0; t < T; t++) {
                const size_t r = first + t;
                run_row(&b, (const float *)a->in[0] + r * 3 * C, (const float *)a->in[2] + r * C,
                        (float *)a->out[0] + r * 3 * C, t, T);
                if ((t + 1) % PIECE_ROWS == 0 || t + 1 == T) end_piece(&b);
            }
        store_dw(&b, a->out[1], a->acc & 2);
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv_grad, variants);
