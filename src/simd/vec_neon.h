/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_neon.h - sixteen lanes in four registers of AArch64; a mask is all bits or none of a lane.
 *
 *     tg_v    a: lanes 0..3      b: lanes 4..7      c: lanes 8..11      d: lanes 12..15
 *
 * Minimum and maximum are a comparison and a selection, since fmin and fmax of ARM treat NaN and
 * the zeros in another way than x86 does, whose way is the contract of vec.h.
 *
 * Everything here is in the base of ARMv8-A, so there is nothing to ask the CPU for. Flush-to-zero
 * is off by default on AArch64, unlike on 32-bit ARM, so that subnormals come out as on x86.
 */
#ifndef TG_SIMD_VEC_NEON_H
#define TG_SIMD_VEC_NEON_H

#include <arm_neon.h>

typedef struct tg_v {
    float32x4_t a, b, c, d;
} tg_v; /* lanes 0..3, 4..7, 8..11, 12..15 */
typedef struct tg_vi {
    int32x4_t a, b, c, d;
} tg_vi;
typedef struct tg_vm {
    uint32x4_t a, b, c, d;
} tg_vm;

/* The register tile: 24 registers of sums, 4 of b, up to 4 of a: all 32. */
#define TG_MR  6
#define TG_NRV 1

/* One function of the parts of x and y, for each of the four parts. */
#define TG_EACH1(type, f) ((type) { f(x.a), f(x.b), f(x.c), f(x.d) })
#define TG_EACH2(type, f) ((type) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) })

/* ------------------------------------------------------------------------------------- memory */

static inline tg_v tg_vload(const float *p) {
    return (tg_v) { vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}
static inline void tg_vstore(float *p, tg_v x) {
    vst1q_f32(p, x.a);
    vst1q_f32(p + 4, x.b);
    vst1q_f32(p + 8, x.c);
    vst1q_f32(p + 12, x.d);
}
/* NEON has no masked access, and must not read past n: lane by lane through memory of our own. Only
 * tails come here. */
static inline tg_v tg_vload_n(const float *p, size_t n) {
    float lane[16] = { 0 };
    for (size_t i = 0; i < n; i++) lane[i] = p[i];
    return tg_vload(lane);
}
static inline void tg_vstore_n(float *p, tg_v x, size_t n) {
    float lane[16];
    tg_vstore(lane, x);
    for (size_t i = 0; i < n; i++) p[i] = lane[i];
}
static inline tg_vi tg_viload(const int32_t *p) {
    return (tg_vi) { vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12) };
}
static inline void tg_vistore(int32_t *p, tg_vi x) {
    vst1q_s32(p, x.a);
    vst1q_s32(p + 4, x.b);
    vst1q_s32(p + 8, x.c);
    vst1q_s32(p + 12, x.d);
}

/* --------------------------------------------------------------------------------------- make */

static inline tg_v tg_vset(float x) {
    const float32x4_t q = vdupq_n_f32(x);
    return (tg_v) { q, q, q, q };
}
static inline tg_v tg_vzero(void) { return tg_vset(0); }
static inline tg_vi tg_viset(int32_t x) {
    const int32x4_t q = vdupq_n_s32(x);
    return (tg_vi) { q, q, q, q };
}

/* --------------------------------------------------------------------------------------- math */

#define TG_F4_MIN(p, q) vbslq_f32(vcltq_f32((p), (q)), (p), (q))
#define TG_F4_MAX(p, q) vbslq_f32(vcgtq_f32((p), (q)), (p), (q))
static inline tg_v tg_vadd(tg_v x, tg_v y) { return TG_EACH2(tg_v, vaddq_f32); }
static inline tg_v tg_vsub(tg_v x, tg_v y) { return TG_EACH2(tg_v, vsubq_f32); }
static inline tg_v tg_vmul(tg_v x, tg_v y) { return TG_EACH2(tg_v, vmulq_f32); }
static inline tg_v tg_vdiv(tg_v x, tg_v y) { return TG_EACH2(tg_v, vdivq_f32); }
static inline tg_v tg_vmin(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_MIN); }
static inline tg_v tg_vmax(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_MAX); }
static inline tg_v tg_vsqrt(tg_v x) { return TG_EACH1(tg_v, vsqrtq_f32); }
static inline tg_v tg_vabs(tg_v x) { return TG_EACH1(tg_v, vabsq_f32); }
static inline tg_v tg_vneg(tg_v x) { return TG_EACH1(tg_v, vnegq_f32); }
/* The sum comes first in ARM's order of operands. vfms subtracts the product from it, rounded once
 * like x86's fnmadd. */
static inline tg_v tg_vfma(tg_v a, tg_v b, tg_v c) {
    return (tg_v) { vfmaq_f32(c.a, a.a, b.a), vfmaq_f32(c.b, a.b, b.b), vfmaq_f32(c.c, a.c, b.c),
                    vfmaq_f32(c.d, a.d, b.d) };
}
static inline tg_v tg_vfnma(tg_v a, tg_v b, tg_v c) {
    return (tg_v) { vfmsq_f32(c.a, a.a, b.a), vfmsq_f32(c.b, a.b, b.b), vfmsq_f32(c.c, a.c, b.c),
                    vfmsq_f32(c.d, a.d, b.d) };
}

/* ------------------------------------------------------------------------------------ compare */

static inline tg_vm tg_vlt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, vcltq_f32); }
static inline tg_vm tg_vle(tg_v x, tg_v y) { return TG_EACH2(tg_vm, vcleq_f32); }
static inline tg_vm tg_vgt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, vcgtq_f32); }
static inline tg_vm tg_veq(tg_v x, tg_v y) { return TG_EACH2(tg_vm, vceqq_f32); }
/* Bit by bit; masks have all bits of a lane or none. */
static inline tg_v tg_vselect(tg_vm m, tg_v t, tg_v f) {
    return (tg_v) { vbslq_f32(m.a, t.a, f.a), vbslq_f32(m.b, t.b, f.b), vbslq_f32(m.c, t.c, f.c),
                    vbslq_f32(m.d, t.d, f.d) };
}
static inline tg_vm tg_vfirst(size_t n) {
    static const uint32_t lane[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const uint32x4_t end = vdupq_n_u32((uint32_t)n);
    return (tg_vm) { vcltq_u32(vld1q_u32(lane), end), vcltq_u32(vld1q_u32(lane + 4), end),
                     vcltq_u32(vld1q_u32(lane + 8), end), vcltq_u32(vld1q_u32(lane + 12), end) };
}

/* ------------------------------------------------------------------------------------ integer */

static inline tg_vi tg_viadd(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, vaddq_s32); }
static inline tg_vi tg_visub(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, vsubq_s32); }
static inline tg_vi tg_viand(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, vandq_s32); }
static inline tg_vi tg_vior(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, vorrq_s32); }
/* In the compilers' vector language, which takes a function's argument as a count. */
#define TG_I4_SHL(p) vreinterpretq_s32_u32(vreinterpretq_u32_s32(p) << n)
#define TG_I4_SHR(p) vreinterpretq_s32_u32(vreinterpretq_u32_s32(p) >> n)
#define TG_I4_SAR(p) ((p) >> n)
static inline tg_vi tg_vishl(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SHL); }
static inline tg_vi tg_vishr(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SHR); }
static inline tg_vi tg_visar(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SAR); }
/* vcvtn rounds to nearest even whatever the mode of the thread is. It saturates where x86 gives the
 * least integer: vec.h promises nothing there. */
static inline tg_vi tg_vround(tg_v x) { return TG_EACH1(tg_vi, vcvtnq_s32_f32); }
static inline tg_v tg_vfloat(tg_vi x) { return TG_EACH1(tg_v, vcvtq_f32_s32); }
static inline tg_vi tg_vbits(tg_v x) { return TG_EACH1(tg_vi, vreinterpretq_s32_f32); }
static inline tg_v tg_vfrombits(tg_vi x) { return TG_EACH1(tg_v, vreinterpretq_f32_s32); }

/* No scalef here: vec.h makes tg_vscale of the operations above. */
#define TG_SIMD_SCALE_BY_BITS

/* ------------------------------------------------------------------------------------- reduce */

/* Lanes i + (i + 8), then + 4, + 2, + 1. vaddv adds neighbours first, which is another sum. */
static inline float tg_vsum(tg_v x) {
    const float32x4_t q = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
    const float32x2_t h = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
static inline float tg_vmaxlane(tg_v x) {
    const float32x4_t e = TG_F4_MAX(x.a, x.c), f = TG_F4_MAX(x.b, x.d), q = TG_F4_MAX(e, f);
    const float32x2_t low = vget_low_f32(q), high = vget_high_f32(q);
    const float32x2_t h = vbsl_f32(vcgt_f32(low, high), low, high);
    const float r = vget_lane_f32(h, 0), s = vget_lane_f32(h, 1);
    return r > s ? r : s;
}

/* -------------------------------------------------------------------------------------- turn */

/* Pairs of rows are interleaved as floats, then pairs of pairs as doubles: columns stand up. */
static inline void tg_turn4x4(float *to, size_t ld_to, const float *from, size_t ld_from) {
    const float32x4_t p = vld1q_f32(from), q = vld1q_f32(from + ld_from);
    const float32x4_t r = vld1q_f32(from + 2 * ld_from), s = vld1q_f32(from + 3 * ld_from);
    const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(p, q));
    const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(p, q));
    const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r, s));
    const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(r, s));
    vst1q_f32(to, vreinterpretq_f32_f64(vtrn1q_f64(a, c)));
    vst1q_f32(to + ld_to, vreinterpretq_f32_f64(vtrn1q_f64(b, d)));
    vst1q_f32(to + 2 * ld_to, vreinterpretq_f32_f64(vtrn2q_f64(a, c)));
    vst1q_f32(to + 3 * ld_to, vreinterpretq_f32_f64(vtrn2q_f64(b, d)));
}
static inline void tg_vturn16(float *to, size_t ld_to, const float *from, size_t ld_from) {
    for (size_t i = 0; i < 16; i += 4)
        for (size_t j = 0; j < 16; j += 4)
            tg_turn4x4(to + j * ld_to + i, ld_to, from + i * ld_from + j, ld_from);
}

/* ------------------------------------------------------------------------------ 16-bit floats */

#define TG_I4_WIDEN(p) vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)))
static inline tg_vi tg_viload_u16(const uint16_t *p) {
    return (tg_vi) { TG_I4_WIDEN(p), TG_I4_WIDEN(p + 4), TG_I4_WIDEN(p + 8), TG_I4_WIDEN(p + 12) };
}
static inline void tg_vistore_u16(uint16_t *p, tg_vi x) {
    vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(x.a)));
    vst1_u16(p + 4, vmovn_u32(vreinterpretq_u32_s32(x.b)));
    vst1_u16(p + 8, vmovn_u32(vreinterpretq_u32_s32(x.c)));
    vst1_u16(p + 12, vmovn_u32(vreinterpretq_u32_s32(x.d)));
}
/* fcvtl and fcvtn of ARMv8.0: exact one way, to nearest even the other, subnormals included; the
 * half-precision arithmetic of ARMv8.2 is not needed. */
#define TG_F4_FROM_F16(p) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
static inline tg_v tg_vload_f16(const uint16_t *p) {
    return (tg_v) { TG_F4_FROM_F16(p), TG_F4_FROM_F16(p + 4), TG_F4_FROM_F16(p + 8),
                    TG_F4_FROM_F16(p + 12) };
}
static inline void tg_vstore_f16(uint16_t *p, tg_v x) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x.a)));
    vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(x.b)));
    vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(x.c)));
    vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(x.d)));
}

#endif
