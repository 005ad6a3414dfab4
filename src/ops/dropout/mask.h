/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.h - which elements dropout leaves out: shared by dropout and attention.
 *
 * Whether an element falls depends on the run's seed, on the row of the run that it is of, on its
 * place there and on the place in the model, by Philox (base/rng.h), and on nothing else: not on
 * threads, nor on how a step's rows are cut into micro-steps, nor on the backend. So the backward
 * pass draws the mask again and nobody keeps it.
 *
 *   row      tg_scalars.draw_lo + number of the sequence in the batch; 32 bits, then masks recur
 *   block    four elements that lie side by side in that sequence, a word of the result each
 *   stream   the place in the model; of attention plus 65536 times the head
 *
 * An element falls where its word is below rate * 2^32; what stays is multiplied by 1 / (1 - rate).
 */
#ifndef TG_OPS_DROPOUT_MASK_H
#define TG_OPS_DROPOUT_MASK_H

#include "base/rng.h"
#include "ir/op.h"

typedef struct tg_mask {
    uint64_t seed;
    uint32_t row, stream, below;
    double kept; /* what an element that stays is multiplied by */
} tg_mask;

/* rate in [0, 1), as an attribute. */
static inline tg_mask tg_mask_of(const tg_args *a, float rate, size_t sequence, uint32_t stream) {
    const tg_scalars *rt = a->rt;
    return (tg_mask) {
        .seed = (uint64_t)rt->seed_hi << 32 | rt->seed_lo,
        .row = (uint32_t)((uint64_t)rt->draw_lo + sequence),
        .stream = stream,
        .below = (uint32_t)((double)rate * 4294967296.0),
        .kept = 1 / (1 - (double)rate),
    };
}

/* The stream of a head, and the block of four keys that the query at position t meets. */
static inline uint32_t tg_mask_head(const tg_attr *a, size_t head) {
    return (uint32_t)a->i[4] + ((uint32_t)head << 16);
}
static inline uint32_t tg_mask_block(size_t tokens, size_t t, size_t key) {
    return (uint32_t)(t * ((tokens + 3) / 4) + key / 4);
}

/* Of one element, for references: word is its place in the block. */
static inline double tg_mask_at(const tg_mask *m, uint32_t block, size_t word) {
    uint32_t x[4];
    tg_philox(m->seed, (uint64_t)m->row << 32 | block, TG_RNG_DROPOUT, m->stream, x);
    return x[word] < m->below ? 0 : m->kept;
}

#endif
