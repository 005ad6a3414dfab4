/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask_lanes.h - the mask of sixteen blocks at a time. The lanes are whole numbers, for which
 * simd/vec.h has no words: a plain loop over them, which compilers make vectors of.
 */
#ifndef TG_OPS_DROPOUT_MASK_LANES_H
#define TG_OPS_DROPOUT_MASK_LANES_H

#include "ops/dropout/mask.h"

/* out[w][i] = what word w of block first + i * step is multiplied by. The rounds are those of
 * tg_philox_block. */
static __attribute__((noinline)) void mask_lanes(const tg_mask *m, uint32_t first, uint32_t step,
                                                 float out[4][16]) {
    uint32_t x[4][16], k0 = (uint32_t)m->seed, k1 = (uint32_t)(m->seed >> 32);
    for (uint32_t i = 0; i < 16; i++) {
        x[0][i] = (uint32_t)(first + (uint64_t)i * step);
        x[1][i] = m->row;
        x[2][i] = TG_RNG_DROPOUT;
        x[3][i] = m->stream;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 16; i++) {
            const uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * x[0][i];
            const uint64_t p1 = (uint64_t)UINT32_C(0xCD9E8D57) * x[2][i];
            x[0][i] = (uint32_t)(p1 >> 32) ^ x[1][i] ^ k0;
            x[1][i] = (uint32_t)p1;
            x[2][i] = (uint32_t)(p0 >> 32) ^ x[3][i] ^ k1;
            x[3][i] = (uint32_t)p0;
        }
        k0 = (uint32_t)(k0 + UINT64_C(0x9E3779B9));
        k1 = (uint32_t)(k1 + UINT64_C(0xBB67AE85));
    }
    const float kept = (float)m->kept;
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < 16; i++) out[w][i] = x[w][i] < m->below ? 0 : kept;
}

#endif
