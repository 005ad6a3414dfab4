/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net_rules.h - sizes and shapes of the gated delta net's mixer, and the functions of one
 * element that its references share.
 *
 *   a row of z    I gates | G*N queries, G*N keys, I values: K columns of the convolution
 *   a row of ba   H of how much is written | H steps
 *   heads         H biases of the steps | H logs of the decays | P gains of the norm
 *   a state       as Mamba2's (mamba2_rules.h), with P values of a head for N elements of its key
 *
 * Its sizes are Mamba2's but for a row of z, which has no steps. Of H heads of values, each reads
 * one of G heads of queries and keys: the same one for H/G in a row, as transformers has them, or
 * where i[4] is 1, the G in turns, as GGUF files do.
 */
#ifndef TG_OPS_DELTA_NET_RULES_H
#define TG_OPS_DELTA_NET_RULES_H

#include "ops/mamba2/mamba2_rules.h"
#include "ops/shader.h"

/* Of queries and keys: what is added to the sum of squares before its root is taken. */
#define DELTA_EPS 1e-6

enum { DELTA_STATE_MAX = 1024 }; /* N at most */

static inline mamba delta_of(const tg_attr *a, size_t L) {
    mamba m = mamba_of(a, L);
    m.Z = m.I + m.K;
    return m;
}

/* Of a call whose taps are input w. */
static inline mamba delta_sizes(const tg_args *a, int w) {
    return delta_of(&a->attr, a->in_type[w].dim[1]);
}

/* Where the queries of head h begin among the convolution's columns; its keys are G*N behind. */
static inline size_t delta_q(const mamba *m, const tg_attr *a, size_t h) {
    return (a->i[4] ? h % m->G : h / (m->H / m->G)) * m->N;
}
/* Its values. */
static inline size_t delta_v(const mamba *m, size_t h) { return 2 * m->G * m->N + h * m->P; }

/* z is in 0, with `dims` dimensions; taps and heads are in w and w + 1, ba is in ba. */
static inline bool delta_want(tg_graph *g, const tg_node *n, int w, int ba, int dims, mamba *m) {
    const int32_t *i = n->attr.i;
    if (!tg_want_dims(g, n, 0, TG_F32, dims, dims) || !tg_want_dims(g, n, w, TG_F32, 2, 2))
        return false;
    const size_t L = n->in[w]->type.dim[1];
    if (i[0] < 1 || i[1] < 1 || i[2] < 1 || i[3] < 1 || i[0] % i[2] != 0 || i[0] > 65536 ||
        i[1] > 65536 || i[3] > DELTA_STATE_MAX || L < 2 || L > TG_CONV_TAPS_MAX) {
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "want heads of keys that divide those of values, keys of 1..%d elements and "
                      "2..%d taps, have %d heads of %d, %d of %d, and %zu taps",
                      DELTA_STATE_MAX, TG_CONV_TAPS_MAX, (int)i[0], (int)i[1], (int)i[2], (int)i[3],
                      L);
        return false;
    }
    *m = delta_of(&n->attr, L);
    tg_type z = n->in[0]->type, of_heads = z;
    z.dim[dims - 1] = m->Z;
    of_heads.dim[dims - 1] = 2 * m->H;
    return tg_want_type(g, n, 0, z) && tg_want_type(g, n, ba, of_heads) &&
           tg_want_type(g, n, w, tg_type_2d(TG_F32, m->K, L)) &&
           tg_want_type(g, n, w + 1, tg_type_1d(TG_F32, 2 * m->H + m->P));
}

/* Workgroups of the first pass of shaders: heads of queries and keys, and elements of values. */
static inline size_t delta_row_groups(const tg_args *a) {
    const size_t n = tg_type_rows(&a->in_type[0]), I = (size_t)a->attr.i[0] * (size_t)a->attr.i[1];
    return 2 * n * (size_t)a->attr.i[2] + tg_shader_parts(n * I, TG_SHADER_ELEMS);
}

/* ------------------------------------------------------------------------------------ references
 */

/* A row of z that has t others of its sequence before it in z; and behind those the L-1 rows of a
 * state; NULL: zeros. */
typedef struct delta_row {
    const TG_REAL *z, *before;
    size_t t;
} delta_row;

/* Column c of the convolution, before SiLU. */
static inline double delta_conv(const mamba *m, const delta_row *r, const TG_REAL *w, size_t c) {
    double sum = 0;
    for (size_t back = 0; back < m->L; back++) {
        const double tap = (double)w[c * m->L + m->L - 1 - back];
        if (back <= r->t)
            sum += tap * (double)(r->z - back * m->Z)[m->I + c];
        else if (r->before)
            sum += tap * (double)r->before[(m->L - 1 + r->t - back) * m->K + c];
    }
    return sum;
}

/* N columns from c on, behind SiLU, of length `length`. Returns what they were multiplied with. */
static inline double delta_unit(const mamba *m, const delta_row *r, const TG_REAL *w, size_t c,
                                double length, double *out) {
    double sum = DELTA_EPS;
    for (size_t n = 0; n < m->N; n++) {
        out[n] = act_silu(delta_conv(m, r, w, c + n));
        sum += out[n] * out[n];
    }
    const double scale = length / tg_sqrt(sum);
    for (size_t n = 0; n < m->N; n++) out[n] *= scale;
    return scale;
}

/* A row at head h. */
typedef struct delta_head {
    double q[DELTA_STATE_MAX], k[DELTA_STATE_MAX];
    double write, step, kept; /* of the state; step: before the decay's factor */
} delta_head;

static inline void delta_head_at(const mamba *m, const tg_attr *a, const delta_row *r,
                                 const TG_REAL *ba, const TG_REAL *w, const TG_REAL *heads,
                                 size_t h, delta_head *out) {
    const size_t q = delta_q(m, a, h);
    delta_unit(m, r, w, q, 1 / tg_sqrt((double)m->N), out->q);
    delta_unit(m, r, w, q + m->G * m->N, 1, out->k);
    out->write = act_sigmoid((double)ba[h]);
    out->step = mamba_softplus((double)ba[m->H + h] + (double)heads[h]);
    out->kept = tg_exp(mamba_decay(m, heads, h) * out->step);
}

/* What the norm of head h multiplies o [P] with. */
static inline double delta_scale(const mamba *m, const tg_attr *a, const TG_REAL *o) {
    double sum = 0;
    for (size_t p = 0; p < m->P; p++) sum += (double)o[p] * (double)o[p];
    return 1 / tg_sqrt(sum / (double)m->P + (double)a->f[0]);
}

/* o [P] becomes y. */
static inline void delta_gate(const mamba *m, const tg_attr *a, const TG_REAL *z,
                              const TG_REAL *heads, size_t h, TG_REAL *o) {
    const double scale = delta_scale(m, a, o);
    for (size_t p = 0; p < m->P; p++)
        o[p] = (TG_REAL)((double)o[p] * scale * (double)heads[2 * m->H + p] *
                         act_silu((double)z[h * m->P + p]));
}

#endif
