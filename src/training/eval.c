/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c - the mean loss over windows of a text, in slices.
 *
 * The eval plan gives logits and their log-sum-exp; the losses are summed here in double, so that a
 * last batch that is not full, and any number of windows, give the exact mean over tokens. A
 * trainer brings its plan along; tg_model_evaluating makes one for a model that is only measured,
 * of the same shape, so that both find the same bits.
 */
#include "base/math.h"
#include "base/time.h"
#include "training/train.h"

/* What an evaluation stands on; all of it is borrowed. */
typedef struct evaluator {
    tg_context *ctx;
    const tg_model_config *config;
    tg_train_plans *plans; /* eval is placed and bound */
    tg_windows *windows;
    size_t batch, T; /* rows of the plan, and their tokens */
    tg_cancel_fn cancel;
    void *cancel_user;
} evaluator;

static evaluator of_trainer(tg_trainer *t) {
    return (evaluator) { .ctx = t->ctx,
                         .config = &t->model->layout.config,
                         .plans = &t->plans,
                         .windows = &t->windows,
                         .batch = (size_t)t->o.batch,
                         .T = (size_t)t->o.row_tokens,
                         .cancel = t->cancel,
                         .cancel_user = t->cancel_user };
}

/* So many windows (0: all) of those that validate, or of the whole text. */
static tg_status begin(const evaluator *v, bool whole, int32_t windows, tg_eval_state *e) {
    const tg_windows *w = v->windows;
    const uint64_t all = tg_windows_count(w, v->T, whole);
    *e = (tg_eval_state) { .n = all, .all = all, .whole = whole };
    if (windows > 0 && (uint64_t)windows < all) e->n = (uint64_t)windows;
    if (all == 0)
        return tg_fail(&v->ctx->err, TG_E_DATA,
                       "%s: evaluation: want at least %zu %s for a context of %zu tokens, have "
                       "%" PRIu64,
                       w->text->name, v->T + 1, tg_windows_unit(w), v->T,
                       whole ? w->n : w->split.val);
    return TG_OK;
}

/* The next windows into the rows of a batch. Window i of n, spread evenly over all: the product is
 * i * all, not a fraction of doubles, so it cannot round differently elsewhere. Rows beyond the
 * last window are zeros: valid ids, the same in every run; their losses are computed and left out
 * of the sum. */
static tg_status fill(const evaluator *v, tg_eval_state *e) {
    const size_t T = v->T;
    int32_t *tokens = tg_plan_data(&v->plans->eval, v->plans->eval_tokens);
    int32_t *targets = tg_plan_data(&v->plans->eval, v->plans->eval_targets);
    memset(tokens, 0, v->batch * T * sizeof *tokens);
    memset(targets, 0, v->batch * T * sizeof *targets);
    e->in_batch = e->n - e->next < v->batch ? e->n - e->next : v->batch;
    for (size_t row = 0; row < e->in_batch; row++)
        TG_TRY(tg_windows_row(v->windows, (e->next + row) * e->all / e->n, e->whole, T,
                              tokens + row * T, targets + row * T));
    return TG_OK;
}

/* loss = lse - logit of the target, of floats subtracted in double, rows rising: one order for any
 * batch size, so the mean does not depend on it but through the plan's own bits. */
static void sum_losses(const evaluator *v, tg_eval_state *e) {
    const size_t V = (size_t)v->config->vocab;
    const size_t n = (size_t)e->in_batch * v->T;
    const int32_t *targets = tg_plan_data(&v->plans->eval, v->plans->eval_targets);
    const float *logits = tg_plan_data(&v->plans->eval, v->plans->logits);
    const float *lse = tg_plan_data(&v->plans->eval, v->plans->lse);
    for (size_t i = 0; i < n; i++) {
        if (targets[i] < 0) continue;
        e->sum += (double)lse[i] - (double)logits[i * V + (size_t)targets[i]];
        e->tokens++;
    }
    e->next += e->in_batch;
    e->in_batch = 0;
}

/* in_batch is not 0 exactly while a batch is on its way, and e->run then says how far it is. The
 * deadline is also looked at between two batches, since a plan that just ended did not ask. sum and
 * tokens only grow by whole batches, so stopping loses nothing. */
static tg_status go_on(const evaluator *v, tg_eval_state *e, double deadline_ms, double *loss) {
    const tg_scalars rt = { .accumulate = 0 };
    while (e->next < e->n) {
        if (e->in_batch == 0) {
            TG_TRY(fill(v, e));
            e->run = (tg_run) { .next = 0 };
        }
        e->run.deadline_ms = deadline_ms;
        e->run.cancel = v->cancel;
        e->run.cancel_user = v->cancel_user;
        TG_TRY(tg_backend_run(v->ctx->backend, &v->plans->eval, &rt, &e->run));
        sum_losses(v, e);
        if (e->next < e->n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    *loss = e->tokens ? e->sum / (double)e->tokens : TG_NAN; /* of nothing, which is not 0 */
    return TG_OK;
}

tg_status tg_eval_begin(tg_trainer *t, bool whole, tg_eval_state *e) {
    const evaluator v = of_trainer(t);
    return begin(&v, whole, t->o.eval_windows, e);
}

tg_status tg_eval_go_on(tg_trainer *t, tg_eval_state *e, double deadline_ms, double *loss) {
    const evaluator v = of_trainer(t);
    return go_on(&v, e, deadline_ms, loss);
}

/* Validation text if there is some, else all of it. */
static tg_status evaluating_begin(tg_trainer_evaluating *e, tg_trainer *t) {
    if (t->split.val == 0 && (t->text->train_row || tg_text_validates(t->text, t->o.val_fraction)))
        return tg_fail(&t->ctx->err, TG_E_DATA,
                       "evaluation: the validation part is shorter than a window of %d tokens",
                       (int)t->o.row_tokens + 1);
    tg_train_drop(t);
    TG_TRY(tg_eval_begin(t, t->split.val == 0, &e->state));
    e->begun = true;
    return TG_OK;
}

static tg_status evaluating_go_on(tg_trainer_evaluating *e, tg_trainer *t, double deadline_ms,
                                  double *loss) {
    if (e->generation != t->ctx->generation) e->begun = false;
    e->generation = t->ctx->generation;
    if (!e->begun) {
        TG_TRY(tg_train_settle(t, deadline_ms));
        TG_TRY(evaluating_begin(e, t));
    }
    return tg_eval_go_on(t, &e->state, deadline_ms, loss);
}

tg_status tg_trainer_evaluating_go_on(tg_trainer_evaluating *e, tg_trainer *t, double deadline_ms,
                                      double *loss) {
    tg_status s;
    do s = evaluating_go_on(e, t, deadline_ms, loss);
    while (tg_train_recovered(t, &s));
    return s;
}

/* ------------------------------------------------------------------------------- a model alone */

/* The options are those of a run that would validate in this way: they bring the batch of the
 * preset, and the checks of the ranges. */
tg_status tg_model_evaluating_begin(tg_model_evaluating *e, tg_context *ctx, tg_model *model,
                                    tg_text *text, double val_fraction, int32_t windows) {
    tg_train_options o = tg_train_options_default();
    o.val_fraction = val_fraction;
    o.eval_windows = windows;
    e->ctx = ctx;
    e->model = model;
    e->text = text;
    e->o = tg_train_options_of(&o, &model->layout.config);
    TG_TRY(tg_train_options_check(&ctx->err, &e->o));
    e->whole = !tg_text_validates(text, val_fraction);
    if (text->train_row)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "%s: evaluation without a trainer wants a text, have rows", text->name);
    if (tg_tok_model_of(model->tok) == TG_TOK_RAW_BYTES && tg_weights_are_flat(model))
        return tg_windows_begin(&e->windows, model, text, val_fraction);
    if (text->n_mix && !e->whole)
        return tg_fail(
            &ctx->err, TG_E_UNSUPPORTED,
            "%s: evaluation of the ends of a mix without a trainer wants a flat model of "
            "bytes",
            text->name);
    e->of_tokens = true;
    const uint64_t from = e->whole ? 0 : tg_text_split(text, val_fraction).train;
    return tg_evaluating_tokens_begin(&e->tokens, ctx, model, text, from, windows);
}

static evaluator of_model(tg_model_evaluating *e) {
    return (evaluator) { .ctx = e->ctx,
                         .config = &e->model->layout.config,
                         .plans = &e->plans,
                         .windows = &e->windows,
                         .batch = (size_t)e->o.batch,
                         .T = (size_t)e->o.row_tokens };
}

/* The plan's workspace is all that is taken beside the weights. */
static tg_status prepare(tg_model_evaluating *e, double deadline_ms) {
    const evaluator v = of_model(e);
    if (e->stage == TG_EVALUATING_PLAN) {
        TG_TRY(tg_train_plans_build_eval(e->ctx, &e->model->layout, &e->o, &e->plans));
        TG_TRY(tg_runtime_block_take(e->ctx, e->plans.memory_bytes, &e->memory));
        e->stage = TG_EVALUATING_CLEAR;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    TG_TRY(tg_block_clear(&e->memory, deadline_ms));
    tg_plan_place(&e->plans.eval, e->memory.data);
    TG_TRY(tg_weights_bind(e->model, &e->plans.eval));
    e->stage = TG_EVALUATING_RUN;
    return begin(&v, e->whole, e->o.eval_windows, &e->state);
}

tg_status tg_model_evaluating_go_on(tg_model_evaluating *e, double deadline_ms, double *loss) {
    if (e->of_tokens) return tg_evaluating_tokens_go_on(&e->tokens, deadline_ms, loss);
    if (e->stage != TG_EVALUATING_RUN) TG_TRY(prepare(e, deadline_ms));
    const evaluator v = of_model(e);
    return go_on(&v, &e->state, deadline_ms, loss);
}

void tg_model_evaluating_deinit(tg_model_evaluating *e) {
    if (!e->ctx) return;
    tg_evaluating_tokens_deinit(&e->tokens);
    tg_windows_deinit(&e->windows);
    tg_runtime_block_free(e->ctx, &e->memory);
    tg_train_plans_free(&e->plans);
}
