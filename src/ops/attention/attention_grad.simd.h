/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_grad.simd.h - the gradient of attention: "flash", by tiles, and "plain", row by row.
 *
 * A unit is a key head of a sequence with all query heads that read it, so that dk and dv are
 * summed by one worker in one order: query heads rising, queries rising.
 *
 *     for each head of the group, for each block of 64 queries:
 *         for each tile of 64 keys up to the diagonal:
 *             s  = k q^T          p  = exp(scale s - lse)                lanes are queries: tiles.h
 *             dp = v do^T         ds = scale p * (dp - do.o)         dropout: dp and p times mask;
 *                                                                    a cap: ds times its slope
 *             dv += p do          dk += ds q          dq += ds^T k
 *
 * Sums grow in dqkv itself. Where rows are no whole vectors (D or T not a multiple of 16) all of it
 * happens in copies, and the sums are written out in the end.
 */
#include "ir/op.h"
#include "ops/attention/cap.h"
#include "ops/attention/drop.h"
#include "ops/attention/flash/tiles.h"
#include "ops/attention/heads.h"
#include "ops/attention/softmax.h"

static size_t units(const tg_args *a) { return a->in_type[0].dim[0] * (size_t)a->attr.i[1]; }

/* Memory of a worker; width is D rounded up to LANES, and tokens T. */
typedef struct local {
    size_t width;
    float *s, *ds;          /* [TILE][TILE] */
    float *qt, *gt;         /* [width][TILE] queries and do, transposed */
    float *lse, *delta;     /* [TILE] lse / ln 2, and do.o */
    float *keep;            /* [TILE][TILE] the mask of dropout; NULL: there is none */
    float *q, *g, *dq;      /* [TILE][width], used where rows are no whole vectors */
    float *k, *v, *dk, *dv; /* [T rounded up to LANES][width], likewise */
} local;

static bool whole_vectors(size_t tokens, size_t d) { return d % LANES == 0 && tokens % LANES == 0; }

static size_t local_elems(size_t tokens, size_t d, bool drops) {
    const size_t width = round_up(d, LANES);
    const size_t copies = width * (3 * TILE + 4 * round_up(tokens, LANES));
    const size_t tiles = drops ? 3 : 2;
    return TILE * (tiles * TILE + 2 * width + 2) + (whole_vectors(tokens, d) ? 0 : copies);
}

static local local_at(float *at, size_t tokens, size_t d, bool drops) {
    const size_t width = round_up(d, LANES), part = TILE * width;
    const size_t all = round_up(tokens, LANES) * width;
    float *const sums = at + 2 * TILE * (TILE + width);
    local m = { .width = width, .s = at, .ds = at + TILE * TILE };
    if (drops) m.keep = at + local_elems(tokens, d, false);
    m.qt = m.ds + TILE * TILE;
    m.gt = m.qt + part;
    m.lse = sums;
    m.delta = sums + TILE;
    if (whole_vectors(tokens, d)) return m;
    m.q = m.delta + TILE;
    m.g = m.q + part;
    m.dq = m.g + part;
    m.k = m.dq + part;
    m.v = m.k + all;
    m.dk = m.v + all;
    m.dv = m.dk + all;
    return m;
}

/* Sums that grow where they are read, or in a copy. */
typedef struct sums {
    float *at;
    size_t step;
} sums;

static sums sums_in(float *copy, size_t width, float *out, size_t step) {
    return copy ? (sums) { copy, width } : (sums) { out, step };
}

static void sums_out(float *out, size_t step, const float *copy, size_t width, size_t n, size_t d) {
    if (!copy) return;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < d; c += LANES)
            store_columns(out + i * step, c, d, tg_vload(copy + i * width + c));
}

/* Where a head of queries finds its operands and leaves its sums. */
typedef struct head {
    const local *m;
    size_t d, n_queries;
    float scale, cap;
    rows k, v, q, g;
    sums dk, dv, dq;
    bool first;    /* of its group: dk and dv begin here */
    ptrdiff_t low; /* the first key that the block's first query sees: as in flash.h */
    size_t begin;  /* the first tile of keys that the block sees */
    drop drop;
} head;

/* p and ds of the 16 queries from column i on, for keys [0, n). */
static void softmax_d_lanes(const head *x, size_t i, size_t n) {
    float *s = x->m->s + i, *ds = x->m->ds + i;
    const tg_v c = tg_vset(x->scale * LOG2_E);
    tg_v scale = tg_vset(x->scale);
    const tg_v minus_lse = tg_vneg(tg_vload(x->m->lse + i)), delta = tg_vload(x->m->delta + i);
    for (size_t j = 0; j < n; j++) {
        const tg_v dot = tg_vload(s + j * TILE), p = power_of_2(tg_vfma(dot, c, minus_lse));
        if (x->cap > 0) scale = tg_vmul(cap_slope(dot, x->scale, x->cap), tg_vset(x->scale));
        tg_vstore(s + j * TILE, p);
        const tg_v dp = tg_vsub(tg_vload(ds + j * TILE), delta);
        tg_vstore(ds + j * TILE, tg_vmul(tg_vmul(p, scale), dp));
    }
}

/* Clears p and ds of keys that are behind the window of some of the 16 queries from column i on:
 * lane 0 of the block sees keys from `low` on, the next from low + 1. */
static void hide_lanes(const head *x, size_t i, size_t n, ptrdiff_t low) {
    const size_t to = clamp(low + (ptrdiff_t)(i + LANES) - 1, n);
    for (size_t j = 0; j < to; j++) {
        const tg_vm seen = tg_vfirst(clamp((ptrdiff_t)j - low - (ptrdiff_t)i + 1, LANES));
        float *s = x->m->s + j * TILE + i, *ds = x->m->ds + j * TILE + i;
        tg_vstore(s, tg_vselect(seen, tg_vload(s), tg_vzero()));
        tg_vstore(ds, tg_vselect(seen, tg_vload(ds), tg_vzero()));
    }
}

/* The tile of p, times the mask. */
static void drop_p(const head *x, size_t n) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < x->n_queries; i += LANES) {
            float *s = x->m->s + j * TILE + i;
            tg_vstore(s, tg_vmul(tg_vload(s), tg_vload(x->m->keep + j * TILE + i)));
        }
}

/*
 * Keys [begin, begin + n) against the queries of the block. Nothing is cleared before: a tile on
 * the diagonal of a group's first head begins the sums of its rows of dk and dv, and the first tile
 * of keys that the block sees begins dq.
 */
static void tile(const head *x, size_t begin, size_t n, ptrdiff_t off) {
    const local *m = x->m;
    const rows k = rows_from(x->k, begin), v = rows_from(x->v, begin);
    const size_t n_queries = x->n_queries;
    const start from = x->first && off == 0 ? FROM_ZERO : FROM_X;
    dots(m->s, k, m->qt, x->d, n, n_queries, off);
    dots(m->ds, v, m->gt, x->d, n, n_queries, off);
    if (x->cap > 0) cap_tile(m->s, x->scale, x->cap, n, n_queries, off);
    if (m->keep) drop_tile(&x->drop, m->ds, m->keep, begin + (size_t)off, n_queries, begin, n);
    for (size_t i = 0; i < n_queries; i += LANES)
        softmax_d_lanes(x, i, clamp(off + (ptrdiff_t)(i + LANES), n));
    if (m->keep) drop_p(x, n);
    const ptrdiff_t low = x->low - (ptrdiff_t)begin;
    for (size_t i = 0; i < n_queries && low + (ptrdiff_t)n_queries > 1; i += LANES)
        hide_lanes(x, i, n, low);
    over_rows(x->dv.at + begin * x->dv.step, x->dv.step, m->width, from, m->s, x->g, n, n_queries,
              off);
    over_rows(x->dk.at + begin * x->dk.step, x->dk.step, m->width, from, m->ds, x->q, n, n_queries,
              off);
    over_keys(x->dq.at, x->dq.step, m->width, begin > x->begin ? FROM_X : FROM_ZERO, NULL, m->ds, k,
              n, n_queries, off);
}

/* Queries [row, row + 64) of head h in sequence b. Where a row ends early, its lanes are zeros in
 * qt and gt, lse and delta: they make numbers, which no sum takes. */
static void block(const tg_args *a, head *x, size_t b, size_t h, size_t row) {
    const tg_heads s = tg_heads_of(&a->attr);
    const local *m = x->m;
    const size_t tokens = a->in_type[0].dim[1], n = tg_min_size(TILE, tokens - row);
    const size_t n_lanes = round_up(n, LANES), width = m->width;
    const size_t at_q = (b * tokens + row) * s.row + tg_heads_q(&s, h);
    const size_t at_o = (b * tokens + row) * s.q_row + h * s.size;
    const float *lse = (const float *)a->in[2] + (b * s.n_q + h) * tokens + row;
    const rows q = { (const float *)a->in[0] + at_q, s.row };
    const rows o = { (const float *)a->in[1] + at_o, s.q_row };
    const rows g = { (const float *)a->in[3] + at_o, s.q_row };
    x->n_queries = n;
    x->q = whole_rows(m->q, width, q, n, n_lanes, s.size);
    x->g = whole_rows(m->g, width, g, n, n_lanes, s.size);
    transpose(m->qt, x->q, width, n_lanes);
    transpose(m->gt, x->g, width, n_lanes);
    for (size_t i = 0; i < n; i++) {
        if (i % ROWS == 0) ask_for_next(o, i, n, s.size);
        m->delta[i] = row_dot(x->g.at + i * x->g.step, o.at + i * o.step, s.size);
        m->lse[i] = lse[i] * LOG2_E;
    }
    for (size_t i = n; i < n_lanes; i++) m->delta[i] = m->lse[i] = 0;
    float *dq = (float *)a->out[0] + at_q;
    x->dq = sums_in(m->dq, width, dq, s.row);
    x->low = tg_heads_low(&a->attr, row, -TILE);
    x->begin = clamp(x->low, row) / TILE * TILE;
    for (size_t begin = x->begin; begin <= row; begin += TILE)
        tile(x, begin, tg_min_size(TILE, tokens - begin), (ptrdiff_t)(row - begin));
    sums_out(dq, s.row, m->dq, width, n, s.size);
}

static void flash(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[0].dim[1], padded = round_up(tokens, LANES);
    const local m = local_at(a->local, tokens, s.size, a->attr.f[1] > 0);
    for (size_t u = begin; u < end; u++) {
        const size_t b = u / s.n_kv, kv = u % s.n_kv;
        const float *qkv = (const float *)a->in[0] + b * tokens * s.row;
        float *dqkv = (float *)a->out[0] + b * tokens * s.row;
        const rows k = { qkv + tg_heads_k(&s, kv), s.row }, v = { qkv + tg_heads_v(&s, kv), s.row };
        float *dk = dqkv + tg_heads_k(&s, kv), *dv = dqkv + tg_heads_v(&s, kv);
        head x = { .m = &m, .d = s.size, .scale = a->attr.f[0], .cap = a->attr.f[2] };
        x.k = whole_rows(m.k, m.width, k, tokens, padded, s.size);
        x.v = whole_rows(m.v, m.width, v, tokens, padded, s.size);
        x.dk = sums_in(m.dk, m.width, dk, s.row);
        x.dv = sums_in(m.dv, m.width, dv, s.row);
        for (size_t h = kv * s.group; h < (kv + 1) * s.group; h++) {
            x.first = h == kv * s.group;
            x.drop = drop_of(a, b, h);
            for (size_t row = 0; row < tokens; row += TILE) block(a, &x, b, h, row);
        }
        sums_out(dk, s.row, m.dk, m.width, tokens, s.size);
        sums_out(dv, s.row, m.dv, m.width, tokens, s.size);
    }
}

static size_t flash_local_bytes(const tg_args *a) {
    return local_elems(a->in_type[0].dim[1], (size_t)a->attr.i[2], a->attr.f[1] > 0) *
           sizeof(float);
}

/* -------------------------------------------------------------------------------------- plain */

/*
 * What one writes without tiles: for each query a row of p and a row of ds, then three loops that
 * add multiples of one row to another. Every such sum is loaded and stored for each pair.
 */

/* x += f * y for a row of d elements. */
static void add_row(float *x, float f, const float *y, size_t d) {
    for (size_t c = 0; c < d; c += LANES)
        store_columns(x, c, d, tg_vfma(tg_vset(f), load_columns(y, c, d), load_columns(x, c, d)));
}

/* Query t of head h. qkv and dqkv are those of its sequence; p and ds have room for t + 1 keys, and
 * whole vectors. */
static void plain_row(const tg_args *a, const float *qkv, float *dqkv, size_t b, size_t h, size_t t,
                      float *p, float *ds) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[0].dim[1], d = s.size;
    const size_t k = tg_heads_k(&s, h / s.group), v = tg_heads_v(&s, h / s.group);
    const size_t at_o = (b * tokens + t) * s.q_row + h * d;
    const float *q = qkv + t * s.row + tg_heads_q(&s, h), *g = (const float *)a->in[3] + at_o;
    const float scale = a->attr.f[0], cap = a->attr.f[2],
                delta = row_dot(g, (const float *)a->in[1] + at_o, d);
    const float lse = ((const float *)a->in[2])[(b * s.n_q + h) * tokens + t] * LOG2_E;
    float *dq = dqkv + t * s.row + tg_heads_q(&s, h);
    const size_t first = (size_t)tg_heads_low(&a->attr, t, 0);
    const drop dropped = drop_of(a, b, h);
    for (size_t j = first; j <= t; j++) {
        p[j] = row_dot(q, qkv + j * s.row + k, d);
        ds[j] = row_dot(g, qkv + j * s.row + v, d);
    }
    if (cap > 0) cap_dots(p + first, t + 1 - first, scale, cap);
    drop_row(&dropped, ds, t, first, t + 1);
    /* Lanes beyond t, and before the window, make numbers that nobody reads. */
    for (size_t j = first / LANES * LANES; j <= t; j += LANES) {
        const tg_v dot = tg_vload(p + j);
        const tg_v x = tg_vfma(dot, tg_vset(scale * LOG2_E), tg_vset(-lse));
        tg_v slope = tg_vset(scale);
        if (cap > 0) slope = tg_vmul(cap_slope(dot, scale, cap), slope);
        const tg_v w = power_of_2(x), dp = tg_vsub(tg_vload(ds + j), tg_vset(delta));
        tg_vstore(p + j, w);
        tg_vstore(ds + j, tg_vmul(tg_vmul(w, slope), dp));
    }
    drop_row(&dropped, p, t, first, t + 1);
    memset(dq, 0, d * sizeof *dq);
    for (size_t j = first; j <= t; j++) {
        add_row(dq, ds[j], qkv + j * s.row + k, d);
        add_row(dqkv + j * s.row + k, ds[j], q, d);
        add_row(dqkv + j * s.row + v, p[j], g, d);
    }
}

static void plain(const tg_args *a, size_t begin, size_t end) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[0].dim[1], bytes = s.size * sizeof(float);
    float *p = a->local, *ds = p + round_up(tokens, LANES);
    for (size_t u = begin; u < end; u++) {
        const size_t b = u / s.n_kv, kv = u % s.n_kv;
        const float *qkv = (const float *)a->in[0] + b * tokens * s.row;
        float *dqkv = (float *)a->out[0] + b * tokens * s.row;
        for (size_t t = 0; t < tokens; t++) {
            memset(dqkv + t * s.row + tg_heads_k(&s, kv), 0, bytes);
            memset(dqkv + t * s.row + tg_heads_v(&s, kv), 0, bytes);
        }
        for (size_t h = kv * s.group; h < (kv + 1) * s.group; h++)
            for (size_t t = 0; t < tokens; t++) plain_row(a, qkv, dqkv, b, h, t, p, ds);
    }
}

static size_t plain_local_bytes(const tg_args *a) {
    return 2 * round_up(a->in_type[0].dim[1], LANES) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "flash",
      .needs = TG_LEVER_BIT(flash_attention),
      .phase = { { units, flash } },
      .local_bytes = flash_local_bytes },
    { .name = "plain", .phase = { { units, plain } }, .local_bytes = plain_local_bytes },
};
TG_KERNELS(attention_grad, variants);
