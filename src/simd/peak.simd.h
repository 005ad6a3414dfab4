/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak.simd.h - the ceilings of one ISA: multiply-add in registers, and reading.
 *
 * Twelve independent chains of 16 lanes: enough for two fused units with a latency of four cycles
 * on the narrowest of our vectors, and few enough to stay in the registers of the widest.
 */
#include "simd/vec.h"

#include "simd/peak.h"

#if defined(TG_ISA_AVX512)
enum { CHAINS = 12 };
#elif TG_V_ROWS <= 2 /* four lanes a register, or one */
enum { CHAINS = 3 };
#else
enum { CHAINS = 6 };
#endif

static double multiply_add(double n_flop, float *sink) {
    enum { ROUNDS = 64 };
    const double per_round = 2.0 * 16 * (double)CHAINS * (double)ROUNDS;
    tg_v acc[CHAINS];
    for (int c = 0; c < CHAINS; c++) acc[c] = tg_vset((float)c);
    const tg_v a = tg_vset(0.999f), b = tg_vset(0.001f);
    double done = 0;
    for (; done < n_flop; done += per_round)
        for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
            for (int c = 0; c < CHAINS; c++) acc[c] = tg_vfma(acc[c], a, b);
        }
    for (int c = 1; c < CHAINS; c++) acc[0] = tg_vadd(acc[0], acc[c]);
    *sink = tg_vsum(acc[0]);
    return done;
}

static void read_all(const float *data, size_t n_bytes, float *sink) {
    tg_v s0 = tg_vzero(), s1 = s0, s2 = s0, s3 = s0;
    const size_t n = n_bytes / sizeof(float);
    for (size_t i = 0; i < n; i += 64) {
        s0 = tg_vadd(s0, tg_vload(data + i));
        s1 = tg_vadd(s1, tg_vload(data + i + 16));
        s2 = tg_vadd(s2, tg_vload(data + i + 32));
        s3 = tg_vadd(s3, tg_vload(data + i + 48));
    }
    *sink = tg_vsum(tg_vadd(tg_vadd(s0, s1), tg_vadd(s2, s3)));
}

extern const tg_peak_kernels TG_CAT(tg_peak__, TG_ISA);
const tg_peak_kernels TG_CAT(tg_peak__, TG_ISA) = { multiply_add, read_all };
