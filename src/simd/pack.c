/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - the table of pack.simd.h's builds, by ISA.
 */
#include "simd/pack.h"

#define TG_ISA_ROW(isa, fused, needs)                                                              \
    void tg_pack__##isa(tg_dtype type, size_t cols, const uint8_t *const row[TG_PACK_ROWS],        \
                        uint8_t *out);
#include "simd/isa.def"
#undef TG_ISA_ROW

tg_pack_fn tg_pack_find(size_t isa) {
    static const tg_pack_fn table[] = {
#define TG_ISA_ROW(isa, fused, needs) tg_pack__##isa,
#include "simd/isa.def"
#undef TG_ISA_ROW
    };
    return table[isa];
}
