/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - several sessions of one decoder in the same runs: weights are read once for all of
 * them.
 *
 * What the sessions lack but for their last tokens goes first, as much of it in a run as the
 * largest class takes; only then all last tokens together, by the plan that gives the logits of
 * every row:
 *
 *     session a   | 0 1 2 3 4 5 6 | 7 |          run 1: a0..a6 b0..b2      (no logits are wanted)
 *     session b           | 0 1 2 | 3 |          run 2: a7 b3 c0           (those of each row are)
 *     session c                   | 0 |
 *
 * Rows have the bits that they have alone: attention looks up each row's own sequence, all else is
 * row by row. On a GPU this holds for the plan of all last tokens; shaders for many rows sum in
 * another order. There, whoever lacks more than a token is fed as if it were alone.
 */
#include "engine/session.h"

/* What the cache lacks of the session's tokens, and what is fed. */
static size_t lacks(const tg_together *t) {
    if (t->status != TG_OK) return 0;
    return (size_t)(t->s->n_tokens - t->s->n_held) + (t->f->n - t->f->done);
}

/* Token i of those. */
static int32_t token_at(const tg_together *t, size_t i) {
    const size_t again = (size_t)(t->s->n_tokens - t->s->n_held);
    return i < again ? t->s->fed[(size_t)t->s->n_held + i] : t->f->tokens[t->f->done + i - again];
}

/* Rows [first, first + t->rows) of a run. */
static void place_rows(const tg_session_class *k, tg_together *t, size_t first) {
    tg_session *s = t->s;
    int32_t *tokens = tg_plan_data(&k->plan, k->tokens);
    for (size_t i = 0; i < t->rows; i++) tokens[first + i] = token_at(t, i);
    tg_cache_place_rows(&s->d->cache, &k->plan, &k->rows_in, first, t->rows, s->sequence,
                        s->n_held);
    tg_session_note_run(s, s->n_held + (int32_t)t->rows);
}

/* memmove, because a slide feeds from s->fed itself. */
static void take_rows(tg_together *t) {
    tg_session *s = t->s;
    const size_t again = (size_t)(s->n_tokens - s->n_held);
    const size_t fresh = t->rows > again ? t->rows - again : 0;
    memmove(s->fed + s->n_tokens, t->f->tokens + t->f->done, fresh * sizeof *s->fed);
    s->n_held += (int32_t)t->rows;
    s->n_tokens += (int32_t)fresh;
    t->f->done += fresh;
}

static tg_status run(tg_session_class *k, tg_together *t, size_t n, size_t rows,
                     tg_cancel_fn cancel, void *user) {
    tg_run r = { .cancel = cancel, .cancel_user = user };
    const tg_scalars rt = { .rows = (int32_t)rows };
    size_t first = 0;
    for (size_t i = 0; i < n; first += t[i++].rows)
        if (t[i].rows > 0) place_rows(k, &t[i], first);
    tg_status status;
    do {
        status = tg_session_run_plan(t[0].s, &k->plan, &rt, &r);
    } while (status == TG_PENDING);
    return status;
}

/* All but the last token of each. */
static tg_status feed_all_but_last(tg_decoder *d, tg_together *t, size_t n, tg_cancel_fn cancel,
                                   void *user) {
    for (;;) {
        size_t rows = 0, left = (size_t)d->by_rows[TG_SESSION_CLASSES - 1].rows;
        for (size_t i = 0; i < n; i++) {
            const size_t lack = lacks(&t[i]), wanted = lack > 0 ? lack - 1 : 0;
            t[i].rows = wanted < left ? wanted : left;
            rows += t[i].rows;
            left -= t[i].rows;
        }
        if (rows == 0) return TG_OK;
        TG_TRY(run(tg_decoder_class_for(d, rows), t, n, rows, cancel, user));
        for (size_t i = 0; i < n; i++) take_rows(&t[i]);
    }
}

/* The message that stays is the first one's. */
static void take_logits(const tg_session_class *k, tg_together *t, size_t n) {
    const float *logits = tg_plan_data(&k->plan, k->logits);
    const size_t V = (size_t)t->s->model->layout.config.vocab;
    for (size_t i = 0, row_at = 0; i < n; i++) {
        if (t[i].rows == 0) continue;
        tg_session *s = t[i].s;
        const float *row = logits + row_at++ * V;
        t[i].status = tg_session_want_numbers(s, row, (size_t)s->n_held);
        if (t[i].status == TG_OK) {
            take_rows(&t[i]);
            memcpy(s->logits, row, V * sizeof *row);
        } else {
            tg_feeding_abandon(s, t[i].f);
        }
    }
}

static tg_status feed_last(tg_decoder *d, tg_together *t, size_t n, tg_cancel_fn cancel,
                           void *user) {
    TG_TRY(tg_decoder_want_rows(d));
    for (size_t i = 0; i < n;) {
        size_t rows = 0, end = i;
        for (; end < n && rows < (size_t)d->rows.rows; end++)
            rows += t[end].rows = lacks(&t[end]) > 0;
        if (rows > 0) {
            TG_TRY(run(&d->rows, t + i, end - i, rows, cancel, user));
            take_logits(&d->rows, t + i, end - i);
        }
        i = end;
    }
    return TG_OK;
}

/* One alone has the plans for one. */
static tg_status feed_one(tg_together *t, tg_cancel_fn cancel, void *user) {
    t->f->run.cancel = cancel;
    t->f->run.cancel_user = user;
    do {
        t->status = tg_feeding_go_on(t->s, t->f, 0);
    } while (t->status == TG_PENDING);
    if (t->status != TG_OK) tg_feeding_abandon(t->s, t->f);
    return t->status;
}

/* Those that lack one token are left, unless there is but one of them. */
static void feed_longer(tg_together *t, size_t n, tg_cancel_fn cancel, void *user) {
    size_t single = 0;
    for (size_t i = 0; i < n; i++) single += lacks(&t[i]) == 1;
    for (size_t i = 0; i < n; i++)
        if (lacks(&t[i]) > 1 || (lacks(&t[i]) == 1 && single == 1)) feed_one(&t[i], cancel, user);
}

tg_status tg_together_feed(tg_decoder *d, tg_together *t, size_t n, tg_cancel_fn cancel,
                           void *user) {
    for (size_t i = 0; i < n; i++) TG_TRY(tg_session_want_cache(t[i].s));
    if (n == 0) return TG_OK;
    if (n == 1) return feed_one(t, cancel, user);
    const bool on_gpu = d->ctx->backend != d->ctx->cpu;
    if (on_gpu) feed_longer(t, n, cancel, user);
    tg_status status = on_gpu ? TG_OK : feed_all_but_last(d, t, n, cancel, user);
    if (status == TG_OK) status = feed_last(d, t, n, cancel, user);
    for (size_t i = 0; i < n && status != TG_OK; i++) {
        if (t[i].status == TG_OK) tg_feeding_abandon(t[i].s, t[i].f);
        t[i].status = status;
    }
    for (size_t i = 0; i < n && status == TG_OK; i++) status = t[i].status;
    return status;
}

/* ------------------------------------------------------------------------------------------ copies
 */

static void copy_layer(tg_cache *c, int32_t layer, int32_t to, int32_t from, size_t n_tok) {
    const tg_layer_state *l = &c->layers[layer];
    const size_t room = tg_layer_state_room(l), n = n_tok < room ? n_tok : room;
    for (size_t at = 0; at < n; at += l->page_rows)
        memcpy(tg_cache_row(c, layer, to, 0, at), tg_cache_row(c, layer, from, 0, at),
               tg_layer_state_page_bytes(l));
}

/* Where a GPU has the cache, the copy computes its own before what is fed next. */
tg_status tg_session_copy_from(tg_session *to, const tg_session *from) {
    tg_cache *c = &to->d->cache;
    TG_TRY(tg_session_want_cache(to));
    tg_session_go_back(to, 0);
    memcpy(to->fed, from->fed, (size_t)from->n_tokens * sizeof *to->fed);
    memcpy(to->logits, from->logits, (size_t)to->model->layout.config.vocab * sizeof *to->logits);
    if (to->ctx->backend == to->ctx->cpu) {
        for (int32_t i = 0; i < c->n_layers; i++)
            copy_layer(c, i, to->sequence, from->sequence, (size_t)from->n_held);
        to->n_held = from->n_held;
        to->n_lost = from->n_lost;
    }
    to->n_tokens = from->n_tokens;
    to->version = from->version;
    to->generation = from->generation;
    return TG_OK;
}
