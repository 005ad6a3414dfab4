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
 *
 *   IDLE -> MICRO -> .. -> MICRO -> UPDATE -> (EVAL) -> IDLE
 *
 * Reading order: train_graph.c (the plans), train.c (the machine), eval.c, checked.c (which tensor
 * was not finite), checkpoint.c (saving and resuming), forecast.c.
 */
#ifndef TG_RUN_TRAIN_H
#define TG_RUN_TRAIN_H

#include "run/text.h"
#include "run/weights.h"

enum { TG_HISTORY_MAX = 4096 };

/* The three plans of a training run, before or after they have memory. */
typedef struct tg_train_plans {
    tg_graph grad_graph, update_graph, eval_graph;
    tg_plan grad, update, eval;
    tg_value *tokens, *targets;           /* of grad */
    tg_value *eval_tokens, *eval_targets; /* of eval */
    tg_value *logits, *lse;               /* outputs of eval */
    tg_value *stats;                      /* output of update: norm, coefficient, ok, loss */
    size_t memory_bytes;                  /* of one block that serves all three */
    bool built;
} tg_train_plans;

tg_status tg_train_plans_build(tg_context *ctx, const tg_family *family, const tg_layout *layout,
                               const tg_train_options *o, tg_train_plans *out);
void tg_train_plans_free(tg_train_plans *p);

typedef enum tg_train_phase {
    TG_PHASE_IDLE,
    TG_PHASE_MICRO,
    TG_PHASE_UPDATE,
    TG_PHASE_EVAL
} tg_train_phase;

/* A running validation: may be cut in slices like everything else. */
typedef struct tg_eval_state {
    uint64_t next, n; /* windows */
    double sum;       /* of the tokens' losses */
    uint64_t tokens;
    tg_run run;
    uint64_t in_batch; /* windows in the batch that is being run; 0: none */
} tg_eval_state;

typedef struct tg_poison {
    bool pending, in_gradient;
    size_t elem; /* of the flat array */
    float value;
} tg_poison;

struct tg_trainer {
    tg_context *ctx;
    tg_model *model;
    bool owns_model;
    tg_text *text;
    uint32_t text_mark;
    tg_train_options o;
    tg_split split;
    tg_train_plans plans;
    tg_block grads, adam_m, adam_v, best, memory;
    float loss; /* the plans' state "loss": mean over the micro-steps so far */

    int64_t step;    /* done */
    int64_t updates; /* done and not refused: the t of bias correction */
    tg_train_phase phase;
    int32_t micro;
    tg_run run;
    tg_scalars rt;
    double busy_ms;        /* time spent in this step */
    tg_step_report report; /* of the step in progress */
    tg_eval_state eval;
    bool path_damaged; /* resumed from PATH.prev: the next save must not put PATH in its place */
    bool eval_pending; /* a save came between a step and its validation */

    double last_loss, last_val, best_val;
    int64_t best_step, last_val_step;
    int32_t stale;  /* validations since the best one */
    bool best_held; /* best holds the weights of best_step */
    uint64_t loss_hash;
    tg_history_point *history; /* [TG_HISTORY_MAX] */
    size_t n_history;
    int64_t history_stride;
    tg_poison poison;
    tg_cancel_fn cancel;
    void *cancel_user;
};

tg_train_options tg_train_options_of(const tg_train_options *o, const tg_gpt_config *config);
tg_status tg_train_options_check(tg_ctx *err, const tg_train_options *o);

tg_status tg_train_new(tg_context *ctx, tg_model *model, tg_text *text, const tg_train_options *o,
                       tg_trainer **out);
void tg_train_free(tg_trainer *t);
/* budget_ms <= 0: until the step is done. */
tg_status tg_train_poll(tg_trainer *t, double budget_ms, tg_step_report *out);
/* Drops micro-steps that are not finished, so that the state is that of whole steps. */
void tg_train_settle(tg_trainer *t);

/* eval.c: TG_OK with the mean in *loss, TG_PENDING or TG_STOPPED with the state kept. */
tg_status tg_eval_begin(tg_trainer *t, const tg_split *split, int32_t windows, tg_eval_state *e);
tg_status tg_eval_go_on(tg_trainer *t, const tg_split *split, tg_eval_state *e, double deadline_ms,
                        double *loss);

/* checked.c: replays the gradients of the step and names the first tensor that is not finite. */
tg_status tg_train_find_bad(tg_trainer *t, char *name, size_t name_bytes);
void tg_train_poison_apply(tg_trainer *t, bool gradient);

/* Fills the inputs of micro-step `micro` of the step in progress. */
tg_status tg_train_fill(tg_trainer *t, int32_t micro);

/* checkpoint.c */
tg_status tg_train_save(tg_trainer *t, const char *path);
tg_status tg_train_save_best(tg_trainer *t, const char *path);
tg_status tg_train_open(tg_context *ctx, const char *path, tg_text *text, int64_t steps,
                        tg_trainer **out);

/* forecast.c */
tg_status tg_train_forecast(tg_context *ctx, const tg_gpt_config *config, tg_text *text,
                            const tg_train_options *o, const tg_train_plans *plans,
                            tg_forecast *out);
double tg_train_flop(const tg_gpt_config *c, const tg_train_options *o);

#endif
