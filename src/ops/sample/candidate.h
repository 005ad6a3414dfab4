/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidate.h - what a logit is worth as a candidate of a draw: a number between -inf, which is
 * never drawn, and FLT_MAX. NaN counts as -inf, +inf as FLT_MAX.
 *
 * The chain of a draw (src/engine/draw.c) runs over one array of logits [V], by id, and the op
 * sample is its end; both have these functions. The end is an op of its own since the logits may be
 * on a GPU: a draw by temperature, top-k, top-p, min-p and repeat penalty, as most are, brings four
 * bytes back and not V logits. Its shader (sample.wgsl) is the one part that says all this again.
 */
#ifndef TG_OPS_SAMPLE_CANDIDATE_H
#define TG_OPS_SAMPLE_CANDIDATE_H

#include "base/math.h"
#include "ir/op.h"

static inline TG_REAL tg_candidate(TG_REAL x) {
    const TG_REAL none = (TG_REAL)-TG_INF, most = (TG_REAL)FLT_MAX;
    const TG_REAL y = x >= none ? x : none; /* a NaN is not */
    return y > most ? most : y;
}

/* What left the range of floats stays at its end. */
static inline TG_REAL tg_candidate_of(double x) {
    return x > (double)FLT_MAX    ? (TG_REAL)FLT_MAX
           : x < -(double)FLT_MAX ? (TG_REAL)-TG_INF
                                  : (TG_REAL)x;
}

/* Of a token that came before: divided by repeat where it is positive, multiplied by it elsewhere
 * (Keskar et al., 2019); then less by `less`. A repeat that is not positive and finite is off. An
 * infinite logit stays the largest. */
static inline TG_REAL tg_candidate_penalized(TG_REAL logit, double repeat, double less) {
    double x = logit >= (TG_REAL)-TG_INF ? (double)logit : -TG_INF;
    if (repeat > 0 && tg_isfinite(repeat)) x = x > 0 ? x / repeat : x * repeat;
    return tg_candidate_of(x - less);
}

#endif
