/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_probe.h - the functions of simd/vec.h and vmath.h as tables of pointers, one table per ISA.
 *
 * simd_probe.simd.h is compiled once per ISA, like the bodies of ops, and wraps every function in
 * one that works on whole arrays; simd_test.c calls them through these tables and so can compare
 * ISAs within one program. n counts lanes and is a multiple of 16, unless a function says
 * otherwise.
 *
 * The lists name every function but those of bf16 products: a function that is added to vec.h and
 * not here stays untested.
 */
#ifndef TG_TEST_SIMD_PROBE_H
#define TG_TEST_SIMD_PROBE_H

#include "base/libc.h"
#include "simd/cpu.h"

/* name without tg_ */
#define PROBE_UNARY(X)                                                                             \
    X(vabs)                                                                                        \
    X(vneg)                                                                                        \
    X(vsqrt)                                                                                       \
    X(vexp)                                                                                        \
    X(vlog)                                                                                        \
    X(vphi) X(vgelu_erf) X(vgelu_erf_d) X(vgelu_tanh) X(vgelu_tanh_d) X(vsilu) X(vsilu_d) X(vtanh)
#define PROBE_BINARY(X)     X(vadd) X(vsub) X(vmul) X(vdiv) X(vmin) X(vmax) X(vscale)
#define PROBE_TERNARY(X)    X(vfma) X(vfnma)
#define PROBE_COMPARE(X)    X(vlt) X(vle) X(vgt) X(veq)
#define PROBE_INT_BINARY(X) X(viadd) X(visub) X(viand) X(vior)
#define PROBE_SHIFT(X)      X(vishl) X(vishr) X(visar)

typedef struct probe {
#define FIELD(name) void (*name)(float *y, const float *a, size_t n);
    PROBE_UNARY(FIELD)
#undef FIELD
#define FIELD(name) void (*name)(float *y, const float *a, const float *b, size_t n);
    PROBE_BINARY(FIELD)
#undef FIELD
#define FIELD(name)                                                                                \
    void (*name)(float *y, const float *a, const float *b, const float *c, size_t n);
    PROBE_TERNARY(FIELD)
#undef FIELD
/* y = a < b ? 1 : 2, and so on, through tg_vselect */
#define FIELD(name) void (*name)(float *y, const float *a, const float *b, size_t n);
    PROBE_COMPARE(FIELD)
#undef FIELD
#define FIELD(name) void (*name)(int32_t *y, const int32_t *a, const int32_t *b, size_t n);
    PROBE_INT_BINARY(FIELD)
#undef FIELD
/* by counts 1, 13, 23 and 31 in turn, a vector each */
#define FIELD(name) void (*name)(int32_t *y, const int32_t *a, size_t n);
    PROBE_SHIFT(FIELD)
#undef FIELD
    void (*vround)(int32_t *y, const float *a, size_t n);
    void (*vfloat)(float *y, const int32_t *a, size_t n);
    void (*bits)(int32_t *y, const float *a, size_t n);     /* tg_vbits */
    void (*frombits)(float *y, const int32_t *a, size_t n); /* tg_vfrombits */
    float (*vsum)(const float *a);                          /* one vector */
    float (*vmaxlane)(const float *a);
    void (*load_n)(float *y, const float *a, size_t n);  /* y[16]; reads n of a, 0..16 */
    void (*store_n)(float *y, const float *a, size_t n); /* writes n of y; a[16] */
    void (*first)(float *y, size_t n); /* y[16]: 1 in the first n lanes, 2 in the others */
    void (*fill)(float *y, float x);   /* y[32]: x in 16 lanes, then zeros */
    void (*ifill)(int32_t *y, int32_t x);
    void (*load_f16)(float *y, const uint16_t *a, size_t n);
    void (*store_f16)(uint16_t *y, const float *a, size_t n);
    void (*load_bf16)(float *y, const uint16_t *a, size_t n);
    void (*store_bf16)(uint16_t *y, const float *a, size_t n);
    void (*copy_u16)(uint16_t *y, int32_t *wide, const uint16_t *a, size_t n);
    void (*turn)(float *to, size_t ld_to, const float *from, size_t ld_from, size_t rows,
                 size_t cols);
} probe;

/* By TG_ISA_ID_*: probe_of__scalar, probe_of__avx2 ... */
#define TG_ISA_ROW(name, fused, needs) extern const probe probe_of__##name;
#include "simd/isa.def"
#undef TG_ISA_ROW

#endif
