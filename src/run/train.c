/*
 * train.c - the state machine of a training run. See train.h for the picture.
 *
 * Every slice ends at a step of a plan; what it leaves is enough to go on, and tg_train_settle
 * makes whole steps of it again by forgetting the micro-steps of an unfinished one. The random
 * numbers of a batch depend on the step alone, so that they are the same when it is replayed.
 */
#include "run/train.h"

#include "base/math.h"
#include "base/time.h"
#include "run/schedule.h"

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
    TG_TRY(want(err, "weight_decay", o->weight_decay, 0, 100));
    TG_TRY(want(err, "beta1", o->beta1, 0, 0.999999));
    TG_TRY(want(err, "beta2", o->beta2, 0, 0.99999999));
    TG_TRY(want(err, "eps", o->eps, 1e-30, 1));
    TG_TRY(want(err, "clip", o->clip, 0, 1e9));
    TG_TRY(want(err, "val_fraction", o->val_fraction, 0, 0.9));
    TG_TRY(want(err, "eval_every", (double)o->eval_every, 0, 1e12));
    TG_TRY(want(err, "eval_windows", o->eval_windows, 0, INT32_MAX));
    return want(err, "patience", o->patience, 0, INT32_MAX);
}

/* Fills in what depends on the model: batch 0 is the batch of the preset with exactly this
 * configuration, and 16 for any other. It comes before the check, which refuses 0. */
tg_train_options tg_train_options_of(const tg_train_options *o, const tg_gpt_config *config) {
    tg_train_options out = *o;
    if (out.batch != 0) return out;
    out.batch = 16;
    for (size_t i = 0; i < tg_preset_count(); i++)
        if (memcmp(&tg_preset_at(i)->config, config, sizeof *config) == 0)
            out.batch = tg_preset_at(i)->batch;
    return out;
}

/* ------------------------------------------------------------------------------- making a trainer
 */

/* All states are offered to all three plans; a plan passes over those that it has no use for, so
 * this list is the only one. The loss is a float inside the trainer: a trainer may not be moved. */
static tg_status bind(tg_trainer *t, tg_plan *p) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    tg_plan_place(p, t->plans.memory_bytes ? t->memory.data : NULL);
    TG_TRY(tg_plan_bind(p, "weights", t->model->weights, bytes));
    TG_TRY(tg_plan_bind(p, "grads", t->grads.data, bytes));
    TG_TRY(tg_plan_bind(p, "adam_m", t->adam_m.data, bytes));
    TG_TRY(tg_plan_bind(p, "adam_v", t->adam_v.data, bytes));
    return tg_plan_bind(p, "loss", &t->loss, sizeof t->loss);
}

/* All that is large is taken here, before the first step, so a run does not end for want of memory
 * in its middle. The copy of the best weights only exists where validations can be. */
static tg_status allocate(tg_trainer *t) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    TG_TRY(tg_train_plans_build(t->ctx, t->model->family, &t->model->layout, &t->o, &t->plans));
    TG_TRY(tg_runtime_block(t->ctx, bytes, &t->grads));
    TG_TRY(tg_runtime_block(t->ctx, bytes, &t->adam_m));
    TG_TRY(tg_runtime_block(t->ctx, bytes, &t->adam_v));
    if (t->o.keep_best && t->split.val_bytes > 0) TG_TRY(tg_runtime_block(t->ctx, bytes, &t->best));
    TG_TRY(tg_runtime_block(t->ctx, t->plans.memory_bytes, &t->memory));
    t->history = tg_alloc(&t->ctx->err.mem, TG_HISTORY_MAX * sizeof *t->history);
    if (!t->history)
        return tg_fail_memory(&t->ctx->err, "history", TG_HISTORY_MAX * sizeof *t->history);
    TG_TRY(bind(t, &t->plans.grad));
    TG_TRY(bind(t, &t->plans.update));
    return bind(t, &t->plans.eval);
}

/* Training part and context are compared here, and not at the first batch. A validation part that
 * is too short is none, without an error: forecast and lint have said so. */
static tg_status check_text(tg_trainer *t) {
    const uint64_t T = (uint64_t)t->model->layout.config.ctx;
    t->split = tg_text_split(t->text->n_bytes, t->o.val_fraction);
    if (t->split.train_bytes < T + 1)
        return tg_fail(&t->ctx->err, TG_E_DATA,
                       "text: the training part has %" PRIu64 " of %" PRIu64
                       " bytes; a context of %" PRIu64 " tokens needs at least %" PRIu64,
                       t->split.train_bytes, t->text->n_bytes, T, T + 1);
    if (t->split.val_bytes < T + 1) t->split.val_bytes = 0;
    return tg_text_mark(t->text, &t->text_mark);
}

/* Borrows model and text. NaN and -1 stand for what has not happened yet; both are told apart from
 * any real value by every reader, the checkpoint's JSON included (NaN as null). */
tg_status tg_train_new(tg_context *ctx, tg_model *model, tg_text *text, const tg_train_options *o,
                       tg_trainer **out) {
    *out = NULL;
    tg_trainer *t = tg_alloc(&ctx->err.mem, sizeof *t);
    if (!t) return tg_fail_memory(&ctx->err, "trainer", sizeof *t);
    t->ctx = ctx;
    t->model = model;
    t->text = text;
    t->o = tg_train_options_of(o, &model->layout.config);
    t->last_loss = t->last_val = TG_NAN;
    t->best_val = TG_INF;
    t->best_step = t->last_val_step = -1;
    t->history_stride = 1;
    t->loss_hash = UINT64_C(14695981039346656037); /* FNV-1a's offset basis */
    tg_status s = tg_train_options_check(&ctx->err, &t->o);
    if (s == TG_OK) s = check_text(t);
    if (s == TG_OK) s = allocate(t);
    if (s != TG_OK) {
        tg_train_free(t);
        return s;
    }
    *out = t;
    return TG_OK;
}

void tg_train_free(tg_trainer *t) {
    if (!t) return;
    const tg_mem mem = t->ctx->err.mem;
    tg_train_plans_free(&t->plans);
    tg_block_free(&t->grads);
    tg_block_free(&t->adam_m);
    tg_block_free(&t->adam_v);
    tg_block_free(&t->best);
    tg_block_free(&t->memory);
    tg_free(&mem, t->history, TG_HISTORY_MAX * sizeof *t->history);
    if (t->owns_model) tg_weights_free(t->model);
    tg_free(&mem, t, sizeof *t);
}

/*
 * ------------------------------------------------------------------------------------ one slice
 *
 * t->run is the place in the plan that is being walked, and next == 0 means that it has not begun:
 * inputs are filled exactly then. A function that returns TG_PENDING or TG_STOPPED leaves phase,
 * micro and run as they are, and is called again with the same ones.
 */

/* Rows are numbered through the whole run: step, then micro-step, then row. So accum 2 with batch 8
 * sees the windows that accum 1 with batch 16 sees. */
tg_status tg_train_fill(tg_trainer *t, int32_t micro) {
    const size_t T = (size_t)t->model->layout.config.ctx;
    int32_t *tokens = tg_plan_data(&t->plans.grad, t->plans.tokens);
    int32_t *targets = tg_plan_data(&t->plans.grad, t->plans.targets);
    const uint64_t first =
        ((uint64_t)t->step * (uint64_t)t->o.accum + (uint64_t)micro) * (uint64_t)t->o.batch;
    for (size_t row = 0; row < (size_t)t->o.batch; row++) {
        const uint64_t start = tg_batch_start(t->o.seed, first + row, t->split.train_bytes, T);
        TG_TRY(tg_text_window(t->text, start, T, tokens + row * T, targets + row * T));
    }
    return TG_OK;
}

/* A finished plan leaves next at its end, so it is set back here: the next plan begins at 0. */
static tg_status go_on(tg_trainer *t, tg_plan *plan, double deadline_ms) {
    t->run.deadline_ms = deadline_ms;
    t->run.cancel = t->cancel;
    t->run.cancel_user = t->cancel_user;
    TG_TRY(tg_backend_run(t->ctx->backend, plan, &t->rt, &t->run));
    t->run.next = 0;
    return TG_OK;
}

/* The rate is a function of the step; bias correction counts the updates that were made, so that a
 * refused step does not weaken it. A poison for a weight is put in here, before the first gradient;
 * one for a gradient has to wait until there is one (micro_steps). */
static void begin_step(tg_trainer *t) {
    t->phase = TG_PHASE_MICRO;
    t->micro = 0;
    t->run.next = 0;
    t->busy_ms = 0;
    t->report = (tg_step_report) { .step = t->step + 1,
                                   .val_loss = TG_NAN,
                                   .lr = tg_schedule_lr(&t->o, t->step) };
    t->rt = (tg_scalars) { .lr = (float)t->report.lr, .step = (int32_t)(t->updates + 1) };
    if (t->poison.pending && !t->poison.in_gradient) tg_train_poison_apply(t, false);
}

/* accumulate 0 makes the first micro-step overwrite gradients and loss: nobody clears them, and
 * what an abandoned step left in them does not matter. */
static tg_status micro_steps(tg_trainer *t, double deadline_ms) {
    for (; t->micro < t->o.accum; t->micro++) {
        if (t->run.next == 0) TG_TRY(tg_train_fill(t, t->micro));
        t->rt.accumulate = t->micro > 0;
        TG_TRY(go_on(t, &t->plans.grad, deadline_ms));
    }
    t->phase = TG_PHASE_UPDATE;
    if (t->poison.pending && t->poison.in_gradient) tg_train_poison_apply(t, true);
    return TG_OK;
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

/* A refused step: the weights are as before. Which tensor it was takes a replay. Without
 * skip_bad_steps the step is an error and stays undone: t->step does not move, and the next call
 * would meet the same batch. With it the step counts as done, and only `updates` lags behind. */
static tg_status refuse(tg_trainer *t, float loss, float norm) {
    const tg_status s = tg_train_find_bad(t, t->report.bad_tensor, sizeof t->report.bad_tensor);
    t->poison.pending = false;
    if (s != TG_OK) return s;
    if (t->o.skip_bad_steps) return TG_OK;
    t->phase = TG_PHASE_IDLE;
    return tg_fail(&t->ctx->err, TG_E_NUMBER,
                   "step %" PRId64
                   ": loss %g, gradient norm %g: the first tensor that is not finite "
                   "is %s; the update was refused and the weights are those of step %" PRId64,
                   t->step + 1, (double)loss, (double)norm, t->report.bad_tensor, t->step);
}

/* After the last step always, whatever eval_every says: a run should end with a number. */
static bool eval_is_due(const tg_trainer *t) {
    if (t->split.val_bytes == 0) return false;
    return t->step == t->o.steps || (t->o.eval_every > 0 && t->step % t->o.eval_every == 0);
}

/* stats is [norm, clip coefficient, ok, loss], see grad_norm in ops/build.h. ok is computed inside
 * the plan, since the optimizer must know it before it writes; here it is only read. !(ok > 0) also
 * holds for a NaN. The validation is not run here but left pending, so that a save can come
 * between, and so that its time is not the step's. */
static tg_status update(tg_trainer *t, double deadline_ms) {
    TG_TRY(go_on(t, &t->plans.update, deadline_ms));
    const float *stats = tg_plan_data(&t->plans.update, t->plans.stats);
    const float norm = stats[0], ok = stats[2], loss = stats[3];
    t->report.loss = (double)loss;
    t->report.grad_norm = (double)norm;
    if (!(ok > 0)) {
        TG_TRY(refuse(t, loss, norm));
        t->report.skipped = true;
    } else {
        t->updates++;
        t->last_loss = (double)loss;
    }
    t->poison.pending = false;
    t->step++;
    hash_loss(t, loss);
    if (!t->report.skipped) remember(t, t->step, (double)loss, TG_NAN);
    t->phase = TG_PHASE_IDLE;
    if (!eval_is_due(t)) return TG_OK;
    t->eval_pending = true;
    return TG_OK;
}

/* Ties are no progress: `stale` grows, or a run at its floor would never stop early. A NaN is never
 * better. best_held stays false where no copy is kept, so nobody saves an empty one. */
static void judge(tg_trainer *t, double loss) {
    t->eval_pending = false;
    t->phase = TG_PHASE_IDLE;
    t->report.val_loss = t->last_val = loss;
    t->last_val_step = t->step;
    remember(t, t->step, t->last_loss, loss);
    if (loss < t->best_val) {
        t->best_val = loss;
        t->best_step = t->step;
        t->stale = 0;
        t->report.val_is_best = true;
        if (t->best.data) memcpy(t->best.data, t->model->weights, t->best.bytes);
        t->best_held = t->best.data != NULL;
    } else {
        t->stale++;
    }
}

/* May be left and entered again: t->eval keeps the sum and the place. */
static tg_status validate(tg_trainer *t, double deadline_ms) {
    if (t->phase != TG_PHASE_EVAL) {
        TG_TRY(tg_eval_begin(t, &t->split, t->o.eval_windows, &t->eval));
        t->phase = TG_PHASE_EVAL;
    }
    double loss;
    TG_TRY(tg_eval_go_on(t, &t->split, &t->eval, deadline_ms, &loss));
    judge(t, loss);
    return TG_OK;
}

/* Speeds are over the time inside slices alone: what a caller does between two of them (drawing,
 * saving) is not the trainer's. ms / 1e6: flop a millisecond are 1e-6 GFLOP/s. */
static void finish_report(tg_trainer *t, tg_step_report *out) {
    const double tokens = (double)t->o.batch * t->o.accum * t->model->layout.config.ctx;
    t->report.step = t->step;
    t->report.ms = t->busy_ms;
    t->report.tok_per_s = t->busy_ms > 0 ? tokens / t->busy_ms * 1e3 : 0;
    if (t->ctx->peak_gflops > 0 && t->busy_ms > 0)
        t->report.share_of_peak =
            tg_train_flop(&t->model->layout.config, &t->o) / t->busy_ms / 1e6 / t->ctx->peak_gflops;
    t->report.loss_hash = t->loss_hash;
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
    const double start = tg_time_ms();
    if (t->phase == TG_PHASE_IDLE) begin_step(t);
    tg_status s = t->phase == TG_PHASE_MICRO ? micro_steps(t, deadline_ms) : TG_OK;
    if (s == TG_OK && t->phase == TG_PHASE_UPDATE) s = update(t, deadline_ms);
    t->busy_ms += tg_time_ms() - start;
    return s;
}

/* One call ends at the latest with one step and its validation. TG_STOPPED is both "cancelled" and
 * "nothing left to do"; the latter is known by step and stale. A pending validation comes before
 * that check: after the last step there is still one to run, also in a resumed run, whose report
 * then is made up of what the file knew. */
tg_status tg_train_poll(tg_trainer *t, double budget_ms, tg_step_report *out) {
    const double deadline = budget_ms > 0 ? tg_time_ms() + budget_ms : 0;
    if (out) *out = t->report;
    if (!t->eval_pending) {
        if (t->step >= t->o.steps || (t->o.patience > 0 && t->stale >= t->o.patience))
            return TG_STOPPED;
        TG_TRY(train_slice(t, deadline));
    } else if (t->report.step != t->step) {
        t->report = (tg_step_report) { .step = t->step, .loss = t->last_loss, .val_loss = TG_NAN };
    }
    if (t->eval_pending) {
        const tg_status s = validate(t, deadline);
        if (s != TG_OK) return s;
    }
    finish_report(t, out);
    return TG_OK;
}

/* The micro-steps that are forgotten left nothing behind but gradients, which the next step
 * overwrites, and a step that has reached AdamW is done: no slice ends after it. eval_pending
 * stays, so a validation that was cut off is run from its beginning. */
void tg_train_settle(tg_trainer *t) {
    t->run.next = 0;
    t->micro = 0;
    t->phase = TG_PHASE_IDLE;
}
