/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_cached.simd.h - attention of new tokens to the KV cache, by tiles of keys.
 *
 * Many rows: a unit is a block of 64 rows of one query head. Those of one sequence go through
 * flash_block, whose lanes are queries. Of few rows, as decoding has, most lanes would be idle;
 * they go one by one with lanes for keys, for which the keys of a tile are transposed, and
 * neighbouring heads that read the same keys do that together. Every sum runs in the same order as
 * there, so that both give the same bits: see flash.h. Where a call has few rows in all, a unit is
 * a worker's share of the heads.
 *
 *   rows of a block    s0 s0 s0 s0 s0 | s1 | s2 | s3       s0 by each head of its own;
 *                                                          s1 by the first head of a group, for all
 *                                                          of it, s2 by the second, s3 by the third
 */
#define FLASH_OF_CACHE
#include "ir/op.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/heads.h"

/* So many rows one by one take about the time of a block of up to 16. */
enum { FEW_ROWS = 3 };

/* Query heads that meet a tile of keys together; their state is small. */
enum { HEADS = 8 };

enum { KEY_VECS = TILE / LANES };

/* Dot products of q, a query of x, with a tile of transposed keys; lanes before key `first` and
 * from n on are -inf. */
static void dots_of_row(tg_v s[KEY_VECS], const float *q, const float *kt, const flash_head *x,
                        size_t first, size_t n) {
    UNROLL
    for (int v = 0; v < KEY_VECS; v++) s[v] = tg_vzero();
    for (size_t c = 0; c < x->d; c++) {
        const tg_v at = tg_vset(q[c]);
        UNROLL
        for (int v = 0; v < KEY_VECS; v++)
            s[v] = tg_vfma(at, tg_vload(kt + c * TILE + v * LANES), s[v]);
    }
    if (x->cap > 0) {
        float dots[TILE];
        for (int v = 0; v < KEY_VECS; v++) tg_vstore(dots + v * LANES, s[v]);
        cap_dots(dots, TILE, x->scale, x->cap);
        for (int v = 0; v < KEY_VECS; v++) s[v] = tg_vload(dots + v * LANES);
    }
    UNROLL
    for (int v = 0; v < KEY_VECS; v++) {
        const size_t seen = clamp((ptrdiff_t)n - v * LANES, LANES);
        const size_t before = clamp((ptrdiff_t)first - v * LANES, LANES);
        s[v] = tg_vselect(tg_vfirst(seen), s[v], tg_vset(MINUS_INF));
        s[v] = tg_vselect(tg_vfirst(before), tg_vset(MINUS_INF), s[v]);
    }
}

/* o = o * keep + sum over j of p[j] v[j], in vecs vectors of columns: the more there are, the less
 * each chain waits for its own last addition. */
TG_UNLESS_LONG void add_values(float *o, tg_v keep, const float *p, const float *v, size_t step,
                               size_t n, int vecs) {
    tg_v acc[4];
    UNROLL
    for (int i = 0; i < vecs; i++) acc[i] = tg_vmul(tg_vload(o + i * LANES), keep);
    for (size_t j = 0; j < n; j++) {
        const tg_v w = tg_vset(p[j]);
        UNROLL
        for (int i = 0; i < vecs; i++)
            acc[i] = tg_vfma(w, tg_vload(v + j * step + i * LANES), acc[i]);
    }
    UNROLL
    for (int i = 0; i < vecs; i++) tg_vstore(o + i * LANES, acc[i]);
}

/* The running softmax of a query: flash.h's, the same in all lanes. */
typedef struct state {
    tg_v m, l;
} state;

/* Query q meets keys [first, n) of a tile, which are transposed in f->qt, and their values; o
 * [width]. l is a chain over keys, one at a time, since that is its order in flash.h. */
static void meet(state *z, float *o, const float *q, const flash_head *x, const flash_local *f,
                 rows v, size_t first, size_t n) {
    const tg_v scale = tg_vset(x->scale * LOG2_E);
    tg_v s[KEY_VECS];
    dots_of_row(s, q, f->qt, x, first, n);
    const float top = tg_vmaxlane(tg_vmax(tg_vmax(s[0], s[1]), tg_vmax(s[2], s[3])));
    const tg_v m = tg_vmax(tg_vset(top), z->m);
    const tg_v keep = power_of_2(tg_vmul(tg_vsub(z->m, m), scale));
    for (int i = 0; i < KEY_VECS; i++)
        tg_vstore(f->s + i * LANES, power_of_2(tg_vmul(tg_vsub(s[i], m), scale)));
    tg_v l = tg_vmul(z->l, keep);
    for (size_t j = first; j < n; j++) l = tg_vadd(l, tg_vset(f->s[j]));
    *z = (state) { m, l };
    const float *p = f->s + first, *at = v.at + first * v.step;
    const size_t seen = n - first, width = f->width;
    size_t c = 0;
    for (; c + 3 * LANES < width; c += 4 * LANES)
        add_values(o + c, keep, p, at + c, v.step, seen, 4);
    for (; c + LANES < width; c += 2 * LANES) add_values(o + c, keep, p, at + c, v.step, seen, 2);
    for (; c < width; c += LANES) add_values(o + c, keep, p, at + c, v.step, seen, 1);
}

/* The first query of x, at position pos, which sees keys from `low` on, and those of the next
 * n_heads - 1 heads, which read the same keys. */
static void one_row(const flash_head *x, const flash_local *f, size_t n_heads, size_t pos,
                    size_t low) {
    const size_t width = f->width, end = pos + 1;
    state states[HEADS];
    for (size_t h = 0; h < n_heads; h++) states[h] = (state) { tg_vset(MINUS_INF), tg_vzero() };
    memset(f->o, 0, n_heads * width * sizeof *f->o);
    for (size_t begin = low / TILE * TILE; begin < end; begin += TILE) {
        const size_t first = begin < low ? low - begin : 0;
        const size_t n = tg_min_size(TILE, end - begin), n_lanes = round_up(n, LANES);
        const rows k = memory_rows(x, 0, f->copy[0], width, begin, n, n_lanes);
        const rows v = memory_rows(x, 1, f->copy[1], width, begin, n, n);
        transpose(f->qt, k, width, n_lanes);
        for (size_t h = 0; h < n_heads; h++)
            meet(&states[h], f->o + h * width, x->q.at + h * x->d, x, f, v, first, n);
    }
    for (size_t h = 0; h < n_heads; h++) {
        const tg_v factor = tg_vdiv(tg_vset(1), states[h].l);
        for (size_t c = 0; c < x->d; c += LANES)
            store_columns(x->o + h * x->d, c, x->d,
                          tg_vmul(tg_vload(f->o + h * width + c), factor));
    }
}

/* Rows change from call to call, so the units do. */
static size_t units(const tg_args *a) {
    const size_t n_rows = a->in_type[0].dim[0], n_heads = (size_t)a->attr.i[0];
    if (n_rows > FEW_ROWS) return n_heads * tg_units(n_rows, TILE);
    return tg_units(n_heads, tg_units(n_heads, a->workers));
}

/* Rows of one sequence from `row` on, of query head h. */
static flash_head head_at(const tg_args *a, size_t h, size_t row) {
    const tg_heads s = tg_heads_of(&a->attr);
    return (flash_head) {
        .d = s.size,
        .scale = a->attr.f[0],
        .cap = a->attr.f[2],
        .q = { (const float *)a->in[0] + row * s.row + tg_heads_q(&s, h), s.row },
        .o = (float *)a->out[0] + row * s.q_row + h * s.size,
        .o_step = s.q_row,
        .low = -TILE,
        .cache = a->in[1],
        .dtype = a->in_type[1].dtype,
        .pages = tg_paged_of(&a->in_type[1], a->in[2], a->in[3], &a->in_type[3], row),
        .head = { h / s.group, s.n_kv + h / s.group },
    };
}

/* n rows of one sequence from `row` on, of n_heads query heads from h on, which read the same keys.
 */
static void run_rows(const tg_args *a, const flash_local *f, size_t h, size_t n_heads, size_t row,
                     size_t n) {
    const size_t pos = (size_t)((const int32_t *)a->in[2])[2 * row + 1];
    const size_t window = (size_t)a->attr.i[3];
    flash_head x = head_at(a, h, row);
    /* A tile of a block knows one edge of what its queries see: where a narrow window may have both
     * in one, they go one by one. */
    const bool cut = window > 0 && pos + n > window;
    if (cut) x.low = (ptrdiff_t)(pos + 1) - (ptrdiff_t)window;
    if (n > FEW_ROWS && (!cut || window >= 2 * TILE)) {
        flash_block(&x, f, pos, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t seen = pos + i + 1;
        one_row(&x, f, n_heads, seen - 1, cut && seen > window ? seen - window : 0);
        x.q = rows_from(x.q, 1);
        x.o += x.o_step;
    }
}

/* Rows [row, end) for head h of a group; see the drawing. */
static void run_block(const tg_args *a, const flash_local *f, size_t h, size_t row, size_t end) {
    const size_t group = tg_heads_of(&a->attr).group, in_group = h % group;
    const size_t first = in_group / HEADS * HEADS, n_heads = tg_min_size(HEADS, group - first);
    for (size_t i = 0, n; row < end; row += n, i++) {
        n = tg_paged_run(a->in[2], row, end);
        if (n > FEW_ROWS)
            run_rows(a, f, h, 1, row, n);
        else if (first + i % n_heads == in_group)
            run_rows(a, f, h - in_group + first, n_heads, row, n);
    }
}

static void run(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const flash_local f = flash_local_at(a->local, s.size);
    const size_t n_rows = a->in_type[0].dim[0];
    if (n_rows > FEW_ROWS) {
        const size_t n_blocks = tg_units(n_rows, TILE);
        for (size_t u = begin; u < end; u++) {
            const size_t row = u % n_blocks * TILE;
            run_block(a, &f, u / n_blocks, row, tg_min_size(row + TILE, n_rows));
        }
        return;
    }
    const size_t share = tg_units(s.n_q, a->workers), stop = tg_min_size(end * share, s.n_q);
    for (size_t h = begin * share, n; h < stop; h += n) {
        n = tg_min_size(tg_min_size(HEADS, stop - h), s.group - h % s.group);
        for (size_t row = 0, m; row < n_rows; row += m) {
            m = tg_paged_run(a->in[2], row, n_rows);
            run_rows(a, &f, h, n, row, m);
        }
    }
}

/* Of head size D alone: independent of the rows and of how long the cache is. */
static size_t local_bytes(const tg_args *a) {
    return flash_local_elems((size_t)a->attr.i[2]) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "flash", .phase = { { units, run } }, .local_bytes = local_bytes },
};
TG_KERNELS(attention_cached, variants);
