/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.h - the functions that bend, and their slopes, in double: for the references of all
 * ops that use one. Those of kernels are in simd/vmath.h.
 *
 *   gelu by erf    x Phi(x),  Phi(x) = erfc(-x / sqrt 2) / 2          Hendrycks, Gimpel 2016
 *   gelu by tanh   x (1 + tanh(u)) / 2,  u = sqrt(2 / pi) (x + 0.044715 x^3), as GPT-2 has it
 *   silu           x / (1 + exp(-x))                                  also called swish
 *   sigmoid        1 / (1 + exp(-x))
 *   relu squared   max(x, 0)^2                                        So et al. 2021
 *   soft cap       c tanh(x / c)                                      Gemma 2 2024
 */
#ifndef TG_OPS_ACTIVATION_H
#define TG_OPS_ACTIVATION_H

#include "base/math.h"

/* erfc keeps the relative precision of the left tail, where 1 + erf has none. */
static inline double act_gelu_erf(double x) {
    return x * 0.5 * tg_erfc(-x * 0.70710678118654752440);
}
static inline double act_gelu_erf_d(double x) {
    return 0.5 * tg_erfc(-x * 0.70710678118654752440) +
           x * tg_exp(-0.5 * x * x) / tg_sqrt(2 * TG_PI);
}

static inline double act_gelu_tanh(double x) {
    return 0.5 * x * (1 + tg_tanh(tg_sqrt(2 / TG_PI) * (x + 0.044715 * x * x * x)));
}
/* Where tanh is 1 to the last bit its slope is 0, and x^2 must not get the chance to be infinite.
 */
static inline double act_gelu_tanh_d(double x) {
    const double k = tg_sqrt(2 / TG_PI), c = 0.044715;
    const double t = tg_tanh(k * (x + c * x * x * x));
    if (tg_fabs(t) == 1) return 0.5 * (1 + t);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x);
}

static inline double act_sigmoid(double x) { return 1 / (1 + tg_exp(-x)); }
static inline double act_silu(double x) { return x / (1 + tg_exp(-x)); }
/* By |x|, for which exp is at most 1: the slope at -x is 1 minus that at x. */
static inline double act_silu_d(double x) {
    const double e = tg_exp(-tg_fabs(x)), g = 1 / (1 + e);
    const double slope = g + tg_fabs(x) * e * g * g;
    return x < 0 ? 1 - slope : slope;
}

static inline double act_soft_cap(double x, double c) { return c * tg_tanh(x / c); }
static inline double act_soft_cap_d(double x, double c) {
    const double t = tg_tanh(x / c);
    return 1 - t * t;
}

static inline double act_relu2(double x) { return x > 0 ? x * x : tg_isnan(x) ? x : 0; }
static inline double act_relu2_d(double x) { return x > 0 ? 2 * x : tg_isnan(x) ? x : 0; }

#endif
