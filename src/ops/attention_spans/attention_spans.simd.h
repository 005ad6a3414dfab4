/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_spans.simd.h - one query after the other: a dot product with each key it sees, then the
 * weighted sum of values.
 *
 * Lanes are columns of a head. Texts for embedding are short and their heads small, so that the
 * products of the layers take most of the time: this is not the place for tiles (flash.h has them).
 */
#include "ir/op.h"
#include "ops/attention/heads.h"
#include "ops/attention_spans/spans.h"
#include "ops/attention_spans/spans_dot.h"
#include "simd/vmath.h"

/* p [n] to exp(scale * (p - largest)); gives their sum, and the log of that of exp(scale * p). */
static float weigh(float *p, size_t n, float scale, float *lse) {
    float top = p[0];
    for (size_t j = 1; j < n; j++) top = p[j] > top || p[j] != p[j] ? p[j] : top; /* a NaN stays */
    const tg_v m = tg_vset(top), s = tg_vset(scale);
    tg_v sum = tg_vzero();
    for (size_t j = 0; j < n; j += LANES) {
        const size_t left = n - j < LANES ? n - j : LANES;
        const tg_v e = tg_vexp(tg_vmul(tg_vsub(tg_vload_n(p + j, left), m), s));
        tg_vstore_n(p + j, e, left);
        sum = tg_vadd(sum, tg_vselect(tg_vfirst(left), e, tg_vzero()));
    }
    const float total = tg_vsum(sum);
    tg_vstore_n(lse, tg_vfma(m, s, tg_vlog(tg_vset(total))), 1);
    return total;
}

/* o [d] = sum of p[j] v[j] / total. */
static void gather(float *o, const float *p, float total, const float *v, size_t step, size_t n,
                   size_t d) {
    for (size_t c = 0; c < d; c += LANES) {
        const size_t left = d - c < LANES ? d - c : LANES;
        tg_v sum = tg_vzero();
        if (left == LANES)
            for (size_t j = 0; j < n; j++)
                sum = tg_vfma(tg_vset(p[j]), tg_vload(v + j * step + c), sum);
        else
            for (size_t j = 0; j < n; j++)
                sum = tg_vfma(tg_vset(p[j]), tg_vload_n(v + j * step + c, left), sum);
        tg_vstore_n(o + c, tg_vdiv(sum, tg_vset(total)), left);
    }
}

static size_t units(const tg_args *a) { return (size_t)a->attr.i[0] * a->in_type[0].dim[0]; }

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t rows = a->in_type[0].dim[0];
    const float *qkv = a->in[0];
    float *p = a->local;
    for (size_t u = begin; u < end; u++) {
        const size_t h = u / rows, t = u % rows, kv = h / s.group;
        const span seen = span_of(a->in[1], t, rows, a->attr.i[3]);
        const float *q = qkv + t * s.row + tg_heads_q(&s, h);
        const float *from = qkv + seen.begin * s.row;
        const size_t n = seen.end - seen.begin;
        for (size_t j = 0; j < n; j++) p[j] = dot(q, from + j * s.row + tg_heads_k(&s, kv), s.size);
        const float total = weigh(p, n, a->attr.f[0], (float *)a->out[1] + t * s.n_q + h);
        gather((float *)a->out[0] + t * s.q_row + h * s.size, p, total, from + tg_heads_v(&s, kv),
               s.row, n, s.size);
    }
}

static size_t local_bytes(const tg_args *a) { return a->in_type[0].dim[0] * sizeof(float); }

static const tg_variant variants[] = {
    { .name = "rows", .phase = { { units, run } }, .local_bytes = local_bytes },
};
TG_KERNELS(attention_spans, variants);
