/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the causal convolution in front of a state, sixteen columns at a time, for Mamba2 and
 * for the gated delta net; and where the rows of a sequence come from and leave their state.
 *
 * Of a row of z the convolution sees K columns behind the first I. It goes over whole sequences, or
 * on from the rows that a state keeps (mamba2_rules.h), with the same bits.
 */
#ifndef TG_OPS_MAMBA2_COLUMNS_H
#define TG_OPS_MAMBA2_COLUMNS_H

#include "ir/op.h"
#include "ops/attention/cache/pages.h"
#include "ops/mamba2/mamba2_rules.h"
#include "simd/vmath.h"

/* Columns [c, c + n) of it: taps [L][16], the oldest first, and what is added, which may be nothing
 * (bias NULL). */
typedef struct columns {
    const mamba *m;
    size_t c, n;
    float taps[TG_CONV_TAPS_MAX * 16], bias[16];
} columns;

TG_OUT_OF_LINE void columns_begin(columns *k, const mamba *m, size_t block, const float *w,
                                  const float *bias) {
    *k = (columns) { .m = m, .c = 16 * block, .n = tg_min_size(16, m->K - 16 * block) };
    for (size_t i = 0; i < k->n; i++) {
        k->bias[i] = bias ? bias[k->c + i] : 0;
        for (size_t j = 0; j < m->L; j++) k->taps[16 * j + i] = w[(k->c + i) * m->L + j];
    }
}

/* Rows of a sequence: z of the first, and the L-1 rows [K] before it; NULL: there are none. */
typedef struct rows {
    const float *z, *before;
    size_t n;
} rows;

/* The columns of row i, or of one before the first; NULL: zeros. */
static inline const float *column(const columns *k, const rows *r, size_t i, size_t back) {
    if (back <= i) return r->z + (i - back) * k->m->Z + k->m->I + k->c;
    return r->before ? r->before + (k->m->L - 1 + i - back) * k->m->K + k->c : NULL;
}

/* Before SiLU. */
TG_OUT_OF_LINE void columns_sum(const columns *k, const rows *r, size_t i, float out[16]) {
    tg_v sum = tg_vload(k->bias);
    for (size_t back = k->m->L; back-- > 0;) {
        const float *from = column(k, r, i, back);
        if (!from) continue;
        sum = tg_vfma(tg_vload(k->taps + 16 * (k->m->L - 1 - back)), tg_vload_n(from, k->n), sum);
    }
    tg_vstore(out, sum);
}

/* u [n][K] */
TG_OUT_OF_LINE void columns_run(const columns *k, const rows *r, float *u) {
    float sum[16];
    for (size_t i = 0; i < r->n; i++) {
        columns_sum(k, r, i, sum);
        tg_vstore_n(u + i * k->m->K + k->c, tg_vsilu(tg_vload(sum)), k->n);
    }
}

/* Sequence b of whole ones. */
static inline rows sequence(const tg_args *a, const mamba *m, size_t b) {
    const size_t T = a->in_type[0].dim[1];
    return (rows) { (const float *)a->in[0] + b * T * m->Z, NULL, T };
}

/* Rows of one sequence in a call, and the states [E] that they go on from and leave. */
typedef struct part {
    rows rows;
    const float *from; /* NULL: zeros */
    float *to;
} part;

static inline part part_at(const tg_args *a, const mamba *m, size_t r) {
    const int32_t *at = a->in[2], *slots = a->in[3];
    const size_t P = a->in_type[1].dim[0], E = mamba_state_elems(m);
    const int32_t *own = slots + 2 * tg_clamp_id(at[2 * r], a->in_type[3].dim[0]);
    float *states = a->out[1];
    const float *from = at[2 * r + 1] > 0 ? states + tg_clamp_id(own[0], P) * E : NULL;
    return (part) { { (const float *)a->in[0] + r * m->Z, from,
                      tg_paged_run(at, r, a->in_type[0].dim[0]) },
                    from,
                    states + tg_clamp_id(own[1], P) * E };
}

/* The newest L-1 rows of what the convolution saw. */
static inline void keep(const columns *k, const rows *r, float *state) {
    const mamba *m = k->m;
    for (size_t j = 0; j + 1 < m->L; j++) {
        const size_t back = m->L - 1 - j; /* from the row behind the last */
        const float *from = column(k, r, r->n, back);
        float *to = state + j * m->K + k->c;
        for (size_t i = 0; i < k->n; i++) to[i] = from ? from[i] : 0;
    }
}

/* -------------------------------------------------------------------------------------- gradient
 */

/* How many rows of taps' gradients are summed in floats before they are added to the rest: part of
 * the result. */
enum { PIECE_ROWS = 32 };

static inline void put(float *to, double x, bool add) { *to = add ? *to + (float)x : (float)x; }

typedef struct tap_sums {
    float piece[(TG_CONV_TAPS_MAX + 1) * 16], all[(TG_CONV_TAPS_MAX + 1) * 16]; /* the bias last */
} tap_sums;

static inline void end_piece(const columns *k, tap_sums *s) {
    for (size_t i = 0; i < 16 * (k->m->L + 1); i++) s->all[i] += s->piece[i];
    memset(s->piece, 0, sizeof s->piece);
}

/* Rows rise, and none of the second pass reads one before it. */
TG_OUT_OF_LINE void back_columns(const columns *k, const rows *r, float *dz, tap_sums *s) {
    const mamba *m = k->m;
    for (size_t t = 0; t < r->n; t++) {
        float sum[16], *to = dz + t * m->Z + m->I + k->c;
        columns_sum(k, r, t, sum);
        const tg_v d = tg_vmul(tg_vload_n(to, k->n), tg_vsilu_d(tg_vload(sum)));
        tg_vstore_n(to, d, k->n);
        for (size_t back = 0; back < m->L && back <= t; back++) {
            float *piece = s->piece + 16 * (m->L - 1 - back);
            const tg_v z = tg_vload_n(column(k, r, t, back), k->n);
            tg_vstore(piece, tg_vfma(d, z, tg_vload(piece)));
        }
        float *bias = s->piece + 16 * m->L;
        tg_vstore(bias, tg_vadd(tg_vload(bias), d));
        if ((t + 1) % PIECE_ROWS == 0 || t + 1 == r->n) end_piece(k, s);
    }
    for (size_t t = 0; t < r->n; t++) {
        float *to = dz + t * m->Z + m->I + k->c;
        tg_v sum = tg_vzero();
        for (size_t i = 0; i < m->L && t + i < r->n; i++)
            sum = tg_vfma(tg_vload(k->taps + 16 * (m->L - 1 - i)), tg_vload_n(to + i * m->Z, k->n),
                          sum);
        tg_vstore_n(to, sum, k->n);
    }
}

static inline void put_taps(const columns *k, const tap_sums *s, float *dw, bool add) {
    for (size_t i = 0; i < k->n; i++)
        for (size_t j = 0; j < k->m->L; j++)
            put(dw + (k->c + i) * k->m->L + j, (double)s->all[16 * j + i], add);
}

#endif
