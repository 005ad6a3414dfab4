/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - the learning rate of a step: a pure function of the options, so that a run that is
 * resumed has the rate it would have had.
 *
 *   constant   warm-up, then lr
 *   cosine     warm-up, then from lr down to lr * min_lr_ratio along half a cosine
 *   wsd        warm-up, stable at lr, then linearly down over the last decay_fraction of the steps
 *
 * Warm-up: lr * (s + 1) / warmup for the steps s < warmup, counted from 0.
 */
#ifndef TG_TRAINING_SCHEDULE_H
#define TG_TRAINING_SCHEDULE_H

#include "base/err.h"
#include "tinygpt.h"

double tg_schedule_lr(const tg_train_options *o, int64_t step);

/* A table of the caller's in its place: steps from 1 on, on straight lines between those that are
 * named; before the first and behind the last the rate stays. */
typedef struct tg_rates {
    int64_t step[TG_RATES_MAX]; /* rising */
    double rate[TG_RATES_MAX];
    size_t n;
} tg_rates;

double tg_rates_at(const tg_rates *r, int64_t step);
/* E_ARG: steps that do not rise, or a rate that is none; where begins the message. */
tg_status tg_rates_check(tg_ctx *err, const char *where, const tg_rates *r);

#endif
