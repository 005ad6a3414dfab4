/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glu_act.h - the function of a gate and its slope, in double: for the references of glu.
 */
#ifndef TG_OPS_GLU_GLU_ACT_H
#define TG_OPS_GLU_GLU_ACT_H

#include "ops/activation.h"
#include "ops/build.h"

static inline double glu_act(int how, double x) {
    return how == TG_READ_SILU        ? act_silu(x)
           : how == TG_READ_GELU_TANH ? act_gelu_tanh(x)
                                      : act_gelu_erf(x);
}

static inline double glu_act_d(int how, double x) {
    return how == TG_READ_SILU        ? act_silu_d(x)
           : how == TG_READ_GELU_TANH ? act_gelu_tanh_d(x)
                                      : act_gelu_erf_d(x);
}

#endif
