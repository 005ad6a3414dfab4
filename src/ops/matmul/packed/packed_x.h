/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_x.h - what goes into a product: x, or its gates times its values; as floats, or rounded to
 * bytes by blocks of 32 columns.
 *
 * A block of bytes brings along all that the sums of any packing need of it, so that the inner loop
 * only loads:
 *
 *     x[k] = d * q[k],  d = max |x| / 127,  q whole, to nearest even
 *     sum over k of x[k] * (scale * (u[k] - zero) + offset)
 *         = d * scale * (sum of q u  -  zero * sum of q)  +  offset * d * sum of q
 *
 * A block with a NaN or an infinity has a NaN for d, so that neither is lost.
 */
#ifndef TG_OPS_PACKED_X_H
#define TG_OPS_PACKED_X_H

#include "ops/glu/gate.h"
#include "ops/kernel.h"
#include "ops/matmul/matmul_operands.h"
#include "simd/dot.h"

#define INLINE static inline __attribute__((always_inline))
/* Loops over registers. Where lanes are one by one there is none to hold them, and unrolled loops
 * would be half a megabyte. */
#if defined(TG_ISA_SCALAR)
#define UNROLL _Pragma("GCC unroll 1")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* One cache line. Sums of q: of both halves together times -8, -16 and -128, of the first half
 * times -128. */
typedef struct x_block {
    int8_t q[32];
    float d, d_sum, d_sum_first; /* d * sum of q: of all, of the first 16 */
    int32_t minus_8, minus_16, minus_128, minus_128_first, unused;
} x_block;

/* 16 columns of f(x). n <= 16 of them are there. */
INLINE tg_v read_16(const float *x, size_t depth, int how, size_t n) {
    const tg_v v = n == 16 ? tg_vload(x) : tg_vload_n(x, n);
    if (how == TG_READ_PLAIN) return v;
    const tg_v value = n == 16 ? tg_vload(x + depth) : tg_vload_n(x + depth, n);
    return gated(how, v, value);
}

/* A row of f(x) as floats, filled up with zeros to a multiple of 16. */
static inline void read_row(float *out, const float *x, size_t depth, int how) {
    for (size_t k = 0; k < depth; k += 16)
        tg_vstore(out + k, read_16(x + k, depth, how, tg_min_size(16, depth - k)));
}

INLINE int32_t round_16(int8_t *q, tg_v x, tg_v inverse) {
    return tg_vbytes(q, tg_vround(tg_vmul(x, inverse)));
}

/* A row of f(x) as bytes; depth is a multiple of 32. Meanwhile the memory would be idle: unless it
 * is NULL, `ahead` is what is read next. Each block asks for some lines of it, since processors
 * pass over many at once; they may lie behind its end. */
enum { LINES = 8 };
static inline void round_row(x_block *out, const float *x, size_t depth, int how,
                             const uint8_t *ahead) {
    for (size_t k = 0; k < depth; k += 32, out++) {
        if (ahead)
            for (size_t i = 0; i < LINES; i++)
                TG_PREFETCH_FAR((const void *)((uintptr_t)ahead + (k / 32 * LINES + i) * 64));
        const tg_v a = read_16(x + k, depth, how, 16), b = read_16(x + k + 16, depth, how, 16);
        const float most = tg_vmaxlane(tg_vmax(tg_vabs(a), tg_vabs(b)));
        const tg_v zero = tg_vzero();
        const float poison = tg_vsum(tg_vadd(tg_vmul(a, zero), tg_vmul(b, zero)));
        const tg_v inverse = tg_vset(most > 0 ? 127.0f / most : 0);
        const int32_t first = round_16(out->q, a, inverse);
        const int32_t sum = first + round_16(out->q + 16, b, inverse);
        out->d = most / 127.0f + poison;
        out->d_sum = out->d * (float)sum;
        out->d_sum_first = out->d * (float)first;
        out->minus_8 = -8 * sum;
        out->minus_16 = -16 * sum;
        out->minus_128 = -128 * sum;
        out->minus_128_first = -128 * first;
    }
}

#endif
