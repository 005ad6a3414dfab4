/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_sweep.h - train --sweep: the same run with several values of one option, and a table.
 *
 *     lr=1e-4..1e-2:log:6     six values whose ratios are equal
 *     dropout=0..0.3:lin:4    four whose distances are
 *     batch=8,16,32           these
 */
#ifndef TG_APP_TRAIN_SWEEP_H
#define TG_APP_TRAIN_SWEEP_H

#include "app.h"

enum { TG_SWEEP_MAX = 64 };

/* A run of the sweep, as it ended. */
typedef struct tg_sweep_row {
    double loss, val, best_val; /* NaN: none */
    int64_t step, best_step;
    double seconds;
    bool diverged; /* a number was not finite */
} tg_sweep_row;

typedef struct tg_sweep {
    const tg_option *option; /* a number, whose range the values keep */
    double value[TG_SWEEP_MAX];
    tg_sweep_row row[TG_SWEEP_MAX];
    size_t n;
} tg_sweep;

/* text as above; its name is that of one of the options [n_options], without the dashes. Returns
 * TG_ARGS_GO_ON, or an exit code after a message. */
int tg_sweep_parse(const tg_args *args, const char *text, const tg_option *options,
                   size_t n_options, tg_sweep *out);
/* Value i into the struct that the options are stored into. */
void tg_sweep_set(const tg_sweep *s, size_t i, void *values);
/* Runs the trainer to its end and fills row i, which is printed. A run whose numbers are not finite
 * is one of the results. TG_ARGS_GO_ON, or an exit code after a message. */
int tg_sweep_go(tg_app *app, tg_sweep *s, size_t i, tg_trainer *trainer, bool quiet);
/* The table's head; and behind the last row where the best ones lie, and how to run the best. */
void tg_sweep_begin(const tg_app *app, const tg_sweep *s, bool quiet);
void tg_sweep_end(const tg_app *app, const tg_sweep *s, size_t n_done, bool quiet);

#endif
