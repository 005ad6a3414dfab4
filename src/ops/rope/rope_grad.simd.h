/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_grad.simd.h - dqkv by rows; the norms' gradients by fixed chunks of rows, then over the
 * chunks.
 *
 *   phase 0   a unit is a chunk of rows: dqkv of each row, and the chunk's part of the sums over
 *             rows and heads, rows rising, then heads
 *   phase 1   a unit is some columns: the parts, chunks rising (column_parts.h)
 */
#include "ir/op.h"
#include "ops/attention/heads.h"
#include "ops/column_parts.h"
#include "ops/rms_norm/rms_row.h"
#include "ops/rope/normed.h"

/* Of keys there may be fewer columns than of queries: two tables. */
static column_parts parts_of(const tg_args *a, int which) {
    return column_parts_of(tg_type_rows(&a->in_type[0]), tg_normed_of(&a->attr, which).size, 1);
}
static size_t scratch_bytes(const tg_args *a) {
    const column_parts q = parts_of(a, 0), k = parts_of(a, 1);
    return column_parts_bytes(&q) + column_parts_bytes(&k);
}
static float *scratch_of(const tg_args *a, int which) {
    const column_parts q = parts_of(a, 0);
    return (float *)a->scratch + (which ? column_parts_bytes(&q) / sizeof(float) : 0);
}
static size_t chunk_units(const tg_args *a) { return parts_of(a, 0).chunks; }

/* dx may be dy: both elements of a pair are read before either is written. */
static void turn_back(const float *dy, float *dx, const float *table, size_t turned, size_t d) {
    const size_t half = turned / 2;
    for (size_t i = 0; i < half; i += 16) {
        const size_t n = tg_min_size(16, half - i);
        const tg_v p = tg_vload_n(dy + i, n), q = tg_vload_n(dy + half + i, n);
        const tg_v c = tg_vload_n(table + i, n), s = tg_vload_n(table + half + i, n);
        tg_vstore_n(dx + i, tg_vfma(q, s, tg_vmul(p, c)), n);
        tg_vstore_n(dx + half + i, tg_vfnma(p, s, tg_vmul(q, c)), n);
    }
    if (dx != dy && turned < d) memcpy(dx + turned, dy + turned, (d - turned) * sizeof *dx);
}

/* dx holds the gradient of the norm's result, and then that of x; dnorm is whole vectors. */
TG_OUT_OF_LINE void norm_back(const float *x, float *dx, const float *norm, float *dnorm, size_t d,
                              float eps) {
    const tg_v scale = tg_vset(rms_scale(x, d, eps));
    tg_v sum = tg_vzero();
    for (size_t i = 0; i < d; i += 16) {
        const size_t n = tg_min_size(16, d - i);
        const tg_v h = tg_vmul(tg_vload_n(x + i, n), scale), dz = tg_vload_n(dx + i, n);
        sum = tg_vfma(tg_vmul(dz, tg_vload_n(norm + i, n)), h, sum);
        tg_vstore(dnorm + i, tg_vfma(dz, h, tg_vload(dnorm + i)));
    }
    const tg_v mean = tg_vset(tg_vsum(sum) / (float)d);
    for (size_t i = 0; i < d; i += 16) {
        const size_t n = tg_min_size(16, d - i);
        const tg_v h = tg_vmul(tg_vload_n(x + i, n), scale);
        const tg_v e = tg_vmul(tg_vload_n(dx + i, n), tg_vload_n(norm + i, n));
        tg_vstore_n(dx + i, tg_vmul(tg_vfnma(h, mean, e), scale), n);
    }
}

static void run_row(const tg_args *a, const tg_heads *s, size_t row, float *const part[2]) {
    const size_t tokens = a->in_type[1].dim[0], turned = a->in_type[1].dim[1];
    const size_t v = tg_heads_v(s, 0);
    const float *dy = (const float *)a->in[0] + row * s->row, *x = a->in[2];
    const float *table = (const float *)a->in[1] + row % tokens * turned;
    float *dx = (float *)a->out[0] + row * s->row;
    for (size_t h = 0; h < s->n_q + s->n_kv; h++)
        turn_back(dy + h * s->size, dx + h * s->size, table, turned, s->size);
    for (int k = 0; k < 2; k++) {
        const tg_normed p = tg_normed_of(&a->attr, k);
        for (size_t i = 0, at = p.at; a->in[3 + k] && i < p.n; i++, at += p.size)
            norm_back(x + row * s->row + at, dx + at, a->in[3 + k], part[k], p.size, a->attr.f[0]);
    }
    if (dx != dy) memcpy(dx + v, dy + v, s->n_kv * s->size * sizeof *dx);
}

static void run_chunks(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const column_parts p[2] = { parts_of(a, 0), parts_of(a, 1) };
    for (size_t k = begin; k < end; k++) {
        float *part[2];
        for (int i = 0; i < 2; i++) {
            part[i] = column_part(&p[i], scratch_of(a, i), k);
            memset(part[i], 0, p[i].stride * sizeof *part[i]);
        }
        const size_t stop = tg_min_size((k + 1) * CHUNK_ROWS, tg_type_rows(&a->in_type[0]));
        for (size_t row = k * CHUNK_ROWS; row < stop; row++) run_row(a, &s, row, part);
    }
}

static size_t column_units(const tg_args *a) {
    const column_parts q = parts_of(a, 0);
    return column_parts_units(&q);
}
static void run_columns(const tg_args *a, size_t begin, size_t end) {
    for (int k = 0; k < 2; k++) {
        const column_parts p = parts_of(a, k);
        column_parts_add(&p, scratch_of(a, k), 0, a->out[1 + k], a->acc & 2 << k, begin, end);
    }
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunk_units, run_chunks }, { column_units, run_columns } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(rope_grad, variants);
