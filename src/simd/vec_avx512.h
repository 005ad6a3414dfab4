/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec_avx512.h - sixteen lanes in one register; masks are 16 bits. Needs AVX-512 F, BW, VL, DQ.
 *
 * Shifts are written in the compilers' vector language, since the intrinsics for a constant count
 * are macros that refuse a function's argument when nothing is optimised.
 */
#ifndef TG_SIMD_VEC_AVX512_H
#define TG_SIMD_VEC_AVX512_H

#include <immintrin.h>

typedef __m512 tg_v;
typedef __m512i tg_vi;
typedef __mmask16 tg_vm;
typedef int32_t tg_i16x __attribute__((vector_size(64)));
typedef uint32_t tg_u16x __attribute__((vector_size(64)));

/* The register tile: 24 sums, 2 registers of b, and elements of a broadcast out of memory. */
#define TG_MR  12
#define TG_NRV 2

/* ------------------------------------------------------------------------------------- memory */

static inline tg_vm tg_vfirst(size_t n) { return (tg_vm)((1u << n) - 1u); }
static inline tg_v tg_vload(const float *p) { return _mm512_loadu_ps(p); }
static inline tg_v tg_vload_n(const float *p, size_t n) {
    return _mm512_maskz_loadu_ps(tg_vfirst(n), p);
}
static inline void tg_vstore(float *p, tg_v x) { _mm512_storeu_ps(p, x); }
static inline void tg_vstore_n(float *p, tg_v x, size_t n) {
    _mm512_mask_storeu_ps(p, tg_vfirst(n), x);
}
static inline tg_vi tg_viload(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void tg_vistore(int32_t *p, tg_vi x) { _mm512_storeu_si512(p, x); }

/* --------------------------------------------------------------------------------------- make */

static inline tg_v tg_vset(float x) { return _mm512_set1_ps(x); }
static inline tg_v tg_vzero(void) { return _mm512_setzero_ps(); }
static inline tg_vi tg_viset(int32_t x) { return _mm512_set1_epi32(x); }

/* --------------------------------------------------------------------------------------- math */

static inline tg_v tg_vadd(tg_v a, tg_v b) { return _mm512_add_ps(a, b); }
static inline tg_v tg_vsub(tg_v a, tg_v b) { return _mm512_sub_ps(a, b); }
static inline tg_v tg_vmul(tg_v a, tg_v b) { return _mm512_mul_ps(a, b); }
static inline tg_v tg_vdiv(tg_v a, tg_v b) { return _mm512_div_ps(a, b); }
static inline tg_v tg_vmin(tg_v a, tg_v b) { return _mm512_min_ps(a, b); }
static inline tg_v tg_vmax(tg_v a, tg_v b) { return _mm512_max_ps(a, b); }
static inline tg_v tg_vsqrt(tg_v a) { return _mm512_sqrt_ps(a); }
static inline tg_v tg_vabs(tg_v a) { return _mm512_abs_ps(a); }
static inline tg_v tg_vneg(tg_v a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
static inline tg_v tg_vfma(tg_v a, tg_v b, tg_v c) { return _mm512_fmadd_ps(a, b, c); }
static inline tg_v tg_vfnma(tg_v a, tg_v b, tg_v c) { return _mm512_fnmadd_ps(a, b, c); }

/* ------------------------------------------------------------------------------------ compare */

static inline tg_vm tg_vlt(tg_v a, tg_v b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
static inline tg_vm tg_vle(tg_v a, tg_v b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline tg_vm tg_vgt(tg_v a, tg_v b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
static inline tg_vm tg_veq(tg_v a, tg_v b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline tg_v tg_vselect(tg_vm m, tg_v t, tg_v f) { return _mm512_mask_blend_ps(m, f, t); }

/* ------------------------------------------------------------------------------------ integer */

static inline tg_vi tg_viadd(tg_vi a, tg_vi b) { return _mm512_add_epi32(a, b); }
static inline tg_vi tg_visub(tg_vi a, tg_vi b) { return _mm512_sub_epi32(a, b); }
static inline tg_vi tg_viand(tg_vi a, tg_vi b) { return _mm512_and_si512(a, b); }
static inline tg_vi tg_vior(tg_vi a, tg_vi b) { return _mm512_or_si512(a, b); }
static inline tg_vi tg_vishl(tg_vi a, int n) { return (tg_vi)((tg_u16x)a << n); }
static inline tg_vi tg_vishr(tg_vi a, int n) { return (tg_vi)((tg_u16x)a >> n); }
static inline tg_vi tg_visar(tg_vi a, int n) { return (tg_vi)((tg_i16x)a >> n); }
static inline tg_vi tg_vround(tg_v a) { return _mm512_cvtps_epi32(a); }
static inline tg_v tg_vfloat(tg_vi a) { return _mm512_cvtepi32_ps(a); }
static inline tg_vi tg_vbits(tg_v a) { return _mm512_castps_si512(a); }
static inline tg_v tg_vfrombits(tg_vi a) { return _mm512_castsi512_ps(a); }
static inline tg_v tg_vscale(tg_v a, tg_v n) { return _mm512_scalef_ps(a, n); }

/* ------------------------------------------------------------------------------------- reduce */

static inline float tg_vsum(tg_v x) {
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline float tg_vmaxlane(tg_v x) {
    const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

/* -------------------------------------------------------------------------------------- turn */

/* Pairs, then fours within each quarter, then the quarters themselves. */
static inline void tg_vturn16(float *to, size_t ld_to, const float *from, size_t ld_from) {
    __m512 r[16], s[16];
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i++) r[i] = _mm512_loadu_ps(from + i * ld_from);
#pragma GCC unroll 8
    for (size_t i = 0; i < 16; i += 2) {
        s[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    /* r[i + q], i a multiple of 4: rows i..i+3 of the columns q, q + 4, q + 8, q + 12 */
#pragma GCC unroll 4
    for (size_t i = 0; i < 16; i += 4) {
        const __m512d a = _mm512_castps_pd(s[i]), b = _mm512_castps_pd(s[i + 1]);
        const __m512d c = _mm512_castps_pd(s[i + 2]), d = _mm512_castps_pd(s[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
#pragma GCC unroll 4
    for (size_t q = 0; q < 4; q++) {
        const __m512 a = _mm512_shuffle_f32x4(r[q], r[q + 4], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(r[q], r[q + 4], 0xdd);
        const __m512 c = _mm512_shuffle_f32x4(r[q + 8], r[q + 12], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(r[q + 8], r[q + 12], 0xdd);
        _mm512_storeu_ps(to + q * ld_to, _mm512_shuffle_f32x4(a, c, 0x88));
        _mm512_storeu_ps(to + (q + 4) * ld_to, _mm512_shuffle_f32x4(b, d, 0x88));
        _mm512_storeu_ps(to + (q + 8) * ld_to, _mm512_shuffle_f32x4(a, c, 0xdd));
        _mm512_storeu_ps(to + (q + 12) * ld_to, _mm512_shuffle_f32x4(b, d, 0xdd));
    }
}

/* ------------------------------------------------------------------------------ 16-bit floats */

#define TG_SIMD_S8 1
static inline tg_vi tg_viload_s8(const int8_t *p) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline tg_vi tg_viload_u16(const uint16_t *p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void tg_vistore_u16(uint16_t *p, tg_vi x) {
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16(x));
}
static inline tg_v tg_vload_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
static inline void tg_vstore_f16(uint16_t *p, tg_v x) {
    _mm256_storeu_si256((__m256i *)(void *)p,
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* ------------------------------------------------------------------------------- bf16 products */

/*
 * For CPUs that also have AVX512_BF16 (tg_cpu_has_bf16). In assembly, since compilers offer these
 * instructions only where all code may use them, and the objects of this ISA must run without.
 * Subnormals count as zero here, in operands and in sums.
 */
#define TG_SIMD_BF16 1

/* 32 bf16: lanes of low, then lanes of high; as 16 pairs, those of neighbours. */
static inline tg_vi tg_vbf16(tg_v low, tg_v high) {
    tg_vi h;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(h) : "v"(high), "v"(low));
    return h;
}
/* 16 pairs of bf16: lane i of even in the lower half, lane i of odd in the upper half. */
static inline tg_vi tg_vbf16_pairs(tg_v even, tg_v odd) {
    const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(zip, tg_vbf16(even, odd));
}
/* c + a.low * b.low + a.high * b.high; a is one pair for all lanes. */
static inline tg_v tg_vdot_bf16(const float *a, tg_v b, tg_v c) {
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
    return c;
}

#endif
