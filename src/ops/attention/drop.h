/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop.h - dropout of attention's weights, in tiles and in rows. See ops/dropout/mask.h.
 */
#ifndef TG_OPS_ATTENTION_DROP_H
#define TG_OPS_ATTENTION_DROP_H

#include "ops/attention/flash/tiles.h"
#include "ops/dropout/mask_lanes.h"

/* Of a head of a sequence of `tokens`; its mask's kept 0: nothing is dropped. */
typedef struct drop {
    tg_mask mask;
    size_t tokens;
} drop;

static inline drop drop_of(const tg_args *a, size_t b, size_t h) {
    drop d = { .tokens = a->in_type[0].dim[1] };
    if (a->attr.f[1] > 0) d.mask = tg_mask_of(a, a->attr.f[1], b, tg_mask_head(&a->attr, h));
    return d;
}

/* Multiplies a tile whose rows are keys from `begin` on, n of them, and whose lanes are queries
 * from t on, where a query sees the key; keep [TILE][TILE], unless NULL, then holds by what. begin
 * is a multiple of four. */
static void drop_tile(const drop *d, float *x, float *keep, size_t t, size_t n_queries,
                      size_t begin, size_t n) {
    const uint32_t step = tg_mask_block(d->tokens, 1, 0);
    for (size_t i = 0; i < n_queries; i += LANES) {
        const size_t seen = tg_min_size(n, t + i + LANES - begin);
        float word[4][LANES];
        for (size_t j = 0; j < seen; j++) {
            if (j % 4 == 0)
                mask_lanes(&d->mask, tg_mask_block(d->tokens, t + i, begin + j), step, word);
            float *at = x + j * TILE + i;
            tg_vstore(at, tg_vmul(tg_vload(at), tg_vload(word[j % 4])));
            if (keep) tg_vstore(keep + j * TILE + i, tg_vload(word[j % 4]));
        }
    }
}

/* The same of keys [begin, end) for the query at position t. */
static void drop_row(const drop *d, float *x, size_t t, size_t begin, size_t end) {
    for (size_t j = begin; j < end && d->mask.kept > 0; j++)
        x[j] *= (float)tg_mask_at(&d->mask, tg_mask_block(d->tokens, t, j), j % 4);
}

#endif
