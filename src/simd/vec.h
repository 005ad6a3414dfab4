/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h - sixteen lanes of f32, whatever the CPU has: the only language fast bodies are written in.
 *
 * A file <op>.simd.h is compiled once per ISA with TG_ISA set to the ISA's name (scalar, avx2,
 * avx512, neon, simd128, relaxed), and includes this header, which brings the vec_<isa>.h that
 * defines:
 *
 *   types    tg_v   16 x f32      tg_vi  16 x i32      tg_vm  a mask of 16 lanes
 *   memory   tg_v  tg_vload(const float *p)             unaligned
 *            tg_v  tg_vload_n(const float *p, size_t n)  lanes [0,n), 0 beyond; n in 0..16; never
 *            reads past n
 *            void  tg_vstore(float *p, tg_v x)
 *            void  tg_vstore_n(float *p, tg_v x, size_t n)
 *            tg_vi tg_viload(const int32_t *p)          void tg_vistore(int32_t *p, tg_vi x)
 *            tg_vi tg_viload_s8(const int8_t *p)
 *   make     tg_v  tg_vset(float x)    tg_v tg_vzero(void)    tg_vi tg_viset(int32_t x)
 *   math     tg_vadd tg_vsub tg_vmul tg_vdiv tg_vmin tg_vmax (a,b)   tg_vsqrt tg_vabs tg_vneg (a)
 *            tg_vmin/max(a,b): as x86's minps/maxps: (a < b ? a : b), (a > b ? a : b), so b where
 *            either is NaN
 *            tg_vfma(a,b,c) = a*b+c: fused in the fused class (avx2, avx512, neon), two roundings
 *            in the scalar class. tg_vfnma(a,b,c) = c-a*b alike.
 *   compare  tg_vm tg_vlt tg_vle tg_vgt tg_veq (a,b)    tg_v tg_vselect(m, if_true, if_false)
 *            tg_vm tg_vfirst(size_t n)  the first n lanes
 *   integer  tg_vi tg_viadd tg_visub tg_viand tg_vior (a,b)   tg_vishl tg_vishr (a, const n:
 *            logical)   tg_visar (a, const n: arithmetic)
 *            tg_vi tg_vround(tg_v)  nearest even to i32; any value where that does not fit
 *            tg_v  tg_vfloat(tg_vi)
 *            tg_vi tg_vbits(tg_v)   tg_v tg_vfrombits(tg_vi)   reinterpretation
 *   scale    tg_v  tg_vscale(x, n)  x * 2^n, rounded once, for whole n, |n| <= 250, 1/4 < |x| < 4
 *   reduce   float tg_vsum(tg_v)   lanes i and i+8, then +4, +2, +1: one order on every ISA
 *            float tg_vmaxlane(tg_v)
 *   16 bits  tg_v  tg_vload_f16(const uint16_t *p)   tg_v tg_vload_bf16(const uint16_t *p)
 *            and tg_vstore_f16(p, x), tg_vstore_bf16(p, x), to nearest, ties to even
 *            tg_vi tg_viload_u16(const uint16_t *p) and its store: 16 lanes of 0..65535
 *   turn     void  tg_vturn(to, ld_to, from, ld_from, rows, cols)  to[j * ld_to + i] =
 *            from[i * ld_from + j] for i < rows, j < cols, both <= 16; zeros for i in [rows, 16)
 *   cache    TG_PREFETCH(p) read, near   TG_PREFETCH_FAR(p) read, into the second cache
 *            TG_NO_PREFETCH  is defined where neither does anything
 *   pointer  TG_OPAQUE(p)  p, and the compiler forgets how it came about
 *   tile     TG_MR, TG_NRV   rows and vectors across of the register tile of matmul on this ISA.
 * The vectors are tg_t of TG_TILE_LANES lanes: tg_v, or half of one where 16 lanes are so many
 * registers that a tile of them would be all width and no height. tg_tload tg_tstore tg_tset
 * tg_tzero tg_tadd tg_tfma are as those of tg_v. TG_V_ROWS        rows of a tile that is one tg_v
 * wide
 *
 * Every function is static inline and gives the same bits on every ISA of one class; that is the
 * ground of the determinism contract, so nothing here may be approximate (no rcp, no rsqrt). Only
 * sign and payload of a NaN that an operation makes are the CPU's own.
 * vmath.h builds exp, log, Phi and the gelu family on top, for all ISAs at once.
 *
 * A body ends with TG_KERNELS(op, variants): the set of its variants for this ISA, found by the
 * table in ops/kernels.c.
 */
#ifndef TG_SIMD_VEC_H
#define TG_SIMD_VEC_H

#include "base/libc.h"

#define TG_CAT2(a, b) a##b
#define TG_CAT(a, b)  TG_CAT2(a, b)

/* What is long, rare, and used in many places. */
#define TG_OUT_OF_LINE static __attribute__((noinline, unused))
/* A part that is compiled once for each constant that it is called with; where each lane is an
 * instruction (a tile of one row), once in all. */
#define TG_UNLESS_LONG static inline __attribute__((always_inline))

#define TG_OPAQUE(p) __asm__("" : "+r"(p))
#if defined(__wasm__) /* it has no such instruction; the loops around one would remain */
#define TG_NO_PREFETCH
#define TG_PREFETCH(p)     ((void)(p))
#define TG_PREFETCH_FAR(p) ((void)(p))
#else
#define TG_PREFETCH(p)     __builtin_prefetch((p), 0, 3)
#define TG_PREFETCH_FAR(p) __builtin_prefetch((p), 0, 2)
#endif

/* const tg_kernel_set tg_k_<op>__<isa> (ir/op.h must be included before use), and the same with the
 * set of another file of the op behind it. */
#define TG_KERNELS_SET(op, list, more)                                                             \
    extern const tg_kernel_set TG_CAT(tg_k_##op##__, TG_ISA);                                      \
    const tg_kernel_set TG_CAT(tg_k_##op##__, TG_ISA) = { (list),                                  \
                                                          sizeof(list) / sizeof((list)[0]), more }
#define TG_KERNELS(op, list) TG_KERNELS_SET(op, list, NULL)
#define TG_KERNELS_AND(op, list, others)                                                           \
    extern const tg_kernel_set TG_CAT(tg_k_##others##__, TG_ISA);                                  \
    TG_KERNELS_SET(op, list, &TG_CAT(tg_k_##others##__, TG_ISA))

#if defined(TG_ISA_AVX512)
#include "simd/vec_avx512.h"
#elif defined(TG_ISA_AVX2)
#include "simd/vec_avx2.h"
#elif defined(TG_ISA_NEON)
#include "simd/vec_neon.h"
#elif defined(TG_ISA_SIMD128) || defined(TG_ISA_RELAXED)
#include "simd/vec_wasm.h"
#else
#include "simd/vec_scalar.h"
#endif

#ifndef TG_TILE_LANES
#define TG_TILE_LANES 16
#define TG_V_ROWS     TG_MR
typedef tg_v tg_t;
static inline tg_t tg_tload(const float *p) { return tg_vload(p); }
static inline void tg_tstore(float *p, tg_t x) { tg_vstore(p, x); }
static inline tg_t tg_tset(float x) { return tg_vset(x); }
static inline tg_t tg_tzero(void) { return tg_vzero(); }
static inline tg_t tg_tadd(tg_t x, tg_t y) { return tg_vadd(x, y); }
static inline tg_t tg_tfma(tg_t x, tg_t y, tg_t z) { return tg_vfma(x, y, z); }
#endif

#ifdef TG_SIMD_SCALE_BY_BITS
/* In two halves, so that each factor is a normal number: the first product is exact, and the second
 * one rounds, into the subnormals too. */
static inline tg_v tg_vscale(tg_v x, tg_v n) {
    const tg_vi i = tg_vround(n), half = tg_visar(i, 1), bias = tg_viset(127);
    const tg_v first = tg_vfrombits(tg_vishl(tg_viadd(half, bias), 23));
    const tg_v second = tg_vfrombits(tg_vishl(tg_viadd(tg_visub(i, half), bias), 23));
    return tg_vmul(tg_vmul(x, first), second);
}
#endif

/* A block of a matrix, turned over. tg_vturn16 is the ISA's own, for a whole block. */
TG_OUT_OF_LINE void tg_turn_part(float *to, size_t ld_to, const float *from, size_t ld_from,
                                 size_t rows, size_t cols) {
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < 16; i++) to[j * ld_to + i] = i < rows ? from[i * ld_from + j] : 0;
}
static inline void tg_vturn(float *to, size_t ld_to, const float *from, size_t ld_from, size_t rows,
                            size_t cols) {
    if (rows == 16 && cols == 16) {
        tg_vturn16(to, ld_to, from, ld_from);
    } else {
        tg_turn_part(to, ld_to, from, ld_from, rows, cols);
    }
}

#ifndef TG_SIMD_S8
static inline tg_vi tg_viload_s8(const int8_t *p) {
    int32_t x[16];
    for (int i = 0; i < 16; i++) x[i] = p[i];
    return tg_viload(x);
}
#endif

/* bf16 is the upper half of a float. No ISA's own conversion is used: some flush subnormals. */
static inline tg_v tg_vload_bf16(const uint16_t *p) {
    return tg_vfrombits(tg_vishl(tg_viload_u16(p), 16));
}
static inline void tg_vstore_bf16(uint16_t *p, tg_v x) {
    const tg_vi bits = tg_vbits(x), high = tg_vishr(bits, 16);
    const tg_vi up = tg_viadd(tg_viset(0x7fff), tg_viand(high, tg_viset(1)));
    const tg_v rounded = tg_vfrombits(tg_vishr(tg_viadd(bits, up), 16));
    const tg_v quiet_nan = tg_vfrombits(tg_vior(high, tg_viset(0x40)));
    tg_vistore_u16(p, tg_vbits(tg_vselect(tg_veq(x, x), rounded, quiet_nan)));
}

#endif
