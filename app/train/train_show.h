/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_show.h - what a person sees of a training run: a table of steps, small milestones, samples.
 *
 *      step    loss  bits/byte      ppl     val    tok/s   peak   memory      left
 *       100   2.612       3.77     13.6   2.655    41.2k    38%   212 MB      0:34
 *
 * Of pairs the share that is answered as preferred, and the margin, stand in place of what their
 * loss is a byte.
 *
 * On a terminal the newest row is rewritten in place several times a second, and one row in a while
 * stays; elsewhere only those that stay are printed. Columns that do not fit are left out, the
 * least useful ones first.
 */
#ifndef TG_APP_TRAIN_SHOW_H
#define TG_APP_TRAIN_SHOW_H

#include "app.h"

typedef struct tg_trainshow {
    tg_app *app;
    bool silent;              /* --quiet, or --json: nothing is shown */
    bool header_due;          /* the next row is preceded by the names of the columns */
    int64_t steps;            /* of the whole run */
    int64_t row_every;        /* a row of each such step stays */
    double live_ms;           /* when the rewritten row was last shown */
    double row_ms;            /* when a row last stayed */
    double val;               /* the last validation, NaN before the first */
    double val_bits_per_byte; /* of it, where tokens are not bytes */
    bool of_pairs;
    tg_preferences pairs; /* of the last step and validation, if so */
    double smooth;        /* running mean of the loss, NaN before the first step */
    size_t milestone;     /* the next one to reach */
    bool gap_told;        /* the hint about overfitting has been given */
} tg_trainshow;

void tg_trainshow_init(tg_trainshow *show, tg_app *app, bool silent, int64_t steps,
                       int64_t eval_every);

/* After every step; pairs is NULL on texts, seconds_left is the caller's estimate. */
void tg_trainshow_step(tg_trainshow *show, const tg_step_report *report,
                       const tg_preferences *pairs, double seconds_left);

/* A block of text that cannot be taken for the table: begin, text pieces, end. */
typedef struct tg_sampleblock {
    tg_trainshow *show;
    int column, width; /* of the text */
} tg_sampleblock;
void tg_sampleblock_begin(tg_sampleblock *block, tg_trainshow *show, int64_t step);
int tg_sampleblock_text(void *block, const char *bytes, size_t n_bytes); /* a tg_text_fn */
void tg_sampleblock_end(tg_sampleblock *block);

#endif
