/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - counter-based random numbers: Philox 4x32-10 (Salmon et al., SC 2011).
 *
 * A draw is a pure function of (seed, purpose, stream, index). There is no state to save, to seed
 * again or to share between threads; evaluating more or logging less cannot shift any other draw;
 * and a draw is the same on every machine and backend.
 *
 *   key      = lo32(seed),  hi32(seed)
 *   counter  = lo32(index), hi32(index), purpose, stream
 *   result   = x[0..3], 32 bits each
 *
 *   purpose    stream                      index
 *   INIT       ordinal of the tensor       number of the element / 4, in the file's [in,out] order
 *   BATCH      0                           (step * accum + micro) * batch + row
 *   BATCH      1, the order of conversations   epoch * conversations + place
 *   BATCH      2, the part of a mix            as for 0
 *   DROPOUT    place in the model          number of the element / 4 in its sequence, and
 *                                          the sequence's row of the run: ops/dropout/mask.h
 *   SAMPLE     0                           number of the token in this generation
 *   STORIES    0                           number of the choice
 *   MASK       place in the row            the row, as for BATCH 0, or one that validates, of
 *                                          seed 0
 */
#ifndef TG_BASE_RNG_H
#define TG_BASE_RNG_H

#include "base/libc.h"

/* Part of the format: a number never gets a new meaning. */
enum tg_rng_purpose {
    TG_RNG_INIT = 1,
    TG_RNG_BATCH = 2,
    TG_RNG_DROPOUT = 3,
    TG_RNG_SAMPLE = 4,
    TG_RNG_STORIES = 5,
    TG_RNG_MASK = 6
};

/* One block of 128 bits. */
void tg_philox(uint64_t seed, uint64_t index, uint32_t purpose, uint32_t stream, uint32_t out[4]);

/* The bare permutation, as the paper's known answers give it. */
void tg_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* (x + 0.5) / 2^32: in (0, 1), never an end point, exact. */
static inline double tg_rng_uniform(uint32_t x) { return ((double)x + 0.5) * (1.0 / 4294967296.0); }

/* The first 64 bits of a block as one draw. */
static inline uint64_t tg_rng_draw64(const uint32_t x[4]) {
    return (uint64_t)x[0] | (uint64_t)x[1] << 32;
}

/* Maps a 64-bit draw to [0, n): the high half of draw * n. The bias is below n / 2^64. n = 0: 0. */
uint64_t tg_rng_below(uint64_t draw, uint64_t n);

/*
 * Four standard normals from one block, by Box and Muller: (x0, x1) give z0, z1 and (x2, x3) give
 * z2, z3; r = sqrt(-2 ln u(x0)), a = 2 pi u(x1), z0 = r cos a, z1 = r sin a. Same bits everywhere.
 */
void tg_rng_normal4(const uint32_t x[4], double z[4]);

#endif
