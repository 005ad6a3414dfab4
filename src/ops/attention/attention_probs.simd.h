/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_probs.simd.h - softmax of scaled scores, row by row. A unit is a row of a head: it is
 * written for a picture a second, not for training, so lanes run along D and each score costs a sum
 * across them.
 */
#include "ir/op.h"
#include "ops/attention/cap.h"
#include "ops/attention/flash/tiles.h"
#include "ops/attention/heads.h"
#include "ops/attention/softmax.h"

static size_t units(const tg_args *a) {
    const tg_type *t = &a->in_type[0];
    return t->dim[0] * (size_t)a->attr.i[0] * t->dim[1];
}

/* p[0, n): dot products on entry, their softmax in the end. The maximum is taken of the products,
 * as in attention, since scale is above 0. */
static void softmax(float *p, size_t n, float scale, float cap) {
    tg_v top = tg_vset(MINUS_INF), sum = tg_vzero();
    if (cap > 0) cap_dots(p, n, scale, cap);
    for (size_t j = 0; j < n; j += LANES) {
        const size_t m = tg_min_size(LANES, n - j);
        const tg_v x = tg_vselect(tg_vfirst(m), tg_vload_n(p + j, m), tg_vset(MINUS_INF));
        top = tg_vmax(x, top);
    }
    top = tg_vset(tg_vmaxlane(top));
    for (size_t j = 0; j < n; j += LANES) {
        const size_t m = tg_min_size(LANES, n - j);
        const tg_v t = tg_vmul(tg_vsub(tg_vload_n(p + j, m), top), tg_vset(scale * LOG2_E));
        const tg_v w = tg_vselect(tg_vfirst(m), power_of_2(t), tg_vzero());
        tg_vstore_n(p + j, w, m);
        sum = tg_vadd(sum, w);
    }
    const tg_v total = tg_vset(tg_vsum(sum));
    for (size_t j = 0; j < n; j += LANES) {
        const size_t m = tg_min_size(LANES, n - j);
        tg_vstore_n(p + j, tg_vdiv(tg_vload_n(p + j, m), total), m);
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t T = a->in_type[0].dim[1];
    for (size_t u = begin; u < end; u++) {
        const size_t b = u / (s.n_q * T), h = u / T % s.n_q, t = u % T;
        const float *qkv = (const float *)a->in[0] + b * T * s.row;
        const float *q = qkv + t * s.row + tg_heads_q(&s, h);
        const float *k = qkv + tg_heads_k(&s, h / s.group);
        float *p = (float *)a->out[0] + u * T;
        const size_t first = (size_t)tg_heads_low(&a->attr, t, 0);
        for (size_t j = first; j <= t; j++) p[j] = row_dot(q, k + j * s.row, s.size);
        memset(p, 0, first * sizeof *p);
        softmax(p + first, t + 1 - first, a->attr.f[0], a->attr.f[2]);
        memset(p + t + 1, 0, (T - t - 1) * sizeof *p);
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(attention_probs, variants);
