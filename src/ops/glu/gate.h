/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - gates times values, on sixteen lanes: one description for glu, which trains, and for
 * linear, which reads its input so. Both give the same bits.
 */
#ifndef TG_OPS_GLU_GATE_H
#define TG_OPS_GLU_GATE_H

#include "ops/build.h"
#include "simd/vmath.h"

static inline __attribute__((always_inline)) tg_v gated(int how, tg_v gate, tg_v value) {
    return tg_vmul(how == TG_READ_GELU_TANH  ? tg_vgelu_tanh(gate)
                   : how == TG_READ_GELU_ERF ? tg_vgelu_erf(gate)
                                             : tg_vsilu(gate),
                   value);
}

#endif
