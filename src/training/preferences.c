/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preferences.c - direct preference optimisation (Rafailov et al. 2023): pairs of answers, held
 * against what the model gave them before its first step. The loss is an op (ops/preference); here
 * are the reference's log-probabilities, found once by the eval plan, a batch at a time.
 *
 *   rows of the text   c0 r0 c1 r1 ..     reference [rows]     a batch's rows are any pairs of them
 */
#include "base/math.h"
#include "base/time.h"
#include "training/train.h"

tg_status tg_pairs_begin(tg_trainer *t) {
    tg_ctx *err = &t->ctx->err;
    const size_t bytes = t->text->n_pair_rows * sizeof *t->reference;
    t->preferences = (tg_preferences) { TG_NAN, TG_NAN, TG_NAN, TG_NAN };
    t->reference = tg_alloc(&err->mem, bytes);
    return t->reference ? TG_OK : tg_fail_memory(err, "reference of pairs", bytes);
}

void tg_pairs_free(tg_trainer *t) {
    const tg_mem mem = t->ctx->err.mem;
    tg_free(&mem, t->reference, t->text->n_pair_rows * sizeof *t->reference);
}

double tg_pairs_logp(const tg_train_plans *p, size_t row, size_t T, size_t V) {
    const int32_t *targets = tg_plan_data(&p->eval, p->eval_targets);
    const float *logits = tg_plan_data(&p->eval, p->logits);
    const float *lse = tg_plan_data(&p->eval, p->lse);
    double sum = 0;
    for (size_t r = row * T; r < (row + 1) * T; r++)
        if (targets[r] >= 0) sum += (double)logits[r * V + (size_t)targets[r]] - (double)lse[r];
    return sum;
}

/* By the same factor that the op has, a float. */
double tg_pairs_margin(const tg_trainer *t, uint64_t row, double chosen, double rejected) {
    const float *reference = t->reference + row;
    return (double)(float)t->beta *
           ((chosen - (double)reference[0]) - (rejected - (double)reference[1]));
}

/* Rows of all, whether they train or validate: none is counted as trained on here. */
static tg_status put_rows(tg_trainer *t) {
    const size_t T = (size_t)t->o.row_tokens, B = (size_t)t->o.batch;
    int32_t *tokens = tg_plan_data(&t->plans.eval, t->plans.eval_tokens);
    int32_t *targets = tg_plan_data(&t->plans.eval, t->plans.eval_targets);
    tg_windows all = t->windows;
    all.rows_train = 0;
    memset(tokens, 0, B * T * sizeof *tokens);
    memset(targets, 0xff, B * T * sizeof *targets);
    for (size_t b = 0; b < B && t->n_referred + b < t->text->n_pair_rows; b++)
        TG_TRY(tg_windows_row(&all, t->n_referred + b, false, T, tokens + b * T, targets + b * T));
    return TG_OK;
}

tg_status tg_pairs_refer(tg_trainer *t, double deadline_ms) {
    const size_t B = (size_t)t->o.batch, n = t->text->n_pair_rows;
    const tg_scalars rt = { .accumulate = 0 };
    while (t->n_referred < n) {
        if (!tg_run_begun(&t->run)) TG_TRY(put_rows(t));
        t->run.deadline_ms = deadline_ms;
        t->run.cancel = t->cancel;
        t->run.cancel_user = t->cancel_user;
        TG_TRY(tg_backend_run(t->ctx->backend, &t->plans.eval, &rt, &t->run));
        tg_run_restart(&t->run);
        for (size_t b = 0; b < B && t->n_referred < n; b++)
            t->reference[t->n_referred++] = (float)tg_pairs_logp(
                &t->plans, b, (size_t)t->o.row_tokens, (size_t)t->model->layout.config.vocab);
        if (t->n_referred < n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

void tg_pairs_fill(tg_trainer *t, uint64_t first) {
    float *reference = tg_plan_data(&t->plans.grad, t->plans.reference);
    for (size_t b = 0; b < (size_t)t->o.batch; b++)
        reference[b] = t->reference[t->text->pair_row(t->text->rows_user, first + b)];
}

void tg_pairs_take(tg_trainer *t, int32_t micro) {
    const float *margin = tg_plan_data(&t->plans.grad, t->plans.margin);
    const double pairs = (double)t->o.batch / 2 * t->o.accum;
    tg_preferences *p = &t->preferences;
    if (micro == 0) p->accuracy = p->margin = 0;
    for (size_t i = 0; i < (size_t)t->o.batch / 2; i++) {
        p->accuracy += (margin[i] > 0) / pairs;
        p->margin += (double)margin[i] / pairs;
    }
}

/* ----------------------------------------------------------------------------------------- saving
 */

void tg_pairs_put(const tg_trainer *t, tg_json_writer *w) {
    const size_t n = t->n_referred == t->text->n_pair_rows ? t->n_referred : 0;
    tg_json_key(w, "pairs");
    tg_json_begin_object(w);
    tg_json_key(w, "beta");
    tg_json_put_double(w, t->beta);
    tg_json_key(w, "reference");
    tg_json_begin_array(w);
    for (size_t i = 0; i < n; i++) tg_json_put_float(w, t->reference[i]);
    tg_json_end_array(w);
    tg_json_end_object(w);
}

/* The plans are made with it, before the rest is read. A run without is another one, which the mark
 * of its text tells. */
tg_status tg_pairs_read_beta(tg_ctx *err, const tg_json *header, double *out) {
    const tg_json *run = tg_json_get(header, "run"),
                  *pairs = run ? tg_json_get(run, "pairs") : NULL;
    const tg_json *beta;
    double x;
    if (!pairs) return TG_OK;
    TG_TRY(tg_json_want(err, pairs, "beta", TG_JSON_NUMBER, &beta));
    TG_TRY(tg_json_double(err, beta, &x));
    if (!(x > 0 && x <= 1000))
        return tg_fail(err, TG_E_FORMAT,
                       "run.pairs.beta: want more than 0 and at most 1000, have %g", x);
    *out = x;
    return TG_OK;
}

/* Weights of a later step could not give them again. */
tg_status tg_pairs_read(tg_trainer *t, const tg_json *run) {
    tg_ctx *err = &t->ctx->err;
    const tg_json *pairs, *list;
    TG_TRY(tg_json_want(err, run, "pairs", TG_JSON_OBJECT, &pairs));
    TG_TRY(tg_json_want(err, pairs, "reference", TG_JSON_ARRAY, &list));
    if (list->count == 0 && t->step == 0) return TG_OK;
    if (list->count != t->text->n_pair_rows)
        return tg_fail(err, TG_E_FORMAT, "run.pairs.reference: want %zu numbers, have %u",
                       t->text->n_pair_rows, list->count);
    for (const tg_json *v = tg_json_first(list); v; v = tg_json_next(v)) {
        double x;
        TG_TRY(tg_json_double(err, v, &x));
        t->reference[t->n_referred++] = (float)x;
    }
    return TG_OK;
}
