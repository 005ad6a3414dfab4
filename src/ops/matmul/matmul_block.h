/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_block.h - the blocked product: which piece of it is computed when, and by whom.
 *
 *              n                      A unit is a rectangle of y: some strips (rows) by some panels
 *       +------+------+---            (columns). Inside, k advances by blocks; for each of them,
 *       | unit | unit |               strips go down and panels across:
 *     m +------+------+---
 *       | unit | unit |                   for every block of k            sums wait in y meanwhile
 *       +------+------+---                    for every strip             18 KiB: first cache
 *       |      |      |                           for every panel         the block of b: second
 *                                                     a register tile
 *
 * trans 0 and 2 (the rows of a batch times weights): units are single strips, and neighbours given
 * to one worker are done as one rectangle. trans 1 (the gradient of weights; a and b are large, y
 * is small): a unit is as large as its part of a, b and y fits into the second cache.
 *
 * Nothing is copied that can be read where it is: the tile does not mind distances, and what it
 * reads again comes from the second cache in any case. Copies are made of
 *
 *   b of trans 2       whose columns lie apart: turned over, once, for everybody, in phase 0
 *   rows 4 KiB apart   or a multiple: lines at the same place of such rows push each other out of
 *                      both caches. b of trans 0 in phase 0, else block by block in the unit
 *   the last panel     of b when it is not full, block by block: the tile loads whole panels
 *   bf16               always; and for narrow tiles all but rows of a
 *
 * While a block of k is computed, the lines that come next are fetched into the second cache.
 */
#ifndef TG_OPS_MATMUL_BLOCK_H
#define TG_OPS_MATMUL_BLOCK_H

#include "ops/matmul/matmul_pack.h"

enum {
    BLOCK_STRIPS = 96 / TG_MR, /* trans 0 and 2: strips of a rectangle, panels of one */
    BLOCK_PANELS = 384 / PANEL,
    UNIT_STRIPS = 264 / TG_MR, /* trans 1: at most, so that a, b and y of a unit are 1 MiB */
    UNIT_PANELS = 256 / PANEL,
    PACK_STEPS = 16,        /* of a unit of phase 0 */
    WIDE_TILE = TG_NRV > 1, /* more than a line */
};

/* What is read where it is. A narrow tile computes little with a line, so that getting the lines of
 * a and b one by one out of the second cache would show: it gets copies, which come in a row. */
static bool good_distance(size_t ld) { return ld % 1024 != 0; }
static bool a_in_place(const product *p, bool half) {
    return !half && good_distance(p->lda) && (p->trans != 1 || WIDE_TILE);
}
static bool b_in_place(const product *p, bool half) {
    return !half && good_distance(p->ldb) && p->trans != 2 && WIDE_TILE;
}
/* Is b packed in phase 0? */
static bool b_is_shared(const product *p, bool half) {
    return p->trans != 1 && !b_in_place(p, half);
}

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
    /* Four units a worker even out. Where a unit copies, it has four strips by two panels at least,
     * or the copies would show. */
    const bool copies = !a_in_place(p, half) || !(b_in_place(p, half) || b_is_shared(p, half));
    const size_t want = workers > 1 ? 4 * (size_t)workers : 1, least = copies ? 2 : 1;
    while (!rows && down * across < want) { /* a unit reads its rows and its columns: square */
        const bool high = c.strips / down * TG_MR > c.panels / across * PANEL;
        if (high && down * 4 * least <= c.strips)
            down *= 2;
        else if (across * 2 * least <= c.panels)
            across *= 2;
        else
            break;
    }
    while (down * across < want && across * 2 * least <= c.panels) across *= 2;
    while (down * across < want && down * 4 * least <= c.strips) down *= 2;
    while (down * across < workers && across * 2 <= c.panels) across *= 2;
    while (down * across < workers && down * 2 <= c.strips) down *= 2;
    c.unit_strips = tg_units(c.strips, down);
    c.unit_panels = tg_units(c.panels, across);
    c.down = tg_units(c.strips, c.unit_strips);
    c.across = tg_units(c.panels, c.unit_panels);
    return c;
}

/* Room of a worker: a strip of a, or a block of its columns; then panels of b. */
static size_t a_room_elems(const product *p) {
    return p->trans == 1 ? UNIT_STRIPS * (TG_MR * STEP_BLOCK + PAD) : TG_MR * STRIP_LD;
}
static size_t room_bytes(const tg_args *args) {
    const product p = product_of(args);
    const size_t panels = p.trans == 1 ? UNIT_PANELS : 1;
    return (a_room_elems(&p) + panels * (PANEL * STEP_BLOCK + PAD)) * sizeof(float);
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
    t->next_cols = r->kc;
    t->next_floats = half ? 32 : 16;
}

/* trans 1: lines of a and b of the next block of k, `tile` of n tiles' share of them. Rows of a
 * that are a multiple of 4 KiB apart would be pushed out again before they are used. */
static void fetch_block(const product *p, const rect *r, tile_args *t, size_t tile, size_t n) {
    const size_t k1 = r->k0 + r->kc, kc = tg_min_size(r->kc, p->k - k1);
    const size_t row = r->strip * TG_MR, col = r->panel * PANEL;
    const size_t rows = tg_min_size(r->strips * TG_MR, p->m - row);
    const size_t cols = tg_min_size(r->panels * PANEL, p->n - col);
    const size_t begin = k1 + tile * kc / n, end = k1 + (tile + 1) * kc / n;
    for (size_t k = begin; k < end; k++) fetch_line(p->b + k * p->ldb + col, cols);
    t->next = p->a + begin * p->lda + row;
    t->next_ld = p->lda;
    t->next_rows = good_distance(p->lda) ? end - begin : 0;
    t->next_cols = rows;
    t->next_floats = tg_units(tg_units(rows, tg_units(r->steps, 16)), 16) * 16;
}

/* Copies what the tiles of a rectangle cannot read where it is: columns of a, panels of b. */
static ALWAYS_INLINE void pack_rect(const product *p, const rect *r, float *a_room, float *b_room,
                                    bool half) {
    const size_t row = r->strip * TG_MR, rows = tg_min_size(r->strips * TG_MR, p->m - row);
    if (p->trans == 1 && half) {
        pack_columns_half(p, row, rows, r->k0, r->kc, a_room);
    } else if (p->trans == 1 && !a_in_place(p, half)) {
        pack_columns(p, row, rows, r->k0, r->kc, a_room);
    }
    if (b_is_shared(p, half)) return;
    size_t col = r->panel * PANEL, panels = r->panels;
    if (half) {
        pack_rows_of_b_half(p, col, panels, r->k0, r->kc, b_room);
        return;
    }
    if (b_in_place(p, half)) { /* but for a last panel that is not full */
        if (col + panels * PANEL <= p->n) return;
        col += (panels - 1) * PANEL;
        panels = 1;
    }
    pack_rows_of_b(p, col, panels, r->k0, r->kc, b_room);
}

/* Where panel j of the rectangle is: in b, in what phase 0 packed, or in the room. */
static ALWAYS_INLINE void find_panel(const product *p, const cut *c, const rect *r, tile_args *t,
                                     size_t j, const float *shared, const float *b_room,
                                     bool half) {
    const size_t panel = r->panel + j, col = panel * PANEL;
    t->b_step = PANEL;
    if (b_is_shared(p, half)) {
        t->b = shared + panel * c->panel_elems + r->k0 / (half ? 2 : 1) * PANEL;
    } else if (!b_in_place(p, half)) {
        t->b = b_room + j * (r->steps * PANEL + PAD);
    } else if (col + PANEL > p->n) {
        t->b = b_room;
    } else {
        t->b = p->b + r->k0 * p->ldb + col;
        t->b_step = p->ldb;
    }
}

/* Where strip s of the rectangle is; packs it, if it must be. */
static ALWAYS_INLINE void find_strip(const product *p, const rect *r, tile_args *t, size_t s,
                                     float *a_room, bool half) {
    const size_t row = (r->strip + s) * TG_MR, rows = tg_min_size(TG_MR, p->m - row);
    const bool in_place = a_in_place(p, half);
    if (p->trans == 1) {
        t->a = in_place ? p->a + r->k0 * p->lda + row : a_room + s * (r->steps * TG_MR + PAD);
        t->a_row = 1;
        t->a_step = in_place ? p->lda : TG_MR;
        return;
    }
    t->a = in_place ? p->a + row * p->lda + r->k0 : a_room;
    t->a_row = in_place ? p->lda : STRIP_LD;
    t->a_step = 1;
    if (half) {
        pack_strip_half(p, row, rows, r->k0, r->kc, a_room);
    } else if (!in_place) {
        pack_strip(p, row, rows, r->k0, r->kc, a_room);
    }
}

/* One block of k in a rectangle. */
static ALWAYS_INLINE void run_rect(const product *p, const cut *c, const rect *r,
                                   const float *shared, float *room, bool half) {
    float *const a_room = room, *const b_room = room + a_room_elems(p);
    const size_t tiles = r->strips * r->panels;
    pack_rect(p, r, a_room, b_room, half);
    for (size_t s = 0; s < r->strips; s++) {
        const size_t row = (r->strip + s) * TG_MR, rows = tg_min_size(TG_MR, p->m - row);
        tile_args t = { .steps = r->steps };
        find_strip(p, r, &t, s, a_room, half);
        for (size_t j = 0; j < r->panels; j++) {
            find_panel(p, c, r, &t, j, shared, b_room, half);
            if (p->trans != 1) {
                fetch_strip(p, r, &t, row + TG_MR, j, half);
            } else if (r->k0 + r->kc < p->k) {
                fetch_block(p, r, &t, s * r->panels + j, tiles);
            }
            place_tile(p, r, &t, row, rows, (r->panel + j) * PANEL, half);
        }
    }
}

/* ---------------------------------------------------------------------------------- the phases */

static ALWAYS_INLINE size_t pack_units(const tg_args *args, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    if (!b_is_shared(&p, half)) return 0;
    return p.trans == 2 ? c.panels : tg_units(c.steps, PACK_STEPS);
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

/* Where unit u lies, and how many more there are below it before the order leaves its column. Units
 * go down, then across. The rows of a batch are first divided into as many bands as there are
 * workers: who begins with a band (backend/cpu/cpu.c) does in every product, norm and attention the
 * rows that it did before. */
typedef struct spot {
    size_t down, across, below;
} spot;

static spot spot_of(const cut *c, const product *p, unsigned workers, size_t u) {
    if (p->trans == 1) return (spot) { u % c->down, u / c->down, 1 };
    if (c->down < workers) workers = 1;
    const size_t band = tg_min_size(u / c->across * workers / c->down, workers - 1);
    size_t first = c->down * band / workers, end = c->down * (band + 1) / workers;
    if (u >= end * c->across) {
        first = end;
        end = c->down * (band + 2) / workers;
    }
    const size_t in_band = u - first * c->across, high = end - first;
    const size_t down = in_band % high;
    return (spot) { first + down, in_band / high, high - down };
}

static ALWAYS_INLINE void tile_run(const tg_args *args, size_t begin, size_t end, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    while (begin < end) {
        const spot at = spot_of(&c, &p, args->workers, begin);
        const size_t n = tg_min_size(tg_min_size(end - begin, at.below), BLOCK_STRIPS);
        rect r = { .strip = at.down * c.unit_strips, .panel = at.across * c.unit_panels };
        r.strips = tg_min_size(n * c.unit_strips, c.strips - r.strip);
        r.panels = tg_min_size(c.unit_panels, c.panels - r.panel);
        for (; r.k0 < p.k; r.k0 += r.kc) {
            r.kc = tg_min_size(c.block_k, p.k - r.k0);
            r.steps = tg_units(r.kc, half ? 2 : 1);
            run_rect(&p, &c, &r, args->scratch, args->local, half);
        }
        begin += n;
    }
}

static ALWAYS_INLINE size_t packed_bytes(const tg_args *args, bool half) {
    const product p = product_of(args);
    const cut c = cut_of(&p, args->workers, half);
    return b_is_shared(&p, half) ? c.panels * c.panel_elems * sizeof(float) : 0;
}

#endif
