/*
 * eval.c - the mean loss over windows of a text, in slices.
 *
 * The eval plan gives logits and their log-sum-exp; the losses are summed here in double, so that a
 * last batch that is not full, and any number of windows, give the exact mean over tokens.
 */
#include "base/time.h"
#include "run/train.h"

tg_status tg_eval_begin(tg_trainer *t, const tg_split *split, int32_t windows, tg_eval_state *e) {
    const size_t T = (size_t)t->model->layout.config.ctx;
    *e = (tg_eval_state) { .n = tg_eval_windows(split, T, windows) };
    if (e->n == 0)
        return tg_fail(&t->ctx->err, TG_E_DATA,
                       "evaluation: want at least %zu bytes, have %" PRIu64, T + 1,
                       split->val_bytes);
    return TG_OK;
}

/* The next windows into the rows of a batch. Rows beyond the last window are zeros: valid ids, the
 * same in every run; their losses are computed and left out of the sum. */
static tg_status fill(tg_trainer *t, const tg_split *split, tg_eval_state *e) {
    const size_t T = (size_t)t->model->layout.config.ctx;
    int32_t *tokens = tg_plan_data(&t->plans.eval, t->plans.eval_tokens);
    int32_t *targets = tg_plan_data(&t->plans.eval, t->plans.eval_targets);
    memset(tokens, 0, (size_t)t->o.batch * T * sizeof *tokens);
    memset(targets, 0, (size_t)t->o.batch * T * sizeof *targets);
    e->in_batch = e->n - e->next < (uint64_t)t->o.batch ? e->n - e->next : (uint64_t)t->o.batch;
    for (size_t row = 0; row < e->in_batch; row++)
        TG_TRY(tg_text_window(t->text, tg_eval_start(split, T, e->next + row, e->n), T,
                              tokens + row * T, targets + row * T));
    return TG_OK;
}

/* loss = lse - logit of the target, of floats subtracted in double, rows rising: one order for any
 * batch size, so the mean does not depend on it but through the plan's own bits. */
static void sum_losses(tg_trainer *t, tg_eval_state *e) {
    const size_t V = (size_t)t->model->layout.config.vocab;
    const size_t n = (size_t)e->in_batch * (size_t)t->model->layout.config.ctx;
    const int32_t *targets = tg_plan_data(&t->plans.eval, t->plans.eval_targets);
    const float *logits = tg_plan_data(&t->plans.eval, t->plans.logits);
    const float *lse = tg_plan_data(&t->plans.eval, t->plans.lse);
    for (size_t i = 0; i < n; i++)
        e->sum += (double)lse[i] - (double)logits[i * V + (size_t)targets[i]];
    e->tokens += n;
    e->next += e->in_batch;
    e->in_batch = 0;
}

/* in_batch is not 0 exactly while a batch is on its way, and e->run then says how far it is. The
 * deadline is also looked at between two batches, since a plan that just ended did not ask. sum and
 * tokens only grow by whole batches, so stopping loses nothing. */
tg_status tg_eval_go_on(tg_trainer *t, const tg_split *split, tg_eval_state *e, double deadline_ms,
                        double *loss) {
    const tg_scalars rt = { .accumulate = 0 };
    while (e->next < e->n) {
        if (e->in_batch == 0) {
            TG_TRY(fill(t, split, e));
            e->run = (tg_run) { .next = 0 };
        }
        e->run.deadline_ms = deadline_ms;
        e->run.cancel = t->cancel;
        e->run.cancel_user = t->cancel_user;
        TG_TRY(tg_backend_run(t->ctx->backend, &t->plans.eval, &rt, &e->run));
        sum_losses(t, e);
        if (deadline_ms > 0 && e->next < e->n && tg_time_ms() >= deadline_ms) return TG_PENDING;
    }
    *loss = e->sum / (double)e->tokens;
    return TG_OK;
}
