/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv.simd.h - short_conv, short_conv_cached and short_conv_grad, sixteen columns at a time.
 *
 * One description serves whole sequences and rows behind a cache, which so have the same bits. What
 * is summed over is computed for each tap anew, and the parts are calls: a convolution takes a
 * fiftieth of a layer's time, and a module for the web has little room.
 */
#include "ir/op.h"
#include "ops/attention/cache/pages.h"
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
TG_OUT_OF_LINE void conv_times(const conv *k, const float *a, const float *b, float out[16]) {
    tg_vstore(out, tg_vmul(tg_vload_n(a + k->c, k->n), tg_vload_n(b + k->c, k->n)));
}

/* sum += x * y */
TG_OUT_OF_LINE void conv_add(const float x[16], const float y[16], float sum[16]) {
    tg_vstore(sum, tg_vfma(tg_vload(x), tg_vload(y), tg_vload(sum)));
}

/* The columns of row y: gate * sum. */
TG_OUT_OF_LINE void conv_end(const conv *k, const float *gate, const float sum[16], float *y) {
    tg_vstore_n(y + k->c, tg_vmul(tg_vload_n(gate + k->c, k->n), tg_vload(sum)), k->n);
}

/* The tap that is `back` before the newest. */
static inline const float *conv_tap(const conv *k, size_t back) {
    return k->taps + 16 * (k->L - 1 - back);
}

/* ------------------------------------------------------------------------------------- sequences
 */

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[1], C, a->in_type[1].dim[1], c);
        for (size_t r = begin * unit_rows(a); r < stop; r++) {
            const float *z = (const float *)a->in[0] + r * 3 * C;
            float u[16], sum[16] = { 0 };
            for (size_t back = tg_min_size(k.L, r % T + 1); back-- > 0;) {
                const float *from = z - back * 3 * C;
                conv_times(&k, from, from + 2 * C, u);
                conv_add(conv_tap(&k, back), u, sum);
            }
            conv_end(&k, z + C, sum, (float *)a->out[0] + r * C);
        }
    }
}

static const tg_variant sequences[] = { { .name = "columns", .phase = { { units, run } } } };
TG_KERNELS(short_conv, sequences);

/* ---------------------------------------------------------------------------------- behind a cache
 */

/* u of the position `back` before that of row r. Rows of the call are never read from the cache, to
 * which another unit may be writing them. */
static void before(const tg_args *a, const conv *k, const tg_paged *p, size_t r, size_t back,
                   float u[16]) {
    const int32_t *at = a->in[2];
    if (back <= r && at[2 * (r - back)] == at[2 * r]) {
        const float *z = (const float *)a->in[0] + (r - back) * 3 * k->C;
        conv_times(k, z, z + 2 * k->C, u);
        return;
    }
    const size_t row = tg_paged_row(p, 0, (size_t)at[2 * r + 1] - back);
    for (size_t i = 0; i < k->n; i++) u[i] = ((const float *)a->out[1])[row * k->C + k->c + i];
}

static void run_cached(const tg_args *a, size_t begin, size_t end) {
    const size_t C = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), a->in_type[0].dim[0]);
    for (size_t c = 0; c < C; c += 16) {
        conv k;
        conv_begin(&k, a->in[4], C, a->in_type[4].dim[1], c);
        for (size_t r = begin * unit_rows(a); r < stop; r++) {
            const tg_paged p = tg_paged_of(&a->in_type[1], a->in[2], a->in[3], &a->in_type[3], r);
            const size_t pos = (size_t)((const int32_t *)a->in[2])[2 * r + 1];
            float u[16] = { 0 }, sum[16] = { 0 };
            for (size_t back = tg_min_size(k.L, pos + 1); back-- > 0;) {
                before(a, &k, &p, r, back, u);
                conv_add(conv_tap(&k, back), u, sum);
            }
            conv_end(&k, (const float *)a->in[0] + (3 * r + 1) * C, sum,
                     (float *)a->out[0] + r * C);
            memcpy((float *)a->out[1] + tg_paged_row(&p, 0, pos) * C + c, u, k.n * sizeof *u);
        }
    }
}

static const tg_variant cached[] = { { .name = "columns", .phase = { { units, run_cached } } } };
TG_KERNELS(short_conv_cached, cached);

/* -------------------------------------------------------------------------------------- gradient
 */

/* A unit is sixteen columns of all sequences, so no sum crosses units. dw is summed up in pieces of
 * 32 rows, which keeps floats exact enough. */
enum { PIECE_ROWS = 32 }; /* part of the result: another number gives other bits */

/* The columns' sums. */
typedef struct back {
    conv k;
    float piece[TG_CONV_TAPS_MAX * 16], dw[TG_CONV_TAPS_MAX * 16]; /* as the taps */
} back;

static size_t units_grad(const tg_args *a) { return tg_units(tg_type_cols(&a->in_type[2]), 16); }

static void end_piece(back *b) {
    for (size_t i = 0; i < 16 * b->k.L; i++) b->dw[i] += b->piece[i];
    memset(b->piece, 0, sizeof b->piece);
}

/* Row t of T. */
static void run_row(back *b, const float *z, const float *dy, float *dz, size_t t, size_t T) {
    const conv *k = &b->k;
    const size_t C = k->C;
    float d[16], x[16], sum[16] = { 0 }, du[16] = { 0 };
    conv_times(k, dy, z + C, d);
    for (size_t i = 0; i < k->L; i++) {
        const float *tap = conv_tap(k, i);
        if (i <= t) {
            const float *u = z - i * 3 * C;
            conv_times(k, u, u + 2 * C, x);
            conv_add(tap, x, sum);
            conv_add(d, x, b->piece + (tap - k->taps));
        }
        if (t + i < T) {
            conv_times(k, dy + i * C, z + (3 * i + 1) * C, x);
            conv_add(tap, x, du);
        }
    }
    conv_end(k, dy, sum, dz + C);
    conv_end(k, z + 2 * C, du, dz);
    conv_end(k, z, du, dz + 2 * C);
}

static void store_dw(const back *b, float *dw, bool add) {
    for (size_t j = 0; j < b->k.L; j++)
        for (size_t i = 0; i < b->k.n; i++) {
            float *to = dw + (b->k.c + i) * b->k.L + j;
            const float sum = b->dw[16 * j + i];
            *to = add ? *to + sum : sum;
        }
}

static void run_grad(const tg_args *a, size_t begin, size_t end) {
    const size_t T = a->in_type[0].dim[1], C = tg_type_cols(&a->in_type[2]);
    for (size_t unit = begin; unit < end; unit++) {
        back b;
        conv_begin(&b.k, a->in[1], C, a->in_type[1].dim[1], 16 * unit);
        memset(b.dw, 0, sizeof b.dw);
        memset(b.piece, 0, sizeof b.piece);
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

static const tg_variant gradient[] = { { .name = "columns",
                                         .phase = { { units_grad, run_grad } } } };
TG_KERNELS(short_conv_grad, gradient);
