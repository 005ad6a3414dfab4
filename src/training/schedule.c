/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - see schedule.h. All in double with our own cosine, so that every machine agrees.
 */
#include "training/schedule.h"

#include "base/math.h"

#include <inttypes.h>

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

double tg_rates_at(const tg_rates *r, int64_t step) {
    size_t i = 0;
    while (i < r->n && r->step[i] < step) i++;
    if (i == 0) return r->rate[0];
    if (i == r->n) return r->rate[i - 1];
    const double part = (double)(step - r->step[i - 1]) / (double)(r->step[i] - r->step[i - 1]);
    return r->rate[i - 1] + (r->rate[i] - r->rate[i - 1]) * part;
}

/* Steps of both signs would overflow a difference, and step 0 is before the first. */
tg_status tg_rates_check(tg_ctx *err, const char *where, const tg_rates *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->step[i] < 0 || (i && r->step[i] <= r->step[i - 1]) ||
            !(r->rate[i] >= 0 && r->rate[i] < TG_INF))
            return tg_fail(err, TG_E_ARG,
                           "%s: want rising steps and finite rates of at least 0, have %g at step "
                           "%" PRId64,
                           where, r->rate[i], r->step[i]);
    return TG_OK;
}
