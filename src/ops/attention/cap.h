/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cap.h - soft caps of scores on sixteen lanes (Gemma 2, 2024), for all bodies of attention.
 *
 *   dot  <-  cap / scale * tanh(scale / cap * dot)
 *
 * Dot products are capped where they lie, before anything is made of them: what comes behind scales
 * them as ever, and a model without caps pays for one comparison a tile. f[2] is cap, 0: none.
 */
#ifndef TG_OPS_ATTENTION_CAP_H
#define TG_OPS_ATTENTION_CAP_H

#include "ops/attention/tiles.h"
#include "simd/vmath.h"

static inline tg_v cap_dots(tg_v dots, float scale, float cap) {
    return tg_vmul(tg_vtanh(tg_vmul(dots, tg_vset(scale / cap))), tg_vset(cap / scale));
}

/* Its slope, by what it gave: 1 - tanh^2. */
static inline tg_v cap_slope(tg_v capped, float scale, float cap) {
    const tg_v t = tg_vmul(capped, tg_vset(scale / cap));
    return tg_vfnma(t, t, tg_vset(1));
}

/* What dots gave, of the same arguments. */
static __attribute__((noinline, unused)) void cap_tile(float *s, float scale, float cap,
                                                       size_t n_keys, size_t n_queries,
                                                       ptrdiff_t off) {
    for (size_t j = 0; j < n_keys; j++) {
        size_t i = clamp((ptrdiff_t)j - off, TILE) / LANES * LANES;
        for (; i < n_queries; i += LANES)
            tg_vstore(s + j * TILE + i, cap_dots(tg_vload(s + j * TILE + i), scale, cap));
    }
}

/* Dot products [first, end) of one query, whose other elements mean nothing. */
static inline void cap_row(float *p, float scale, float cap, size_t first, size_t end) {
    for (size_t j = first / LANES * LANES; cap > 0 && j < end; j += LANES)
        tg_vstore(p + j, cap_dots(tg_vload(p + j), scale, cap));
}

#endif
