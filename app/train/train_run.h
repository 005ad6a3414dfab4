/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_run.h - the loop of a training run, from its first step to its last message.
 *
 * It steps in slices, so that a signal is seen within some 50 ms on any model, and is the one place
 * that decides when to save, to sample and to stop, and with which exit code.
 */
#ifndef TG_APP_TRAIN_RUN_H
#define TG_APP_TRAIN_RUN_H

#include "app.h"
#include "out_file.h"
#include "train/train_show.h"

typedef struct tg_trainrun {
    tg_app *app;
    tg_trainer *trainer;
    const tg_args_list *data, *val_data; /* the text, for the commands that are suggested */
    bool of_pairs;                       /* data is pairs */
    const char *mix;                     /* weights of data; NULL: none */
    const char *from; /* path that the model or run was opened by; NULL: a fresh model */
    const char *out;  /* NULL: nothing is saved */
    const char *best; /* NULL: no copy of the best weights */
    const char *svg;  /* NULL: no picture */
    bool svg_wanted;  /* asked for by name: a failure to write it counts */
    tg_outfile *log;  /* NULL: none, or no more: see log_failed */
    const char *log_path;
    int64_t steps; /* of the whole run */
    int64_t eval_every;
    int64_t sample_every; /* 0: never */
    int64_t sample_tokens;
    const char *sample_prompt;
    uint64_t seed;      /* of the samples */
    int64_t save_every; /* steps; 0: at the end only; below 0: every 500 steps or minute */
    bool quiet;
    bool stop_on_save_error;

    /* The rest belongs to the loop. */
    tg_trainshow show;
    tg_step_report last; /* of the last finished step */
    int64_t first_step;  /* steps done before this process */
    double started_ms;
    double best_val; /* NaN if none is known */
    int64_t best_step;
    bool best_due;      /* better weights than those in the file best */
    int64_t saved_step; /* of the newest save of this process; below 0 if there is none */
    double saved_ms;    /* when that was */
    bool log_failed;    /* it could not be written any more, and was closed */
    bool save_failed;   /* the newest attempt to save did not succeed */
} tg_trainrun;

/* Runs to the end; returns the exit code of the program. */
int tg_trainrun_go(tg_trainrun *run);

/* Whether a run may begin where another one may be: TG_ARGS_GO_ON, or the exit code behind a
 * message. */
int tg_trainrun_over(tg_app *app, const char *out, const char *best, bool force);

#endif
