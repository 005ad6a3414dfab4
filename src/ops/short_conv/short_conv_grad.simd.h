/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv_grad.simd.h - a unit is sixteen columns of all sequences, each from its last row to
 * its first; so no sum crosses units. dw is summed up in pieces of 32 rows, which keeps floats
 * exact enough.
 */
#include "ir/op.h"
#include "ops/short_conv/conv_taps.h"

enum { PIECE_ROWS = 32 }; /* part of the result: another number gives other bits */

/* The columns' sums, and what the rows behind the one at hand have left. */
typedef struct back {
    conv k;
    tg_v d[TG_CONV_TAPS_MAX]; /* d[i]: dy * c of the row i behind this one */
    tg_v piece[TG_CONV_TAPS_MAX], dw[TG_CONV_TAPS_MAX];
} back;

static size_t units(const tg_args *a) { return tg_units(tg_type_cols(&a->in_type[2]), 16); }

static void end_piece(back *b) {
    for (size_t j = 0; j < b->k.L; j++) {
        b->dw[j] = tg_vadd(b->dw[j], b->piece[j]);
        b->piece[j] = tg_vzero();
    }
}

/* Row t of its sequence; those behind it are done. */
static void run_row(back *b, const float *z, const float *dy, float *dz, size_t t, bool last) {
    conv *k = &b->k;
    const size_t C = k->C, L = k->L, c = k->c, n = k->n;
    for (size_t i = L - 1; i > 0; i--) {
        k->u[i] = last ? (L - 1 - i <= t ? conv_in(k, z - (L - 1 - i) * 3 * C) : tg_vzero())
                       : k->u[i - 1];
        b->d[i] = last ? tg_vzero() : b->d[i - 1];
    }
    k->u[0] = L - 1 <= t ? conv_in(k, z - (L - 1) * 3 * C) : tg_vzero();
    const tg_v grad = tg_vload_n(dy + c, n);
    b->d[0] = tg_vmul(grad, tg_vload_n(z + C + c, n));
    tg_v du = tg_vzero();
    for (size_t j = 0; j < L; j++) {
        du = tg_vfma(tg_vload(k->taps + 16 * j), b->d[L - 1 - j], du);
        b->piece[j] = tg_vfma(b->d[0], k->u[j], b->piece[j]);
    }
    const tg_v gate = tg_vload_n(z + c, n), x = tg_vload_n(z + 2 * C + c, n);
    tg_vstore_n(dz + C + c, tg_vmul(grad, conv_sum(k)), n);
    tg_vstore_n(dz + c, tg_vmul(du, x), n);
    tg_vstore_n(dz + 2 * C + c, tg_vmul(du, gate), n);
}

static void store_dw(const back *b, float *dw, bool add) {
    for (size_t j = 0; j < b->k.L; j++) {
        float sums[16];
        tg_vstore(sums, b->dw[j]);
        for (size_t i = 0; i < b->k.n; i++) {
            float *to = dw + (b->k.c + i) * b->k.L + j;
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
            for (size_t t = T; t-- > 0;) {
                const size_t r = first + t;
                run_row(&b, (const float *)a->in[0] + r * 3 * C, (const float *)a->in[2] + r * C,
                        (float *)a->out[0] + r * 3 * C, t, t + 1 == T);
                if (t % PIECE_ROWS == 0) end_piece(&b);
            }
        store_dw(&b, a->out[1], a->acc & 2);
    }
}

static const tg_variant variants[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv_grad, variants);
