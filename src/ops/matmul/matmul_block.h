/*
 * matmul_block.h - the blocked product: which piece of it is computed when, and by whom.
 *
 *              n                      A unit is a rectangle of y: some strips (rows) by some panels
 *       +------+------+---            (columns). Inside, k advances by blocks; for each of them,
 *       | unit | unit |               strips go down and panels across:
 *     m +------+------+---
 *       | unit | unit |                   for every block of k            sums wait in y meanwhile
 *       +------+------+---                    for every strip             12 KiB: first cache
 *       |      |      |                           for every panel         the block of b: second
 *                                                     a register tile
 *
 * trans 0 and 2 (the rows of a batch times weights): phase 0 packs all of b, once, for everybody;
 * units are single strips, and neighbours given to one worker are done as one rectangle.
 * trans 1 (the gradient of weights; both operands are large, y is small): there is no phase 0; a
 * unit is large, and its worker packs the block of b that it needs. Columns of a are read where
 * they are, unless its rows are a multiple of 4 KiB apart: those would push each other out.
 *
 * While a block of k is computed, the lines that come next are fetched into the second cache.
 */
#ifndef TG_OPS_MATMUL_BLOCK_H
#define TG_OPS_MATMUL_BLOCK_H

#include "ops/matmul/matmul_pack.h"

enum {
    BLOCK_STRIPS = 96 / TG_MR, /* trans 0 and 2: strips of a rectangle, panels of one */
    BLOCK_PANELS = 384 / PANEL,
    UNIT_STRIPS = 264 / TG_MR, /* trans 1: at most, so that a, b and y of a unit fit (800 KiB) */
    UNIT_PANELS = 256 / PANEL,
    PACK_STEPS = 16, /* of a unit of phase 0 */
};

/* How a product is cut. Depends on shapes and the number of workers; no sum depends on it. */
typedef struct cut {
    size_t strips, panels;           /* of y */
    size_t unit_strips, unit_panels; /* of a unit; the last ones may have less */
    size_t down, across;             /* units */
    size_t steps, block_k;           /* of k in all; k of a block */
    size_t panel_elems;              /* from one packed panel of all of b to the next */
} cut;

static cut cut_of(const product *p, unsigned workers, bool half) {
    const size_t step_k = half ? 2 : 1;
    cut c = { .strips = tg_units(p->m, TG_MR), .panels = tg_units(p->n, PANEL) };
    c.steps = tg_units(p->k, step_k);
    const size_t blocks = tg_units(c.steps, STEP_BLOCK);
    c.block_k = tg_units(tg_units(c.steps, blocks), 16) * 16 * step_k;
    c.panel_elems = c.steps * PANEL + PAD;
    const bool rows = p->trans != 1;
    size_t down = rows ? c.strips : tg_units(c.strips, UNIT_STRIPS);
    size_t across = tg_units(c.panels, rows ? BLOCK_PANELS : UNIT_PANELS);
    /* Four units a worker even out; below four strips by two panels, packing would show. */
    const size_t want = workers > 1 ? 4 * (size_t)workers : 1;
    while (down * across < want && across * 4 <= c.panels) across *= 2;
    while (down * across < want && down * 8 <= c.strips) down *= 2;
    while (down * across < workers && across * 2 <= c.panels) across *= 2;
    while (down * across < workers && down * 2 <= c.strips) down *= 2;
    c.unit_strips = tg_units(c.strips, down);
    c.unit_panels = tg_units(c.panels, across);
    c.down = tg_units(c.strips, c.unit_strips);
    c.across = tg_units(c.panels, c.unit_panels);
    return c;
}

/* A rectangle of y, and one block of k in it. */
typedef struct rect {
    size_t strip, strips, panel, panels;
    size_t k0, kc, steps;
} rect;

/* ------------------------------------------------------------------------------------- one tile */

/* Sums of a tile that hangs over the right edge travel in a buffer of whole panels. */
static void load_edge(const product *p, size_t at, size_t rows, size_t cols, float *sums) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < PANEL; j += 16)
            tg_vstore(sums + i * PANEL + j,
                      j < cols ? load_up_to(p->y + at + i * p->n + j, cols - j) : tg_vzero());
}
static void store_edge(const product *p, size_t at, size_t rows, size_t cols, const float *sums) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += 16)
            store_up_to(p->y + at + i * p->n + j, tg_vload(sums + i * PANEL + j), cols - j);
}

/* What a tile needs at its end comes while it computes. Stores wait for their lines in order, so
 * two outputs far from the first cache would stop the tile after, too. */
static ALWAYS_INLINE void fetch_rows(const float *at, size_t ld, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j += 16) TG_PREFETCH(at + i * ld + j);
}

/* t has operands and steps; here it gets its place in y, and the sums what follows them. */
static ALWAYS_INLINE void place_tile(const product *p, const rect *r, tile_args *t, size_t row,
                                     size_t rows, size_t col, bool half) {
    const size_t cols = tg_min_size(PANEL, p->n - col), at = row * p->n + col;
    const bool last = r->k0 + r->kc == p->k, more = r->k0 > 0 || p->acc;
    float sums[TG_MR * PANEL];
    t->to = p->y + at;
    t->to_ld = p->n;
    t->from = more ? t->to : NULL;
    t->from_ld = p->n;
    t->bias = t->res = NULL;
    const bool edge = cols < PANEL, act = last && (p->act != TG_ACT_NONE || p->z);
    if (edge && more) {
        load_edge(p, at, rows, cols, sums);
        t->from = sums;
        t->from_ld = PANEL;
    }
    if (edge || act) {
        t->to = sums;
        t->to_ld = PANEL;
    } else if (last) {
        t->bias = p->bias ? p->bias + col : NULL;
        t->res = p->res ? p->res + at : NULL;
        t->res_ld = p->n;
    }
    if (act) fetch_rows(p->y + at, p->n, rows, cols);
    if (act && p->z) fetch_rows(p->z + at, p->n, rows, cols);
    if (last && p->res) fetch_rows(p->res + at, p->n, rows, cols);
    tile(t, rows, half);
    if (last && (edge || act))
        finish(p, sums, row, rows, col, cols);
    else if (edge)
        store_edge(p, at, rows, cols, sums);
}

/* ---------------------------------------------------------------------------------- a rectangle */

/* Shares the lines of the next strip among the tiles of this one. */
static ALWAYS_INLINE void fetch_strip(const product *p, const rect *r, tile_args *t, size_t row,
                                      size_t panel, bool half) {
    t->next_rows = 0;
    if (row >= p->m) return;
    const size_t rows = tg_min_size(TG_MR, p->m - row), share = tg_units(TG_MR, r->panels);
    const size_t first = panel * share;
    if (first >= rows) return;
    t->next = p->a + (row + first) * p->lda + r->k0;
    t->next_ld = p->lda;
    t->next_rows = tg_min_size(share, rows - first);
    t->next_floats = half ? 32 : 16;
}

/* trans 1: may columns of a be read where they are? Not where its rows share places of the cache.
 */
static ALWAYS_INLINE bool columns_in_place(const product *p) { return p->lda % 1024 != 0; }

/* trans 1: lines of a and b of the next block of k, tile t of n's share of them. */
static void fetch_block(const product *p, const rect *r, size_t t, size_t n) {
    const size_t k1 = r->k0 + r->kc, kc = tg_min_size(r->kc, p->k - k1);
    const size_t row = r->strip * TG_MR, col = r->panel * PANEL;
    const size_t rows = tg_min_size(r->strips * TG_MR, p->m - row);
    const size_t cols = tg_min_size(r->panels * PANEL, p->n - col);
    for (size_t k = k1 + t * kc / n; k < k1 + (t + 1) * kc / n; k++) {
        const float *a = p->a + k * p->lda + row, *b = p->b + k * p->ldb + col;
        if (columns_in_place(p)) fetch_line(a, rows);
        fetch_line(b, cols);
    }
}

/* A block of k in a rectangle, trans 0 or 2: b is packed, for all k. strip has room for one. */
static ALWAYS_INLINE void block_forward(const product *p, const cut *c, const rect *r,
                                        const float *b, float *strip, bool half) {
    const size_t s0 = r->k0 / (half ? 2 : 1);
    for (size_t s = r->strip; s < r->strip + r->strips; s++) {
        const size_t row = s * TG_MR, rows = tg_min_size(TG_MR, p->m - row);
        if (half)
            pack_strip_half(p, row, rows, r->k0, r->kc, strip);
        else
            pack_strip(p, row, rows, r->k0, r->kc, strip);
        for (size_t j = 0; j < r->panels; j++) {
            const size_t panel = r->panel + j;
            tile_args t = { .steps = r->steps, .a = strip, .a_step = 1 };
            t.b = b + panel * c->panel_elems + s0 * PANEL;
            fetch_strip(p, r, &t, row + TG_MR, j, half);
            place_tile(p, r, &t, row, rows, panel * PANEL, half);
        }
    }
}

/* A block of k in a rectangle, trans 1. a_room and b_room hold one block of either. */
static ALWAYS_INLINE void block_gradient(const product *p, const rect *r, float *a_room,
                                         float *b_room, bool half) {
    const size_t row = r->strip * TG_MR, rows = tg_min_size(r->strips * TG_MR, p->m - row);
    const bool direct = !half && columns_in_place(p);
    if (half)
        pack_rows_of_b_half(p, r->panel * PANEL, r->panels, r->k0, r->kc, b_room);
    else
        pack_rows_of_b(p, r->panel * PANEL, r->panels, r->k0, r->kc, b_room);
    if (half)
        pack_columns_half(p, row, rows, r->k0, r->kc, a_room);
    else if (!direct)
        pack_columns(p, row, rows, r->k0, r->kc, a_room);
    const size_t tiles = r->strips * r->panels;
    for (size_t n = 0; n < tiles; n++) {
        const size_t s = n / r->panels, j = n % r->panels;
        tile_args t = { .steps = r->steps, .b = b_room + j * (r->steps * PANEL + PAD) };
        t.a = direct ? p->a + r->k0 * p->lda + row + s * TG_MR
                     : a_room + s * (r->steps * TG_MR + PAD);
        t.a_step = direct ? p->lda : TG_MR;
        if (r->k0 + r->kc < p->k) fetch_block(p, r, n, tiles);
        place_tile(p, r, &t, row + s * TG_MR, tg_min_size(TG_MR, rows - s * TG_MR),
                   (r->panel + j) * PANEL, half);
    }
}

/* ---------------------------------------------------------------------------------- the phases */

static ALWAYS_INLINE size_t pack_units(const tg_args *args, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    return p.trans == 1 ? 0 : p.trans == 2 ? c.panels : tg_units(c.steps, PACK_STEPS);
}

static ALWAYS_INLINE void pack_run(const tg_args *args, size_t begin, size_t end, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    const size_t step_k = half ? 2 : 1;
    float *const packed = args->scratch;
    for (size_t u = begin; u < end; u++) {
        if (p.trans == 2) {
            float *to = packed + u * c.panel_elems;
            if (half)
                pack_columns_of_b_half(&p, u * PANEL, 0, p.k, to);
            else
                pack_columns_of_b(&p, u * PANEL, 0, p.k, to);
            continue;
        }
        const size_t s0 = u * PACK_STEPS, k0 = s0 * step_k;
        const size_t kc = tg_min_size(PACK_STEPS * step_k, p.k - k0);
        for (size_t j = 0; j < c.panels; j++) {
            float *to = packed + j * c.panel_elems + s0 * PANEL;
            if (half)
                pack_rows_of_b_half(&p, j * PANEL, 1, k0, kc, to);
            else
                pack_rows_of_b(&p, j * PANEL, 1, k0, kc, to);
        }
    }
}

static ALWAYS_INLINE size_t tile_units(const tg_args *args, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    return c.down * c.across;
}

static ALWAYS_INLINE void tile_run(const tg_args *args, size_t begin, size_t end, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    float *const a_room = args->local, *const b_room =
                                           a_room + UNIT_STRIPS * (TG_MR * STEP_BLOCK + PAD);
    while (begin < end) {
        const size_t down = begin % c.down;
        size_t n = 1;
        if (p.trans != 1) n = tg_min_size(tg_min_size(end - begin, c.down - down), BLOCK_STRIPS);
        rect r = { .strip = down * c.unit_strips, .panel = begin / c.down * c.unit_panels };
        r.strips = tg_min_size(n * c.unit_strips, c.strips - r.strip);
        r.panels = tg_min_size(c.unit_panels, c.panels - r.panel);
        for (; r.k0 < p.k; r.k0 += r.kc) {
            r.kc = tg_min_size(c.block_k, p.k - r.k0);
            r.steps = tg_units(r.kc, half ? 2 : 1);
            if (p.trans == 1)
                block_gradient(&p, &r, a_room, b_room, half);
            else
                block_forward(&p, &c, &r, args->scratch, a_room, half);
        }
        begin += n;
    }
}

static ALWAYS_INLINE size_t packed_bytes(const tg_args *args, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    return p.trans == 1 ? 0 : c.panels * c.panel_elems * sizeof(float);
}

/* Room for a strip, or for one block of a and b of the largest unit. */
static size_t room_bytes(const tg_args *args) {
    const size_t strip = TG_MR * STRIP_LD;
    const size_t a = UNIT_STRIPS * (TG_MR * STEP_BLOCK + PAD);
    const size_t b = UNIT_PANELS * (PANEL * STEP_BLOCK + PAD);
    return (args->attr.i[0] == 1 ? a + b : strip) * sizeof(float);
}

#endif
