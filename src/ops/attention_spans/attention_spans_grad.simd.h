/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_spans_grad.simd.h - the gradient of attention_spans: dq query by query, then dk and dv
 * by blocks of keys.
 *
 *     queries   for 64 keys at a time of those that t sees:   dq[t] += ds k[j]
 *     keys      for each head of the group, for each query t that sees some of 64 keys:
 *                   dk[j] += ds q[t]     dv[j] += p do[t]
 *
 * Scores are computed in both phases: so sums have one order, and no worker waits for another's.
 * Lanes are columns of a head in products, keys in exponentials.
 */
#include "ir/op.h"
#include "ops/attention/heads.h"
#include "ops/attention_spans/spans.h"
#include "ops/attention_spans/spans_dot.h"
#include "simd/vmath.h"

enum { BLOCK = 64 };

/* A query of a head, with what belongs to it. */
typedef struct query {
    const float *q, *dout; /* [D] */
    float scale, lse, delta;
} query;

static query query_at(const tg_args *a, const tg_heads *s, size_t h, size_t t) {
    const size_t at = t * s->q_row + h * s->size;
    const float *o = a->in[2], *lse = a->in[3], *dout = a->in[4];
    return (query) { .q = (const float *)a->in[0] + t * s->row + tg_heads_q(s, h),
                     .dout = dout + at,
                     .scale = a->attr.f[0],
                     .lse = lse[t * s->n_q + h],
                     .delta = dot(dout + at, o + at, s->size) };
}

/* p [n] and ds [n], scaled, of n <= BLOCK keys: k and v are the first one's. */
static void pairs(const query *x, const float *k, const float *v, size_t step, size_t n, size_t d,
                  float *p, float *ds) {
    for (size_t j = 0; j < n; j++) {
        p[j] = dot(x->q, k + j * step, d);
        ds[j] = dot(x->dout, v + j * step, d);
    }
    const tg_v scale = tg_vset(x->scale), minus_lse = tg_vset(-x->lse), delta = tg_vset(x->delta);
    for (size_t j = 0; j < n; j += LANES) {
        const size_t left = n - j < LANES ? n - j : LANES;
        const tg_v e = tg_vexp(tg_vfma(tg_vload_n(p + j, left), scale, minus_lse));
        const tg_v dp = tg_vsub(tg_vload_n(ds + j, left), delta);
        tg_vstore_n(p + j, e, left);
        tg_vstore_n(ds + j, tg_vmul(tg_vmul(e, scale), dp), left);
    }
}

/* y [d] += w x [d]. */
static void add_scaled(float *y, float w, const float *x, size_t d) {
    for (size_t c = 0; c < d; c += LANES) {
        const size_t left = d - c < LANES ? d - c : LANES;
        const tg_v sum = tg_vfma(tg_vset(w), tg_vload_n(x + c, left), tg_vload_n(y + c, left));
        tg_vstore_n(y + c, sum, left);
    }
}

static size_t query_units(const tg_args *a) { return (size_t)a->attr.i[0] * a->in_type[0].dim[0]; }

static void queries(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0];
    const float *qkv = a->in[0];
    float p[BLOCK], ds[BLOCK];
    for (size_t u = begin; u < end; u++) {
        const size_t h = u / rows, t = u % rows, kv = h / s.group;
        const span seen = span_of(a->in[1], t, rows, a->attr.i[3]);
        const query x = query_at(a, &s, h, t);
        float *dq = (float *)a->out[0] + t * s.row + tg_heads_q(&s, h);
        memset(dq, 0, s.size * sizeof *dq);
        for (size_t first = seen.begin; first < seen.end; first += BLOCK) {
            const size_t n = seen.end - first < BLOCK ? seen.end - first : BLOCK;
            const float *k = qkv + first * s.row + tg_heads_k(&s, kv);
            pairs(&x, k, qkv + first * s.row + tg_heads_v(&s, kv), s.row, n, s.size, p, ds);
            for (size_t j = 0; j < n; j++) add_scaled(dq, ds[j], k + j * s.row, s.size);
        }
    }
}

static size_t key_units(const tg_args *a) {
    return (size_t)a->attr.i[1] * ((a->in_type[0].dim[0] + BLOCK - 1) / BLOCK);
}

/* Query t of head h to the sums of keys [first, last) of head kv, where it sees any. */
static void add_query(const tg_args *a, const tg_heads *s, size_t h, size_t t, size_t first,
                      size_t last) {
    const size_t kv = h / s->group;
    const span seen = span_of(a->in[1], t, a->in_type[0].dim[0], a->attr.i[3]);
    const size_t from = seen.begin > first ? seen.begin : first;
    const size_t to = seen.end < last ? seen.end : last;
    if (from >= to) return;
    float p[BLOCK], ds[BLOCK];
    const float *row = (const float *)a->in[0] + from * s->row;
    float *d_row = (float *)a->out[0] + from * s->row;
    const query x = query_at(a, s, h, t);
    pairs(&x, row + tg_heads_k(s, kv), row + tg_heads_v(s, kv), s->row, to - from, s->size, p, ds);
    for (size_t j = 0; j < to - from; j++, d_row += s->row) {
        add_scaled(d_row + tg_heads_k(s, kv), ds[j], x.q, s->size);
        add_scaled(d_row + tg_heads_v(s, kv), p[j], x.dout, s->size);
    }
}

static void keys(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0], blocks = (rows + BLOCK - 1) / BLOCK;
    for (size_t u = begin; u < end; u++) {
        const size_t kv = u / blocks, first = u % blocks * BLOCK;
        const size_t last = rows - first < BLOCK ? rows : first + BLOCK;
        for (size_t j = first; j < last; j++) {
            float *row = (float *)a->out[0] + j * s.row;
            memset(row + tg_heads_k(&s, kv), 0, s.size * sizeof *row);
            memset(row + tg_heads_v(&s, kv), 0, s.size * sizeof *row);
        }
        for (size_t h = kv * s.group; h < (kv + 1) * s.group; h++)
            for (size_t t = 0; t < rows; t++) add_query(a, &s, h, t, first, last);
    }
}

static const tg_variant variants[] = {
    { .name = "rows", .phase = { { query_units, queries }, { key_units, keys } } },
};
TG_KERNELS(attention_spans_grad, variants);
