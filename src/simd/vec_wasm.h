/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_wasm.h - sixteen lanes on WebAssembly: what four lanes have an instruction for; vec_scalar.h
 * makes sixteen of them. Needs simd128, and relaxed_simd for the ISA `relaxed`.
 *
 *   simd128   the scalar class to the bit: a product and a sum, each rounded
 *   relaxed   madd, which every engine fuses where the CPU can. It is allowed not to, so that its
 *             bits are the machine's own, near those of both classes.
 *
 * Of the relaxed instructions only madd and nmadd may differ here: a select between whole lanes and
 * a conversion of numbers that fit have one result.
 */
#ifndef TG_SIMD_VEC_WASM_H
#define TG_SIMD_VEC_WASM_H

#include <wasm_simd128.h>

#define TG_W(x)  ((v128_t)(x))
#define TG_WF(x) ((tg_f4)(x))

/* pmin and pmax are minps and maxps, with the operands the other way round. */
#define TG_F4_MIN(p, q) TG_WF(wasm_f32x4_pmin(TG_W(q), TG_W(p)))
#define TG_F4_MAX(p, q) TG_WF(wasm_f32x4_pmax(TG_W(q), TG_W(p)))
#define TG_F4_SQRT(p)   TG_WF(wasm_f32x4_sqrt(TG_W(p)))

#if defined(TG_ISA_RELAXED)
#define TG_F4_FMA(p, q, r)    TG_WF(wasm_f32x4_relaxed_madd(TG_W(p), TG_W(q), TG_W(r)))
#define TG_F4_FNMA(p, q, r)   TG_WF(wasm_f32x4_relaxed_nmadd(TG_W(p), TG_W(q), TG_W(r)))
#define TG_F4_SELECT(m, t, f) TG_WF(wasm_i32x4_relaxed_laneselect(TG_W(t), TG_W(f), TG_W(m)))
#define TG_F4_ROUND(p)        ((tg_i4)wasm_i32x4_relaxed_trunc_f32x4(wasm_f32x4_nearest(TG_W(p))))
#else
#define TG_F4_SELECT(m, t, f) TG_WF(wasm_v128_bitselect(TG_W(t), TG_W(f), TG_W(m)))
#define TG_F4_ROUND(p)        ((tg_i4)wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(TG_W(p))))
#endif

/* Of the engines' sixteen registers one is their own. With madd, 6 rows of 8 sums, two of b and one
 * of a fill the rest, and load least for what they compute; a product on its own needs one more,
 * and there vec_scalar.h's tile of 2 x 16 is as fast as any. */
#if defined(TG_ISA_RELAXED)
#define TG_MR         6
#define TG_NRV        1
#define TG_TILE_LANES 8
#define TG_V_ROWS     2
#endif

#include "simd/vec_scalar.h"

#if defined(TG_ISA_RELAXED)
typedef struct tg_t {
    tg_f4 a, b;
} tg_t;
static inline tg_t tg_tload(const float *p) { return (tg_t) { tg_f4_load(p), tg_f4_load(p + 4) }; }
static inline void tg_tstore(float *p, tg_t x) {
    tg_f4_store(p, x.a);
    tg_f4_store(p + 4, x.b);
}
static inline tg_t tg_tset(float x) {
    const tg_f4 q = { x, x, x, x };
    return (tg_t) { q, q };
}
static inline tg_t tg_tzero(void) { return tg_tset(0); }
static inline tg_t tg_tadd(tg_t x, tg_t y) { return (tg_t) { x.a + y.a, x.b + y.b }; }
static inline tg_t tg_tfma(tg_t x, tg_t y, tg_t z) {
    return (tg_t) { TG_F4_FMA(x.a, y.a, z.a), TG_F4_FMA(x.b, y.b, z.b) };
}
#endif

#endif
