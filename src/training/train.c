/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - the state machine of a training run. See train.h for the picture.
 *
 * Every slice leaves enough to go on. The random numbers of a batch depend on the step alone, so
 * that they are the same when what was dropped is done again.
 */
#include "training/train.h"

#include "base/math.h"
#include "base/time.h"
#include "training/schedule.h"

/* --------------------------------------------------------------------------------------- options
 */

/* A range with a message. NaN is in no range. Whole numbers go through a double on the way: exact,
 * as the limits of 64-bit options are far below 2^53. */
static tg_status want(tg_ctx *err, const char *name, double have, double low, double high) {
    if (have >= low && have <= high) return TG_OK;
    return tg_fail(err, TG_E_ARG, "training: %s: want %g..%g, have %g", name, low, high, have);
}

tg_status tg_train_options_check(tg_ctx *err, const tg_train_options *o) {
    TG_TRY(want(err, "steps", (double)o->steps, 1, 1e12));
    TG_TRY(want(err, "batch", o->batch, 1, 65536));
    TG_TRY(want(err, "accum", o->accum, 1, 65536));
    TG_TRY(want(err, "lr", o->lr, 1e-12, 100));
    TG_TRY(want(err, "min_lr_ratio", o->min_lr_ratio, 0, 1));
    TG_TRY(want(err, "schedule", o->schedule, TG_CONSTANT, TG_WSD));
    TG_TRY(want(err, "warmup", (double)o->warmup, 0, (double)o->steps));
    TG_TRY(want(err, "decay_fraction", o->decay_fraction, 0, 1));
    TG_TRY(want(err, "dropout", o->dropout, 0, 0.99));
    TG_TRY(want(err, "optimizer", o->optimizer, TG_ADAMW, TG_MUON));
    TG_TRY(want(err, "momentum", o->momentum, 0, 0.999999));
    TG_TRY(want(err, "ema", o->ema, 0, 0.9999));
    TG_TRY(want(err, "weight_decay", o->weight_decay, 0, 100));
    TG_TRY(want(err, "beta1", o->beta1, 0, 0.999999));
    TG_TRY(want(err, "beta2", o->beta2, 0, 0.99999999));
    TG_TRY(want(err, "eps", o->eps, 1e-30, 1));
    TG_TRY(want(err, "clip", o->clip, 0, 1e9));
    TG_TRY(want(err, "val_fraction", o->val_fraction, 0, 0.9));
    TG_TRY(want(err, "eval_every", (double)o->eval_every, 0, 1e12));
    TG_TRY(want(err, "eval_windows", o->eval_windows, 0, INT32_MAX));
    TG_TRY(want(err, "hold_lr_after", (double)o->hold_lr_after, 0, 1e12));
    TG_TRY(want(err, "row_tokens", o->row_tokens, 0, 1 << 24));
    return want(err, "patience", o->patience, 0, INT32_MAX);
}

/* Rows and batches where nobody says: what a model of another vocabulary than bytes sees, and holds
 * of its logits, is a multiple of what the byte GPT does. */
enum { BATCH = 16, BATCH_OF_TOKENS = 4 };

/* Fills in what depends on the model: batch 0 is the batch of the preset with exactly this
 * configuration, and a common one for any other; rows of 0 tokens are as long as the context,
 * within a limit of models that see more than anybody trains at once. It comes before the check,
 * which refuses 0. */
tg_train_options tg_train_options_of(const tg_train_options *o, const tg_model_config *config) {
    tg_train_options out = *o;
    const bool bytes = config->vocab == 256;
    if (out.row_tokens == 0)
        out.row_tokens = bytes || config->ctx < TG_ROW_TOKENS ? config->ctx : TG_ROW_TOKENS;
    if (out.batch != 0) return out;
    out.batch = bytes ? BATCH : BATCH_OF_TOKENS;
    for (size_t i = 0; i < tg_preset_count(); i++)
        if (tg_config_same(&tg_preset_at(i)->config, config)) out.batch = tg_preset_at(i)->batch;
    return out;
}

/* ------------------------------------------------------------------------------- making a trainer
 */

/* All states are offered to all three plans; a plan passes over those that it has no use for, so
 * this list is the only one. The loss is a float inside the trainer: a trainer may not be moved. */
static tg_status bind(tg_trainer *t, tg_plan *p) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    tg_plan_place(p, t->plans.memory_bytes ? t->memory.data : NULL);
    TG_TRY(tg_weights_bind(t->model, p));
    if (t->raw.data && p != &t->plans.eval) {
        TG_TRY(tg_plan_bind(p, TG_WEIGHTS_NAME, t->raw.data, bytes));
        TG_TRY(tg_plan_bind(p, "average", t->model->weights, bytes));
    }
    TG_TRY(tg_plan_bind(p, "grads", t->grads.data, bytes));
    TG_TRY(tg_plan_bind(p, "adam_m", t->adam_m.data, bytes));
    TG_TRY(tg_plan_bind(p, "adam_v", t->adam_v.data, bytes));
    TG_TRY(tg_plan_bind(p, "scaling", t->scaling, sizeof t->scaling));
    return tg_plan_bind(p, "loss", &t->loss, sizeof t->loss);
}

/* All that is large is taken here, before the first step, so a run does not end for want of memory
 * in its middle. The copy of the best weights only exists where validations can be. */
static tg_status take_memory(tg_trainer *t) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    const bool best = t->o.keep_best && t->split.val > 0;
    TG_TRY(tg_runtime_block_take(t->ctx, bytes, &t->grads));
    TG_TRY(tg_runtime_block_take(t->ctx, bytes, &t->adam_m));
    TG_TRY(tg_runtime_block_take(t->ctx, bytes, &t->adam_v));
    if (t->o.ema > 0) TG_TRY(tg_runtime_block_take(t->ctx, bytes, &t->raw));
    if (best) TG_TRY(tg_runtime_block_take(t->ctx, bytes, &t->best));
    TG_TRY(tg_runtime_block_take(t->ctx, t->plans.memory_bytes, &t->memory));
    t->history = tg_alloc(&t->ctx->err.mem, TG_HISTORY_MAX * sizeof *t->history);
    return t->history
               ? TG_OK
               : tg_fail_memory(&t->ctx->err, "history", TG_HISTORY_MAX * sizeof *t->history);
}

static tg_status clear_memory(tg_trainer *t, size_t *cleared, double deadline_ms) {
    tg_block *const blocks[] = { &t->grads, &t->adam_m, &t->adam_v, &t->raw, &t->best, &t->memory };
    for (; *cleared < sizeof blocks / sizeof blocks[0]; ++*cleared)
        TG_TRY(tg_block_clear(blocks[*cleared], deadline_ms));
    if (!t->raw.data) return TG_OK;
    TG_TRY(tg_weights_fetch(t->model));
    memcpy(t->raw.data, t->model->weights, t->raw.bytes); /* an average of one */
    return TG_OK;
}

float *tg_train_weights(const tg_trainer *t) {
    return t->raw.data ? t->raw.data : t->model->weights;
}

/* Answers that all lie behind the end of their rows: a loss of nothing would be the best of all. */
static tg_status want_targets(const tg_trainer *t, const char *part, uint64_t first, uint64_t n) {
    const tg_text *text = t->text;
    if (!text->rows_predict || n == 0 ||
        text->rows_predict(text->rows_user, first, n, (size_t)t->o.row_tokens))
        return TG_OK;
    return tg_fail(&t->ctx->err, TG_E_DATA,
                   "%s: the %s part has %s within the %d tokens of a row (row_tokens): want longer "
                   "rows, or shorter conversations",
                   text->name, part,
                   tg_train_pairs(text) ? "an answer that does not begin" : "no answer that begins",
                   (int)t->o.row_tokens);
}

/* What is trained on is held against T here, and not at the first batch. A validation part that is
 * too short is none, without an error, and so is the end of a part of a mix: forecast and lint have
 * said so. */
static tg_status check_windows(tg_trainer *t) {
    const size_t T = (size_t)t->o.row_tokens;
    const tg_windows *w = &t->windows;
    t->split = w->split;
    if (t->text->train_row) {
        t->split.val = w->n_val_rows;
        t->token_bytes = t->val_token_bytes = t->text->rows_token_bytes;
        TG_TRY(want_targets(t, "training", 0, w->rows_train));
        return want_targets(t, "validation", w->rows_train, w->n_val_rows);
    }
    TG_TRY(tg_windows_want(w, T));
    if (tg_windows_count(w, T, false) == 0) t->split.val = 0;
    if (w->masked) return TG_OK; /* what is found in gaps measures no bytes around them */
    t->token_bytes = tg_windows_token_bytes(w, false);
    t->val_token_bytes = tg_windows_token_bytes(w, true);
    return TG_OK;
}

/* Borrows model and text. NaN and -1 stand for what has not happened yet; both are told apart from
 * any real value by every reader, the checkpoint's JSON included (NaN as null). */
static tg_status make_checked(tg_context *ctx, tg_model *model, tg_text *text,
                              const tg_train_options *o, tg_trainer **out) {
    TG_TRY(tg_weights_want_floats(model, "training"));
    tg_trainer *t = *out = tg_alloc(&ctx->err.mem, sizeof *t);
    if (!t) return tg_fail_memory(&ctx->err, "trainer", sizeof *t);
    t->ctx = ctx;
    t->generation = ctx->generation;
    t->model = model;
    t->text = text;
    t->o = tg_train_options_of(o, &model->layout.config);
    t->last_loss = t->last_val = TG_NAN;
    t->best_val = TG_INF;
    t->best_step = t->last_val_step = -1;
    t->history_stride = 1;
    t->scaling[0] = 1;
    t->loss_hash = UINT64_C(14695981039346656037); /* FNV-1a's offset basis */
    TG_TRY(tg_train_options_check(&ctx->err, &t->o));
    TG_TRY(want(&ctx->err, "row_tokens", t->o.row_tokens, 1, model->layout.config.ctx));
    if (tg_train_pairs(text)) TG_TRY(tg_pairs_begin(t));
    TG_TRY(tg_text_mark(text, &t->text_mark));
    return tg_windows_begin(&t->windows, model, text, t->o.val_fraction);
}

/* One stage. TG_PENDING: there is another one. */
static tg_status make_on(tg_train_making *m, tg_context *ctx, tg_model *model, tg_text *text,
                         const tg_train_options *o, double deadline_ms) {
    tg_trainer *t = m->trainer;
    switch (m->stage) {
    case TG_MAKING_CHECKED:
        TG_TRY(make_checked(ctx, model, text, o, &m->trainer));
        m->trainer->beta = m->beta > 0 ? m->beta : text->beta;
        break;
    case TG_MAKING_TEXT:
        if (t->text->n_bytes <= TG_TEXT_CRC_MAX)
            TG_TRY(tg_text_checking_go_on(&t->text_crc, t->text, deadline_ms));
        break;
    case TG_MAKING_TOKENS:
        TG_TRY(tg_windows_go_on(&t->windows, deadline_ms));
        TG_TRY(check_windows(t));
        break;
    case TG_MAKING_PLANS:
        TG_TRY(tg_train_plans_build(ctx, &model->layout, &t->o, t->beta, &t->plans));
        break;
    case TG_MAKING_MEMORY: TG_TRY(take_memory(t)); break;
    case TG_MAKING_CLEAR:
        TG_TRY(clear_memory(t, &m->cleared, deadline_ms));
        TG_TRY(bind(t, &t->plans.grad));
        TG_TRY(bind(t, &t->plans.update));
        return bind(t, &t->plans.eval);
    }
    m->stage++;
    return TG_PENDING;
}

tg_status tg_train_making_go_on(tg_train_making *m, tg_context *ctx, tg_model *model, tg_text *text,
                                const tg_train_options *o, double deadline_ms, tg_trainer **out) {
    tg_status s;
    while ((s = make_on(m, ctx, model, text, o, deadline_ms)) == TG_PENDING)
        if (tg_time_over(deadline_ms)) return s;
    if (s != TG_OK) return s;
    *out = m->trainer;
    m->trainer = NULL;
    return TG_OK;
}

void tg_train_making_deinit(tg_train_making *m) {
    tg_train_free(m->trainer);
    *m = (tg_train_making) { .trainer = NULL };
}

/* A model that goes on living gets whole weights. */
void tg_train_free(tg_trainer *t) {
    if (!t) return;
    if (!tg_train_steady(t)) tg_train_settle(t, 0);
    t->model->changing = false;
    const tg_mem mem = t->ctx->err.mem;
    tg_windows_deinit(&t->windows);
    tg_train_plans_free(&t->plans);
    tg_backend_forget(t->ctx->backend, &t->loss, sizeof t->loss);
    tg_backend_forget(t->ctx->backend, t->scaling, sizeof t->scaling);
    tg_runtime_block_free(t->ctx, &t->grads);
    tg_runtime_block_free(t->ctx, &t->adam_m);
    tg_runtime_block_free(t->ctx, &t->adam_v);
    tg_runtime_block_free(t->ctx, &t->raw);
    tg_runtime_block_free(t->ctx, &t->best);
    tg_runtime_block_free(t->ctx, &t->memory);
    tg_block_free(&t->copy.block);
    tg_free(&mem, t->history, TG_HISTORY_MAX * sizeof *t->history);
    if (tg_train_pairs(t->text)) tg_pairs_free(t);
    if (t->owns_model) tg_weights_free(t->model);
    tg_free(&mem, t, sizeof *t);
}

/*
 * ------------------------------------------------------------------------------------ one slice
 *
 * t->run is the place in the plan that is being walked. A function that returns TG_PENDING or
 * TG_STOPPED leaves phase, micro and run as they are, and is called again with the same ones.
 * Inputs are filled when a plan has not begun.
 */

/* Rows are numbered through the whole run: step, then micro-step, then row. So accum 2 with batch 8
 * sees the windows that accum 1 with batch 16 sees, and drops the same elements (ops/dropout). rt
 * becomes what the plan is to run with. */
tg_status tg_train_fill(tg_trainer *t, int64_t step, int32_t micro, tg_scalars *rt) {
    const size_t T = (size_t)t->o.row_tokens;
    int32_t *tokens = tg_plan_data(&t->plans.grad, t->plans.tokens);
    int32_t *targets = tg_plan_data(&t->plans.grad, t->plans.targets);
    const uint64_t first =
        ((uint64_t)step * (uint64_t)t->o.accum + (uint64_t)micro) * (uint64_t)t->o.batch;
    rt->seed_lo = (uint32_t)t->o.seed;
    rt->seed_hi = (uint32_t)(t->o.seed >> 32);
    rt->draw_lo = (uint32_t)first;
    rt->draw_hi = (uint32_t)(first >> 32);
    for (size_t row = 0; row < (size_t)t->o.batch; row++) {
        TG_TRY(tg_windows_train_row(&t->windows, t->o.seed, first + row, T, tokens + row * T,
                                    targets + row * T));
    }
    if (TG_TRAIN_MASKS) tg_train_put_texts(&t->plans.grad, &t->plans.texts, &t->o);
    if (tg_train_pairs(t->text)) tg_pairs_fill(t, first);
    return TG_OK;
}

tg_train_fault_fn tg_train_fault = NULL;

/* A finished plan leaves its place at its end, so it is set back here for the next plan. */
static tg_status go_on(tg_trainer *t, tg_plan *plan, double deadline_ms) {
    t->run.deadline_ms = deadline_ms;
    t->run.unbroken = true;
    TG_TRY(tg_backend_run(t->ctx->backend, plan, &t->rt, &t->run));
    tg_run_restart(&t->run);
    return TG_OK;
}

double tg_train_rate(const tg_trainer *t, int64_t step) {
    if (t->rate) return t->rate(t->rate_user, step + 1);
    return t->rates.n ? tg_rates_at(&t->rates, step + 1) : tg_schedule_lr(&t->o, step);
}

/* A function and a table exclude each other: whichever was set last goes, also into saves. */
void tg_train_set_rate(tg_trainer *t, tg_rate_fn rate, void *user) {
    t->rates.n = 0;
    t->rate = rate;
    t->rate_user = user;
}

/* An empty one is a decision for the options' schedule, about which no resume has to warn. */
tg_status tg_train_set_rates(tg_trainer *t, const tg_rates *rates) {
    TG_TRY(tg_rates_check(&t->ctx->err, "rates", rates));
    t->rate = NULL;
    t->rates = *rates;
    t->had_rate &= rates->n > 0;
    return TG_OK;
}

/* The rate is a function of the step; bias correction counts the updates that were made, so that a
 * refused step does not weaken it. */
static tg_status begin_step(tg_trainer *t) {
    const double lr = tg_train_rate(t, t->step);
    if (!(lr >= 0 && lr < TG_INF))
        return tg_fail(&t->ctx->err, TG_E_ARG,
                       "rate of step %" PRId64 ": want a finite number of at least 0, have %g",
                       t->step + 1, lr);
    t->had_rate |= t->rate || t->rates.n;
    t->phase = TG_PHASE_MICRO;
    t->micro = 0;
    tg_run_restart(&t->run);
    t->busy_ms = 0;
    t->report = (tg_step_report) { .step = t->step + 1, .val_loss = TG_NAN, .lr = lr };
    t->rt = (tg_scalars) { .lr = (float)lr, .step = (int32_t)(t->updates + 1) };
    return tg_train_fault ? tg_train_fault(t, TG_FAULT_BEGIN) : TG_OK;
}

/* Has a gradient of this step been computed ahead? It is used once. Whoever cancels is asked as
 * before each micro-step. */
static bool take_ahead(tg_trainer *t) {
    const bool is_there = t->micro == 0 && t->ahead.step == t->step + 1 &&
                          t->ahead.version == t->model->version &&
                          t->ahead.generation == t->generation;
    t->ahead.step = 0;
    return is_there;
}

/* accumulate 0 makes the first micro-step overwrite gradients and loss: nobody clears them, and
 * what an abandoned step left in them does not matter. */
static tg_status micro_steps(tg_trainer *t, double deadline_ms) {
    t->run.cancel = t->cancel;
    t->run.cancel_user = t->cancel_user;
    if (!tg_run_begun(&t->run) && take_ahead(t)) {
        if (t->cancel && t->cancel(t->cancel_user)) return TG_STOPPED;
        t->micro = 1;
    }
    while (t->micro < t->o.accum) {
        if (!tg_run_begun(&t->run)) TG_TRY(tg_train_fill(t, t->step, t->micro, &t->rt));
        t->rt.accumulate = t->micro > 0;
        TG_TRY(go_on(t, &t->plans.grad, deadline_ms));
        if (tg_train_pairs(t->text)) tg_pairs_take(t, t->micro);
        t->micro++;
    }
    t->phase = TG_PHASE_UPDATE;
    return tg_train_fault ? tg_train_fault(t, TG_FAULT_GRADIENT) : TG_OK;
}

/* Keeps at most TG_HISTORY_MAX points: when they are full, every second one goes, and from then on
 * half as many come in. The newest one always stays. Points with a validation are taken at any
 * step, and go like others; a step has one point, which the validation that follows it
 * completes. */
static void remember(tg_trainer *t, int64_t step, double loss, double val) {
    const bool has_val = !tg_isnan(val);
    if (!has_val && step % t->history_stride != 0) return;
    if (t->n_history && t->history[t->n_history - 1].step == step) {
        t->history[t->n_history - 1].val_loss = val;
        return;
    }
    if (t->n_history == TG_HISTORY_MAX) {
        size_t kept = 0;
        for (size_t i = 1; i < t->n_history; i += 2) t->history[kept++] = t->history[i];
        t->n_history = kept;
        t->history_stride *= 2;
    }
    t->history[t->n_history++] = (tg_history_point) { step, loss, val };
}

/* FNV-1a over the four bytes of the loss, lowest first: equal hashes mean that all losses so far
 * were equal to the bit. That is what determinism tests, levers and resuming are checked by, so the
 * order of the bytes is part of the contract. A NaN counts with the CPU's own payload. */
static void hash_loss(tg_trainer *t, float loss) {
    const uint32_t bits = tg_bits_from_float(loss);
    for (int i = 0; i < 4; i++)
        t->loss_hash = (t->loss_hash ^ (bits >> 8 * i & 0xff)) * UINT64_C(1099511628211);
}

/* After the last step always, whatever eval_every says: a run should end with a number. */
static bool eval_is_due(const tg_trainer *t) {
    if (t->split.val == 0) return false;
    return t->step == t->o.steps || (t->o.eval_every > 0 && t->step % t->o.eval_every == 0);
}

bool tg_train_steady(const tg_trainer *t) {
    return t->phase != TG_PHASE_UPDATE || !tg_run_begun(&t->run);
}

/* The step is done, accepted or refused. The validation is not run here but left pending, so that a
 * save can come between, and so that its time is not the step's. */
static void end_step(tg_trainer *t) {
    if (tg_train_fault) (void)tg_train_fault(t, TG_FAULT_END);
    t->step++;
    hash_loss(t, (float)t->report.loss);
    if (!t->report.skipped) remember(t, t->step, t->report.loss, TG_NAN);
    t->phase = TG_PHASE_IDLE;
    t->report_due = true;
    t->eval_pending = eval_is_due(t);
}

/* The next step's first gradient, while this update is on its way. It writes gradients alone: what
 * is saved, shown or measured next is as it was, and an update that is refused leaves the weights
 * that it is of. A text that cannot be read is the next step's error. */
static tg_status go_ahead(tg_trainer *t) {
    tg_run run = { .unbroken = true };
    tg_scalars rt = { .lr = t->rt.lr, .step = t->rt.step };
    if (tg_train_fill(t, t->step + 1, 0, &rt) != TG_OK) {
        tg_ctx_clear(&t->ctx->err);
        return TG_OK;
    }
    const tg_status s = tg_backend_run(t->ctx->backend, &t->plans.grad, &rt, &run);
    if (s == TG_OK) t->ahead.step = t->step + 2;
    return s == TG_PENDING ? TG_OK : s;
}

static bool may_go_ahead(const tg_trainer *t) {
    return t->ctx->backend != t->ctx->cpu && t->ctx->levers & TG_LEVER_BIT(readback_pipelining) &&
           t->step + 1 < t->o.steps && !tg_train_fault && !tg_run_begun(&t->run) &&
           !tg_train_pairs(t->text); /* margins, an output, are this step's */
}

/* What the update made of the scale of gradients. True: their infinities were the scale's, which is
 * smaller now, and the step is skipped; no tensor is to blame. */
static bool take_scaling(tg_trainer *t) {
    if (!TG_TRAIN_SCALES || !t->plans.scaling) return false;
    const float *told = tg_plan_data(&t->plans.update, t->plans.scaling);
    memcpy(t->scaling, told, sizeof t->scaling);
    if (told[3] == 0) return false;
    t->report.skipped = true;
    snprintf(t->report.bad_tensor, sizeof t->report.bad_tensor,
             "a gradient rounded to f16 (so far %.0f times; it is scaled by %g from now on)",
             (double)told[2], (double)told[0]);
    return true;
}

/* stats is [norm, clip coefficient, ok, loss], see grad_norm in ops/build.h. ok is computed inside
 * the plan, since the optimizer must know it before it writes; here it is only read. !(ok > 0) also
 * holds for a NaN. Nobody can cancel an update: what comes next, a save perhaps, would have to
 * finish it first. */
static tg_status update(tg_trainer *t, double deadline_ms) {
    t->run.cancel = NULL;
    t->run.later = may_go_ahead(t);
    tg_status s = go_on(t, &t->plans.update, deadline_ms);
    if (t->run.later && tg_run_begun(&t->run)) {
        t->run.later = false;
        s = go_ahead(t);
        if (s == TG_OK) s = go_on(t, &t->plans.update, deadline_ms);
    }
    t->run.later = false;
    t->model->changing = !tg_train_steady(t);
    t->model->version++;
    t->ahead.version = t->model->version;
    t->ahead.generation = t->generation;
    if (s != TG_OK) return s;
    const float *stats = tg_plan_data(&t->plans.update, t->plans.stats);
    t->report.grad_norm = (double)stats[0];
    t->report.loss = (double)stats[3];
    const bool answered = take_scaling(t);
    if (stats[2] > 0) {
        t->updates++;
        t->last_loss = t->report.loss;
        end_step(t);
    } else if (answered) {
        end_step(t);
    } else {
        t->phase = TG_PHASE_FIND;
        t->ahead.step = 0; /* the search writes the gradients anew */
        t->finding = (tg_finding) { .at = 0 };
    }
    return TG_OK;
}

/* A refused step: the weights are as before. Which tensor it was takes a replay. Without
 * skip_bad_steps the step is an error and stays undone: t->step does not move, and the next call
 * would meet the same batch. With it the step counts as done, and only `updates` lags behind. */
static tg_status refuse(tg_trainer *t, double deadline_ms) {
    TG_TRY(tg_train_find_bad(t, deadline_ms, t->report.bad_tensor, sizeof t->report.bad_tensor));
    if (t->o.skip_bad_steps) {
        t->report.skipped = true;
        end_step(t);
        return TG_OK;
    }
    if (tg_train_fault) (void)tg_train_fault(t, TG_FAULT_END);
    t->phase = TG_PHASE_IDLE;
    return tg_fail(&t->ctx->err, TG_E_NUMBER,
                   "step %" PRId64
                   ": loss %g, gradient norm %g: the first tensor that is not finite "
                   "is %s; the update was refused and the weights are those of step %" PRId64,
                   t->step + 1, t->report.loss, t->report.grad_norm, t->report.bad_tensor, t->step);
}

/* The weights are copied in pieces, as a copy of some gigabytes takes as many seconds in a
 * browser. best_held is false meanwhile: nobody saves a mixture. */
static tg_status keep(tg_trainer *t, double deadline_ms) {
    enum { PIECE_BYTES = 4 << 20 };
    t->best_held = false;
    if (t->kept_bytes == 0 && t->best.data) TG_TRY(tg_weights_fetch(t->model));
    while (t->kept_bytes < t->best.bytes) {
        const size_t left = t->best.bytes - t->kept_bytes;
        const size_t n = left < PIECE_BYTES ? left : PIECE_BYTES;
        memcpy((char *)t->best.data + t->kept_bytes, (char *)t->model->weights + t->kept_bytes, n);
        t->kept_bytes += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    t->best_held = t->best.data != NULL;
    return TG_OK;
}

/* The end of a validation. Ties are no progress: `stale` grows, or a run at its floor would never
 * stop early. A NaN is never better. best_held stays false where no copy is kept, so nobody saves
 * an empty one. */
static tg_status judge(tg_trainer *t, double deadline_ms) {
    const double loss = t->eval_loss;
    const bool better = loss < t->best_val;
    if (better) TG_TRY(keep(t, deadline_ms));
    t->eval_pending = false;
    t->phase = TG_PHASE_IDLE;
    t->report.val_loss = t->last_val = loss;
    t->report.val_is_best = better;
    t->last_val_step = t->step;
    remember(t, t->step, t->last_loss, loss);
    if (better) {
        t->best_val = loss;
        t->best_step = t->step;
    }
    t->stale = better ? 0 : t->stale + 1;
    return TG_OK;
}

/* May be left and entered again: t->eval keeps the sum and the place. */
static tg_status validate(tg_trainer *t, double deadline_ms) {
    if (t->phase == TG_PHASE_IDLE) {
        TG_TRY(tg_eval_begin(t, false, &t->eval));
        t->phase = TG_PHASE_EVAL;
    }
    if (t->phase == TG_PHASE_EVAL) {
        TG_TRY(tg_eval_go_on(t, &t->eval, deadline_ms, &t->eval_loss));
        if (tg_train_pairs(t->text)) {
            t->preferences.val_accuracy = t->eval.right / (double)t->eval.tokens;
            t->preferences.val_margin = t->eval.margin / (double)t->eval.tokens;
        }
        t->phase = TG_PHASE_KEEP;
        t->kept_bytes = 0;
    }
    return judge(t, deadline_ms);
}

/* Nats a token as bits a byte. */
static double bits_per_byte(const tg_trainer *t, double loss, double token_bytes) {
    static const double nats_per_bit = 0.69314718055994530942;
    const bool of_bytes = !t->windows.tok && !t->text->train_row;
    return !of_bytes && token_bytes > 0 ? loss / (nats_per_bit * token_bytes) : TG_NAN;
}

/* Speeds are over the time inside slices alone: what a caller does between two of them (drawing,
 * saving) is not the trainer's. ms / 1e6: flop a millisecond are 1e-6 GFLOP/s. */
static void finish_report(tg_trainer *t, tg_step_report *out) {
    const double tokens = (double)t->o.batch * t->o.accum * t->o.row_tokens;
    t->report.step = t->step;
    t->report.ms = t->busy_ms;
    t->report.tok_per_s = t->busy_ms > 0 ? tokens / t->busy_ms * 1e3 : 0;
    if (t->ctx->peak_gflops > 0 && t->busy_ms > 0 && t->ctx->backend == t->ctx->cpu)
        t->report.share_of_peak =
            tg_train_flop(&t->model->layout.config, &t->o) / t->busy_ms / 1e6 / t->ctx->peak_gflops;
    t->report.loss_hash = t->loss_hash;
    t->report.bits_per_byte = bits_per_byte(t, t->report.loss, t->token_bytes);
    t->report.val_bits_per_byte = bits_per_byte(t, t->report.val_loss, t->val_token_bytes);
    t->report.early_stop = t->o.patience > 0 && t->stale >= t->o.patience;
    t->model->step = t->step;
    t->model->loss = t->last_loss;
    t->model->val_loss = t->last_val;
    /* What a save of the model alone says of its making; the curve stays with the trainer. */
    tg_meta_init(&t->model->meta);
    t->model->meta.train = t->o;
    t->model->meta.train_known = TG_TRAIN_ALL;
    t->model->meta.final = (tg_history_point) { t->step, t->last_loss, t->last_val };
    if (out) *out = t->report;
}

/* The step itself; the validation that may follow is timed apart. */
static tg_status train_slice(tg_trainer *t, double deadline_ms) {
    const double start = t->awaiting_ms > 0 ? t->awaiting_ms : tg_time_ms();
    tg_status s = TG_OK;
    if (t->phase == TG_PHASE_IDLE) s = tg_train_copy(t);
    if (s == TG_OK && t->phase == TG_PHASE_IDLE) s = begin_step(t);
    if (s == TG_OK && t->phase == TG_PHASE_MICRO) s = micro_steps(t, deadline_ms);
    if (s == TG_OK && t->phase == TG_PHASE_UPDATE) s = update(t, deadline_ms);
    if (s == TG_OK && t->phase == TG_PHASE_FIND) s = refuse(t, deadline_ms);
    const double now = tg_time_ms();
    t->busy_ms += now - start;
    t->awaiting_ms = s == TG_PENDING && t->ctx->backend != t->ctx->cpu ? now : 0;
    return s;
}

/* A save of the model would otherwise write a mixture of two steps. */
tg_status tg_train_want_free(const tg_trainer *t) {
    if (t->job)
        return tg_fail(&t->ctx->err, TG_E_ARG, "trainer: a job is pending on it: %s",
                       t->job->kind->name);
    if (t->model->n_saves > 0)
        return tg_fail(&t->ctx->err, TG_E_ARG, "trainer: a save of its model is pending");
    return TG_OK;
}

/* One call ends at the latest with one step and its validation. TG_STOPPED is both "cancelled" and
 * "nothing left to do"; the latter is known by step and stale. What is due comes before that check:
 * after the last step there is still a validation to run, also in a resumed run, whose report then
 * is made up of what the file knew. */
static tg_status go_on_once(tg_trainer *t, double deadline_ms, tg_step_report *out) {
    TG_TRY(tg_train_follow(t));
    if (out) *out = t->report;
    if (!t->report_due && t->eval_pending) {
        t->report = (tg_step_report) { .step = t->step,
                                       .loss = t->last_loss,
                                       .val_loss = TG_NAN,
                                       .lr = tg_train_rate(t, t->step - 1),
                                       .grad_norm = t->report.grad_norm };
        t->report_due = true;
    }
    if (!t->report_due) {
        if (t->step >= t->o.steps || (t->o.patience > 0 && t->stale >= t->o.patience))
            return TG_STOPPED;
        if (tg_train_pairs(t->text)) TG_TRY(tg_pairs_refer(t, deadline_ms));
        TG_TRY(train_slice(t, deadline_ms));
    }
    if (t->eval_pending) TG_TRY(validate(t, deadline_ms));
    finish_report(t, out);
    t->report_due = false;
    return TG_OK;
}

tg_status tg_train_go_on(tg_trainer *t, double deadline_ms, tg_step_report *out) {
    tg_status s;
    do s = go_on_once(t, deadline_ms, out);
    while (tg_train_recovered(t, &s));
    return s;
}

tg_status tg_train_poll(tg_trainer *t, double budget_ms, tg_step_report *out) {
    if (out) *out = t->report;
    TG_TRY(tg_train_want_free(t));
    return tg_train_go_on(t, budget_ms > 0 ? tg_time_ms() + budget_ms : 0, out);
}

/* An update that turns out to be refused has changed nothing, so that it need not be looked into.
 */
static tg_status settle(tg_trainer *t, double deadline_ms) {
    const double start = tg_time_ms();
    tg_status s = tg_train_follow(t);
    if (s == TG_OK && !tg_train_steady(t)) {
        s = update(t, deadline_ms);
        t->busy_ms += tg_time_ms() - start;
    }
    if (s == TG_OK && t->phase == TG_PHASE_KEEP) s = judge(t, deadline_ms);
    return s;
}

tg_status tg_train_settle(tg_trainer *t, double deadline_ms) {
    tg_status s;
    do s = settle(t, deadline_ms);
    while (tg_train_recovered(t, &s));
    return s;
}

/* Micro-steps leave nothing behind but gradients, which the next step overwrites. eval_pending
 * stays, so a validation that was cut off is run from its beginning. */
void tg_train_drop(tg_trainer *t) {
    TG_ASSERT(tg_train_steady(t) && t->phase != TG_PHASE_KEEP);
    tg_run_restart(&t->run);
    t->phase = TG_PHASE_IDLE;
}

/* The step in progress keeps the rate that it began with. */
tg_status tg_train_set_steps(tg_trainer *t, int64_t steps) {
    tg_train_options o = t->o;
    o.steps = steps;
    TG_TRY(tg_train_want_free(t));
    TG_TRY(tg_train_options_check(&t->ctx->err, &o));
    if (steps < t->step)
        return tg_fail(&t->ctx->err, TG_E_ARG,
                       "training: steps: want at least the %" PRId64
                       " that are done, have %" PRId64,
                       t->step, steps);
    t->o.steps = steps;
    /* A run that was not stopped early is the one that was never stopped at all. */
    if (t->o.patience > 0 && t->stale >= t->o.patience) t->stale = 0;
    return TG_OK;
}

/* Of what is saved these two are the only options that no weight depends on. */
tg_status tg_train_set_validation(tg_trainer *t, int64_t eval_every, int32_t patience) {
    tg_train_options o = t->o;
    if (eval_every >= 0) o.eval_every = eval_every;
    if (patience >= 0) o.patience = patience;
    TG_TRY(tg_train_want_free(t));
    TG_TRY(tg_train_options_check(&t->ctx->err, &o));
    t->o = o;
    return TG_OK;
}
