/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_split.h - how the work of products is cut up for a GPU: in tiles of what size, and the k
 * of how long parts.
 *
 * A large card wants some six hundred workgroups of 64 threads. Tiles of 64 do the most work for
 * what they load; where they are too few, k is cut into parts, whose sums a second pass adds up in
 * order; and where even parts of 128 would be too few, tiles of 32 are made. All of it follows from
 * the shape alone, so that a result does not depend on the card.
 */
#ifndef TG_OPS_MATMUL_SPLIT_H
#define TG_OPS_MATMUL_SPLIT_H

#include "ops/shader.h"

enum {
    TG_SPLIT_GROUPS = 640, /* workgroups to come near to */
    TG_SPLIT_FEW = 400,    /* with fewer of tiles of 64, tiles of 32 */
    TG_SPLIT_SHORT = 128   /* the shortest part of a k that is cut */
};

static inline size_t tg_matmul_tiles(size_t m, size_t n, size_t tile) {
    return tg_shader_parts(m, tile) * tg_shader_parts(n, tile);
}

/* work: the sum over all tiles of their k. Would it fill a card in tiles of this size? */
static inline bool tg_matmul_fills(size_t work) { return work / TG_SPLIT_SHORT >= TG_SPLIT_FEW; }

/* The length of a part. A k that is not longer stays whole. */
static inline size_t tg_matmul_part(size_t work) {
    const size_t part = tg_shader_parts(work / TG_SPLIT_GROUPS, 16) * 16;
    return part > TG_SPLIT_SHORT ? part : TG_SPLIT_SHORT;
}

#endif
