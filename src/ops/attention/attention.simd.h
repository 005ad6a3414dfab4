/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.simd.h - causal self-attention: "flash", by tiles, and "plain", row by row.
 *
 * A unit of either is a block of 64 queries of one head of one sequence, and units count
 *
 *     sequence 0: head 0: last block .. block 0 | head 1: last block .. block 0 | .. sequence 1: ..
 *
 * Blocks of a head lie together, because they read the same keys. The last one comes first: it is
 * the longest, and on its way it asks for the rows of the next head (ask_for_next), which then have
 * the time of all the others to arrive.
 */
#include "ir/op.h"
#include "ops/attention/flash/flash.h"
#include "ops/attention/heads.h"

static size_t units(const tg_args *a) {
    const tg_type *t = &a->in_type[0];
    return t->dim[0] * (size_t)a->attr.i[0] * tg_units(t->dim[1], TILE);
}

/* Head h of sequence b, from its first row on. */
static flash_head head_at(const tg_args *a, size_t b, size_t h) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t tokens = a->in_type[0].dim[1];
    const float *qkv = (const float *)a->in[0] + b * tokens * s.row;
    return (flash_head) {
        .d = s.size,
        .scale = a->attr.f[0],
        .cap = a->attr.f[2],
        .q = { qkv + tg_heads_q(&s, h), s.row },
        .k = { qkv + tg_heads_k(&s, h / s.group), s.row },
        .v = { qkv + tg_heads_v(&s, h / s.group), s.row },
        .o = (float *)a->out[0] + b * tokens * s.q_row + h * s.size,
        .o_step = s.q_row,
        .lse = (float *)a->out[1] + (b * s.n_q + h) * tokens,
        .drop = drop_of(a, b, h),
    };
}

/* -------------------------------------------------------------------------------------- flash */

static void flash(const tg_args *a, size_t begin, size_t end) {
    const size_t tokens = a->in_type[0].dim[1], n_heads = (size_t)a->attr.i[0];
    const size_t n_blocks = tg_units(tokens, TILE);
    const flash_local f = flash_local_at(a->local, (size_t)a->attr.i[2]);
    for (size_t u = begin; u < end; u++) {
        const size_t row = (n_blocks - 1 - u % n_blocks) * TILE, h = u / n_blocks;
        flash_head x = head_at(a, h / n_heads, h % n_heads);
        x.q = rows_from(x.q, row);
        x.o += row * x.o_step;
        x.lse += row;
        x.low = tg_heads_low(&a->attr, row, -TILE);
        flash_block(&x, &f, row, tg_min_size(TILE, tokens - row));
    }
}

static size_t flash_local_bytes(const tg_args *a) {
    return flash_local_elems((size_t)a->attr.i[2]) * sizeof(float);
}

/* -------------------------------------------------------------------------------------- plain */

/*
 * What one writes without tiles: all scores of a query in memory, then their softmax, then the sum
 * of values. Lanes run along D in products and along keys in the softmax, so a score costs a sum
 * across lanes, and each key and value is loaded once for every query instead of once for eight.
 */

/* Of n dot products p, in room for whole vectors: p[j] = exp(scale (p[j] - m)), their sum, and m.
 */
static float plain_softmax(float *p, size_t n, float scale, float *sum_out) {
    tg_v top = tg_vset(MINUS_INF), sum = tg_vzero();
    for (size_t j = n; j % LANES; j++) p[j] = MINUS_INF;
    for (size_t j = 0; j < n; j += LANES) top = tg_vmax(tg_vload(p + j), top);
    const float m = tg_vmaxlane(top);
    for (size_t j = 0; j < n; j += LANES) {
        const tg_v t = tg_vmul(tg_vsub(tg_vload(p + j), tg_vset(m)), tg_vset(scale * LOG2_E));
        const tg_v w = tg_vselect(tg_vfirst(tg_min_size(LANES, n - j)), power_of_2(t), tg_vzero());
        tg_vstore(p + j, w);
        sum = tg_vadd(sum, w);
    }
    *sum_out = tg_vsum(sum);
    return m;
}

/* Query t of x against keys first .. t; p has room for keys 0 .. t, rounded up to LANES. */
static void plain_row(const flash_head *x, float *p, size_t first, size_t t) {
    const float *q = x->q.at + t * x->q.step;
    const size_t whole = first / LANES * LANES;
    float sum;
    for (size_t j = first; j <= t; j++) p[j] = row_dot(q, x->k.at + j * x->k.step, x->d);
    if (x->cap > 0) cap_dots(p + first, t + 1 - first, x->scale, x->cap);
    for (size_t j = whole; j < first; j++) p[j] = MINUS_INF;
    const float top = plain_softmax(p + whole, t + 1 - whole, x->scale, &sum);
    const tg_v m = tg_vset(top), l = tg_vset(sum);
    drop_row(&x->drop, p, t, first, t + 1);
    for (size_t c = 0; c < x->d; c += LANES) {
        tg_v acc = tg_vzero();
        for (size_t j = first; j <= t; j++)
            acc = tg_vfma(tg_vset(p[j]), load_columns(x->v.at + j * x->v.step, c, x->d), acc);
        store_columns(x->o + t * x->o_step, c, x->d, tg_vdiv(acc, l));
    }
    tg_vstore_n(x->lse + t, tg_vfma(m, tg_vset(x->scale), tg_vlog(l)), 1);
}

static void plain(const tg_args *a, size_t begin, size_t end) {
    const size_t tokens = a->in_type[0].dim[1], n_heads = (size_t)a->attr.i[0];
    const size_t n_blocks = tg_units(tokens, TILE);
    for (size_t u = begin; u < end; u++) {
        const size_t h = u / n_blocks, row = (n_blocks - 1 - u % n_blocks) * TILE;
        const flash_head x = head_at(a, h / n_heads, h % n_heads);
        for (size_t t = row; t < tg_min_size(row + TILE, tokens); t++)
            plain_row(&x, a->local, (size_t)tg_heads_low(&a->attr, t, 0), t);
    }
}

static size_t plain_local_bytes(const tg_args *a) {
    return round_up(a->in_type[0].dim[1], LANES) * sizeof(float);
}

static const tg_variant variants[] = {
    { .name = "flash",
      .needs = TG_LEVER_BIT(flash_attention),
      .phase = { { units, flash } },
      .local_bytes = flash_local_bytes },
    { .name = "plain", .phase = { { units, plain } }, .local_bytes = plain_local_bytes },
};
TG_KERNELS(attention, variants);
