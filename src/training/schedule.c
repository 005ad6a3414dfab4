/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - see schedule.h. All in double with our own cosine, so that every machine agrees.
 */
#include "training/schedule.h"

#include "base/math.h"

/* A schedule that is held ends before the run does. */
static int64_t length_of(const tg_train_options *o) {
    return o->hold_lr_after > 0 ? o->hold_lr_after : o->steps;
}

/* Falls from step warmup on, and would reach the floor at step `steps`, which is one beyond the
 * last: the last step still has a little more than the floor. */
static double cosine(const tg_train_options *o, int64_t step) {
    const double low = o->lr * o->min_lr_ratio;
    const double span = (double)(length_of(o) - o->warmup);
    const double t = span > 0 ? (double)(step - o->warmup) / span : 1;
    return t >= 1 ? low : low + 0.5 * (o->lr - low) * (1 + tg_cos(TG_PI * t));
}

/* (into + 1) / length: the last step of the run is the one that has the floor itself. */
static double stable_then_down(const tg_train_options *o, int64_t step) {
    const double low = o->lr * o->min_lr_ratio;
    const double steps = (double)length_of(o);
    const double length = tg_floor(o->decay_fraction * steps);
    const double into = (double)step - (steps - length);
    if (into < 0 || length <= 0) return o->lr;
    return into >= length ? low : o->lr + (low - o->lr) * (into + 1) / length;
}

double tg_schedule_lr(const tg_train_options *o, int64_t step) {
    if (step < o->warmup) return o->lr * (double)(step + 1) / (double)o->warmup;
    if (o->schedule == TG_COSINE) return cosine(o, step);
    if (o->schedule == TG_WSD) return stable_then_down(o, step);
    return o->lr;
}
