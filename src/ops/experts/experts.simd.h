/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts.simd.h - products with routed experts, of the pieces that matmul's are made of: so a row
 * has the bits that it would have alone, and that a matmul with its expert's matrix would give.
 *
 *   few    units are shares of (choice, sixteen rows of its expert): each worker rounds x itself
 *   many   choices are sorted by expert, in the order of the tokens; a unit is some groups of one
 *          expert for all of its choices, so that its weights are read once
 *
 * scratch, where they are sorted: | slots [choices] | first [E+1] | x rounded, slot by slot |
 *
 * A group is sixteen rows of the matrix of all experts, and may have rows of two of them: what is
 * not the expert's is computed and dropped.
 */
#include "ops/experts/experts_rules.h"
#include "ops/matmul/packed/packed_dx.h"
#include "ops/matmul/packed/packed_float.h"
#include "ops/matmul/packed/packed_int8.h"
#include "ops/matmul/packed/packed_rows.h"
#include "simd/cpu.h"

enum { FEW_CHOICES = 32, UNIT_GROUPS = 8 };

/* Choices by expert: those of e are slots[first[e]] .. slots[first[e+1] - 1], rising. */
typedef struct order {
    uint32_t *slots, *first;
} order;

static size_t choices_of(const tg_args *a) { return tg_type_elems(&a->in_type[EXPERTS_IDS]); }

static size_t order_bytes(const tg_args *a) {
    const size_t n = choices_of(a) + (size_t)a->attr.i[EXPERTS_E] + 1;
    return (n * sizeof(uint32_t) + 63) / 64 * 64;
}
static order order_of(const tg_args *a) {
    uint32_t *slots = a->scratch;
    return (order) { slots, slots + choices_of(a) };
}

static size_t one_unit(const tg_args *a) {
    (void)a;
    return 1;
}
static void sort_run(const tg_args *a, size_t begin, size_t end) {
    (void)begin, (void)end;
    const order o = order_of(a);
    const size_t E = (size_t)a->attr.i[EXPERTS_E], n = choices_of(a);
    const int32_t *ids = a->in[EXPERTS_IDS];
    memset(o.first, 0, (E + 1) * sizeof *o.first);
    for (size_t i = 0; i < n; i++) o.first[tg_clamp_id(ids[i], E) + 1]++;
    for (size_t e = 0; e < E; e++) o.first[e + 1] += o.first[e];
    for (size_t i = 0; i < n; i++) o.slots[o.first[tg_clamp_id(ids[i], E)]++] = (uint32_t)i;
    for (size_t e = E; e > 0; e--) o.first[e] = o.first[e - 1];
    o.first[0] = 0;
}

/* ------------------------------------------------------------------------------ forward: pieces */

/* Groups of an expert: at most so many, of which the first is number e*N / 16. */
static size_t groups_most(const experts_sizes *s) {
    return (s->N + TG_PACK_ROWS - 2) / TG_PACK_ROWS + 1;
}
static size_t group_first(const experts_sizes *s, size_t e) { return e * s->N / TG_PACK_ROWS; }
static size_t group_end(const experts_sizes *s, size_t e) {
    return tg_units((e + 1) * s->N, TG_PACK_ROWS);
}

static const uint8_t *group_at(const tg_args *a, const experts_sizes *s, size_t part,
                               size_t group) {
    const tg_type *t = &a->in_type[EXPERTS_W + part];
    const size_t row_bytes = s->K * tg_dtype_table[t->dtype].bytes;
    return (const uint8_t *)a->in[EXPERTS_W + part] +
           group * (t->layout ? tg_pack_group_bytes(t->layout, s->K) : TG_PACK_ROWS * row_bytes);
}

/* What a choice gives by a group of its expert e. */
static void put(const tg_args *a, const experts_sizes *s, size_t choice, size_t part, size_t e,
                size_t group, tg_v sum) {
    float *y = (float *)a->out[0] + experts_y_at(s, choice / s->k, choice % s->k, part);
    const size_t first = group * TG_PACK_ROWS, begin = e * s->N, end = begin + s->N;
    if (first >= begin && first + TG_PACK_ROWS <= end) {
        tg_vstore(y + (first - begin), sum);
        return;
    }
    float lanes[TG_PACK_ROWS];
    tg_vstore(lanes, sum);
    for (size_t i = 0; i < TG_PACK_ROWS; i++)
        if (first + i >= begin && first + i < end) y[first + i - begin] = lanes[i];
}

static const float *x_of(const tg_args *a, const experts_sizes *s, size_t choice) {
    return (const float *)a->in[EXPERTS_X] + experts_x_at(s, choice / s->k, choice % s->k);
}

/* ------------------------------------------------------------------------------ forward: integers
 */

static bool all_integer(const tg_args *a) {
    const tg_type *w = &a->in_type[EXPERTS_W], *w1 = &a->in_type[EXPERTS_W1];
    return tg_packing_is_integer(w->layout) && (!w1->n_dims || tg_packing_is_integer(w1->layout));
}
static bool few_fits(const tg_args *a) { return all_integer(a) && choices_of(a) <= FEW_CHOICES; }

/* One rounded row with groups [begin, end) of an expert, in several runs side by side. */
static void one_choice(const tg_args *a, const experts_sizes *s, const tiles *t, const x_block *x,
                       size_t choice, size_t part, size_t e, size_t begin, size_t end) {
    const tg_packing packing = a->in_type[EXPERTS_W + part].layout;
    while (begin < end) {
        const size_t n = tg_min_size(STREAMS, end - begin), each = (end - begin) / n;
        for (size_t i = 0; i < each; i++) {
            const uint8_t *groups[STREAMS];
            tg_v y[STREAMS];
            for (size_t k = 0; k < n; k++) groups[k] = group_at(a, s, part, begin + k * each + i);
            t->one[packing](groups, n, x, s->K / 32, y);
            for (size_t k = 0; k < n; k++) put(a, s, choice, part, e, begin + k * each + i, y[k]);
        }
        begin += n * each;
    }
}

/* (choice, part, group) are numbered through; a unit is a share of them. */
static size_t few_units(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    const size_t all = choices_of(a) * s.parts * groups_most(&s);
    return tg_units(all, tg_units(all, a->workers));
}
static void few_run(const tg_args *a, size_t begin, size_t end, const tiles *t) {
    const experts_sizes s = experts_sizes_of_args(a);
    const size_t most = groups_most(&s), all = choices_of(a) * s.parts * most;
    const size_t step = tg_units(all, a->workers), stop = tg_min_size(end * step, all);
    x_block *x = a->local;
    size_t rounded = SIZE_MAX;
    for (size_t at = begin * step; at < stop;) {
        const size_t choice = at / most / s.parts, part = at / most % s.parts, g = at % most;
        const size_t here = tg_min_size(most - g, stop - at);
        const size_t e = tg_clamp_id(((const int32_t *)a->in[EXPERTS_IDS])[choice], s.experts);
        const size_t row = s.own ? choice : choice / s.k, first = group_first(&s, e);
        if (row != rounded) round_row(x, x_of(a, &s, choice), s.K, TG_READ_PLAIN, NULL);
        rounded = row;
        one_choice(a, &s, t, x, choice, part, e, first + g,
                   tg_min_size(first + g + here, group_end(&s, e)));
        at += here;
    }
}
static size_t few_local_bytes(const tg_args *a) {
    return tg_type_cols(&a->in_type[EXPERTS_W]) / 32 * sizeof(x_block);
}

static size_t round_units(const tg_args *a) { return tg_units(choices_of(a), 4); }
static x_block *rounded_of(const tg_args *a) {
    return (x_block *)(void *)((char *)a->scratch + order_bytes(a));
}
static void round_run(const tg_args *a, size_t begin, size_t end) {
    const experts_sizes s = experts_sizes_of_args(a);
    const order o = order_of(a);
    for (size_t i = begin * 4; i < tg_min_size(end * 4, choices_of(a)); i++)
        round_row(rounded_of(a) + i * (s.K / 32), x_of(a, &s, o.slots[i]), s.K, TG_READ_PLAIN,
                  NULL);
}

/* Units of many: (expert, part, UNIT_GROUPS groups). */
static size_t many_units(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    return s.experts * s.parts * tg_units(groups_most(&s), UNIT_GROUPS);
}
typedef struct work {
    size_t e, part, begin, end; /* groups */
    size_t first, n;            /* slots */
} work;
static work work_of(const tg_args *a, const experts_sizes *s, size_t unit) {
    const size_t across = tg_units(groups_most(s), UNIT_GROUPS);
    const order o = order_of(a);
    work w = { .e = unit / across / s->parts, .part = unit / across % s->parts };
    w.begin = group_first(s, w.e) + unit % across * UNIT_GROUPS;
    w.end = tg_min_size(w.begin + UNIT_GROUPS, group_end(s, w.e));
    w.first = o.first[w.e];
    w.n = o.first[w.e + 1] - w.first;
    return w;
}

static void many_run(const tg_args *a, size_t begin, size_t end, const tiles *t) {
    const experts_sizes s = experts_sizes_of_args(a);
    const order o = order_of(a);
    const size_t blocks = s.K / 32;
    for (size_t u = begin; u < end; u++) {
        const work w = work_of(a, &s, u);
        const x_block *x = rounded_of(a) + w.first * blocks;
        const size_t tiled = w.n / TILE_ROWS * TILE_ROWS;
        tg_v y[TILE_ROWS];
        for (size_t g = w.begin; tiled && g < w.end; g++)
            for (size_t i = 0; i < tiled; i += TILE_ROWS) {
                t->all[a->in_type[EXPERTS_W + w.part].layout](group_at(a, &s, w.part, g),
                                                              x + i * blocks, blocks, y);
                for (size_t k = 0; k < TILE_ROWS; k++)
                    put(a, &s, o.slots[w.first + i + k], w.part, w.e, g, y[k]);
            }
        for (size_t i = tiled; i < w.n; i++)
            one_choice(a, &s, t, x + i * blocks, o.slots[w.first + i], w.part, w.e, w.begin, w.end);
    }
}
static size_t many_scratch_bytes(const tg_args *a) {
    return order_bytes(a) +
           choices_of(a) * (tg_type_cols(&a->in_type[EXPERTS_W]) / 32) * sizeof(x_block);
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

/* -------------------------------------------------------------------------------- forward: floats
 */

/* A group as [K][16] floats: where it is, or in the panel. */
static const float *panel_of(const tg_args *a, const experts_sizes *s, size_t part, size_t group,
                             float *panel) {
    const tg_type *t = &a->in_type[EXPERTS_W + part];
    const uint8_t *bytes = group_at(a, s, part, group);
    const size_t there = tg_min_size(TG_PACK_ROWS, t->dim[0] - group * TG_PACK_ROWS);
    if (t->layout) return float_panel(t->layout, s->K, bytes, panel);
    if (t->dtype != TG_F32) {
        rows_panel(t->dtype, s->K, bytes, there, panel);
        return panel;
    }
    const float *w = (const float *)(const void *)bytes;
    for (size_t i = 0; i < TG_PACK_ROWS; i++)
        for (size_t k = 0; k < s->K; k++)
            panel[k * TG_PACK_ROWS + i] = i < there ? w[i * s->K + k] : 0;
    return panel;
}

/* All rows of an expert at once, where they are few and its weights lie as a file has them. */
static bool is_direct(const tg_args *a, const experts_sizes *s, const work *w, size_t group,
                      const float *x, tg_v *y) {
    const tg_type *t = &a->in_type[EXPERTS_W + w->part];
    const size_t there = tg_min_size(TG_PACK_ROWS, t->dim[0] - group * TG_PACK_ROWS);
    return !t->layout && t->dtype != TG_F32 &&
           rows_few(t->dtype, group_at(a, s, w->part, group), there, x, s->K, s->K, w->n, y);
}

/* local: | a group [K][16] | FLOAT_ROWS rows of x, gathered | */
static void float_run(const tg_args *a, size_t begin, size_t end) {
    const experts_sizes s = experts_sizes_of_args(a);
    const order o = order_of(a);
    float *const panel = a->local, *const x = panel + s.K * TG_PACK_ROWS;
    for (size_t u = begin; u < end; u++) {
        const work w = work_of(a, &s, u);
        for (size_t g = w.begin; w.n && g < w.end; g++) {
            const float *b = NULL;
            for (size_t i = 0; i < w.n; i += FLOAT_ROWS) {
                const size_t n = tg_min_size(FLOAT_ROWS, w.n - i);
                tg_v y[FLOAT_ROWS];
                for (size_t r = 0; r < n && (w.n > FLOAT_ROWS || g == w.begin); r++)
                    memcpy(x + r * s.K, x_of(a, &s, o.slots[w.first + i + r]), s.K * sizeof *x);
                if (!b && !(n == w.n && is_direct(a, &s, &w, g, x, y)))
                    b = panel_of(a, &s, w.part, g, panel);
                if (b) float_tile(b, x, s.K, s.K, n, y);
                for (size_t r = 0; r < n; r++)
                    put(a, &s, o.slots[w.first + i + r], w.part, w.e, g, y[r]);
            }
        }
    }
}
static size_t float_local_bytes(const tg_args *a) {
    return tg_type_cols(&a->in_type[EXPERTS_W]) * (TG_PACK_ROWS + FLOAT_ROWS) * sizeof(float);
}

static const tg_variant forward[] = {
#ifdef TG_SIMD_VNNI
    { .name = "vnni few",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = vnni_few_fits,
      .phase = { { few_units, few_vnni } },
      .local_bytes = few_local_bytes },
    { .name = "vnni",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = vnni_fits,
      .phase = { { one_unit, sort_run }, { round_units, round_run }, { many_units, many_vnni } },
      .scratch_bytes = many_scratch_bytes },
#endif
    { .name = "int8 few",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = few_fits,
      .phase = { { few_units, few_plain } },
      .local_bytes = few_local_bytes },
    { .name = "int8",
      .needs = TG_LEVER_BIT(int8_activations),
      .fits = all_integer,
      .phase = { { one_unit, sort_run }, { round_units, round_run }, { many_units, many_plain } },
      .scratch_bytes = many_scratch_bytes },
    { .name = "unpacked",
      .phase = { { one_unit, sort_run }, { many_units, float_run } },
      .scratch_bytes = order_bytes,
      .local_bytes = float_local_bytes },
};
TG_KERNELS(experts, forward);

/* ------------------------------------------------------------------------------------- gradients
 */

/* A unit is 64 columns of all rows. A row adds up what its choices give by rising expert. */
static size_t columns_units(const tg_args *a) {
    return tg_units(tg_type_cols(&a->in_type[EXPERTS_W]), DX_COLS);
}
/* Rows [n, n + 16) of an expert's matrix for all choices of it. */
static void add_rows(const tg_args *a, const experts_sizes *s, size_t part, size_t e, size_t n,
                     size_t col, size_t cols) {
    const tg_type *t = &a->in_type[EXPERTS_W + part];
    const order o = order_of(a);
    const b_part p = { t->dtype, t->layout, t->dim[0], 0, a->in[EXPERTS_W + part] };
    const size_t there = tg_min_size(DX_PANEL_ROWS, s->N - n);
    fill_panel(a->local, &p, s->K, e * s->N + n, there, col, cols);
    for (size_t i = o.first[e]; i < o.first[e + 1]; i++) {
        const size_t token = o.slots[i] / s->k, j = o.slots[i] % s->k;
        const float *dy = (const float *)a->in[0] + experts_y_at(s, token, j, part) + n;
        float *dx = (float *)a->out[0] + experts_x_at(s, token, j) + col;
        for (size_t c = 0; c < cols; c += 16 * DX_VECS)
            add_tile(dx + c, 0, dy, 0, (const float *)a->local + c, there, cols - c, 1, false);
    }
}
static void columns_run(const tg_args *a, size_t begin, size_t end) {
    const experts_sizes s = experts_sizes_of_args(a);
    const order o = order_of(a);
    for (size_t u = begin; u < end; u++) {
        const size_t col = u * DX_COLS, cols = tg_min_size(DX_COLS, s.K - col);
        for (size_t r = 0; r < tg_type_elems(&a->out_type[0]) / s.K; r++)
            memset((float *)a->out[0] + r * s.K + col, 0, cols * sizeof(float));
        for (size_t e = 0; e < s.experts; e++)
            for (size_t part = 0; part < s.parts && o.first[e] < o.first[e + 1]; part++)
                for (size_t n = 0; n < s.N; n += DX_PANEL_ROWS)
                    add_rows(a, &s, part, e, n, col, cols);
    }
}
static const tg_variant dx[] = { { .name = "unpacked columns",
                                   .phase = { { one_unit, sort_run },
                                              { columns_units, columns_run } },
                                   .scratch_bytes = order_bytes,
                                   .local_bytes = dx_local_bytes } };
TG_KERNELS(experts_x_grad, dx);

/* A unit is a row of dw: a chain over the choices of its expert, as they come. */
static size_t rows_units(const tg_args *a) { return a->out_type[0].dim[0]; }
static void rows_run(const tg_args *a, size_t begin, size_t end) {
    const experts_sizes s = experts_sizes_of_dw(a);
    const size_t part = (size_t)a->attr.i[EXPERTS_PART];
    const float *dy = a->in[0], *x = a->in[EXPERTS_DW_X];
    const order o = order_of(a);
    for (size_t row = begin; row < end; row++) {
        const size_t e = row / s.N;
        for (size_t c = 0; c < s.K; c += 16) {
            const size_t n = tg_min_size(16, s.K - c);
            float *to = (float *)a->out[0] + row * s.K + c;
            tg_v sum = a->acc & 1 ? tg_vload_n(to, n) : tg_vzero();
            for (size_t i = o.first[e]; i < o.first[e + 1]; i++) {
                const size_t t = o.slots[i] / s.k, j = o.slots[i] % s.k;
                const tg_v d = tg_vset(dy[experts_y_at(&s, t, j, part) + row % s.N]);
                sum = tg_vfma(d, tg_vload_n(x + experts_x_at(&s, t, j) + c, n), sum);
            }
            tg_vstore_n(to, sum, n);
        }
    }
}
static const tg_variant dw[] = { { .name = "rows",
                                   .phase = { { one_unit, sort_run }, { rows_units, rows_run } },
                                   .scratch_bytes = order_bytes } };
TG_KERNELS(experts_w_grad, dw);

/* ------------------------------------------------------------------------------------------ sums
 */

static size_t token_units(const tg_args *a) { return tg_units(tg_type_rows(&a->in_type[1]), 4); }
static void sum_run(const tg_args *a, size_t begin, size_t end) {
    const size_t k = tg_type_cols(&a->in_type[1]), C = tg_type_cols(&a->out_type[0]);
    const size_t stop = tg_min_size(4 * end, tg_type_rows(&a->in_type[1]));
    for (size_t t = 4 * begin; t < stop; t++)
        for (size_t c = 0; c < C; c += 16) {
            const size_t n = tg_min_size(16, C - c);
            tg_v sum = tg_vzero();
            for (size_t j = 0; j < k; j++)
                sum = tg_vfma(tg_vset(((const float *)a->in[1])[t * k + j]),
                              tg_vload_n((const float *)a->in[0] + (t * k + j) * C + c, n), sum);
            tg_vstore_n((float *)a->out[0] + t * C + c, sum, n);
        }
}
static const tg_variant weighted[] = { { .name = "rows", .phase = { { token_units, sum_run } } } };
TG_KERNELS(experts_sum, weighted);

static void sum_grad_run(const tg_args *a, size_t begin, size_t end) {
    const size_t k = tg_type_cols(&a->in_type[1]), C = tg_type_cols(&a->in_type[2]);
    const size_t stop = tg_min_size(4 * end, tg_type_rows(&a->in_type[1])) * k;
    for (size_t i = 4 * begin * k; i < stop; i++) {
        const float *z = (const float *)a->in[0] + i * C, *dy = (const float *)a->in[2] + i / k * C;
        const tg_v w = tg_vset(((const float *)a->in[1])[i]);
        tg_v sum = tg_vzero();
        for (size_t c = 0; c < C; c += 16) {
            const size_t n = tg_min_size(16, C - c);
            const tg_v d = tg_vload_n(dy + c, n);
            sum = tg_vfma(d, tg_vload_n(z + c, n), sum);
            tg_vstore_n((float *)a->out[0] + i * C + c, tg_vmul(w, d), n);
        }
        ((float *)a->out[1])[i] = tg_vsum(sum);
    }
}
static const tg_variant sum_grad[] = { { .name = "rows",
                                         .phase = { { token_units, sum_grad_run } } } };
TG_KERNELS(experts_sum_grad, sum_grad);
