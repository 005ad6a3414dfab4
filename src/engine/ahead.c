/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - tokens that are fed on trial, as many as a guess has: speculative decoding.
 *
 * A step of a model of this kind costs as much as reading its weights, so several rows cost little
 * more than one. Row i of the plan is what decoding would have computed after i guesses, to the
 * bit, and each draw has its number: so a text does not depend on what was guessed, and how.
 */
#include "engine/session.h"

tg_status tg_ahead_open(tg_session *s) { return tg_decoder_want_rows(s->d); }

tg_status tg_ahead_begin(tg_session *s, const int32_t *tokens, size_t n, tg_feeding *f) {
    TG_TRY(tg_feeding_begin(s, tokens, n, f));
    f->ahead = true;
    return TG_OK;
}

void tg_ahead_end(tg_session *s, size_t n) {
    tg_session_go_back(s, s->n_tokens - (int32_t)n + 1);
    /* A state is behind all guesses: where not all are taken, it is left before the next feed. */
    if (s->d->cache.n_cols[TG_KEEPS_STATES] > 0) s->n_held = s->n_tokens;
    s->ahead.n = (int32_t)n - 1;
    s->ahead.row = 0;
}

/* The guess is in the cache, and among the tokens that were fed, behind n_tokens. No other session
 * has run the plan since: a text takes its guesses, or forgets them, before others have their turn.
 */
tg_status tg_ahead_take(tg_session *s, int32_t token, bool *taken) {
    tg_ahead *a = &s->ahead;
    const size_t V = (size_t)s->model->layout.config.vocab;
    *taken = a->n > 0 && s->n_held == s->n_tokens && s->fed[s->n_tokens] == token;
    if (!*taken) {
        a->n = 0;
        return TG_OK;
    }
    const tg_session_class *k = &s->d->rows;
    const float *row = (const float *)tg_plan_data(&k->plan, k->logits) + (size_t)++a->row * V;
    TG_TRY(tg_session_want_finite(s, row));
    memcpy(s->logits, row, V * sizeof *row);
    s->drawn = -1;
    a->n--;
    s->n_tokens++;
    s->n_held++;
    return TG_OK;
}
