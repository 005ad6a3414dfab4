/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.h - what a tg_trainer is inside: two plans over one block of memory, and a small state
 * machine that walks them in slices.
 *
 *   grad plan     tokens, targets -> loss, gradients
 *                 once per micro-step; the first one writes the gradients, the later ones add
 *   update plan   gradients -> norm, clip, AdamW
 *                 refuses to write if anything is not finite
 *   eval plan     tokens, targets -> logits, log-sum-exp: validation
 *
 * State of the optimizer (flat arrays of the layout):   weights | grads | adam_m | adam_v | best
 * With an average (options.ema) the model's weights are that, and raw is what is trained:
 *
 *     grad: raw -> grads        update: raw, grads -> raw; raw -> weights        eval: weights
 *
 *   IDLE -> MICRO -> .. -> MICRO -> UPDATE -> (EVAL -> (KEEP)) -> IDLE
 *                                       |
 *                                       +-> FIND -> IDLE       something was not finite
 *
 * A slice may end anywhere, also inside an operation. What is written where decides what may happen
 * between two slices: MICRO, FIND and EVAL leave the weights and all that is saved alone, so the
 * run can be saved and the model read; they can be dropped, too, and are then done again to the
 * same bits. UPDATE and KEEP are in the middle of changing the weights, or the copy of the best
 * ones: they are not dropped but finished.
 *
 * Reading order: train_graph.c (the plans), train.c (the machine), eval.c, non_finite.c (which
 * tensor was not finite), device_lost.c (lost devices), checkpoint.c (saving and resuming),
 * forecast.c.
 */
#ifndef TG_TRAINING_TRAIN_H
#define TG_TRAINING_TRAIN_H

#include "engine/all_rows.h"
#include "load/weights.h"
#include "runtime/job.h"
#include "training/data/text.h"
#include "training/data/windows.h"
#include "training/schedule.h"

enum { TG_HISTORY_MAX = 4096 };

/* Whether gradients may be rounded to f16. The modules for the web lack the op: subgroup matrices,
 * which round so, are tried natively alone. */
enum { TG_TRAIN_SCALES = TG_OP_loss_scale != TG_OP_COUNT };

/* The three plans of a training run, before or after they have memory. */
typedef struct tg_train_plans {
    tg_graph grad_graph, update_graph, eval_graph;
    tg_plan grad, update, eval;
    tg_value *tokens, *targets;           /* of grad */
    tg_value *eval_tokens, *eval_targets; /* of eval */
    tg_net_texts texts, eval_texts;       /* of encoders: each row is a text */
    tg_value *logits, *lse;               /* outputs of eval */
    tg_value *stats;                      /* output of update: norm, coefficient, ok, loss */
    tg_value *scaling;                    /* output of update, of op loss_scale; NULL: not in f16 */
    size_t memory_bytes;                  /* of one block that serves all three */
    bool built;
    tg_value *reference, *margin; /* of grad, on pairs: an input, an output; else NULL */
} tg_train_plans;

/* beta: of pairs (text.h), else 0. */
tg_status tg_train_plans_build(tg_context *ctx, const tg_layout *layout, const tg_train_options *o,
                               double beta, tg_train_plans *out);
/* The eval plan alone: for a model that is measured and not trained. */
tg_status tg_train_plans_build_eval(tg_context *ctx, const tg_layout *layout,
                                    const tg_train_options *o, tg_train_plans *out);
void tg_train_plans_free(tg_train_plans *p);
/* Where the texts of an encoder lie, into the inputs of a plan; of other families nothing. */
void tg_train_put_texts(tg_plan *plan, const tg_net_texts *texts, const tg_train_options *o);

typedef enum tg_train_phase {
    TG_PHASE_IDLE,
    TG_PHASE_MICRO,  /* gradients of micro-step `micro` */
    TG_PHASE_UPDATE, /* norm, clip, AdamW */
    TG_PHASE_FIND,   /* which tensor was not finite: non_finite.c */
    TG_PHASE_EVAL,   /* validation */
    TG_PHASE_KEEP    /* the weights are copied to `best` */
} tg_train_phase;

/* A running validation: may be cut in slices like everything else. */
typedef struct tg_eval_state {
    uint64_t next, n, all; /* windows; n of all */
    bool whole;            /* of the whole text */
    double sum;            /* of the tokens' losses */
    uint64_t tokens;
    tg_run run;
    uint64_t in_batch;    /* windows in the batch that is being run; 0: none */
    double right, margin; /* of pairs, which `tokens` then counts: sums */
} tg_eval_state;

/* How far the search for the first tensor that is not finite is; zero-initialised: not begun. */
typedef struct tg_finding {
    enum { TG_FINDING_WEIGHTS, TG_FINDING_STEPS, TG_FINDING_GRADIENTS } stage;
    int32_t micro;
    size_t at; /* element of a flat array, or step of the plan */
    tg_run run;
} tg_finding;

/* The numbers of a run at a step: what a lost device sets back. */
typedef struct tg_train_mark {
    int64_t step, updates, best_step, last_val_step;
    double last_loss, last_val, best_val;
    int32_t stale;
    uint64_t loss_hash;
    float scaling[4];
} tg_train_mark;

typedef struct tg_train_copy_state {
    tg_block block; /* weights, moments */
    tg_train_mark mark;
    bool held, refused; /* refused: there was no memory */
} tg_train_copy_state;

/*
 * When set, it is called in every step of every trainer: before the first gradient, behind the last
 * one (also of a replay that looks for what is not finite), when such a search is over, and when
 * the step is. NULL in normal life: it is a test's way to a number that is not finite
 * (test/unit/nan.h).
 */
typedef enum tg_fault_at {
    TG_FAULT_BEGIN,
    TG_FAULT_GRADIENT,
    TG_FAULT_FOUND,
    TG_FAULT_END
} tg_fault_at;
typedef tg_status (*tg_train_fault_fn)(tg_trainer *t, tg_fault_at at);
extern tg_train_fault_fn tg_train_fault;

struct tg_trainer {
    tg_context *ctx;
    tg_model *model;
    bool owns_model;
    tg_text *text;
    uint32_t text_mark;
    tg_text_checking text_crc; /* done 0: the text is too long for it */
    tg_train_options o;
    tg_windows windows;                  /* of the text */
    tg_split split;                      /* theirs; val 0: no window validates */
    double token_bytes, val_token_bytes; /* of text, a token of either part */
    tg_train_plans plans;
    tg_block grads, adam_m, adam_v, raw, best, memory; /* raw: with options.ema alone */
    float loss;       /* the plans' state "loss": mean over the micro-steps so far */
    float scaling[4]; /* the plans' state "scaling", of op loss_scale, as last told */

    int64_t step;    /* done */
    int64_t updates; /* done and not refused: the t of bias correction */
    tg_train_phase phase;
    int32_t micro;
    tg_run run;
    tg_scalars rt;
    double busy_ms;        /* time spent in this step */
    double awaiting_ms;    /* since when a device is awaited, which is the step's time; 0: is not */
    tg_step_report report; /* of the step in progress */
    bool report_due;       /* its step is done, but the caller has not been told */
    tg_eval_state eval;
    double eval_loss;  /* of a validation whose weights are being kept */
    size_t kept_bytes; /* of those */
    tg_finding finding;
    const tg_job *job; /* pending on this trainer, which must not step; NULL: none */
    bool path_damaged; /* resumed from PATH.prev: the next save must not put PATH in its place */
    bool eval_pending; /* a save came between a step and its validation */
    struct {
        int64_t step;     /* whose first gradient is on the device already; 0: none, and it is of */
        uint64_t version; /* these weights of the model, */
        unsigned generation; /* and this device */
    } ahead;

    double last_loss, last_val, best_val;
    int64_t best_step, last_val_step;
    int32_t stale;  /* validations since the best one */
    bool best_held; /* best holds the weights of best_step */
    uint64_t loss_hash;
    tg_history_point *history; /* [TG_HISTORY_MAX] */
    size_t n_history;
    int64_t history_stride;
    tg_train_copy_state copy;
    unsigned generation; /* of the context's device, that the states were made on */
    tg_cancel_fn cancel;
    void *cancel_user;
    tg_rate_fn rate; /* the caller's, in place of the options' schedule; or NULL */
    void *rate_user;
    tg_rates rates; /* the caller's table, where there is no function; n 0: none */
    bool had_rate;  /* a step had a rate of the caller's, and no empty table came since */

    double beta;       /* of pairs; else 0 */
    float *reference;  /* [text->n_pair_rows] log-probabilities of the model before step 1 */
    size_t n_referred; /* so many are known: all of them, from the first step on */
    tg_preferences preferences;
};

/*
 * preferences.c: training on pairs, whose loss asks what the model was before its first step. Those
 * log-probabilities are found by the eval plan, and saved with the run. Native builds alone.
 */
static inline bool tg_train_pairs(const tg_text *text) { return TG_NATIVE_PARTS && text->beta > 0; }
/* The memory, which free gives back. */
tg_status tg_pairs_begin(tg_trainer *t);
void tg_pairs_free(tg_trainer *t);
/* TG_PENDING until all are known; then nothing is left to do. */
tg_status tg_pairs_refer(tg_trainer *t, double deadline_ms);
/* What a micro-step's rows, from `first` on, are held against; and the margins that it found. */
void tg_pairs_fill(tg_trainer *t, uint64_t first);
void tg_pairs_take(tg_trainer *t, int32_t micro);
/* Row i of all: the log-probability of its answer, by the outputs of the eval plan. */
double tg_pairs_logp(const tg_train_plans *p, size_t row, size_t T, size_t V);
double tg_pairs_margin(const tg_trainer *t, uint64_t row, double chosen, double rejected);
/* Of the run in a header. */
void tg_pairs_put(const tg_trainer *t, tg_json_writer *w);
tg_status tg_pairs_read_beta(tg_ctx *err, const tg_json *header, double *beta);
tg_status tg_pairs_read(tg_trainer *t, const tg_json *run);

/* "YYYY-MM-DD" of the conversations that a run's header tells of, as year, month and day; zeros
 * where there is none. */
tg_status tg_train_read_date(tg_ctx *err, const tg_json *header, int date[3]);

/* The learning rate of the step that follows `step` steps. */
double tg_train_rate(const tg_trainer *t, int64_t step);
void tg_train_set_rate(tg_trainer *t, tg_rate_fn rate, void *user);
tg_status tg_train_set_rates(tg_trainer *t, const tg_rates *rates);

tg_train_options tg_train_options_of(const tg_train_options *o, const tg_model_config *config);
tg_status tg_train_options_check(tg_ctx *err, const tg_train_options *o);

/* Making a trainer in slices: a zero-initialised struct holds the place, and deinit gives back what
 * was not handed out. TG_PENDING: call again. */
typedef struct tg_train_making {
    enum {
        TG_MAKING_CHECKED,
        TG_MAKING_TEXT,
        TG_MAKING_TOKENS,
        TG_MAKING_PLANS,
        TG_MAKING_MEMORY,
        TG_MAKING_CLEAR
    } stage;
    size_t cleared; /* blocks */
    double beta;    /* of a resumed run on pairs; 0: as its text has it */
    tg_trainer *trainer;
} tg_train_making;
tg_status tg_train_making_go_on(tg_train_making *m, tg_context *ctx, tg_model *model, tg_text *text,
                                const tg_train_options *o, double deadline_ms, tg_trainer **out);
void tg_train_making_deinit(tg_train_making *m);
void tg_train_free(tg_trainer *t);
/* E_ARG where a step would disturb a pending job on the trainer, or a save of its model. */
tg_status tg_train_want_free(const tg_trainer *t);
/* Both until the step and its validation are done, or the time is over; 0: none. poll asks
 * want_free first. */
tg_status tg_train_go_on(tg_trainer *t, double deadline_ms, tg_step_report *out);
tg_status tg_train_poll(tg_trainer *t, double budget_ms, tg_step_report *out);
/* The weights that are trained: raw, or the model's. */
float *tg_train_weights(const tg_trainer *t);
/* False where the weights are partly those of the next step. */
bool tg_train_steady(const tg_trainer *t);
/* Finishes what must not be dropped, so that weights and `best` are those of whole steps.
 * TG_PENDING: call again. Its report comes with the next tg_train_poll. */
tg_status tg_train_settle(tg_trainer *t, double deadline_ms);
/* Of a settled trainer: drops what is unfinished, since somebody else needs the plans' memory. */
void tg_train_drop(tg_trainer *t);
tg_status tg_train_set_steps(tg_trainer *t, int64_t steps);
tg_status tg_train_set_validation(tg_trainer *t, int64_t eval_every, int32_t patience);

/* Tokens of a row, or of a window of a file's model, where nobody says otherwise. */
enum { TG_ROW_TOKENS = 512 };

/* eval.c: TG_OK with the mean in *loss, TG_PENDING or TG_STOPPED with the state kept. */
tg_status tg_eval_begin(tg_trainer *t, bool whole, tg_eval_state *e);
tg_status tg_eval_go_on(tg_trainer *t, tg_eval_state *e, double deadline_ms, double *loss);
/* How a model whose weights are as a file has them reads a window: in the pieces of all_rows.h. */
typedef struct tg_eval_pieces {
    tg_all_rows rows;
    tg_block window; /* losses, inputs, targets: [T] each */
    double *losses;
    int32_t *inputs, *targets;
    size_t n, pos; /* tokens of the window that predict one; where the piece begins */
} tg_eval_pieces;

/* Without a trainer, see tg_model_eval, in slices. begin is called once, with a zero-initialised
 * struct; deinit at any time. */
typedef struct tg_model_evaluating {
    tg_context *ctx;
    tg_model *model;
    tg_text *text;
    tg_train_options o;
    tg_windows windows;
    bool whole;            /* of the text: none of it is held back */
    bool in_pieces;        /* weights are no floats of one array: */
    tg_eval_pieces pieces; /* in place of */
    tg_train_plans plans;  /* the plan of a trainer, and */
    tg_block memory;       /* its workspace */
    tg_token_loss_fn told; /* of every token; NULL: nobody */
    void *told_user;
    unsigned generation; /* of the context's device, that has the batch or the window */
    enum { TG_EVALUATING_BEGIN, TG_EVALUATING_CLEAR, TG_EVALUATING_RUN } stage;
    tg_eval_state state;
} tg_model_evaluating;
tg_status tg_model_evaluating_begin(tg_model_evaluating *e, tg_context *ctx, tg_model *model,
                                    tg_text *text, double val_fraction, int32_t windows);
tg_status tg_model_evaluating_go_on(tg_model_evaluating *e, double deadline_ms, double *loss);
void tg_model_evaluating_deinit(tg_model_evaluating *e);

/* An evaluation of its own, by the trainer's plan: settles and drops first. See tg_trainer_eval. */
typedef struct tg_trainer_evaluating {
    bool begun;
    unsigned generation; /* of the device: on another one it begins anew */
    tg_eval_state state;
} tg_trainer_evaluating;
tg_status tg_trainer_evaluating_go_on(tg_trainer_evaluating *e, tg_trainer *t, double deadline_ms,
                                      double *loss);

/* non_finite.c: replays the gradients of the step and names the first tensor that is not finite, in
 * slices: TG_PENDING until it is found. */
tg_status tg_train_find_bad(tg_trainer *t, double deadline_ms, char *name, size_t name_bytes);

/* device_lost.c: keeps a copy of the run where its device may be lost, when one is due. */
tg_status tg_train_copy(tg_trainer *t);
/* Sets the run back to its copy if the context has another device than when it last worked. */
tg_status tg_train_follow(tg_trainer *t);
/* Whether *status was a lost device and there is another one, with the run set back: then what was
 * being done is to be done again. Else *status says why not; TG_PENDING: ask again later. */
bool tg_train_recovered(tg_trainer *t, tg_status *status);

/* Fills the inputs of a micro-step of the step that follows when so many are done, and says in rt
 * by what numbers it drops. */
tg_status tg_train_fill(tg_trainer *t, int64_t step, int32_t micro, tg_scalars *rt);

/* checkpoint.c: a save of the run, or of its best weights, in slices. */
typedef struct tg_train_saving {
    bool best;
    tg_flat_source source;
    tg_saving *saving; /* NULL: the trainer has to be settled first */
} tg_train_saving;
tg_status tg_train_saving_go_on(tg_train_saving *s, tg_trainer *t, const char *path,
                                double deadline_ms);
void tg_train_saving_deinit(tg_train_saving *s);

/* Opening a run in slices; path is borrowed until deinit. */
typedef struct tg_train_opening {
    tg_opening *opening;
    tg_file *file;
    bool used_prev;
    tg_model *model; /* NULL once it is the trainer's */
    tg_meta meta;    /* of the file, whose arena it lies in */
    bool meta_read;
    tg_train_options options;
    tg_train_making making;
    tg_trainer *trainer;
    tg_loading weights, adam_m, adam_v, raw;
} tg_train_opening;
tg_status tg_train_opening_go_on(tg_train_opening *o, tg_context *ctx, const char *path,
                                 tg_text *text, int64_t steps, double deadline_ms,
                                 tg_trainer **out);
void tg_train_opening_deinit(tg_train_opening *o);

/* forecast.c */
/* In slices, the measurement of the peak among them; zero-initialised: not begun. t NULL: there is
 * no trainer yet. Its plans, its numbers of tokens and what its model was before are used; without
 * one the plans are made for the occasion, the model is a new one. */
typedef struct tg_forecasting {
    tg_peak_measuring peak;
} tg_forecasting;
tg_status tg_forecasting_go_on(tg_forecasting *f, tg_context *ctx, const tg_model_config *config,
                               tg_text *text, const tg_train_options *o, const tg_trainer *t,
                               double deadline_ms, tg_forecast *out);
double tg_train_flop(const tg_model_config *c, const tg_train_options *o);

#endif
