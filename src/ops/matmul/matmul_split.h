/*
 * matmul_split.h - into how many parts of k a product is cut on a GPU. The same arithmetic is in
 * matmul_split.wgsl: host and shader must agree.
 *
 * A product with few tiles and a long k would leave most of the card idle. Its k is cut into parts,
 * whose sums a second pass adds up, in order; the number of parts follows from the shape alone, so
 * that a result does not depend on the card.
 */
#ifndef TG_OPS_MATMUL_SPLIT_H
#define TG_OPS_MATMUL_SPLIT_H

#include "ops/shader.h"

enum {
    TG_SPLIT_GROUPS = 256, /* workgroups to come near to */
    TG_SPLIT_K = 128       /* the shortest part */
};

static inline size_t tg_matmul_tiles(size_t m, size_t n, size_t tile) {
    return tg_shader_parts(m, tile) * tg_shader_parts(n, tile);
}

static inline size_t tg_matmul_split(size_t m, size_t n, size_t k) {
    const size_t most = tg_shader_parts(k, TG_SPLIT_K);
    const size_t wanted = TG_SPLIT_GROUPS / tg_matmul_tiles(m, n, 64);
    const size_t parts = wanted < most ? wanted : most;
    return parts ? parts : 1;
}

#endif
