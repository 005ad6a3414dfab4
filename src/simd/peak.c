/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak.c - the table of peak.simd.h's builds, by ISA.
 */
#include "simd/peak.h"

#define TG_ISA_ROW(isa, fused, needs) extern const tg_peak_kernels tg_peak__##isa;
#include "simd/isa.def"
#undef TG_ISA_ROW

const tg_peak_kernels *tg_peak_find(size_t isa) {
    static const tg_peak_kernels *const table[] = {
#define TG_ISA_ROW(isa, fused, needs) &tg_peak__##isa,
#include "simd/isa.def"
#undef TG_ISA_ROW
    };
    return table[isa];
}
