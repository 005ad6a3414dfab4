/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2_rules.h - sizes and shapes of Mamba2's mixer, and the functions of one element that its
 * references share.
 *
 *   a row of z   I gates | I of x, G*N of B, G*N of C: K columns of the convolution | H steps
 *   heads        H biases of the steps | H logs of the decays | H weights of x
 *   a state      L-1 rows [K] of what the convolution saw, the oldest first | of each head [P,N] in
 *                blocks of sixteen columns of P, or of what is left of them: [blocks][N][16]
 */
#ifndef TG_OPS_MAMBA2_RULES_H
#define TG_OPS_MAMBA2_RULES_H

#include "base/math.h"
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/kernel.h"
#include "ops/rules.h"

typedef struct mamba {
    size_t H, P, G, N, L; /* heads, their columns, groups, rows of a state, taps */
    size_t I, K, Z;       /* H*P, I + 2GN, I + K + H */
} mamba;

static inline mamba mamba_of(const tg_attr *a, size_t L) {
    mamba m = { (size_t)a->i[0], (size_t)a->i[1], (size_t)a->i[2], (size_t)a->i[3], L, 0, 0, 0 };
    m.I = m.H * m.P;
    m.K = m.I + 2 * m.G * m.N;
    m.Z = m.I + m.K + m.H;
    return m;
}

/* Of a call whose taps are input w. */
static inline mamba mamba_sizes(const tg_args *a, int w) {
    return mamba_of(&a->attr, a->in_type[w].dim[1]);
}

static inline size_t mamba_state_elems(const mamba *m) { return (m->L - 1) * m->K + m->I * m->N; }

/* Where B of head h begins among the convolution's columns; C is G*N behind it. */
static inline size_t mamba_b(const mamba *m, size_t h) { return m->I + h / (m->H / m->G) * m->N; }

/* Element (p, n) of head h in a state. */
static inline size_t mamba_at(const mamba *m, size_t h, size_t p, size_t n) {
    const size_t first = p / 16 * 16;
    return (m->L - 1) * m->K + (h * m->P + first) * m->N + n * tg_min_size(16, m->P - first) + p -
           first;
}

/* z is in 0, with `dims` dimensions; w, the biases and heads are in w, w + 1 and w + 2. */
static inline bool mamba_want(tg_graph *g, const tg_node *n, int w, int dims, mamba *m) {
    const int32_t *i = n->attr.i;
    if (!tg_want_dims(g, n, 0, TG_F32, dims, dims) || !tg_want_dims(g, n, w, TG_F32, 2, 2))
        return false;
    const size_t L = n->in[w]->type.dim[1];
    if (i[0] < 1 || i[1] < 1 || i[2] < 1 || i[3] < 1 || i[0] % i[2] != 0 || i[0] > 65536 ||
        i[1] > 65536 || i[3] > 65536 || L < 2 || L > TG_CONV_TAPS_MAX) {
        tg_graph_fail(
            g, n, TG_E_SHAPE,
            "want groups that divide the heads, sizes of 1..65536 and 2..%d taps, have %d "
            "heads of %d, %d groups, states of %d and %zu taps",
            TG_CONV_TAPS_MAX, (int)i[0], (int)i[1], (int)i[2], (int)i[3], L);
        return false;
    }
    *m = mamba_of(&n->attr, L);
    tg_type z = n->in[0]->type;
    z.dim[dims - 1] = m->Z;
    return tg_want_type(g, n, 0, z) && tg_want_type(g, n, w, tg_type_2d(TG_F32, m->K, L)) &&
           tg_want_type(g, n, w + 1, tg_type_1d(TG_F32, m->K)) &&
           tg_want_type(g, n, w + 2, tg_type_1d(TG_F32, 3 * m->H));
}

/* The rows that z gives. */
static inline tg_type mamba_y(const tg_type *z, const mamba *m) {
    tg_type y = *z;
    y.dim[y.n_dims - 1] = m->I;
    return y;
}

/* log(1 + exp(x)), as PyTorch has it: x itself where they are the same float. */
static inline double mamba_softplus(double x) { return x > 20 ? x : tg_log1p(tg_exp(x)); }

/* How long the step of head h is in a row of z. */
static inline double mamba_step(const mamba *m, const TG_REAL *z, const TG_REAL *heads, size_t h) {
    return mamba_softplus((double)z[m->I + m->K + h] + (double)heads[h]);
}
/* The log of what a state keeps in a step of length 1. */
static inline double mamba_decay(const mamba *m, const TG_REAL *heads, size_t h) {
    return -tg_exp((double)heads[m->H + h]);
}

/* Column c of the convolution in a row of z that has t others of its sequence before it, before
 * SiLU. */
static inline double mamba_conv(const mamba *m, const TG_REAL *z, size_t t, const TG_REAL *w,
                                const TG_REAL *bias, size_t c) {
    double sum = (double)bias[c];
    for (size_t back = 0; back < m->L && back <= t; back++)
        sum += (double)w[c * m->L + m->L - 1 - back] * (double)(z - back * m->Z)[m->I + c];
    return sum;
}

/* What reached the convolution's sums, in dz [rows,Z], goes on to its taps, of which dw gets the
 * share of column c of row r, and then to the columns that they saw: rows rise, and none reads one
 * before it. A sequence has T rows. */
static inline void mamba_add_taps(const mamba *m, const TG_REAL *z, const TG_REAL *dz, TG_REAL *dw,
                                  size_t r, size_t T, size_t c) {
    const double d = (double)dz[r * m->Z + m->I + c];
    for (size_t back = 0; back < m->L && back <= r % T; back++) {
        TG_REAL *to = &dw[c * m->L + m->L - 1 - back];
        *to = (TG_REAL)((double)*to + d * (double)z[(r - back) * m->Z + m->I + c]);
    }
}
static inline void mamba_columns_back(const mamba *m, const TG_REAL *w, TG_REAL *dz, size_t rows,
                                      size_t T) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < m->K; c++) {
            double sum = 0;
            for (size_t k = 0; k < m->L && r % T + k < T; k++)
                sum += (double)w[c * m->L + m->L - 1 - k] * (double)dz[(r + k) * m->Z + m->I + c];
            dz[r * m->Z + m->I + c] = (TG_REAL)sum;
        }
}

/* The state that row r of sessions goes on with, in an op whose inputs 1 to 3 and output 1 are
 * states, rows' places and slots. A sequence begins on the state that it goes on from, copied to
 * the one it leaves, or on zeros; `state` is that of the row before. */
static inline TG_REAL *mamba_state_of(const tg_args *a, const mamba *m, size_t r, TG_REAL *state) {
    const int32_t *at = a->in[2], *slots = a->in[3];
    if (r > 0 && at[2 * r] == at[2 * r - 2]) return state;
    const size_t P = a->in_type[1].dim[0], E = mamba_state_elems(m);
    const size_t s = tg_clamp_id(at[2 * r], a->in_type[3].dim[0]);
    TG_REAL *states = a->out[1];
    state = states + tg_clamp_id(slots[2 * s + 1], P) * E;
    memmove(state, states + tg_clamp_id(slots[2 * s], P) * E, E * sizeof *state);
    for (size_t i = 0; i < E && at[2 * r + 1] == 0; i++) state[i] = 0;
    return state;
}

#endif
