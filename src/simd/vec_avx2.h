/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_avx2.h - sixteen lanes in two registers; a mask is all bits or none of a lane. Needs AVX2,
 * FMA and F16C.
 *
 *     tg_v    a: lanes 0 1 2 3 4 5 6 7      b: lanes 8 9 10 11 12 13 14 15
 *
 * Sixteen and not eight, since every sum of a kernel runs in as many partial sums as there are
 * lanes: the number has to be that of AVX-512 for the bits to be. It also suits the FMA units,
 * which want two chains at least; the compiler keeps the members apart in registers.
 */
#ifndef TG_SIMD_VEC_AVX2_H
#define TG_SIMD_VEC_AVX2_H

#include <immintrin.h>

typedef struct tg_v {
    __m256 a, b;
} tg_v; /* lanes 0..7 and 8..15 */
typedef struct tg_vi {
    __m256i a, b;
} tg_vi;
typedef struct tg_vm {
    __m256 a, b;
} tg_vm;
typedef int32_t tg_i8x __attribute__((vector_size(32)));
typedef uint32_t tg_u8x __attribute__((vector_size(32)));

/* The register tile: 12 registers of sums, 2 of b, 1 or 2 elements of a. The 16 registers allow no
 * more: a spilled sum costs two memory operations a step. */
#define TG_MR  6
#define TG_NRV 1

/* One function of the parts of x and y, for both parts. */
#define TG_EACH1(type, f) ((type) { f(x.a), f(x.b) })
#define TG_EACH2(type, f) ((type) { f(x.a, y.a), f(x.b, y.b) })

/* ------------------------------------------------------------------------------------- memory */

/* Signed comparison: n is 0..16. */
static inline tg_vm tg_vfirst(size_t n) {
    const __m256i end = _mm256_set1_epi32((int32_t)n);
    const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
    return (tg_vm) { _mm256_castsi256_ps(_mm256_cmpgt_epi32(end, low)),
                     _mm256_castsi256_ps(_mm256_cmpgt_epi32(end, high)) };
}
static inline tg_v tg_vload(const float *p) {
    return (tg_v) { _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}
/* Masked lanes are not accessed at all, so the load may hang over the end of a page; with n <= 8
 * the address p + 8 is formed but not read. */
static inline tg_v tg_vload_n(const float *p, size_t n) {
    const tg_vm m = tg_vfirst(n);
    return (tg_v) { _mm256_maskload_ps(p, _mm256_castps_si256(m.a)),
                    _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.b)) };
}
static inline void tg_vstore(float *p, tg_v x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
static inline void tg_vstore_n(float *p, tg_v x, size_t n) {
    const tg_vm m = tg_vfirst(n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.a), x.a);
    _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.b), x.b);
}
static inline tg_vi tg_viload(const int32_t *p) {
    return (tg_vi) { _mm256_loadu_si256((const __m256i *)(const void *)p),
                     _mm256_loadu_si256((const __m256i *)(const void *)(p + 8)) };
}
static inline void tg_vistore(int32_t *p, tg_vi x) {
    _mm256_storeu_si256((__m256i *)(void *)p, x.a);
    _mm256_storeu_si256((__m256i *)(void *)(p + 8), x.b);
}

/* --------------------------------------------------------------------------------------- make */

static inline tg_v tg_vset(float x) { return (tg_v) { _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
static inline tg_v tg_vzero(void) { return (tg_v) { _mm256_setzero_ps(), _mm256_setzero_ps() }; }
static inline tg_vi tg_viset(int32_t x) {
    return (tg_vi) { _mm256_set1_epi32(x), _mm256_set1_epi32(x) };
}

/* --------------------------------------------------------------------------------------- math */

static inline tg_v tg_vadd(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_add_ps); }
static inline tg_v tg_vsub(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_sub_ps); }
static inline tg_v tg_vmul(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_mul_ps); }
static inline tg_v tg_vdiv(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_div_ps); }
static inline tg_v tg_vmin(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_min_ps); }
static inline tg_v tg_vmax(tg_v x, tg_v y) { return TG_EACH2(tg_v, _mm256_max_ps); }
static inline tg_v tg_vsqrt(tg_v x) { return TG_EACH1(tg_v, _mm256_sqrt_ps); }
/* On the sign bit alone: also of NaN and of zero, which a subtraction would change. */
static inline tg_v tg_vabs(tg_v x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (tg_v) { _mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b) };
}
static inline tg_v tg_vneg(tg_v x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (tg_v) { _mm256_xor_ps(sign, x.a), _mm256_xor_ps(sign, x.b) };
}
static inline tg_v tg_vfma(tg_v a, tg_v b, tg_v c) {
    return (tg_v) { _mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b) };
}
static inline tg_v tg_vfnma(tg_v a, tg_v b, tg_v c) {
    return (tg_v) { _mm256_fnmadd_ps(a.a, b.a, c.a), _mm256_fnmadd_ps(a.b, b.b, c.b) };
}

/* ------------------------------------------------------------------------------------ compare */

/* Ordered (false where one is NaN) and quiet: no exception flag, as nobody reads it. */
#define TG_F8_LT(p, q) _mm256_cmp_ps((p), (q), _CMP_LT_OQ)
#define TG_F8_LE(p, q) _mm256_cmp_ps((p), (q), _CMP_LE_OQ)
#define TG_F8_GT(p, q) _mm256_cmp_ps((p), (q), _CMP_GT_OQ)
#define TG_F8_EQ(p, q) _mm256_cmp_ps((p), (q), _CMP_EQ_OQ)
static inline tg_vm tg_vlt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F8_LT); }
static inline tg_vm tg_vle(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F8_LE); }
static inline tg_vm tg_vgt(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F8_GT); }
static inline tg_vm tg_veq(tg_v x, tg_v y) { return TG_EACH2(tg_vm, TG_F8_EQ); }
/* blendv looks at the top bit of a lane, of which a mask has all or none. */
static inline tg_v tg_vselect(tg_vm m, tg_v t, tg_v f) {
    return (tg_v) { _mm256_blendv_ps(f.a, t.a, m.a), _mm256_blendv_ps(f.b, t.b, m.b) };
}

/* ------------------------------------------------------------------------------------ integer */

static inline tg_vi tg_viadd(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, _mm256_add_epi32); }
static inline tg_vi tg_visub(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, _mm256_sub_epi32); }
static inline tg_vi tg_viand(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, _mm256_and_si256); }
static inline tg_vi tg_vior(tg_vi x, tg_vi y) { return TG_EACH2(tg_vi, _mm256_or_si256); }
/* In the vector language: the intrinsics for a constant count refuse a function's argument when
 * nothing is optimised. */
#define TG_I8_SHL(p) ((__m256i)((tg_u8x)(p) << n))
#define TG_I8_SHR(p) ((__m256i)((tg_u8x)(p) >> n))
#define TG_I8_SAR(p) ((__m256i)((tg_i8x)(p) >> n))
static inline tg_vi tg_vishl(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I8_SHL); }
static inline tg_vi tg_vishr(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I8_SHR); }
static inline tg_vi tg_visar(tg_vi x, int n) { return TG_EACH1(tg_vi, TG_I8_SAR); }
static inline tg_vi tg_vround(tg_v x) { return TG_EACH1(tg_vi, _mm256_cvtps_epi32); }
static inline tg_v tg_vfloat(tg_vi x) { return TG_EACH1(tg_v, _mm256_cvtepi32_ps); }
static inline tg_vi tg_vbits(tg_v x) { return TG_EACH1(tg_vi, _mm256_castps_si256); }
static inline tg_v tg_vfrombits(tg_vi x) { return TG_EACH1(tg_v, _mm256_castsi256_ps); }

/* There is no scalef before AVX-512: vec.h makes tg_vscale of the operations above. */
#define TG_SIMD_SCALE_BY_BITS

/* ------------------------------------------------------------------------------------- reduce */

/* The order of vec.h: i + (i + 8) is a + b, then halves of what is left. hadd would add neighbours
 * first, which is another sum. */
static inline float tg_vsum(tg_v x) {
    const __m256 h = _mm256_add_ps(x.a, x.b);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline float tg_vmaxlane(tg_v x) {
    const __m256 h = _mm256_max_ps(x.a, x.b);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

/* -------------------------------------------------------------------------------------- turn */

/* Eight rows of four columns from `from` become four rows of eight. In pieces of 8 by 4, since the
 * instructions move within halves of a register: putting row i and row i + 4 side by side when they
 * are loaded makes the crossing of halves free. */
static inline void tg_turn8x4(float *to, size_t ld_to, const float *from, size_t ld_from) {
    __m256 r[4]; /* rows i and i + 4, side by side */
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(from + i * ld_from));
        r[i] = _mm256_insertf128_ps(low, _mm_loadu_ps(from + (i + 4) * ld_from), 1);
    }
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1]));
    const __m256d b = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
    const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3]));
    const __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
    _mm256_storeu_ps(to, _mm256_castpd_ps(_mm256_unpacklo_pd(a, c)));
    _mm256_storeu_ps(to + ld_to, _mm256_castpd_ps(_mm256_unpackhi_pd(a, c)));
    _mm256_storeu_ps(to + 2 * ld_to, _mm256_castpd_ps(_mm256_unpacklo_pd(b, d)));
    _mm256_storeu_ps(to + 3 * ld_to, _mm256_castpd_ps(_mm256_unpackhi_pd(b, d)));
}
static inline void tg_vturn16(float *to, size_t ld_to, const float *from, size_t ld_from) {
    for (size_t i = 0; i < 16; i += 8)
        for (size_t j = 0; j < 16; j += 4)
            tg_turn8x4(to + j * ld_to + i, ld_to, from + i * ld_from + j, ld_from);
}

/* ------------------------------------------------------------------------------ 16-bit floats */

/* The conversions of F16C are exact or rounded to nearest even, subnormals included: the mode is in
 * the instruction, and no flag of the thread changes it. */
static inline __m128i tg_u16x8_load(const uint16_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
static inline void tg_u16x8_store(uint16_t *p, __m128i x) {
    _mm_storeu_si128((__m128i *)(void *)p, x);
}
#define TG_SIMD_S8 1
static inline tg_vi tg_viload_s8(const int8_t *p) {
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (tg_vi) { _mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)) };
}
static inline tg_vi tg_viload_u16(const uint16_t *p) {
    return (tg_vi) { _mm256_cvtepu16_epi32(tg_u16x8_load(p)),
                     _mm256_cvtepu16_epi32(tg_u16x8_load(p + 8)) };
}
/* The lanes hold 0..65535, so that the saturation of packus does nothing. */
static inline void tg_vistore_u16(uint16_t *p, tg_vi x) {
    tg_u16x8_store(p,
                   _mm_packus_epi32(_mm256_castsi256_si128(x.a), _mm256_extracti128_si256(x.a, 1)));
    tg_u16x8_store(p + 8,
                   _mm_packus_epi32(_mm256_castsi256_si128(x.b), _mm256_extracti128_si256(x.b, 1)));
}
static inline tg_v tg_vload_f16(const uint16_t *p) {
    return (tg_v) { _mm256_cvtph_ps(tg_u16x8_load(p)), _mm256_cvtph_ps(tg_u16x8_load(p + 8)) };
}
static inline void tg_vstore_f16(uint16_t *p, tg_v x) {
    tg_u16x8_store(p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    tg_u16x8_store(p + 8, _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#endif
