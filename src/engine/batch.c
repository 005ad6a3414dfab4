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

#include "base/time.h"

/* Its tokens are in the session, and its logits are those behind them. */
static bool is_fed(const tg_together_entry *t) { return t->f->done == t->f->n; }

/* What the cache lacks of the session's tokens, and what is fed. */
static size_t lacks(const tg_together_entry *t) {
    if (t->status != TG_OK || is_fed(t)) return 0;
    return (size_t)(t->s->n_tokens - t->s->n_held) + (t->f->n - t->f->done);
}

/* Token i of those. */
static int32_t token_at(const tg_together_entry *t, size_t i) {
    const size_t again = (size_t)(t->s->n_tokens - t->s->n_held);
    return i < again ? t->s->fed[(size_t)t->s->n_held + i] : t->f->tokens[t->f->done + i - again];
}

/* Rows [first, first + t->rows) of a run. */
static void place_rows(const tg_session_class *k, tg_together_entry *t, size_t first) {
    tg_session *s = t->s;
    int32_t *tokens = tg_plan_data(&k->plan, k->tokens);
    for (size_t i = 0; i < t->rows; i++) tokens[first + i] = token_at(t, i);
    tg_cache_place_rows(&s->d->cache, &k->plan, &k->rows_in, first, t->rows, s->sequence,
                        s->n_held);
    tg_session_note_run(s, s->n_held + (int32_t)t->rows);
}

/* memmove, because a slide feeds from s->fed itself. */
static void take_rows(tg_together_entry *t) {
    tg_session *s = t->s;
    const size_t again = (size_t)(s->n_tokens - s->n_held);
    const size_t fresh = t->rows > again ? t->rows - again : 0;
    memmove(s->fed + s->n_tokens, t->f->tokens + t->f->done, fresh * sizeof *s->fed);
    tg_session_take_rows(s, t->rows);
    s->n_tokens += (int32_t)fresh;
    t->f->done += fresh;
    t->rows = 0;
}

/* A run of the rows that the entries have; an error ends it. */
static tg_status go_on_running(tg_together *w, tg_session_class *k, double deadline_ms) {
    if (!w->running) {
        size_t first = 0;
        w->running = k;
        w->run = (tg_run) { .cancel = w->cancel, .cancel_user = w->user };
        for (size_t i = 0; i < w->n; first += w->entry[i++].rows)
            if (w->entry[i].rows > 0) place_rows(k, &w->entry[i], first);
    }
    const tg_scalars rt = { .rows = (int32_t)w->rows };
    w->run.deadline_ms = deadline_ms;
    const tg_status status = tg_session_run_plan(w->entry[0].s, &w->running->plan, &rt, &w->run);
    if (status != TG_PENDING) w->running = NULL;
    return status;
}

/* The work of a slice ends between runs, too. */
static tg_status rest(double deadline_ms) { return tg_time_over(deadline_ms) ? TG_PENDING : TG_OK; }

/* All but the last token of each, as much in a run as the largest class takes. */
static tg_status feed_beginnings(tg_together *w, double deadline_ms) {
    for (;;) {
        size_t left = (size_t)w->d->by_rows[TG_SESSION_CLASSES - 1].rows;
        if (!w->running) {
            w->rows = 0;
            for (size_t i = 0; i < w->n; i++) {
                tg_together_entry *t = &w->entry[i];
                const size_t lack = lacks(t), wanted = lack > 0 ? lack - 1 : 0;
                t->rows = wanted < left ? wanted : left;
                w->rows += t->rows;
                left -= t->rows;
            }
            if (w->rows == 0) return TG_OK;
        }
        TG_TRY(go_on_running(w, tg_decoder_class_for(w->d, w->rows), deadline_ms));
        for (size_t i = 0; i < w->n; i++) take_rows(&w->entry[i]);
        TG_TRY(rest(deadline_ms));
    }
}

/* The message that stays is the first one's. */
static void take_logits(tg_together *w) {
    const tg_session_class *k = &w->d->rows;
    const float *logits = tg_plan_data(&k->plan, k->logits);
    const size_t V = (size_t)w->d->model->layout.config.vocab;
    for (size_t i = 0, row_at = 0; i < w->n; i++) {
        tg_together_entry *t = &w->entry[i];
        if (t->rows == 0) continue;
        const float *row = logits + row_at++ * V;
        t->status = tg_session_want_numbers(t->s, row, (size_t)t->s->n_held);
        if (t->status == TG_OK) {
            take_rows(t);
            memcpy(t->s->logits, row, V * sizeof *row);
            t->s->drawn = -1;
        } else {
            tg_feeding_abandon(t->s, t->f);
        }
    }
}

/* The last token of each, by the plan that gives every row's logits: it has a row for each session.
 */
static tg_status feed_last(tg_together *w, double deadline_ms) {
    if (!w->running) {
        w->rows = 0;
        for (size_t i = 0; i < w->n; i++) w->rows += w->entry[i].rows = lacks(&w->entry[i]) > 0;
        if (w->rows == 0) return TG_OK;
        TG_TRY(tg_decoder_want_rows(w->d));
    }
    TG_TRY(go_on_running(w, &w->d->rows, deadline_ms));
    take_logits(w);
    return TG_OK;
}

/* One alone has the plans for one. */
static tg_status feed_one(tg_together *w, tg_together_entry *t, double deadline_ms) {
    t->f->run.cancel = w->cancel;
    t->f->run.cancel_user = w->user;
    const tg_status status = tg_feeding_go_on(t->s, t->f, deadline_ms);
    if (status == TG_PENDING) return status;
    t->status = status;
    if (status != TG_OK) tg_feeding_abandon(t->s, t->f);
    return TG_OK;
}

/* A single entry is fed alone. On a GPU each entry that lacks more than a token is, and the entry
 * that lacks one token if no other does. */
static void choose_alone(tg_together *w) {
    const bool on_gpu = w->d->ctx->backend != w->d->ctx->cpu;
    size_t single = 0;
    for (size_t i = 0; i < w->n; i++) single += lacks(&w->entry[i]) == 1;
    for (size_t i = 0; i < w->n; i++) {
        const size_t lack = lacks(&w->entry[i]);
        w->entry[i].alone = w->n == 1 || (on_gpu && (lack > 1 || (lack == 1 && single == 1)));
    }
}

static tg_status feed_alone(tg_together *w, double deadline_ms) {
    for (; w->at < w->n; w->at++)
        if (w->entry[w->at].alone) TG_TRY(feed_one(w, &w->entry[w->at], deadline_ms));
    return TG_OK;
}

/* True: a device was lost, and what it had of the caches with it. The run that was going on ends,
 * and the entries are divided anew, because each of them lacks all of its tokens now. */
static bool find_caches(tg_together *w) {
    bool lost = false;
    for (size_t i = 0; i < w->n; i++) {
        if (!tg_session_find_cache(w->entry[i].s)) continue;
        tg_run_restart(&w->entry[i].f->run);
        lost = true;
    }
    if (!lost) return false;
    w->running = NULL;
    w->at = 0;
    w->stage = TG_TOGETHER_NEW;
    return true;
}

static tg_status go_on(tg_together *w, double deadline_ms) {
    find_caches(w);
    while (w->stage == TG_TOGETHER_NEW || w->stage == TG_TOGETHER_ALONE) {
        if (w->stage == TG_TOGETHER_NEW) choose_alone(w);
        w->stage = TG_TOGETHER_ALONE;
        TG_TRY(feed_alone(w, deadline_ms));
        if (!find_caches(w)) w->stage = TG_TOGETHER_BEGINNINGS;
    }
    if (!w->running) TG_TRY(tg_decoder_want_plans(w->d));
    if (w->stage == TG_TOGETHER_BEGINNINGS) {
        TG_TRY(feed_beginnings(w, deadline_ms));
        w->stage = TG_TOGETHER_LAST;
    }
    return feed_last(w, deadline_ms);
}

void tg_together_abandon(tg_together *w) {
    for (size_t i = 0; i < w->n; i++)
        if (w->entry[i].status == TG_OK && !is_fed(&w->entry[i]))
            tg_feeding_abandon(w->entry[i].s, w->entry[i].f);
}

/* As tg_session_recovered: the runs begin anew on another device. */
static bool recovered(tg_together *w, tg_status status) {
    if (status != TG_E_DEVICE || !find_caches(w)) return false;
    tg_ctx_clear(&w->d->ctx->err);
    return true;
}

tg_status tg_together_go_on(tg_together *w, double deadline_ms) {
    tg_status status;
    do {
        status = go_on(w, deadline_ms);
    } while (recovered(w, status)); /* of TG_LOSSES_MAX devices at most */
    if (status == TG_PENDING) return status;
    if (status != TG_OK) tg_together_abandon(w);
    for (size_t i = 0; i < w->n && status != TG_OK; i++) {
        tg_together_entry *t = &w->entry[i];
        if (t->status == TG_OK && !is_fed(t)) t->status = status;
    }
    for (size_t i = 0; i < w->n && status == TG_OK; i++) status = w->entry[i].status;
    return status;
}

/* ------------------------------------------------------------------------------------------ copies
 */

/* Pages are shared, until one of them writes there. A GPU has them where nothing copies them: of
 * those that are not full, and of rings, the copy computes its own before what is fed next. */
tg_status tg_session_copy_from(tg_session *to, const tg_session *from) {
    tg_cache *c = &to->d->cache;
    tg_session_find_cache(to);
    size_t n = (size_t)from->n_held;
    if (to->ctx->backend != to->ctx->cpu) n = c->n_cols[1] > 0 ? 0 : n - n % tg_cache_page_rows(c);
    tg_session_go_back(to, 0);
    memcpy(to->fed, from->fed, (size_t)from->n_tokens * sizeof *to->fed);
    memcpy(to->logits, from->logits, (size_t)to->model->layout.config.vocab * sizeof *to->logits);
    to->drawn = from->drawn;
    to->drawn_by = from->drawn_by;
    to->expected = from->expected;
    tg_cache_share(c, to->sequence, from->sequence, n);
    to->n_held = (int32_t)n;
    to->n_lost = n > 0 ? from->n_lost : 0;
    to->n_tokens = from->n_tokens;
    to->version = from->version;
    to->generation = from->generation;
    return TG_OK;
}
