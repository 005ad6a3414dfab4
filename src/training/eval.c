/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c - the mean loss over windows of a text (data/windows.h), in slices.
 *
 * A plan gives logits and their log-sum-exp; the losses are summed here in double, so that a last
 * batch that is not full, and any number of windows, give the exact mean over tokens. There are two
 * such plans:
 *
 *     weights are floats of one array    whole sequences, in batches: a trainer brings its plan
 *                                        along, a model alone has one of the same shape, so that
 *                                        both find the same bits
 *     weights as a file has them         a window at a time, in pieces over a cache
 *
 * Batches have whole windows, of row_tokens predictions; what is behind the last one is left out,
 * and a text of tokens that has none is a window of its own. Pieces read the rest, too, and a
 * window of theirs has row_tokens in all, as llama.cpp's have, so that one less is predicted.
 */
#include "base/math.h"
#include "base/time.h"
#include "ops/preference/surprise.h"
#include "training/train.h"

/* What an evaluation stands on; all of it is borrowed. */
typedef struct evaluator {
    tg_context *ctx;
    const tg_model_config *config;
    tg_train_plans *plans; /* eval is placed and bound; or NULL: */
    tg_eval_pieces *pieces;
    tg_windows *windows;
    const tg_train_options *o;
    size_t batch, T; /* rows of the plan, and their tokens */
    tg_cancel_fn cancel;
    void *cancel_user;
    tg_token_loss_fn told;
    void *told_user;
    const tg_trainer *pairs; /* of a trainer on pairs, whose losses these are; else NULL */
    unsigned *generation;    /* of the device that has what is on its way; NULL: a trainer's, whose
                                caller begins anew */
} evaluator;

static evaluator of_trainer(tg_trainer *t) {
    return (evaluator) { .ctx = t->ctx,
                         .config = &t->model->layout.config,
                         .plans = &t->plans,
                         .windows = &t->windows,
                         .o = &t->o,
                         .batch = (size_t)t->o.batch,
                         .T = (size_t)t->o.row_tokens,
                         .pairs = tg_train_pairs(t->text) ? t : NULL,
                         .cancel = t->cancel,
                         .cancel_user = t->cancel_user };
}

/* So many windows (0: all) of those that validate, or of the whole text. */
static tg_status begin(const evaluator *v, bool whole, int32_t windows, tg_eval_state *e) {
    const tg_windows *w = v->windows;
    const uint64_t all = tg_windows_count(w, v->T, whole);
    *e = (tg_eval_state) { .n = all, .all = all, .whole = whole };
    if (windows > 0 && (uint64_t)windows < all) e->n = (uint64_t)windows;
    if (TG_NATIVE_PARTS && v->pairs) e->n += e->n % 2;
    if (all == 0)
        return tg_fail(&v->ctx->err, TG_E_DATA,
                       "%s: evaluation: want at least %zu %s for windows of %zu predictions, have "
                       "%" PRIu64,
                       w->text->name, w->rest ? 1 + (size_t)(w->begins < 0) : v->T + 1,
                       tg_windows_unit(w), v->T, whole ? w->n : w->split.val);
    return TG_OK;
}

/* Number i of those that are looked at, spread evenly over all: the product is i * all, not a
 * fraction of doubles, so it cannot round differently elsewhere. */
static uint64_t window_at(const tg_eval_state *e, uint64_t i) { return i * e->all / e->n; }

/* The same of pairs, whose rows stay together. */
static uint64_t row_at(const evaluator *v, const tg_eval_state *e, uint64_t i) {
    if (!TG_NATIVE_PARTS || !v->pairs) return window_at(e, i);
    return window_at(e, i / 2 * 2) / 2 * 2 + i % 2;
}

/* loss = lse - logit of the target, of floats subtracted in double, rows rising: one order for any
 * batch size, so the mean does not depend on it but through the plan's own bits. */
static double loss_of(const evaluator *v, const float *logits, const float *lse, size_t row,
                      int32_t target) {
    const size_t V = (size_t)v->config->vocab;
    return (double)lse[row] - (double)logits[row * V + (size_t)target];
}

/* Another device has nothing of what began on a lost one, whoever noticed the loss. */
static bool begin_anew(const evaluator *v, tg_eval_state *e) {
    if (!v->generation || *v->generation == v->ctx->generation) return false;
    *v->generation = v->ctx->generation;
    tg_ctx_clear(&v->ctx->err);
    e->in_batch = 0;
    if (v->pieces) {
        tg_run_restart(&v->pieces->rows.run);
        v->pieces->pos = 0;
    }
    return true;
}

/* Token `at` of a window has been predicted. */
static tg_status add(const evaluator *v, tg_eval_state *e, uint64_t window, size_t at,
                     int32_t target, double loss) {
    const uint64_t token = window * v->T + at + (v->windows->begins < 0);
    e->sum += loss;
    e->tokens++;
    return v->told && v->told(v->told_user, token, target, loss) != 0 ? TG_STOPPED : TG_OK;
}

/* ------------------------------------------------------------------------------------- in batches
 */

/* The next windows into the rows of a batch. Rows beyond the last window are zeros: valid ids, the
 * same in every run; their losses are computed and left out of the sum. */
static tg_status fill(const evaluator *v, tg_eval_state *e) {
    const size_t T = v->T;
    int32_t *tokens = tg_plan_data(&v->plans->eval, v->plans->eval_tokens);
    int32_t *targets = tg_plan_data(&v->plans->eval, v->plans->eval_targets);
    memset(tokens, 0, v->batch * T * sizeof *tokens);
    memset(targets, 0, v->batch * T * sizeof *targets);
    e->in_batch = e->n - e->next < v->batch ? e->n - e->next : v->batch;
    for (size_t row = 0; row < e->in_batch; row++)
        TG_TRY(tg_windows_row(v->windows, row_at(v, e, e->next + row), e->whole, T,
                              tokens + row * T, targets + row * T));
    if (TG_TRAIN_MASKS) tg_train_put_texts(&v->plans->eval, &v->plans->eval_texts, v->o);
    return TG_OK;
}

/* A pair counts once. */
static void sum_pairs(const evaluator *v, tg_eval_state *e) {
    const size_t V = (size_t)v->config->vocab;
    for (size_t i = 0; i < e->in_batch; i += 2) {
        const double chosen = tg_pairs_logp(v->plans, i, v->T, V);
        const double rejected = tg_pairs_logp(v->plans, i + 1, v->T, V);
        const uint64_t row = v->windows->rows_train + row_at(v, e, e->next + i);
        const double margin = tg_pairs_margin(v->pairs, row, chosen, rejected);
        e->sum += tg_preference_loss(margin);
        e->right += margin > 0;
        e->margin += margin;
        e->tokens++;
    }
}

static tg_status sum_losses(const evaluator *v, tg_eval_state *e) {
    const size_t n = (size_t)e->in_batch * v->T;
    const int32_t *targets = tg_plan_data(&v->plans->eval, v->plans->eval_targets);
    const float *logits = tg_plan_data(&v->plans->eval, v->plans->logits);
    const float *lse = tg_plan_data(&v->plans->eval, v->plans->lse);
    if (TG_NATIVE_PARTS && v->pairs) sum_pairs(v, e);
    for (size_t i = 0; i < n && !v->pairs; i++)
        if (targets[i] >= 0)
            TG_TRY(add(v, e, window_at(e, e->next + i / v->T), i % v->T, targets[i],
                       loss_of(v, logits, lse, i, targets[i])));
    e->next += e->in_batch;
    e->in_batch = 0;
    return TG_OK;
}

/* in_batch is not 0 exactly while a batch is on its way, and e->run then says how far it is. */
static tg_status run_batch(const evaluator *v, tg_eval_state *e, double deadline_ms) {
    const tg_scalars rt = { .accumulate = 0 };
    begin_anew(v, e);
    if (e->in_batch == 0) {
        TG_TRY(fill(v, e));
        e->run = (tg_run) { .next = 0 };
    }
    e->run.deadline_ms = deadline_ms;
    e->run.cancel = v->cancel;
    e->run.cancel_user = v->cancel_user;
    const tg_status status =
        v->generation ? tg_runtime_run(v->ctx, "evaluation", &v->plans->eval, &rt, &e->run)
                      : tg_backend_run(v->ctx->backend, &v->plans->eval, &rt, &e->run);
    if (begin_anew(v, e)) return TG_OK;
    TG_TRY(status);
    return sum_losses(v, e);
}

/* -------------------------------------------------------------------------------------- in pieces
 */

/* A piece of the next window. Its losses are kept until the window is whole, so that no token
 * counts, or is told of, twice. */
static tg_status run_piece(const evaluator *v, tg_eval_state *e, double deadline_ms) {
    tg_eval_pieces *p = v->pieces;
    tg_all_rows *r = &p->rows;
    begin_anew(v, e);
    if (p->pos == 0 && !tg_run_begun(&r->run)) {
        TG_TRY(tg_windows_row(v->windows, window_at(e, e->next), e->whole, v->T, p->inputs,
                              p->targets));
        for (p->n = 0; p->n < v->T && p->targets[p->n] >= 0;) p->n++;
    }
    const size_t n = p->n - p->pos < r->most ? p->n - p->pos : r->most;
    if (!tg_run_begun(&r->run)) {
        memcpy(tg_all_rows_tokens(r), p->inputs + p->pos, n * sizeof *p->inputs);
        memcpy(tg_all_rows_targets(r), p->targets + p->pos, n * sizeof *p->targets);
    }
    const tg_status status = tg_all_rows_run(r, n, p->pos, deadline_ms);
    if (begin_anew(v, e)) return TG_OK;
    TG_TRY(status);
    for (size_t i = 0; i < n; i++)
        p->losses[p->pos + i] =
            loss_of(v, tg_all_rows_logits(r), tg_all_rows_lse(r), i, p->targets[p->pos + i]);
    p->pos += n;
    if (p->pos < p->n) return TG_OK;
    for (size_t i = 0; i < p->n; i++)
        TG_TRY(add(v, e, window_at(e, e->next), i, p->targets[i], p->losses[i]));
    p->pos = 0;
    e->next++;
    return TG_OK;
}

/* The deadline is also looked at between two runs, since a plan that just ended did not ask. sum
 * and tokens only grow by what was run to its end, so stopping loses nothing. */
static tg_status go_on(const evaluator *v, tg_eval_state *e, double deadline_ms, double *loss) {
    while (e->next < e->n) {
        TG_TRY((v->pieces ? run_piece : run_batch)(v, e, deadline_ms));
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
        if (tg_train_pairs(t->text)) TG_TRY(tg_pairs_refer(t, deadline_ms));
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
 * preset, the length of windows, and the checks of the ranges. */
tg_status tg_model_evaluating_begin(tg_model_evaluating *e, tg_context *ctx, tg_model *model,
                                    tg_text *text, double val_fraction, int32_t windows) {
    tg_train_options o = tg_train_options_default();
    const int32_t most = model->layout.config.ctx;
    o.val_fraction = val_fraction;
    o.eval_windows = windows;
    e->in_pieces = !tg_weights_are_flat(model);
    if (e->in_pieces) o.row_tokens = most < TG_ROW_TOKENS ? most : TG_ROW_TOKENS;
    e->ctx = ctx;
    e->model = model;
    e->text = text;
    e->o = tg_train_options_of(&o, &model->layout.config);
    TG_TRY(tg_train_options_check(&ctx->err, &e->o));
    e->whole = !tg_text_validates(text, val_fraction);
    if (text->train_row)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "%s: evaluation without a trainer wants a text, have rows", text->name);
    if (!model->tok)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "evaluation: the model's file has no tokenizer");
    TG_TRY(tg_all_rows_want_writer(ctx, model, "evaluation"));
    e->generation = ctx->generation;
    TG_TRY(tg_windows_begin(&e->windows, model, text, val_fraction));
    e->windows.rest = e->in_pieces;
    return TG_OK;
}

static size_t predicted_of_window(const tg_model_evaluating *e) {
    const size_t T = (size_t)e->o.row_tokens;
    return e->in_pieces && T > 1 ? T - 1 : T;
}

static evaluator of_model(tg_model_evaluating *e) {
    return (evaluator) { .ctx = e->ctx,
                         .config = &e->model->layout.config,
                         .plans = &e->plans,
                         .pieces = e->in_pieces ? &e->pieces : NULL,
                         .windows = &e->windows,
                         .o = &e->o,
                         .batch = (size_t)e->o.batch,
                         .T = predicted_of_window(e),
                         .generation = &e->generation,
                         .told = e->told,
                         .told_user = e->told_user };
}

/* The plan of pieces with its cache, and room for a window. */
static tg_status open_pieces(tg_model_evaluating *e) {
    tg_eval_pieces *p = &e->pieces;
    const size_t T = predicted_of_window(e);
    TG_TRY(tg_block_new(&e->ctx->err, T * (sizeof *p->losses + 2 * sizeof *p->inputs), &p->window));
    p->losses = p->window.data;
    p->inputs = (int32_t *)(p->losses + T);
    p->targets = p->inputs + T;
    return tg_all_rows_open(&p->rows, e->ctx, e->model, T, TG_ANSWER_ROWS);
}

/* What is taken beside the weights: tokens of the text, and a plan's workspace. */
static tg_status prepare(tg_model_evaluating *e, double deadline_ms) {
    const evaluator v = of_model(e);
    if (e->stage == TG_EVALUATING_BEGIN) {
        TG_TRY(tg_windows_go_on(&e->windows, deadline_ms));
        if (e->windows.tok && tg_windows_count(&e->windows, v.T, e->whole) == 0)
            e->windows.rest = true;
        TG_TRY(begin(&v, e->whole, e->o.eval_windows, &e->state));
        if (e->in_pieces) {
            TG_TRY(open_pieces(e));
        } else {
            TG_TRY(tg_train_plans_build_eval(e->ctx, &e->model->layout, &e->o, &e->plans));
            TG_TRY(tg_runtime_block_take(e->ctx, e->plans.memory_bytes, &e->memory));
        }
        e->stage = e->in_pieces ? TG_EVALUATING_RUN : TG_EVALUATING_CLEAR;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    if (e->stage == TG_EVALUATING_RUN) return TG_OK;
    TG_TRY(tg_block_clear(&e->memory, deadline_ms));
    tg_plan_place(&e->plans.eval, e->memory.data);
    TG_TRY(tg_weights_bind(e->model, &e->plans.eval));
    e->stage = TG_EVALUATING_RUN;
    return TG_OK;
}

tg_status tg_model_evaluating_go_on(tg_model_evaluating *e, double deadline_ms, double *loss) {
    TG_TRY(prepare(e, deadline_ms));
    const evaluator v = of_model(e);
    return go_on(&v, &e->state, deadline_ms, loss);
}

void tg_model_evaluating_deinit(tg_model_evaluating *e) {
    if (!e->ctx) return;
    tg_all_rows_deinit(&e->pieces.rows);
    tg_block_free(&e->pieces.window);
    tg_windows_deinit(&e->windows);
    tg_runtime_block_free(e->ctx, &e->memory);
    tg_train_plans_free(&e->plans);
}
