/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_score.c - see eval_score.h.
 */
#include "eval/eval_score.h"

#include <stdlib.h>

static bool reserve(tg_scorer *s, size_t n) {
    if (n <= s->room) return true;
    int32_t *grown = realloc(s->ids, n * sizeof *grown);
    if (!grown) return false;
    s->ids = grown;
    s->room = n;
    return true;
}

/* A text with its ends and without them: a first token that only the one has begins it. */
static tg_status find_beginning(tg_scorer *s) {
    int32_t with[8], without[8];
    size_t n_with, n_without;
    tg_context *ctx = s->app->ctx;
    tg_status status = tg_tokenizer_encode(ctx, s->tok, "a", 1, TG_ENCODE_ENDS, with, 8, &n_with);
    if (status == TG_OK)
        status = tg_tokenizer_encode(ctx, s->tok, "a", 1, 0, without, 8, &n_without);
    if (status != TG_OK) return status;
    s->begins = n_with > 0 && n_without > 0 && with[0] != without[0];
    s->begin = with[0];
    return TG_OK;
}

int tg_scorer_open(tg_scorer *s, tg_app *app, tg_model *model, size_t most) {
    *s = (tg_scorer) { .app = app, .tok = tg_model_tokenizer(model) };
    tg_model_info info;
    tg_status status = tg_model_get_info(model, &info);
    if (status == TG_OK && tg_tokenizer_count(s->tok) > (size_t)info.config.vocab) {
        tg_app_error(app,
                     "want a model with a row for each of the %zu tokens that its texts become, "
                     "have %d",
                     tg_tokenizer_count(s->tok), (int)info.config.vocab);
        return TG_EXIT_USAGE;
    }
    if (status == TG_OK) status = tg_session_new(app->ctx, model, (int32_t)most, &s->session);
    if (status == TG_OK) status = find_beginning(s);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    s->most = tg_session_capacity(s->session);
    return TG_ARGS_GO_ON;
}

void tg_scorer_free(tg_scorer *s) {
    tg_session_free(s->session);
    free(s->ids);
}

/* At most a token a byte, but for what a tokenizer puts in front of a text: then once more. */
tg_status tg_scorer_encode(tg_scorer *s, const char *text, size_t n_bytes) {
    tg_status status = TG_E_FULL;
    for (size_t room = n_bytes + 16; status == TG_E_FULL; room = s->n) {
        if (!reserve(s, room + s->begins)) return TG_E_MEMORY;
        status = tg_tokenizer_encode(s->app->ctx, s->tok, text, n_bytes, 0, s->ids + s->begins,
                                     s->room - s->begins, &s->n);
    }
    if (s->begins) s->ids[0] = s->begin;
    s->n += s->begins;
    return status;
}

/* Of the token that follows what was fed: logits differ as logarithms of probabilities do, so the
 * likeliest one's tells all others'. */
static tg_status score(tg_session *session, int32_t id, double *logprob, bool *is_likeliest) {
    int32_t best;
    double of_best;
    size_t have;
    const tg_status status = tg_session_best(session, 1, &best, &of_best, &have);
    if (status != TG_OK) return status;
    const float *logits = tg_session_logits(session);
    *logprob = of_best + ((double)logits[id] - (double)logits[best]);
    *is_likeliest = id == best;
    return TG_OK;
}

tg_status tg_scorer_run(tg_scorer *s, const int32_t *ids, size_t n, size_t from, double *logprob,
                        bool *likeliest) {
    size_t at;
    tg_status status = tg_session_reuse(s->session, ids, from, &at);
    for (; status == TG_OK && from < n; from++, logprob++) {
        bool is_likeliest;
        status = tg_session_eval(s->session, ids + at, from - at, NULL);
        at = from;
        if (status == TG_OK) status = score(s->session, ids[from], logprob, &is_likeliest);
        if (status == TG_OK && likeliest) *likeliest++ = is_likeliest;
    }
    return status;
}
