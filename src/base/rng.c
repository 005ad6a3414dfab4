/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.c - Philox 4x32-10 and what is made of its bits.
 *
 * Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011, section 3.3 and table 2. One round multiplies two of the four words and swaps:
 *
 *     x0' = hi(M1 * x2) ^ x1 ^ k0        x1' = lo(M1 * x2)
 *     x2' = hi(M0 * x0) ^ x3 ^ k1        x3' = lo(M0 * x0)
 *
 * and the key advances by the Weyl constants between rounds.
 */
#include "base/rng.h"

#include "base/math.h"

#define PHILOX_M0     UINT32_C(0xD2511F53)
#define PHILOX_M1     UINT32_C(0xCD9E8D57)
#define WEYL_0        UINT32_C(0x9E3779B9) /* the golden ratio */
#define WEYL_1        UINT32_C(0xBB67AE85) /* sqrt(3) - 1 */
#define PHILOX_ROUNDS 10

/* The key goes around the 32 bits: that is what a Weyl sequence is. */
TG_WRAPS void tg_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)PHILOX_M0 * x0;
        const uint64_t p1 = (uint64_t)PHILOX_M1 * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

/* The layout of counter and key is part of every file: see the table in rng.h. */
void tg_philox(uint64_t seed, uint64_t index, uint32_t purpose, uint32_t stream, uint32_t out[4]) {
    const uint32_t counter[4] = { (uint32_t)index, (uint32_t)(index >> 32), purpose, stream };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    tg_philox_block(counter, key, out);
}

/* The schoolbook product of two 64-bit numbers in 32-bit halves; no partial sum exceeds 64 bits. */
uint64_t tg_rng_below(uint64_t draw, uint64_t n) {
    const uint64_t a_lo = (uint32_t)draw, a_hi = draw >> 32;
    const uint64_t b_lo = (uint32_t)n, b_hi = n >> 32;
    const uint64_t low = a_lo * b_lo;
    const uint64_t mid = a_hi * b_lo + (low >> 32);
    const uint64_t cross = a_lo * b_hi + (uint32_t)mid;
    return a_hi * b_hi + (mid >> 32) + (cross >> 32);
}

void tg_rng_normal4(const uint32_t x[4], double z[4]) {
    for (int pair = 0; pair < 4; pair += 2) {
        const double radius = tg_sqrt(-2.0 * tg_log(tg_rng_uniform(x[pair])));
        const double angle = 2.0 * TG_PI * tg_rng_uniform(x[pair + 1]);
        z[pair] = radius * tg_cos(angle);
        z[pair + 1] = radius * tg_sin(angle);
    }
}
