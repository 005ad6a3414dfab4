/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope.simd.h - a unit for some rows; lanes are pairs of columns.
 */
#include "ir/op.h"
#include "ops/attention/heads.h"
#include "ops/kernel.h"
#include "ops/rms_norm/rms_row.h"
#include "ops/rope/normed.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows(tg_type_cols(&a->in_type[0]), TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[0]), unit_rows(a));
}

/* y may be x: both elements of a pair are read before either is written. */
static void turn(const float *x, float *y, const float *norm, const float *table, size_t turned,
                 size_t d, float rms) {
    const size_t half = turned / 2;
    const tg_v scale = tg_vset(rms);
    for (size_t i = 0; i < half; i += 16) {
        const size_t n = tg_min_size(16, half - i);
        tg_v p = tg_vload_n(x + i, n), q = tg_vload_n(x + half + i, n);
        if (norm) {
            p = tg_vmul(tg_vmul(p, scale), tg_vload_n(norm + i, n));
            q = tg_vmul(tg_vmul(q, scale), tg_vload_n(norm + half + i, n));
        }
        const tg_v c = tg_vload_n(table + i, n), s = tg_vload_n(table + half + i, n);
        tg_vstore_n(y + i, tg_vfnma(q, s, tg_vmul(p, c)), n);
        tg_vstore_n(y + half + i, tg_vfma(p, s, tg_vmul(q, c)), n);
    }
    for (size_t i = turned; i < d; i += 16) {
        const size_t n = tg_min_size(16, d - i);
        tg_v p = tg_vload_n(x + i, n);
        if (norm) p = tg_vmul(tg_vmul(p, scale), tg_vload_n(norm + i, n));
        tg_vstore_n(y + i, p, n);
    }
}

/* Queries (0) or keys (1) of a row. Sums are there before anything is written. */
TG_OUT_OF_LINE void turn_all(const tg_args *a, int which, const float *x, float *y,
                             const float *table) {
    const tg_normed s = tg_normed_of(&a->attr, which);
    const float *norm = a->in[2 + which];
    const size_t d = (size_t)a->attr.i[2], turned = a->in_type[1].dim[1];
    for (size_t i = 0, at = s.at; i < s.n; i++, at += s.size) {
        const float scale = norm ? rms_scale(x + at, s.size, a->attr.f[0]) : 1;
        for (size_t h = 0; h < s.size; h += d)
            turn(x + at + h, y + at + h, norm ? norm + h : NULL, table, turned, d, scale);
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t stop = tg_min_size(end * unit_rows(a), tg_type_rows(&a->in_type[0]));
    const size_t tokens = a->in_type[1].dim[0], turned = a->in_type[1].dim[1];
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const float *x = (const float *)a->in[0] + r * s.row;
        const float *table = (const float *)a->in[1] + r % tokens * turned;
        float *y = (float *)a->out[0] + r * s.row;
        turn_all(a, 0, x, y, table);
        turn_all(a, 1, x, y, table);
        if (y != x)
            memcpy(y + tg_heads_v(&s, 0), x + tg_heads_v(&s, 0), s.n_kv * s.size * sizeof *y);
    }
}

static const tg_variant variants[] = { { .name = "rows", .phase = { { units, run } } } };
TG_KERNELS(rope, variants);
