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

#include "tinygpt.h"

double tg_schedule_lr(const tg_train_options *o, int64_t step);

#endif
