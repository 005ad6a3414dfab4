/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_scalar.h - sixteen lanes without any instruction set: four vectors of four, in the vector
 * language of gcc and clang, which lower them to what the target has (SSE2 on x86-64, plain floats
 * elsewhere).
 *
 * Four members rather than one vector of 64 bytes: compilers keep members in registers, while a
 * vector wider than any register of the target lives in memory. tg_vfma is a product and a sum,
 * each rounded: this is what makes the scalar class a class of its own.
 *
 * An ISA of four lanes (vec_wasm.h) includes this file after it has defined what it has an
 * instruction for: any of the macros that are guarded here.
 */
#ifndef TG_SIMD_VEC_SCALAR_H
#define TG_SIMD_VEC_SCALAR_H

typedef float tg_f4 __attribute__((vector_size(16)));
typedef int32_t tg_i4 __attribute__((vector_size(16)));
typedef uint32_t tg_u4 __attribute__((vector_size(16)));
typedef uint16_t tg_h4 __attribute__((vector_size(8)));

typedef struct tg_v {
    tg_f4 a, b, c, d;
} tg_v; /* lanes 0..3, 4..7, 8..11, 12..15 */
typedef struct tg_vi {
    tg_i4 a, b, c, d;
} tg_vi;
typedef struct tg_vm {
    tg_i4 a, b, c, d;
} tg_vm; /* all bits of a lane, or none */

/* The register tile: 16 registers of 4 floats hold 2 rows of 16 sums and one row of b. Where a
 * register is one float they hold no row, and a second one only makes the code longer. */
#ifndef TG_MR
#if defined(__wasm__) && !defined(__wasm_simd128__)
#define TG_MR 1
#undef TG_UNLESS_LONG
#define TG_UNLESS_LONG TG_OUT_OF_LINE
#else
#define TG_MR 2
#endif
#define TG_NRV 1
#endif

/* One expression of the parts of x, y and z, for each of the four parts. */
#define TG_EACH1(type, f) ((type) { f(x.a), f(x.b), f(x.c), f(x.d) })
#define TG_EACH2(type, f) ((type) { f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d) })
#define TG_EACH3(type, f)                                                                          \
    ((type) { f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d) })

static inline tg_f4 tg_f4_bits(tg_i4 x) { return (tg_f4)x; }
static inline tg_i4 tg_i4_bits(tg_f4 x) { return (tg_i4)x; }
#ifndef TG_F4_SELECT
#define TG_F4_SELECT(m, t, f) tg_f4_select((m), (t), (f))
static inline tg_f4 tg_f4_select(tg_i4 m, tg_f4 t, tg_f4 f) {
    return (tg_f4)((m & (tg_i4)t) | (~m & (tg_i4)f));
}
#endif

/* ------------------------------------------------------------------------------------- memory */

/* Part by part, at constant distances from one pointer: instructions have room for those. */
static inline tg_f4 tg_f4_load(const float *p) {
    tg_f4 x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void tg_f4_store(float *p, tg_f4 x) { memcpy(p, &x, sizeof x); }
static inline tg_v tg_vload(const float *p) {
    return (tg_v) { tg_f4_load(p), tg_f4_load(p + 4), tg_f4_load(p + 8), tg_f4_load(p + 12) };
}
static inline void tg_vstore(float *p, tg_v x) {
    tg_f4_store(p, x.a);
    tg_f4_store(p + 4, x.b);
    tg_f4_store(p + 8, x.c);
    tg_f4_store(p + 12, x.d);
}
/* The ends of rows, lane by lane. */
TG_OUT_OF_LINE void tg_load_lanes(float lane[16], const float *p, size_t n) {
    for (size_t i = 0; i < 16; i++) lane[i] = i < n ? p[i] : 0;
}
TG_OUT_OF_LINE void tg_store_lanes(float *p, const float lane[16], size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = lane[i];
}
static inline tg_v tg_vload_n(const float *p, size_t n) {
    float lane[16];
    tg_load_lanes(lane, p, n);
    return tg_vload(lane);
}
static inline void tg_vstore_n(float *p, tg_v x, size_t n) {
    float lane[16];
    tg_vstore(lane, x);
    tg_store_lanes(p, lane, n);
}
static inline tg_vi tg_viload(const int32_t *p) {
    tg_vi x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline void tg_vistore(int32_t *p, tg_vi x) { memcpy(p, &x, sizeof x); }

/* --------------------------------------------------------------------------------------- make */

static inline tg_v tg_vset(float x) {
    const tg_f4 q = { x, x, x, x };
    return (tg_v) { q, q, q, q };
}
static inline tg_v tg_vzero(void) { return tg_vset(0); }
static inline tg_vi tg_viset(int32_t x) {
    const tg_i4 q = { x, x, x, x };
    return (tg_vi) { q, q, q, q };
}

/* --------------------------------------------------------------------------------------- math */

#define TG_F4_ADD(p, q) ((p) + (q))
#define TG_F4_SUB(p, q) ((p) - (q))
#define TG_F4_MUL(p, q) ((p) * (q))
#define TG_F4_DIV(p, q) ((p) / (q))
#ifndef TG_F4_MIN
#define TG_F4_MIN(p, q) TG_F4_SELECT((p) < (q), (p), (q))
#define TG_F4_MAX(p, q) TG_F4_SELECT((p) > (q), (p), (q))
#endif
#ifndef TG_F4_FMA
#define TG_F4_FMA(p, q, r)  ((p) * (q) + (r))
#define TG_F4_FNMA(p, q, r) ((r) - (p) * (q))
#endif
static inline tg_v tg_vadd(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_ADD); }
static inline tg_v tg_vsub(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_SUB); }
static inline tg_v tg_vmul(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_MUL); }
static inline tg_v tg_vdiv(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_DIV); }
static inline tg_v tg_vmin(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_MIN); }
static inline tg_v tg_vmax(tg_v x, tg_v y) { return TG_EACH2(tg_v, TG_F4_MAX); }
static inline tg_v tg_vfma(tg_v x, tg_v y, tg_v z) { return TG_EACH3(tg_v, TG_F4_FMA); }
static inline tg_v tg_vfnma(tg_v x, tg_v y, tg_v z) { return TG_EACH3(tg_v, TG_F4_FNMA); }

#ifndef TG_F4_SQRT
#define TG_F4_SQRT(p) tg_f4_sqrt(p)
static inline tg_f4 tg_f4_sqrt(tg_f4 x) {
    return (tg_f4) { __builtin_sqrtf(x[0]), __builtin_sqrtf(x[1]), __builtin_sqrtf(x[2]),
                     __builtin_sqrtf(x[3]) };
}
#endif
#define TG_F4_ABS(p) ((tg_f4)((tg_i4)(p) & 0x7fffffff))
#define TG_F4_NEG(p) (-(p))
static inline tg_v tg_vsqrt(tg_v x) { return TG_EACH1(tg_v, TG_F4_SQRT); }
static inline tg_v tg_vabs(tg_v x) { return TG_EACH1(tg_v, TG_F4_ABS); }
static inline tg_v tg_vneg(tg_v x) { return TG_EACH1(tg_v, TG_F4_NEG); }

/* ------------------------------------------------------------------------------------ compare */

#define TG_F4_LT(p, q) ((p) < (q))
#define TG_F4_LE(p, q) ((p) <= (q))
#define TG_F4_GT(p, q) ((p) > (q))
#define TG_F4_EQ(p, q) ((p) == (q))
static inline tg_vm tg_vlt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F4_LT); }
static inline tg_vm tg_vle(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F4_LE); }
static inline tg_vm tg_vgt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F4_GT); }
static inline tg_vm tg_veq(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F4_EQ); }
static inline tg_v tg_vselect(tg_vm m, tg_v x, tg_v y) {
    return (tg_v) { TG_F4_SELECT(m.a, x.a, y.a), TG_F4_SELECT(m.b, x.b, y.b),
                    TG_F4_SELECT(m.c, x.c, y.c), TG_F4_SELECT(m.d, x.d, y.d) };
}
static inline tg_vm tg_vfirst(size_t n) {
    const int32_t k = (int32_t)n;
    const tg_i4 end = { k, k, k, k }, lane = { 0, 1, 2, 3 };
    return (tg_vm) { lane < end, lane + 4 < end, lane + 8 < end, lane + 12 < end };
}

/* ------------------------------------------------------------------------------------ integer */

/* Sums and shifts wrap, as on every machine: they are done on unsigned lanes. */
#define TG_I4_ADD(p, q) ((tg_i4)((tg_u4)(p) + (tg_u4)(q)))
#define TG_I4_SUB(p, q) ((tg_i4)((tg_u4)(p) - (tg_u4)(q)))
#define TG_I4_AND(p, q) ((p) & (q))
#define TG_I4_OR(p, q)  ((p) | (q))
static inline tg_vi tg_viadd(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, TG_I4_ADD); }
static inline tg_vi tg_visub(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, TG_I4_SUB); }
static inline tg_vi tg_viand(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, TG_I4_AND); }
static inline tg_vi tg_vior(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, TG_I4_OR); }
#define TG_I4_SHL(p) ((tg_i4)((tg_u4)(p) << n))
#define TG_I4_SHR(p) ((tg_i4)((tg_u4)(p) >> n))
#define TG_I4_SAR(p) ((p) >> n)
static inline tg_vi tg_vishl(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SHL); }
static inline tg_vi tg_vishr(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SHR); }
static inline tg_vi tg_visar(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I4_SAR); }

#ifndef TG_F4_ROUND
#define TG_F4_ROUND(p) tg_f4_round(p)
/* Adding 2^23 leaves no bits for a fraction, and rounds to even; from 2^23 on there is none. */
static inline tg_i4 tg_f4_round(tg_f4 x) {
    const tg_f4 big = { 0x1p23f, 0x1p23f, 0x1p23f, 0x1p23f };
    const tg_f4 size = TG_F4_ABS(x);
    const tg_i4 sign = (tg_i4)x & INT32_MIN;
    const tg_f4 whole = TG_F4_SELECT(size < big, (size + big) - big, size);
    return __builtin_convertvector((tg_f4)((tg_i4)whole | sign), tg_i4);
}
#endif
#define TG_I4_FLOAT(p) __builtin_convertvector((p), tg_f4)
static inline tg_vi tg_vround(tg_v x) { return TG_EACH1(tg_vi, TG_F4_ROUND); }
static inline tg_v tg_vfloat(tg_vi x) { return TG_EACH1(tg_v, TG_I4_FLOAT); }
static inline tg_vi tg_vbits(tg_v x) { return TG_EACH1(tg_vi, tg_i4_bits); }
static inline tg_v tg_vfrombits(tg_vi x) { return TG_EACH1(tg_v, tg_f4_bits); }

#define TG_SIMD_SCALE_BY_BITS

/* ------------------------------------------------------------------------------------- reduce */

static inline float tg_vsum(tg_v x) {
    const tg_f4 q = (x.a + x.c) + (x.b + x.d);
    return (q[0] + q[2]) + (q[1] + q[3]);
}
static inline float tg_vmaxlane(tg_v x) {
    const tg_f4 e = TG_F4_MAX(x.a, x.c), f = TG_F4_MAX(x.b, x.d), q = TG_F4_MAX(e, f);
    const float r = q[0] > q[2] ? q[0] : q[2], s = q[1] > q[3] ? q[1] : q[3];
    return r > s ? r : s;
}

/* -------------------------------------------------------------------------------------- turn */

/* Four rows of four columns from `from` become four rows of four. */
static inline void tg_turn4x4(float *to, size_t ld_to, const float *from, size_t ld_from) {
    tg_f4 r[4];
    for (size_t i = 0; i < 4; i++) r[i] = tg_f4_load(from + i * ld_from);
    const tg_f4 a = __builtin_shufflevector(r[0], r[2], 0, 4, 1, 5);
    const tg_f4 b = __builtin_shufflevector(r[1], r[3], 0, 4, 1, 5);
    const tg_f4 c = __builtin_shufflevector(r[0], r[2], 2, 6, 3, 7);
    const tg_f4 d = __builtin_shufflevector(r[1], r[3], 2, 6, 3, 7);
    const tg_f4 turned[4] = { __builtin_shufflevector(a, b, 0, 4, 1, 5),
                              __builtin_shufflevector(a, b, 2, 6, 3, 7),
                              __builtin_shufflevector(c, d, 0, 4, 1, 5),
                              __builtin_shufflevector(c, d, 2, 6, 3, 7) };
    for (size_t j = 0; j < 4; j++) tg_f4_store(to + j * ld_to, turned[j]);
}
TG_OUT_OF_LINE void tg_vturn16(float *to, size_t ld_to, const float *from, size_t ld_from) {
    for (size_t i = 0; i < 16; i += 4)
        for (size_t j = 0; j < 16; j += 4)
            tg_turn4x4(to + j * ld_to + i, ld_to, from + i * ld_from + j, ld_from);
}

/* ------------------------------------------------------------------------------ 16-bit floats */

static inline tg_vi tg_viload_u16(const uint16_t *p) {
    tg_h4 h[4];
    memcpy(h, p, sizeof h);
    return (tg_vi) { __builtin_convertvector(h[0], tg_i4), __builtin_convertvector(h[1], tg_i4),
                     __builtin_convertvector(h[2], tg_i4), __builtin_convertvector(h[3], tg_i4) };
}
static inline void tg_vistore_u16(uint16_t *p, tg_vi x) {
    const tg_h4 h[4] = { __builtin_convertvector(x.a, tg_h4), __builtin_convertvector(x.b, tg_h4),
                         __builtin_convertvector(x.c, tg_h4), __builtin_convertvector(x.d, tg_h4) };
    memcpy(p, h, sizeof h);
}

/*
 * Exponent and fraction of the half, moved to their places in a float, are the value times 2^-112,
 * subnormal or not. Infinity and NaN get the float's exponent of ones, a NaN its quiet bit.
 */
static inline tg_f4 tg_f4_from_f16(tg_i4 h) {
    const tg_i4 size = h & 0x7fff, sign = (tg_i4)((tg_u4)(h & 0x8000) << 16);
    const tg_f4 scale = { 0x1p112f, 0x1p112f, 0x1p112f, 0x1p112f };
    tg_i4 bits = (tg_i4)((tg_f4)(size << 13) * scale);
    bits |= (size >= 0x7c00) & 0x7f800000;
    bits |= (size > 0x7c00) & 0x400000;
    return (tg_f4)(bits | sign);
}
/*
 * Normal halves: round the fraction by an integer sum, whose carry may run into the exponent and on
 * to infinity, as it should. Subnormal ones: the sum with 0.5 has their unit in its last place.
 */
static inline tg_i4 tg_f4_to_f16(tg_f4 x) {
    const tg_i4 size = (tg_i4)x & 0x7fffffff, sign = (tg_i4)((tg_u4)x >> 16) & 0x8000;
    const tg_f4 half = { 0.5f, 0.5f, 0.5f, 0.5f };
    const tg_i4 tiny = (tg_i4)((tg_f4)size + half) - 0x3f000000;
    const tg_u4 odd = (tg_u4)size >> 13 & 1; /* a tie goes to the even one */
    const tg_i4 normal = (tg_i4)(((tg_u4)size - 0x38000000u + 0xfffu + odd) >> 13);
    const tg_i4 is_tiny = size < 0x38800000, is_big = size >= 0x47800000,
                is_nan = size > 0x7f800000;
    tg_i4 h = (is_tiny & tiny) | (~is_tiny & normal);
    h = (is_big & 0x7c00) | (~is_big & h);
    h |= is_nan & (0x200 | ((size >> 13) & 0x3ff));
    return h | sign;
}
static inline tg_v tg_vload_f16(const uint16_t *p) {
    const tg_vi x = tg_viload_u16(p);
    return TG_EACH1(tg_v, tg_f4_from_f16);
}
static inline void tg_vstore_f16(uint16_t *p, tg_v x) {
    tg_vistore_u16(p, TG_EACH1(tg_vi, tg_f4_to_f16));
}

#endif
