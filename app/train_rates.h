/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_rates.h - train --rates 1=0,100=1e-3,900=1e-3,1000=1e-4: learning rates by a table of
 * steps, on straight lines between them; before the first and behind the last they stay.
 */
#ifndef TG_APP_TRAIN_RATES_H
#define TG_APP_TRAIN_RATES_H

#include "app.h"

enum { TG_RATES_MAX = 64 };

typedef struct tg_rates {
    int64_t step[TG_RATES_MAX]; /* rising; 1 is the first of a run */
    double rate[TG_RATES_MAX];
    size_t n;
} tg_rates;

/* TG_ARGS_GO_ON, or an exit code after a message. */
int tg_rates_parse(const tg_args *args, const char *text, tg_rates *out);
/* A tg_rate_fn; user is a tg_rates. */
double tg_rates_at(void *user, int64_t step);

#endif
