/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net_row.h - what the kernels of the gated delta net and of its gradient share: the
 * convolution's columns, rows of unit queries and keys, and a head's state, sixteen columns at a
 * time.
 *
 *   u        [rows][K]   what the convolution gave; then queries and keys in it are unit vectors
 *   numbers  [rows][2H]  of each head, how much is written, then how much is kept
 */
#ifndef TG_OPS_DELTA_NET_ROW_H
#define TG_OPS_DELTA_NET_ROW_H

#include "ops/delta_net/delta_net_rules.h"
#include "ops/mamba2/columns.h"

/* Units of the first phase over whole sequences: sixteen columns of the convolution, which go to u,
 * where scratch begins. */
static inline size_t delta_columns(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    return tg_units(m.K, 16);
}
static inline void delta_columns_run(const tg_args *a, size_t begin, size_t end) {
    const mamba m = delta_sizes(a, 2);
    for (size_t unit = begin; unit < end; unit++) {
        columns k;
        columns_begin(&k, &m, unit, a->in[2], NULL);
        for (size_t b = 0; b < a->in_type[0].dim[0]; b++) {
            const rows r = sequence(a, &m, b);
            columns_run(&k, &r, (float *)a->scratch + b * r.n * m.K);
        }
    }
}

/* N elements of length `length`, in the manner of rms_norm/rms_row.h. */
TG_OUT_OF_LINE float unit_scale(const float *x, size_t N, double length) {
    tg_v sum = tg_vzero();
    for (size_t i = 0; i < N; i += 16) {
        const tg_v v = tg_vload_n(x + i, tg_min_size(16, N - i));
        sum = tg_vfma(v, v, sum);
    }
    return (float)(length / tg_sqrt((double)tg_vsum(sum) + DELTA_EPS));
}

static inline void scale_by(float *x, size_t N, float scale) {
    for (size_t i = 0; i < N; i += 16) {
        const size_t n = tg_min_size(16, N - i);
        tg_vstore_n(x + i, tg_vmul(tg_vload_n(x + i, n), tg_vset(scale)), n);
    }
}

/* A row of u and of numbers; scales [2G] of what queries and keys were multiplied with; or NULL. */
TG_OUT_OF_LINE void row_begin(const mamba *m, const float *ba, const float *heads, float *u,
                              float *numbers, float *scales) {
    for (size_t g = 0; g < 2 * m->G; g++) {
        const float s = unit_scale(u + g * m->N, m->N, g < m->G ? 1 / tg_sqrt((double)m->N) : 1);
        scale_by(u + g * m->N, m->N, s);
        if (scales) scales[g] = s;
    }
    for (size_t h = 0; h < m->H; h++) {
        const double step = mamba_softplus((double)ba[m->H + h] + (double)heads[h]);
        numbers[h] = (float)act_sigmoid((double)ba[h]);
        numbers[m->H + h] = (float)tg_exp(step * mamba_decay(m, heads, h));
    }
}

/* A row at a head: unit vectors [N], values [P], and its two numbers. */
typedef struct delta_at {
    const float *q, *k, *v;
    float write, kept;
} delta_at;

static inline delta_at delta_at_head(const mamba *m, const tg_attr *a, size_t h, const float *u,
                                     const float *numbers) {
    const float *q = u + delta_q(m, a, h);
    return (delta_at) { q, q + m->G * m->N, u + delta_v(m, h), numbers[h], numbers[m->H + h] };
}

/* The sum over i of by[i] times row i of sixteen columns, or n of them, in four chains. */
TG_UNLESS_LONG tg_v rows_sum(const float *by, const float *s, size_t N, size_t n) {
    tg_v sum[4] = { tg_vzero(), tg_vzero(), tg_vzero(), tg_vzero() };
    size_t i = 0;
    for (; i + 4 <= N; i += 4)
        for (size_t j = 0; j < 4; j++)
            sum[j] = tg_vfma(tg_vset(by[i + j]), tg_vload_n(s + (i + j) * n, n), sum[j]);
    for (; i < N; i++) sum[0] = tg_vfma(tg_vset(by[i]), tg_vload_n(s + i * n, n), sum[0]);
    return tg_vadd(tg_vadd(sum[0], sum[1]), tg_vadd(sum[2], sum[3]));
}

/* Sixteen columns, or n of them, of a state [N][n] go on by a row; from and to may be the same.
 * Returns the error e; out: what is read. n is a constant where it is 16. */
TG_UNLESS_LONG tg_v delta_block(const delta_at *k, size_t N, const float *from, float *to, size_t p,
                                float *out, size_t n) {
    const tg_v kept = tg_vset(k->kept);
    const tg_v error = tg_vfnma(kept, rows_sum(k->k, from, N, n), tg_vload_n(k->v + p, n));
    const tg_v more = tg_vmul(tg_vset(k->write), error);
    tg_v sum[4] = { tg_vzero(), tg_vzero(), tg_vzero(), tg_vzero() };
    size_t i = 0;
    for (; i + 4 <= N; i += 4)
        for (size_t j = 0; j < 4; j++) {
            const size_t at = (i + j) * n;
            const tg_v s =
                tg_vfma(tg_vset(k->k[i + j]), more, tg_vmul(kept, tg_vload_n(from + at, n)));
            tg_vstore_n(to + at, s, n);
            sum[j] = tg_vfma(tg_vset(k->q[i + j]), s, sum[j]);
        }
    for (; i < N; i++) {
        const tg_v s = tg_vfma(tg_vset(k->k[i]), more, tg_vmul(kept, tg_vload_n(from + i * n, n)));
        tg_vstore_n(to + i * n, s, n);
        sum[0] = tg_vfma(tg_vset(k->q[i]), s, sum[0]);
    }
    tg_vstore_n(out, tg_vadd(tg_vadd(sum[0], sum[1]), tg_vadd(sum[2], sum[3])), n);
    return error;
}

#endif
