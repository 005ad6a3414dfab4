/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_packed.simd.h - products with weights as model files have them. y = f(a) b^T + bias +
 * residual in three ways:
 *
 *   vnni, int8   a is rounded to bytes; few rows by every worker for itself, many of them once for
 *                all, into scratch                                              packed_int8.h
 *   unpacked     b is turned into floats, group by group; the only way for float packings, and for
 *                floats in rows, as files have them                             packed_rows.h
 *
 * and y = a b, the gradient with respect to f(a), by columns of b                packed_dx.h
 *
 * A unit is some groups of b for a block of rows of a: groups of the parts are numbered through.
 */
#include "ops/matmul/packed/packed_dx.h"
#include "ops/matmul/packed/packed_float.h"
#include "ops/matmul/packed/packed_int8.h"
#include "ops/matmul/packed/packed_rows.h"
#include "simd/cpu.h"

/* Rows that each worker rounds for itself: it costs less than to wait for others to do it. */
enum { FEW = 4, BLOCK_ROWS = 10 * 12, UNIT_GROUPS = 4 };

/* What all ways need to know of a call. */
typedef struct product {
    const tg_args *args;
    b_part parts[MATMUL_PARTS];
    size_t n_parts, groups, depth, rows, x_cols, cols;
    int how;
} product;

static product product_of(const tg_args *a) {
    product p = { .args = a, .depth = matmul_depth(a), .how = a->attr.i[MATMUL_READ] };
    p.n_parts = matmul_parts(a, p.parts);
    for (size_t i = 0; i < p.n_parts; i++) p.groups += tg_pack_groups(p.parts[i].rows);
    p.rows = tg_type_rows(&a->in_type[MATMUL_A]);
    p.x_cols = tg_type_cols(&a->in_type[MATMUL_A]);
    p.cols = tg_type_cols(&a->out_type[0]);
    return p;
}

/* Group number n of all: *part_index is where to look first. */
static const b_part *group_at(const product *p, size_t n, size_t *group) {
    const b_part *q = p->parts;
    while (n >= tg_pack_groups(q->rows)) n -= tg_pack_groups(q++->rows);
    *group = n;
    return q;
}

static const uint8_t *group_bytes(const product *p, const b_part *q, size_t group) {
    return q->packed + group * (q->packing ? tg_pack_group_bytes(q->packing, p->depth)
                                           : TG_PACK_ROWS * HALF_BYTES * p->depth);
}

/* All sixteen, as nearly always: lanes together are loaded much faster than one by one. */
INLINE tg_v load_columns(const float *p, size_t n) {
    return n == TG_PACK_ROWS ? tg_vload(p) : tg_vload_n(p, n);
}

/* Sixteen columns of a row of y, or those that the part has. */
static void finish(const product *p, const b_part *q, size_t group, size_t row, tg_v sum) {
    const size_t n = tg_min_size(TG_PACK_ROWS, q->rows - group * TG_PACK_ROWS);
    const size_t col = q->begin + group * TG_PACK_ROWS, at = row * p->cols + col;
    const float *bias = p->args->in[MATMUL_BIAS], *residual = p->args->in[MATMUL_RESIDUAL];
    float *y = (float *)p->args->out[0] + at;
    if (p->args->acc & 1) sum = tg_vadd(load_columns(y, n), sum);
    if (bias) sum = tg_vadd(sum, load_columns(bias + col, n));
    if (residual) sum = tg_vadd(sum, load_columns(residual + at, n));
    if (n == TG_PACK_ROWS)
        tg_vstore(y, sum);
    else
        tg_vstore_n(y, sum, n);
}

/* ------------------------------------------------------------------------------------- integers */

static bool all_integer(const tg_args *a) {
    if (a->attr.i[MATMUL_TRANS] != 2) return false;
    b_part parts[MATMUL_PARTS];
    const size_t n = matmul_parts(a, parts);
    for (size_t i = 0; i < n; i++)
        if (!tg_packing_is_integer(parts[i].packing)) return false;
    return true;
}

/* One row of x, rounded, with groups [begin, end), which have one packing: in several runs of
 * groups side by side. */
static void int8_runs(const product *p, const tiles *t, tg_packing packing, const x_block *x,
                      size_t row, size_t begin, size_t end) {
    while (begin < end) {
        const size_t n = tg_min_size(STREAMS, end - begin), each = (end - begin) / n;
        for (size_t i = 0; i < each; i++) {
            const uint8_t *groups[STREAMS];
            tg_v y[STREAMS];
            size_t number[STREAMS];
            const b_part *q[STREAMS];
            for (size_t k = 0; k < n; k++) {
                q[k] = group_at(p, begin + k * each + i, &number[k]);
                groups[k] = group_bytes(p, q[k], number[k]);
            }
            t->one[packing](groups, n, x, p->depth / 32, y);
            for (size_t k = 0; k < n; k++) finish(p, q[k], number[k], row, y[k]);
        }
        begin += n * each;
    }
}
static void int8_row(const product *p, const tiles *t, const x_block *x, size_t row, size_t begin,
                     size_t end) {
    while (begin < end) {
        size_t group;
        const b_part *q = group_at(p, begin, &group), *const stop = p->parts + p->n_parts;
        const tg_packing packing = q->packing;
        size_t to = begin - group;
        for (; q < stop && q->packing == packing; q++) to += tg_pack_groups(q->rows);
        to = tg_min_size(to, end);
        int8_runs(p, t, packing, x, row, begin, to);
        begin = to;
    }
}

/* Rows [first, first + n) of x, rounded, with groups [begin, end). */
static void int8_groups(const product *p, const tiles *t, const x_block *x, size_t first, size_t n,
                        size_t begin, size_t end) {
    const size_t blocks = p->depth / 32, tiled = n / TILE_ROWS * TILE_ROWS;
    tg_v y[TILE_ROWS];
    for (size_t g = begin; tiled && g < end; g++) {
        size_t group;
        const b_part *q = group_at(p, g, &group);
        const uint8_t *w = group_bytes(p, q, group);
        for (size_t i = 0; i < tiled; i += TILE_ROWS) {
            t->all[q->packing](w, x + i * blocks, blocks, y);
            for (size_t k = 0; k < TILE_ROWS; k++) finish(p, q, group, first + i + k, y[k]);
        }
    }
    for (size_t i = tiled; i < n; i++) int8_row(p, t, x + i * blocks, first + i, begin, end);
}

static void round_rows(const product *p, x_block *out, size_t begin, size_t end,
                       const uint8_t *ahead) {
    const float *x = p->args->in[MATMUL_A];
    for (size_t r = begin; r < end; r++)
        round_row(out + r * (p->depth / 32), x + r * p->x_cols, p->depth, p->how,
                  r == begin ? ahead : NULL);
}

/* Few rows: a unit is a share of the groups, as many as there are workers. */
static bool few_fits(const tg_args *a) {
    return all_integer(a) && tg_type_rows(&a->in_type[MATMUL_A]) <= FEW;
}
static size_t few_units(const tg_args *a) {
    const product p = product_of(a);
    return tg_units(p.groups, tg_units(p.groups, a->workers));
}
static void few_run(const tg_args *a, size_t begin, size_t end, const tiles *t) {
    const product p = product_of(a);
    const size_t step = tg_units(p.groups, a->workers), first = begin * step;
    size_t group;
    const b_part *q = group_at(&p, first, &group);
    round_rows(&p, a->local, 0, p.rows, group_bytes(&p, q, group));
    int8_groups(&p, t, a->local, 0, p.rows, first, tg_min_size(end * step, p.groups));
}
static size_t few_local_bytes(const tg_args *a) {
    return tg_type_rows(&a->in_type[MATMUL_A]) * (matmul_depth(a) / 32) * sizeof(x_block);
}

/* Many rows: first they are rounded, into scratch; then a unit is UNIT_GROUPS groups for a block of
 * rows that stays in the second cache. */
static size_t round_units(const tg_args *a) {
    return tg_units(tg_type_rows(&a->in_type[MATMUL_A]), 4);
}
static void round_run(const tg_args *a, size_t begin, size_t end) {
    const product p = product_of(a);
    round_rows(&p, a->scratch, begin * 4, tg_min_size(end * 4, p.rows), NULL);
}
static size_t many_units(const tg_args *a) {
    const product p = product_of(a);
    return tg_units(p.rows, BLOCK_ROWS) * tg_units(p.groups, UNIT_GROUPS);
}
static void many_run(const tg_args *a, size_t begin, size_t end, const tiles *t) {
    const product p = product_of(a);
    const size_t across = tg_units(p.groups, UNIT_GROUPS);
    for (size_t u = begin; u < end; u++) {
        const size_t row = u / across * BLOCK_ROWS, g = u % across * UNIT_GROUPS;
        const x_block *x = (const x_block *)a->scratch + row * (p.depth / 32);
        int8_groups(&p, t, x, row, tg_min_size(BLOCK_ROWS, p.rows - row), g,
                    tg_min_size(g + UNIT_GROUPS, p.groups));
    }
}

static void few_plain(const tg_args *a, size_t begin, size_t end) {
    few_run(a, begin, end, &plain_tiles);
}
static void many_plain(const tg_args *a, size_t begin, size_t end) {
    many_run(a, begin, end, &plain_tiles);
}

#ifdef TG_SIMD_VNNI
static bool vnni_fits(const tg_args *a) { return all_integer(a) && tg_cpu_has_vnni(); }
static bool vnni_few_fits(const tg_args *a) { return few_fits(a) && tg_cpu_has_vnni(); }
static void few_vnni(const tg_args *a, size_t begin, size_t end) {
    few_run(a, begin, end, &vnni_tiles);
}
static void many_vnni(const tg_args *a, size_t begin, size_t end) {
    many_run(a, begin, end, &vnni_tiles);
}
#endif

/* --------------------------------------------------------------------------------------- floats */

static bool unpacked_fits(const tg_args *a) {
    return !matmul_b_is_floats(a) && a->attr.i[MATMUL_TRANS] == 2;
}
static size_t float_units(const tg_args *a) {
    const product p = product_of(a);
    return p.groups;
}

/* n rows of f(x), from row on: x itself, or `read`. */
static const float *float_x(const product *p, size_t row, size_t n, float *read, size_t *step) {
    const float *x = (const float *)p->args->in[MATMUL_A] + row * p->x_cols;
    *step = p->x_cols;
    if (p->how == TG_READ_PLAIN) return x;
    *step = tg_units(p->depth, 16) * 16;
    for (size_t i = 0; i < n; i++) read_row(read + i * *step, x + i * p->x_cols, p->depth, p->how);
    return read;
}

/* local: | W of the group, [depth][16] | rows of f(x), where they are not x itself | */
static void float_run(const tg_args *a, size_t begin, size_t end) {
    const product p = product_of(a);
    float *const panel = a->local, *const read = panel + p.depth * TG_PACK_ROWS;
    const bool few = p.rows <= FLOAT_ROWS; /* x is read once */
    size_t step = 0;
    const float *x = few ? float_x(&p, 0, p.rows, read, &step) : NULL;
    for (size_t g = begin; g < end; g++) {
        size_t group;
        tg_v y[FLOAT_ROWS];
        const b_part *q = group_at(&p, g, &group);
        const uint8_t *bytes = group_bytes(&p, q, group);
        const size_t there = tg_min_size(TG_PACK_ROWS, q->rows - group * TG_PACK_ROWS);
        if (q->packing == TG_PACK_NONE &&
            rows_few(q->dtype, bytes, there, x, step, p.depth, p.rows, y)) {
            for (size_t i = 0; i < p.rows; i++) finish(&p, q, group, i, y[i]);
            continue;
        }
        const float *w = panel;
        if (q->packing == TG_PACK_NONE)
            rows_panel(q->dtype, p.depth, bytes, there, panel);
        else
            w = float_panel(q->packing, p.depth, bytes, panel);
        for (size_t row = 0; row < p.rows; row += FLOAT_ROWS) {
            const size_t n = tg_min_size(FLOAT_ROWS, p.rows - row);
            if (!few) x = float_x(&p, row, n, read, &step);
            float_tile(w, x, step, p.depth, n, y);
            for (size_t i = 0; i < n; i++) finish(&p, q, group, row + i, y[i]);
        }
    }
}
static size_t float_local_bytes(const tg_args *a) {
    const size_t depth = matmul_depth(a), width = tg_units(depth, 16) * 16;
    return (depth * TG_PACK_ROWS + width * FLOAT_ROWS) * sizeof(float);
}

/* --------------------------------------------------------------------------------------- table */

static size_t scratch_bytes(const tg_args *a) { return few_local_bytes(a); }

static const tg_variant variants[] = {
#ifdef TG_SIMD_VNNI
    { .name = "vnni few",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = vnni_few_fits,
      .phase = { { few_units, few_vnni } },
      .local_bytes = few_local_bytes },
    { .name = "vnni",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = vnni_fits,
      .phase = { { round_units, round_run }, { many_units, many_vnni } },
      .scratch_bytes = scratch_bytes },
#endif
    { .name = "int8 few",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = few_fits,
      .phase = { { few_units, few_plain } },
      .local_bytes = few_local_bytes },
    { .name = "int8",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = all_integer,
      .phase = { { round_units, round_run }, { many_units, many_plain } },
      .scratch_bytes = scratch_bytes },
    { .name = "unpacked",
      .fits = unpacked_fits,
      .phase = { { float_units, float_run } },
      .local_bytes = float_local_bytes },
    { .name = "unpacked columns",
      .fits = dx_fits,
      .phase = { { dx_units, dx_run } },
      .local_bytes = dx_local_bytes },
};
TG_KERNELS(matmul_packed, variants);
