/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_tokens.c - the mean loss of a model over windows of the tokens of a text.
 *
 *   the text's tokens   | step | step | step | rest |    step = 512, or the model's context
 *   a window            B? t t t t t t .. t               B: what texts begin with, if anything;
 *                          ^ ^ ^ ^ ^ .. ^ predicted       step is one less then
 *
 * Each window is read anew, in the pieces of all_rows.h; without B its first token has nothing to
 * be predicted from. tools/oracle/llama_cpp.cpp does the same with llama.cpp.
 */
#include "training/eval_tokens.h"

#include "base/time.h"
#include "training/data/windows.h"

enum { WINDOW = 512 };

/* ------------------------------------------------------------------------------------- windows */

/* Where window w of n begins in the text's tokens, spread evenly, and how many of them it has. */
static size_t window_at(const tg_evaluating_tokens *e, size_t w, size_t *n) {
    const size_t first = (size_t)((uint64_t)w * e->n_windows / e->n) * e->step;
    *n = e->ids.n - first < e->step ? e->ids.n - first : e->step;
    return first;
}

/* The tokens of a piece that have a successor, and those successors. Returns how many there are. */
static size_t fill(tg_evaluating_tokens *e) {
    int32_t *tokens = tg_all_rows_tokens(&e->rows);
    int32_t *targets = tg_all_rows_targets(&e->rows);
    size_t n, rows = 0;
    const size_t first = window_at(e, e->window, &n), ahead = e->begins ? 1 : 0;
    for (; rows < e->rows.most; rows++) {
        const size_t at = e->pos + rows; /* in the window */
        if (at + 1 >= n + ahead) break;
        tokens[rows] = at < ahead ? tg_tok_bos(e->model->tok) : e->ids.id[first + at - ahead];
        targets[rows] = e->ids.id[first + at + 1 - ahead];
    }
    return rows;
}

/* Losses are differences of floats, summed in double. */
static void end_piece(tg_evaluating_tokens *e) {
    const size_t rows = e->n_rows, V = (size_t)e->model->layout.config.vocab;
    const int32_t *targets = tg_all_rows_targets(&e->rows);
    const float *logits = tg_all_rows_logits(&e->rows);
    const float *lse = tg_all_rows_lse(&e->rows);
    for (size_t i = 0; i < rows; i++)
        e->sum += (double)lse[i] - (double)logits[i * V + (size_t)targets[i]];
    e->predicted += rows;
    e->pos += rows;
    if (rows == TG_ALL_ROWS_PIECE && e->pos < e->step + e->begins) return;
    e->window++;
    e->pos = 0;
    e->sum_before = e->sum;
    e->predicted_before = e->predicted;
}

/* Another device has nothing of a window that began on a lost one, whoever noticed the loss. */
static bool begin_anew(tg_evaluating_tokens *e) {
    if (e->generation == e->ctx->generation) return false;
    e->generation = e->ctx->generation;
    tg_ctx_clear(&e->ctx->err);
    tg_run_restart(&e->rows.run);
    e->pos = 0;
    e->sum = e->sum_before;
    e->predicted = e->predicted_before;
    return true;
}

/* ----------------------------------------------------------------------------------- from outside
 */

/* The whole text becomes tokens at once: where a word may end, nobody knows before. */
static tg_status tokenize(tg_evaluating_tokens *e, tg_text *text, uint64_t first) {
    const size_t n = (size_t)(text->n_bytes - first);
    char *bytes = tg_alloc(&e->ctx->err.mem, n ? n : 1);
    if (!bytes) return tg_fail_memory(&e->ctx->err, "text", n);
    tg_ids_init(&e->ids, &e->ctx->err.mem);
    tg_status s = tg_text_read(text, first, bytes, n);
    if (s == TG_OK) s = tg_tok_encode(&e->ctx->err, e->model->tok, bytes, n, 0, &e->ids);
    tg_free(&e->ctx->err.mem, bytes, n ? n : 1);
    return s;
}

tg_status tg_evaluating_tokens_begin(tg_evaluating_tokens *e, tg_context *ctx,
                                     const tg_model *model, tg_text *text, uint64_t first,
                                     int32_t windows) {
    if (!model->tok)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "evaluation: the model's file has no tokenizer");
    TG_TRY(tg_all_rows_want_writer(ctx, model, "evaluation"));
    const size_t V = (size_t)model->layout.config.vocab;
    TG_TRY(tg_windows_want_rows(&ctx->err, text, model->tok, V));
    e->ctx = ctx;
    e->model = model;
    e->generation = ctx->generation;
    TG_TRY(tokenize(e, text, first));
    e->begins = tg_tok_adds_bos(model->tok) && tg_tok_bos(model->tok) >= 0;
    const int32_t ctx_tokens = model->layout.config.ctx;
    e->step = ctx_tokens < WINDOW ? (size_t)ctx_tokens : WINDOW;
    e->step -= e->begins;
    if (e->step == 0 || e->step + e->begins < 2 || e->ids.n + e->begins < 2)
        return tg_fail(&ctx->err, TG_E_DATA,
                       "%s: evaluation: want at least 2 tokens, have %zu in windows of %zu",
                       text->name, e->ids.n, e->step);
    e->n_windows = (e->ids.n + e->step - 1) / e->step;
    e->n = windows > 0 && (size_t)windows < e->n_windows ? (size_t)windows : e->n_windows;
    return TG_OK;
}

tg_status tg_evaluating_tokens_go_on(tg_evaluating_tokens *e, double deadline_ms, double *loss) {
    if (!e->rows.built)
        TG_TRY(tg_all_rows_open(&e->rows, e->ctx, e->model, e->step + e->begins, TG_ANSWER_ROWS));
    begin_anew(e);
    while (e->window < e->n) {
        tg_status status = TG_OK;
        if (!tg_run_begun(&e->rows.run)) e->n_rows = fill(e);
        if (e->n_rows > 0) status = tg_all_rows_run(&e->rows, e->n_rows, e->pos, deadline_ms);
        if (begin_anew(e)) continue;
        TG_TRY(status);
        end_piece(e);
        if (e->window < e->n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    *loss = e->sum / (double)e->predicted;
    return TG_OK;
}

void tg_evaluating_tokens_deinit(tg_evaluating_tokens *e) {
    if (!e->ctx) return;
    tg_all_rows_deinit(&e->rows);
    tg_ids_deinit(&e->ids);
}
