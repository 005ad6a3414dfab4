/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dot.h - sums of products of bytes: what integer kernels are made of, on top of vec.h.
 *
 *   tg_b64  64 bytes: sixteen lanes of four
 *
 *   tg_b64 tg_b64_load(const uint8_t *p)
 *   tg_vi  tg_vdot_small(c, u, four)   lane i: c + the sum over j of u[4i + j] * four[j],
 *   tg_vi  tg_vdot_bytes(c, u, four)   u unsigned, four signed; small: u below 32
 *   tg_vi  tg_vdot_vnni(c, u, four)    the same of any bytes, where tg_cpu_has_vnni (AVX-512 alone)
 *
 *   int32_t tg_vbytes(out, x)          sixteen lanes of -128..127 as bytes; returns their sum
 *
 * and where vectors are shorter, in TG_SIMD_PIECES of these lanes, 2 or 4, a register
 * each: tg_pbytes, tg_pshorts, tg_pints and tg_pfloats
 *
 *   ints    tg_qdot_bytes(c, u, four)  lane i of the piece; as tg_vdot_bytes, but of u -
 *                                      TG_SIMD_ZERO, which is 0 or 128, and four above -128
 *   shorts  tg_qpairs(c, u, four)      of u below 32: two lanes of 16 bits for each of 32, in some
 *                                      order; room for eight calls of u below 16, or four
 *   ints    tg_qpairs_sum(c, pairs)    lane i: c + its two
 *   floats  tg_qfma(p, q, r)           p * q + r as tg_vfma has it
 *   floats  tg_qhalf(p)                from halves;  ints tg_qbytes(p) from bytes
 *   tg_v    tg_qjoin(pieces)           all of them
 *
 * The sums are exact, so all of them give the same bits on every ISA. Bytes are taken as vectors of
 * the compilers' own, which have all that is needed besides.
 */
#ifndef TG_SIMD_DOT_H
#define TG_SIMD_DOT_H

#include "simd/vec.h"

/* How such vectors are passed depends on the ISA, of which compilers warn; nothing here is ever
 * called across files. */
#pragma GCC diagnostic ignored "-Wpsabi"
typedef uint8_t tg_b64 __attribute__((vector_size(64)));

static inline tg_b64 tg_b64_load(const uint8_t *p) {
    tg_b64 x;
    memcpy(&x, p, sizeof x);
    return x;
}

#if defined(TG_ISA_AVX512)

/* Pairs of products are added in 16 bits, which 2 * 31 * 128 fits into. */
static inline tg_vi tg_vdot_small(tg_vi c, tg_b64 u, const int8_t *four) {
    int32_t bits;
    memcpy(&bits, four, sizeof bits);
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)u, _mm512_set1_epi32(bits));
    return _mm512_add_epi32(c, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

/* Even and odd bytes apart, as 16 bits each. */
static inline tg_vi tg_vdot_bytes(tg_vi c, tg_b64 u, const int8_t *four) {
    int32_t bits;
    memcpy(&bits, four, sizeof bits);
    const __m512i a = _mm512_set1_epi32(bits), x = (__m512i)u;
    const __m512i even = _mm512_and_si512(x, _mm512_set1_epi16(255));
    const __m512i a_even = _mm512_srai_epi16(_mm512_slli_epi16(a, 8), 8);
    c = _mm512_add_epi32(c, _mm512_madd_epi16(even, a_even));
    return _mm512_add_epi32(c, _mm512_madd_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(a, 8)));
}

/* In assembly, for the reason that vec_avx512.h gives for bf16. */
#define TG_SIMD_VNNI 1
static inline tg_vi tg_vdot_vnni(tg_vi c, tg_b64 u, const int8_t *four) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(c) : "v"(u), "m"(*(const int8_t(*)[4])four));
    return c;
}

#elif defined(TG_ISA_AVX2)

#define TG_SIMD_BYTES 1
static inline int32_t tg_vbytes(int8_t *out, tg_vi x) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packs_epi16(low, high));
    const __m256i eights = _mm256_add_epi32(x.a, x.b);
    __m128i sum =
        _mm_add_epi32(_mm256_castsi256_si128(eights), _mm256_extracti128_si256(eights, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

#define TG_SIMD_PIECES 2
typedef uint8_t tg_pbytes __attribute__((vector_size(32)));
typedef int16_t tg_pshorts __attribute__((vector_size(32)));
typedef int32_t tg_pints __attribute__((vector_size(32)));
typedef float tg_pfloats __attribute__((vector_size(32)));

static inline tg_pfloats tg_qfma(tg_pfloats p, tg_pfloats q, tg_pfloats r) {
    return (tg_pfloats)_mm256_fmadd_ps((__m256)p, (__m256)q, (__m256)r);
}
static inline tg_pfloats tg_qhalf(const uint8_t *p) {
    return (tg_pfloats)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline tg_pints tg_qbytes(const uint8_t *p) {
    return (tg_pints)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline tg_v tg_qjoin(const tg_pfloats piece[2]) {
    return (tg_v) { (__m256)piece[0], (__m256)piece[1] };
}
static inline tg_pshorts tg_qpairs(tg_pshorts c, tg_pbytes u, const int8_t *four) {
    int32_t bits;
    memcpy(&bits, four, sizeof bits);
    return c + (tg_pshorts)_mm256_maddubs_epi16((__m256i)u, _mm256_set1_epi32(bits));
}
static inline tg_pints tg_qpairs_sum(tg_pints c, tg_pshorts pairs) {
    return c + (tg_pints)_mm256_madd_epi16((__m256i)pairs, _mm256_set1_epi16(1));
}
#define TG_SIMD_ZERO   128
/* The sign goes to the other factor: a pair of products is at most 2 * 128 * 127 then. */
static inline tg_pints tg_qdot_bytes(tg_pints c, tg_pbytes u, const int8_t *four) {
    int32_t bits;
    memcpy(&bits, four, sizeof bits);
    const __m256i w = (__m256i)(u ^ 128);
    const __m256i a = _mm256_sign_epi8(_mm256_set1_epi32(bits), w);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), a);
    return c + (tg_pints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#elif defined(TG_ISA_SIMD128) || defined(TG_ISA_RELAXED)

#define TG_SIMD_PIECES 4
typedef uint8_t tg_pbytes __attribute__((vector_size(16)));
typedef int16_t tg_pshorts __attribute__((vector_size(16)));
typedef tg_i4 tg_pints;
typedef tg_f4 tg_pfloats;

static inline tg_pfloats tg_qfma(tg_pfloats p, tg_pfloats q, tg_pfloats r) {
    return TG_F4_FMA(p, q, r);
}
/* As tg_f4_from_f16, in half as many steps: the sign is spread over four bits, of which one stays.
 */
static inline tg_pfloats tg_qhalf(const uint8_t *p) {
    const v128_t h = wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13);
    const v128_t bits = wasm_v128_and(h, wasm_i32x4_const_splat((int32_t)0x8fffe000));
    const v128_t exponent = wasm_i32x4_const_splat(0x0f800000);
    const v128_t x = wasm_f32x4_mul(bits, wasm_f32x4_const_splat(0x1p112f));
    const v128_t huge = wasm_i32x4_eq(wasm_v128_and(h, exponent), exponent);
    const v128_t high = wasm_v128_and(huge, wasm_i32x4_const_splat(0x7f800000));
    return (tg_f4)wasm_v128_or(x, high);
}

#define TG_SIMD_BYTES 1
static inline int32_t tg_vbytes(int8_t *out, tg_vi x) {
    const v128_t low = wasm_i16x8_narrow_i32x4((v128_t)x.a, (v128_t)x.b);
    const v128_t high = wasm_i16x8_narrow_i32x4((v128_t)x.c, (v128_t)x.d);
    wasm_v128_store(out, wasm_i8x16_narrow_i16x8(low, high));
    const tg_i4 sum = (x.a + x.c) + (x.b + x.d);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Even and odd bytes apart, as 16 bits each. */
static inline tg_pints tg_qdot_bytes(tg_pints c, tg_pbytes u, const int8_t *four) {
    const v128_t a = wasm_v128_load32_splat(four), x = (v128_t)u;
    const v128_t a_even = wasm_i16x8_shr(wasm_i16x8_shl(a, 8), 8), a_odd = wasm_i16x8_shr(a, 8);
    const v128_t even = wasm_v128_and(x, wasm_i16x8_const_splat(255)), odd = wasm_u16x8_shr(x, 8);
    const v128_t sum = wasm_i32x4_add((v128_t)c, wasm_i32x4_dot_i16x8(even, a_even));
    return (tg_i4)wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(odd, a_odd));
}
#if defined(TG_ISA_RELAXED)
/* Relaxed where a factor of seven bits has an eighth, and where a pair of products does not fit
 * into 16 bits: neither happens here. */
static inline tg_pshorts tg_qpairs(tg_pshorts c, tg_pbytes u, const int8_t *four) {
    return c +
           (tg_pshorts)wasm_i16x8_relaxed_dot_i8x16_i7x16(wasm_v128_load32_splat(four), (v128_t)u);
}
#else
static inline tg_pshorts tg_qpairs(tg_pshorts c, tg_pbytes u, const int8_t *four) {
    const tg_pshorts a = (tg_pshorts)wasm_v128_load32_splat(four), x = (tg_pshorts)u;
    return c + (x & 255) * (a << 8 >> 8) + (x >> 8) * (a >> 8);
}
#endif
static inline tg_pints tg_qpairs_sum(tg_pints c, tg_pshorts pairs) {
    const v128_t one = wasm_i16x8_const_splat(1);
    return c + (tg_i4)wasm_i32x4_dot_i16x8((v128_t)pairs, one);
}

#elif defined(TG_ISA_NEON)

#define TG_SIMD_PIECES 4
typedef uint8_t tg_pbytes __attribute__((vector_size(16)));
typedef int16x8_t tg_pshorts;
typedef int32x4_t tg_pints;
typedef float32x4_t tg_pfloats;

static inline tg_pfloats tg_qfma(tg_pfloats p, tg_pfloats q, tg_pfloats r) {
    return vfmaq_f32(r, p, q);
}
static inline tg_pfloats tg_qhalf(const uint8_t *p) {
    return TG_F4_FROM_F16((const uint16_t *)(const void *)p);
}
static inline tg_pshorts tg_qpairs(tg_pshorts c, tg_pbytes u, const int8_t *four) {
    int32_t bits;
    memcpy(&bits, four, sizeof bits);
    const int8x16_t a = vreinterpretq_s8_s32(vdupq_n_s32(bits)), x = (int8x16_t)u;
    return vaddq_s16(c, vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(a)), vmull_high_s8(x, a)));
}
static inline tg_pints tg_qpairs_sum(tg_pints c, tg_pshorts pairs) { return vpadalq_s16(c, pairs); }
#define TG_SIMD_ZERO   128
/* A pair of such products fits into 16 bits, two do not. */
static inline tg_pints tg_qdot_bytes(tg_pints c, tg_pbytes u, const int8_t *four) {
    const tg_pshorts zero = vdupq_n_s16(0);
    return tg_qpairs_sum(c, tg_qpairs(zero, u ^ 128, four));
}

#else

static inline tg_vi tg_vdot_bytes(tg_vi c, tg_b64 u, const int8_t *four) {
    int32_t sum[16];
    tg_vistore(sum, c);
    for (int i = 0; i < 16; i++)
        sum[i] += u[4 * i] * four[0] + u[4 * i + 1] * four[1] + u[4 * i + 2] * four[2] +
                  u[4 * i + 3] * four[3];
    return tg_viload(sum);
}
static inline tg_vi tg_vdot_small(tg_vi c, tg_b64 u, const int8_t *four) {
    return tg_vdot_bytes(c, u, four);
}

#endif

#if defined(TG_SIMD_PIECES) && TG_SIMD_PIECES == 4
static inline tg_pints tg_qbytes(const uint8_t *p) { return (tg_pints) { p[0], p[1], p[2], p[3] }; }
static inline tg_v tg_qjoin(const tg_pfloats piece[4]) {
    return (tg_v) { piece[0], piece[1], piece[2], piece[3] };
}
#endif

#ifndef TG_SIMD_ZERO
#define TG_SIMD_ZERO 0
#endif

#ifndef TG_SIMD_BYTES
static inline int32_t tg_vbytes(int8_t *out, tg_vi x) {
    int32_t lane[16], sum = 0;
    tg_vistore(lane, x);
    for (int i = 0; i < 16; i++) {
        out[i] = (int8_t)lane[i];
        sum += out[i];
    }
    return sum;
}
#endif

#endif
