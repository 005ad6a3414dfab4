/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_net_grad - the gradients of delta_net.
 *
 *   in 0  z [B,T,I+K]   in 1  ba [B,T,2H]   in 2  w [K,L]   in 3  heads [2H+P]   in 4  dy [B,T,I]
 *   out 0 dz            out 1 dba           out 2 dw        out 3 dheads: the last two accumulate
 *
 * With the decayed state of the row before, R = kept S, the error e = v - k^T R, what is written
 * d = beta e, S = R + k d, and D the gradient of S, which goes backwards through the rows:
 *
 *   D += q do^T     dq = S do     g = k^T D     de = dv = beta g     dbeta = g . e
 *   dk = D d - R de               D = kept (D - k de^T)        dkept = S before . (D - k de^T)
 *
 * do is that of the norm. dz has meanwhile the outputs o where the gates' gradients come, the
 * gradients do where those of values come, and of queries and keys those of the unit vectors.
 */
#include "ops/delta_net/delta_net_rules.h"

static void infer(tg_graph *g, tg_node *n) {
    mamba m;
    if (!delta_want(g, n, 2, 1, 3, &m) || !tg_want_type(g, n, 4, mamba_y(&n->in[0]->type, &m)))
        return;
    for (int k = 0; k < 4; k++) n->out[k].type = n->in[k]->type;
}

static void add(TG_REAL *to, double x) { *to = (TG_REAL)((double)*to + x); }

/* A column of a head in a sequence that begins at row `first`. */
typedef struct place {
    const tg_args *a;
    const mamba *m;
    size_t first, h, p;
} place;

static delta_row row_at(const place *c, size_t t) {
    return (delta_row) { (const TG_REAL *)c->a->in[0] + (c->first + t) * c->m->Z, NULL, t };
}
static void head_at(const place *c, size_t t, delta_head *out) {
    const delta_row r = row_at(c, t);
    delta_head_at(c->m, &c->a->attr, &r,
                  (const TG_REAL *)c->a->in[1] + (c->first + t) * 2 * c->m->H, c->a->in[2],
                  c->a->in[3], c->h, out);
}
static double value_at(const place *c, size_t t) {
    const delta_row r = row_at(c, t);
    return act_silu(delta_conv(c->m, &r, c->a->in[2], delta_v(c->m, c->h) + c->p));
}

/* The state's column goes on by a row; what was recalled of it. */
static double go_on(const place *c, const delta_head *k, double v, double *s) {
    double recalled = 0;
    for (size_t n = 0; n < c->m->N; n++) recalled += k->k[n] * (s[n] *= k->kept);
    for (size_t n = 0; n < c->m->N; n++) s[n] += k->k[n] * k->write * (v - recalled);
    return recalled;
}

/* The outputs before the norm, to where the gates' gradients come. */
static void ref_outputs(const place *c) {
    const mamba *m = c->m;
    double s[DELTA_STATE_MAX] = { 0 };
    delta_head k;
    for (size_t t = 0; t < c->a->in_type[0].dim[1]; t++) {
        double sum = 0;
        head_at(c, t, &k);
        go_on(c, &k, value_at(c, t), s);
        for (size_t n = 0; n < m->N; n++) sum += k.q[n] * s[n];
        ((TG_REAL *)c->a->out[0])[(c->first + t) * m->Z + c->h * m->P + c->p] = (TG_REAL)sum;
    }
}

/* Of a row at a head: gradients of gate and gain, and do to where those of values come. */
static void ref_norm(const tg_args *a, const mamba *m, size_t r, size_t h) {
    const TG_REAL *z = (const TG_REAL *)a->in[0] + r * m->Z + h * m->P, *heads = a->in[3];
    const TG_REAL *dy = (const TG_REAL *)a->in[4] + r * m->I + h * m->P;
    TG_REAL *o = (TG_REAL *)a->out[0] + r * m->Z + h * m->P;
    TG_REAL *out = (TG_REAL *)a->out[0] + r * m->Z + m->I + delta_v(m, h);
    const double scale = delta_scale(m, &a->attr, o);
    double both = 0;
    for (size_t p = 0; p < m->P; p++)
        both += (double)dy[p] * act_silu((double)z[p]) * (double)heads[2 * m->H + p] * (double)o[p];
    both *= scale * scale / (double)m->P;
    for (size_t p = 0; p < m->P; p++) {
        const double gain = (double)heads[2 * m->H + p], was = (double)o[p], d = (double)dy[p];
        out[p] = (TG_REAL)(scale * (d * act_silu((double)z[p]) * gain - was * both));
        add((TG_REAL *)a->out[3] + 2 * m->H + p, d * act_silu((double)z[p]) * was * scale);
        o[p] = (TG_REAL)(d * was * scale * gain * act_silu_d((double)z[p]));
    }
}

/* Backwards through a column. dz of queries and keys has the gradients of unit vectors. */
static void ref_column(const place *c) {
    const tg_args *a = c->a;
    const mamba *m = c->m;
    double D[DELTA_STATE_MAX] = { 0 }, s[DELTA_STATE_MAX];
    delta_head k;
    for (size_t t = a->in_type[0].dim[1]; t-- > 0;) {
        TG_REAL *dz = (TG_REAL *)a->out[0] + (c->first + t) * m->Z + m->I;
        TG_REAL *dba = (TG_REAL *)a->out[1] + (c->first + t) * 2 * m->H;
        TG_REAL *dq = dz + delta_q(m, &a->attr, c->h), *dk = dq + m->G * m->N;
        TG_REAL *own = dz + delta_v(m, c->h) + c->p;
        for (size_t n = 0; n < m->N; n++) s[n] = 0;
        for (size_t i = 0; i < t; i++) {
            head_at(c, i, &k);
            go_on(c, &k, value_at(c, i), s);
        }
        head_at(c, t, &k);
        double recalled = 0, g = 0, kept = 0;
        for (size_t n = 0; n < m->N; n++) recalled += k.k[n] * k.kept * s[n];
        const double error = value_at(c, t) - recalled, out = (double)*own;
        for (size_t n = 0; n < m->N; n++) {
            D[n] += k.q[n] * out;
            g += k.k[n] * D[n];
            add(&dq[n], (k.kept * s[n] + k.k[n] * k.write * error) * out);
        }
        const double back = k.write * g;
        for (size_t n = 0; n < m->N; n++) {
            add(&dk[n], D[n] * k.write * error - k.kept * s[n] * back);
            D[n] -= k.k[n] * back;
            kept += D[n] * s[n];
            D[n] *= k.kept;
        }
        *own = (TG_REAL)back;
        add(&dba[c->h], g * error * k.write * (1 - k.write));
        add(&dba[m->H + c->h], kept * k.kept);
    }
}

/* From the logs of what is kept to steps and decays. */
static void ref_steps(const tg_args *a, const mamba *m, size_t r, size_t h) {
    const TG_REAL *heads = a->in[3];
    TG_REAL *own = (TG_REAL *)a->out[1] + r * 2 * m->H + m->H + h, *dheads = a->out[3];
    const double raw =
        (double)((const TG_REAL *)a->in[1])[r * 2 * m->H + m->H + h] + (double)heads[h];
    const double by = (double)*own * mamba_decay(m, heads, h);
    add(&dheads[m->H + h], by * mamba_softplus(raw));
    *own = (TG_REAL)(by * act_sigmoid(raw));
    add(&dheads[h], by * act_sigmoid(raw));
}

/* From unit vectors back to the N columns at c of row r, and through SiLU. */
static void ref_unit(const tg_args *a, const mamba *m, size_t r, size_t c, double length) {
    const size_t t = r % a->in_type[0].dim[1];
    const delta_row row = { (const TG_REAL *)a->in[0] + r * m->Z, NULL, t };
    TG_REAL *d = (TG_REAL *)a->out[0] + r * m->Z + m->I + c;
    double unit[DELTA_STATE_MAX], both = 0;
    const double scale = delta_unit(m, &row, a->in[2], c, length, unit);
    for (size_t n = 0; n < m->N; n++) both += unit[n] * (double)d[n];
    both /= length * length;
    for (size_t n = 0; n < m->N; n++) d[n] = (TG_REAL)(scale * ((double)d[n] - both * unit[n]));
}

/* From what SiLU gave back to the columns of z: rows rise, and none reads one before it. */
static void ref_columns(const tg_args *a, const mamba *m) {
    const TG_REAL *z = a->in[0], *w = a->in[2];
    TG_REAL *dz = a->out[0], *dw = a->out[2];
    const size_t T = a->in_type[0].dim[1], rows = tg_type_rows(&a->in_type[0]);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < m->K; c++) {
            const delta_row row = { z + r * m->Z, NULL, r % T };
            TG_REAL *d = &dz[r * m->Z + m->I + c];
            *d = (TG_REAL)((double)*d * act_silu_d(delta_conv(m, &row, w, c)));
            mamba_add_taps(m, z, dz, dw, r, T, c);
        }
    mamba_columns_back(m, w, dz, rows, T);
}

static void ref(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    const size_t T = a->in_type[0].dim[1], rows = tg_type_rows(&a->in_type[0]);
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < tg_type_elems(&a->out_type[k]) && !(a->acc >> k & 1); i++)
            ((TG_REAL *)a->out[k])[i] = 0;
    for (size_t i = 0; i < rows / T * m.I; i++)
        ref_outputs(&(place) { a, &m, i / m.I * T, i % m.I / m.P, i % m.P });
    for (size_t i = 0; i < rows * m.H; i++) ref_norm(a, &m, i / m.H, i % m.H);
    for (size_t i = 0; i < rows / T * m.I; i++)
        ref_column(&(place) { a, &m, i / m.I * T, i % m.I / m.P, i % m.P });
    for (size_t i = 0; i < rows * m.H; i++) ref_steps(a, &m, i / m.H, i % m.H);
    for (size_t i = 0; i < 2 * rows * m.G; i++) {
        const bool key = i % (2 * m.G) >= m.G;
        ref_unit(a, &m, i / (2 * m.G), i % (2 * m.G) * m.N, key ? 1 : 1 / tg_sqrt((double)m.N));
    }
    ref_columns(a, &m);
}

/* Tolerances are those of sums of floats over rows and states. */
#define CASE(b, t, h, p, g, n, l, order, add, bound)                                               \
    { .in = { TG_T3(F32, b, t, 2 * (h) * (p) + 2 * (g) * (n)), TG_T3(F32, b, t, 2 * (h)),          \
              TG_T2(F32, (h) * (p) + 2 * (g) * (n), l), TG_T1(F32, 2 * (h) + (p)),                 \
              TG_T3(F32, b, t, (h) * (p)) },                                                       \
      .attr = { .i = { h, p, g, n, order }, .f = { 1e-6f } },                                      \
      .acc = (add),                                                                                \
      .tol = (bound) }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, 1, 1, 1, 2, 0, 0, 1e-4),    CASE(2, 3, 2, 3, 1, 2, 4, 0, 12, 1e-4),
    CASE(1, 9, 4, 2, 2, 3, 3, 1, 0, 1e-4),    CASE(1, 18, 4, 3, 2, 3, 3, 0, 0, 1e-4),
    CASE(2, 37, 2, 17, 1, 5, 4, 0, 12, 5e-4), CASE(1, 17, 2, 80, 1, 70, 4, 0, 12, 5e-4),
};

static const char *const sizes[] = {
#include "ops/mamba2/mamba2_common.wgsl.h"
};
static const char *const places[] = {
#include "ops/delta_net/delta_net_common.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/delta_net/delta_net_grad.wgsl.h"
};
static const char *const rows[] = {
#include "ops/delta_net/delta_net_rows.wgsl.h"
};
static size_t back_groups(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[0]; }
static size_t unit_groups(const tg_args *a) {
    return 2 * tg_type_rows(&a->in_type[0]) * (size_t)a->attr.i[2];
}
/* Columns, and behind them the heads' numbers. */
static size_t column_groups(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    return tg_shader_parts(m.K, 64) + tg_shader_parts(2 * m.H + m.P, 64);
}
/* The text says what is in it. */
static size_t scratch_bytes(const tg_args *a) {
    const mamba m = delta_sizes(a, 2);
    const size_t T = a->in_type[0].dim[1], states = 18 + tg_shader_parts(T, 16);
    return sizeof(float) * (tg_type_rows(&a->in_type[0]) * (m.K + 2 * m.G) +
                            back_groups(a) * (2 * T * m.N + 18 * m.P + 1 + states * m.P * m.N));
}
#define PASS(name, count, a, b, c, d)                                                              \
    { .entry = name,                                                                               \
      .wgsl = { sizes, places, wgsl, rows },                                                       \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_IN(0), a, b, c, TG_BIND_OUT(0), d, TG_BIND_SCRATCH },                      \
      .groups = count }
static const tg_shader shaders[] = {
    { .name = "heads",
      .pass = { PASS("rows", delta_row_groups, TG_BIND_IN(2), TG_BIND_NONE, TG_BIND_NONE,
                     TG_BIND_NONE),
                PASS("back", back_groups, TG_BIND_IN(1), TG_BIND_IN(3), TG_BIND_IN(4),
                     TG_BIND_OUT(1)),
                PASS("units", unit_groups, TG_BIND_NONE, TG_BIND_NONE, TG_BIND_NONE, TG_BIND_NONE),
                PASS("cols", column_groups, TG_BIND_IN(2), TG_BIND_OUT(1), TG_BIND_OUT(3),
                     TG_BIND_OUT(2)) },
      .scratch_bytes = scratch_bytes },
};

TG_OP_DESC(delta_net_grad) = {
    .name = "delta_net_grad",
    TG_DOC "gradients of delta_net with respect to its rows, taps and heads",
    .in_names = { "z", "ba", "w", "heads", "dy" },
    .out_names = { "dz", "dba", "dw", "dheads" },
    .n_in = 5,
    .n_out = 4,
    .accumulates = 12,
    .infer = infer,
    TG_REFS(delta_net_grad, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
