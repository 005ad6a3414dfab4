/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap.h - soft caps of scores (Gemma 2, 2024), for all bodies of attention.
 *
 *   dot  <-  cap / scale * tanh(scale / cap * dot)
 *
 * Dot products are capped where they lie, before anything is made of them: what comes behind scales
 * them as ever, and a model without caps pays for one comparison a tile. f[2] is cap, 0: none.
 */
#ifndef TG_OPS_ATTENTION_CAP_H
#define TG_OPS_ATTENTION_CAP_H

#include "ops/attention/flash/tiles.h"
#include "simd/vcap.h"

static inline void cap_dots(float *dots, size_t n, float scale, float cap) {
    tg_vcap_n(dots, dots, n, scale / cap, cap / scale);
}

/* The slope of a cap, by what it gave: 1 - tanh^2. */
TG_VMATH tg_v cap_slope(tg_v capped, float scale, float cap) {
    const tg_v t = tg_vmul(capped, tg_vset(scale / cap));
    return tg_vfnma(t, t, tg_vset(1));
}

/* What dots gave, of the same arguments: whole vectors, as there. */
TG_OUT_OF_LINE void cap_tile(float *s, float scale, float cap, size_t n_keys, size_t n_queries,
                             ptrdiff_t off) {
    for (size_t j = 0; j < n_keys; j++) {
        const size_t i = clamp((ptrdiff_t)j - off, TILE) / LANES * LANES;
        if (i < n_queries) cap_dots(s + j * TILE + i, round_up(n_queries - i, LANES), scale, cap);
    }
}

#endif
