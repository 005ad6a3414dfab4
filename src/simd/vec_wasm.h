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

#include "simd/vec_scalar.h"

#endif
