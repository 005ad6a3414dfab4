/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_proportional.h - heads of which the first pairs alone turn, by the frequencies of a head
 * that turns as a whole (Gemma 4; transformers' "proportional").
 *
 * config.json has the part that turns, a GGUF file factors by which each frequency is divided: 1,
 * and behind these 1e30, so that the other pairs stand still.
 */
#ifndef TG_IO_ROPE_PROPORTIONAL_H
#define TG_IO_ROPE_PROPORTIONAL_H

#include "base/libc.h"

#define TG_ROPE_STILL 1e30F

/* out [half] */
static inline void tg_rope_proportional_fill(float *out, size_t half, size_t turned) {
    for (size_t i = 0; i < half; i++) out[i] = i < turned ? 1 : TG_ROPE_STILL;
}

/* How many pairs turn, of factors [half]; 0: none, or they are not of this form. */
static inline size_t tg_rope_proportional_find(const float *factors, size_t half) {
    size_t turned = 0, rest = half;
    while (turned < half && factors[turned] == 1) turned++;
    while (rest > turned && factors[rest - 1] >= TG_ROPE_STILL) rest--;
    return turned == rest ? turned : 0;
}

#endif
