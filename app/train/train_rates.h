/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_rates.h - train --rates 1=0,100=1e-3,900=1e-3,1000=1e-4: learning rates by a table of
 * steps, on straight lines between them; before the first and behind the last they stay.
 */
#ifndef TG_APP_TRAIN_RATES_H
#define TG_APP_TRAIN_RATES_H

#include "app.h"

typedef struct tg_rate_table {
    int64_t step[TG_RATES_MAX]; /* rising; 1 is the first of a run */
    double rate[TG_RATES_MAX];
    size_t n;         /* 0: none */
    const char *text; /* as it was typed */
} tg_rate_table;

/* TG_ARGS_GO_ON, or an exit code after a message. */
int tg_rates_parse(const tg_args *args, const char *text, tg_rate_table *out);
/* A resumed run goes on by its table, which is said unless quiet. One that is asked for (NULL: none
 * is) has to be the same; to a run without it is new, which is said. */
int tg_rates_resume(tg_app *app, tg_trainer *trainer, const tg_rate_table *asked, bool quiet);

#endif
