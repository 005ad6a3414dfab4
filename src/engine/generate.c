/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - from a prompt to a stream of tokens and their text: the one engine.
 *
 * Tokens are bytes or a few of them, a terminal wants characters: the UTF-8 hold-back of tok/ is
 * between them, and behind it, where a session has stops, the one that watches for those, and the
 * one that tells the parts of an answer apart. What comes out of all of them while a token goes in
 * is that token's text.
 */
#include "base/time.h"
#include "engine/session.h"

/* ------------------------------------------------------------------------------------- handing out
 */

static tg_status hand_out(tg_generating *g);

/* What is of another part than the text before it goes out by itself. */
static void gather_part(void *user, tg_reply_part part, const char *bytes, size_t n) {
    tg_generating *g = user;
    if (part != g->part && g->text.length > 0 && g->told == TG_OK) g->told = hand_out(g);
    g->part = part;
    tg_buf_append(&g->text, bytes, n);
}

/* From the stop match to the parts. */
static void gather(void *user, const char *bytes, size_t n) {
    tg_generating *g = user;
    if (g->o.parts)
        tg_reply_push(&g->reply, bytes, n, gather_part, g);
    else
        tg_buf_append(&g->text, bytes, n);
}

/* Whole characters, from the hold-back to the stop match. */
static void pass(void *user, const char *bytes, size_t n) {
    tg_generating *g = user;
    const tg_logits_texts *stops = g->session->stops;
    if (stops && stops->n > 0)
        tg_stop_match_push(&g->stop, stops, bytes, n, gather, g);
    else
        gather(g, bytes, n);
}

/* The likeliest tokens lie behind the room for what is told of them. */
static void find_likely(tg_generating *g, tg_token *t) {
    const tg_session *s = g->session;
    const size_t V = (size_t)s->model->layout.config.vocab, n = g->o.n_best;
    if (g->o.logprobs) t->logprob = tg_logits_logprob(s->logits, V, t->id);
    if (n == 0) return;
    tg_likely *likely = g->likely.data;
    double *logprobs = (double *)(likely + n);
    int32_t *ids = (int32_t *)(logprobs + n);
    t->n_best = tg_logits_best(s->logits, V, n, ids, logprobs);
    for (size_t i = 0; i < t->n_best; i++) likely[i] = (tg_likely) { ids[i], logprobs[i] };
    t->best = likely;
}

/* The text with the token that is being told of, which has gone out then. The receivers' refusal is
 * remembered: they are not called again. */
static tg_status hand_out(tg_generating *g) {
    tg_ctx *err = &g->session->ctx->err;
    TG_TRY(tg_buf_status(err, &g->text, "text of a token"));
    tg_token t = { .id = g->telling,
                   .text = tg_buf_text(&g->text),
                   .n_bytes = g->text.length,
                   .part =
                       (tg_answer_part)(g->text.length > 0 ? g->part : tg_reply_now(&g->reply)) };
    g->telling = -1;
    if (t.id >= 0 && g->o.token) find_likely(g, &t);
    if (!g->refused && g->o.token && (t.id >= 0 || t.n_bytes > 0))
        g->refused = g->o.token(g->o.user, &t) != 0;
    if (!g->refused && g->o.write && t.n_bytes > 0 && t.part == TG_ANSWER_TEXT)
        g->refused = g->o.write(g->o.user, t.text, t.n_bytes) != 0;
    tg_buf_clear(&g->text);
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ prompt
 */

/* Replaces what is to be fed by n ids and m more. */
static tg_status set_prompt(tg_generating *g, const int32_t *ids, size_t n, const int32_t *more,
                            size_t m) {
    tg_ctx *err = &g->session->ctx->err;
    tg_ids whole;
    tg_ids_init(&whole, &err->mem);
    whole.id = tg_alloc(&err->mem, (n + m) * sizeof *ids);
    if (!whole.id) return tg_fail_memory(err, "prompt", (n + m) * sizeof *ids);
    memcpy(whole.id, ids, n * sizeof *ids);
    if (m > 0) memcpy(whole.id + n, more, m * sizeof *ids);
    whole.n = whole.room = n + m;
    tg_ids_deinit(&g->prompt);
    g->prompt = whole;
    return TG_OK;
}

/* A text, of which an empty one is a newline; or ids. */
static tg_status take_prompt(tg_generating *g) {
    const tg_generation *o = &g->o;
    const char *text = o->prompt_bytes > 0 ? o->prompt : "\n";
    if (o->ids) return set_prompt(g, o->ids, o->n_ids, NULL, 0);
    return tg_tok_encode(&g->session->ctx->err, g->session->model->tok, text,
                         o->prompt_bytes > 0 ? o->prompt_bytes : 1, TG_TOK_ENDS, &g->prompt);
}

/* Only the newest part of a long prompt is fed, which leaves room for one token, behind the token
 * that begins texts: models that were trained with one write nonsense without it. */
static tg_status cut_prompt(tg_generating *g) {
    const tg_session *s = g->session;
    const size_t room = s->capacity > 1 ? (size_t)s->capacity - 1 : 1, n = g->prompt.n;
    int32_t *ids = g->prompt.id;
    g->stats.prompt_tokens = n;
    if (n <= room) return TG_OK;
    if (g->o.make_room || g->o.full == TG_FULL_STOP)
        return tg_fail(&s->ctx->err, TG_E_FULL,
                       "generation: want room for %zu tokens and one more, have %d", n,
                       (int)s->capacity);
    const size_t first = room > 1 && ids[0] >= 0 && ids[0] == tg_tok_bos(s->model->tok);
    g->stats.prompt_dropped = n - room;
    memmove(ids + first, ids + n - room + first, (room - first) * sizeof *ids);
    g->prompt.n = room;
    return TG_OK;
}

/* Room for the texts of most tokens is made here. */
tg_status tg_generating_begin(tg_generating *g) {
    tg_session *s = g->session;
    tg_ctx *err = &s->ctx->err;
    const size_t V = (size_t)s->model->layout.config.vocab;
    tg_ids_init(&g->prompt, &err->mem);
    tg_buf_init(&g->text, &err->mem);
    g->telling = -1;
    TG_TRY(tg_sample_options_check(err, &g->sample));
    TG_TRY(take_prompt(g));
    if (g->o.parts) {
        tg_reply_begin(&g->reply, g->o.chat_template, s->model->tok);
        tg_reply_prompt(&g->reply, s->model->tok, g->prompt.id, g->prompt.n);
    }
    TG_TRY(cut_prompt(g));
    if (g->o.n_best > V) g->o.n_best = V;
    if (g->o.n_best > 0)
        TG_TRY(
            tg_block_new(err, g->o.n_best * (sizeof(tg_likely) + sizeof(double) + 4), &g->likely));
    if (g->o.draft > 0) TG_TRY(tg_ahead_open(s));
    if (!tg_buf_reserve(&g->text, 2 * TG_LOGITS_TEXT_BYTES_MAX))
        return tg_fail_memory(err, "text of a token", 2 * TG_LOGITS_TEXT_BYTES_MAX);
    g->n_before = g->prompt.n;
    g->at = tg_session_keep_common(s, g->prompt.id, g->prompt.n);
    tg_session_find_cache(s); /* which a page that is shared may make shorter */
    g->stats.prompt_kept = (size_t)s->n_held;
    return TG_OK;
}

/* Milliseconds of all slices so far. */
static double spent(const tg_generating *g) { return g->busy_ms + tg_time_ms() - g->slice_ms; }

static tg_status go_on_feeding(tg_generating *g, double deadline_ms) {
    g->feed.run.cancel = g->o.cancel;
    g->feed.run.cancel_user = g->o.user;
    return tg_feeding_go_on(g->session, &g->feed, deadline_ms);
}

/* In pieces of a plan, of which those that are whole stay if the work is given up. A feed of
 * nothing, which is where it starts, is done at once. */
static tg_status feed_prompt(tg_generating *g, double deadline_ms) {
    TG_TRY(go_on_feeding(g, deadline_ms));
    if (g->at < g->prompt.n) {
        const size_t left = g->prompt.n - g->at;
        const size_t k = left < TG_SESSION_ROWS_MAX ? left : TG_SESSION_ROWS_MAX;
        TG_TRY(tg_feeding_begin(g->session, g->prompt.id + g->at, k, &g->feed));
        g->at += k;
        return TG_OK;
    }
    if (g->stats.new_tokens == 0) g->stats.prompt_ms = spent(g);
    g->stage = TG_GENERATING_DRAW;
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ tokens
 */

/* By the caller's ends, else the vocabulary's; or by stops that are tokens. */
static bool ends(tg_generating *g, int32_t id) {
    const tg_session *s = g->session;
    g->stats.end = TG_END_TOKEN;
    for (size_t i = 0; i < g->o.n_ends; i++)
        if (g->ends[i] == id) return true;
    if (g->o.n_ends == 0 && tg_tok_is_end(s->model->tok, id)) return true;
    g->stats.end = TG_END_STOP;
    for (size_t i = 0; s->stops && i < s->stops->n_ids; i++)
        if (s->stops->ids[i] == id) return true;
    return false;
}

static void end(tg_generating *g, tg_end why) {
    g->stats.end = why;
    g->ended = true;
}

/* What was made since the prompt goes behind what the caller answers. */
static tg_status ask_for_room(tg_generating *g) {
    tg_session *s = g->session;
    const size_t n_fed = (size_t)s->n_tokens - g->n_before, n_made = n_fed + 1;
    const int32_t *ids = NULL;
    const size_t n = g->o.make_room(g->o.user, n_made, &ids);
    if (n == 0) {
        end(g, TG_END_FULL);
        return TG_OK;
    }
    if (n + n_made >= (size_t)s->capacity)
        return tg_fail(&s->ctx->err, TG_E_FULL,
                       "generation: want a place besides %zu tokens and the %zu that were made, "
                       "have %d",
                       n, n_made, (int)s->capacity);
    TG_TRY(set_prompt(g, ids, n, s->fed + g->n_before, n_made));
    g->prompt.id[n + n_fed] = g->token;
    g->stats.slides++;
    g->stats.slid_tokens += g->n_before > n ? g->n_before - n : 0;
    g->n_before = n;
    g->at = tg_session_keep_common(s, g->prompt.id, g->prompt.n);
    g->stage = TG_GENERATING_PROMPT;
    return TG_OK;
}

/* What followed the last time that the newest three tokens stood in this order, or two. */
static size_t guess_by_lookup(const tg_generating *g, int32_t *out, size_t most) {
    const tg_session *s = g->session;
    const size_t n = (size_t)s->n_tokens;
    for (size_t run = 2; run > 0; run--) { /* besides the token itself, which is not fed yet */
        for (size_t at = n; at-- > run;) {
            if (s->fed[at] != g->token ||
                memcmp(s->fed + at - run, s->fed + n - run, run * sizeof *out) != 0)
                continue;
            size_t k = 0;
            for (; k < most && at + 1 + k < n; k++) out[k] = s->fed[at + 1 + k];
            return k;
        }
    }
    return 0;
}

/* What a smaller model would write, by the same draws: where both agree, it guesses right. */
static tg_status guess_by_model(tg_generating *g, int32_t *out, size_t most, size_t *n) {
    const tg_session *s = g->session;
    tg_session *d = g->o.draft_session;
    const size_t room = (size_t)(d->capacity - 1), fed = (size_t)s->n_tokens;
    *n = 0;
    if (fed + most > room) return TG_OK;
    const size_t same = tg_session_keep_common(d, s->fed, fed);
    TG_TRY(tg_session_feed(d, s->fed + same, fed - same));
    TG_TRY(tg_session_feed(d, &g->token, 1));
    for (; *n < most; ++*n) {
        TG_TRY(
            tg_session_draw(d, &g->sample, g->o.first_draw + g->stats.new_tokens + *n, &out[*n]));
        if (*n + 1 < most) TG_TRY(tg_session_feed(d, &out[*n], 1));
    }
    return TG_OK;
}

/* The token, and what may follow it; there must be room for all, and a wish. */
static tg_status guess(tg_generating *g, size_t *n) {
    const tg_session *s = g->session;
    size_t most = (size_t)(s->capacity - s->n_tokens) - 1;
    const size_t left = g->o.n_tokens - g->stats.new_tokens - 1;
    if (most > left) most = left;
    if (most > g->o.draft) most = g->o.draft;
    g->guesses[0] = g->token;
    *n = 0;
    if (most > 0 && g->o.draft_session)
        TG_TRY(guess_by_model(g, g->guesses + 1, most, n));
    else if (most > 0)
        *n = guess_by_lookup(g, g->guesses + 1, most);
    g->stats.drafted += *n;
    return TG_OK;
}

/* The token that was drawn is fed, unless it was on trial; where the window is full, something is
 * done about it first. */
static tg_status go_on_behind(tg_generating *g) {
    tg_session *s = g->session;
    bool taken;
    TG_TRY(tg_ahead_take(s, g->token, &taken));
    g->stats.accepted += taken;
    if (taken) return TG_OK;
    if (s->n_tokens < s->capacity) {
        size_t n;
        TG_TRY(guess(g, &n));
        g->stage = TG_GENERATING_FEED;
        return n > 0 ? tg_ahead_begin(s, g->guesses, n + 1, &g->feed)
                     : tg_feeding_begin(s, &g->token, 1, &g->feed);
    }
    if (g->o.make_room) return ask_for_room(g);
    if (g->o.full == TG_FULL_STOP) {
        end(g, TG_END_FULL);
        return TG_OK;
    }
    const size_t n = (size_t)s->n_tokens;
    tg_feeding_begin_slide(s, &g->feed);
    g->stats.slides++;
    g->stats.slid_tokens += n - g->feed.n;
    g->stage = TG_GENERATING_SLIDE;
    return TG_OK;
}

/* The last token is drawn but not fed: nobody asks what follows it, and a step of the model is what
 * costs. So after n tokens the cache holds the prompt and n - 1 of them. */
static tg_status draw(tg_generating *g) {
    tg_session *s = g->session;
    const size_t i = g->stats.new_tokens;
    if (i == g->o.n_tokens) {
        end(g, TG_END_LIMIT);
        return TG_OK;
    }
    TG_TRY(tg_session_draw(s, &g->sample, g->o.first_draw + i, &g->token));
    if (g->o.new_ids) g->o.new_ids[i] = g->token;
    if (i == 0) g->stats.first_token_ms = spent(g);
    g->stats.new_tokens++;
    g->ended = ends(g, g->token);
    size_t n_bytes;
    const char *bytes = tg_reply_bytes(&g->reply, s->model->tok, g->token, &n_bytes);
    g->telling = g->token;
    if (!g->ended) tg_utf8_holdback_push(&g->holdback, bytes, n_bytes, pass, g);
    TG_TRY(g->told);
    TG_TRY(hand_out(g));
    if (!g->ended && g->stop.stopped) end(g, TG_END_STOP);
    if (!g->ended && g->refused) end(g, TG_END_CANCELLED);
    if (!g->ended && g->stats.new_tokens == g->o.n_tokens) end(g, TG_END_LIMIT);
    if (!g->ended && g->o.cancel && g->o.cancel(g->o.user)) end(g, TG_END_CANCELLED);
    return g->ended ? TG_OK : go_on_behind(g);
}

static tg_status finish(tg_generating *g) {
    tg_utf8_holdback_end(&g->holdback, pass, g);
    tg_stop_match_end(&g->stop, gather, g);
    tg_reply_end(&g->reply, gather_part, g);
    TG_TRY(g->told);
    TG_TRY(hand_out(g));
    if (g->refused) end(g, TG_END_CANCELLED);
    if (g->refused) return tg_stopped(&g->session->ctx->err, "text");
    return g->stats.end == TG_END_CANCELLED ? TG_STOPPED : TG_OK;
}

static tg_status next_stage(tg_generating *g, double deadline_ms) {
    switch (g->stage) {
    case TG_GENERATING_PROMPT: return feed_prompt(g, deadline_ms);
    case TG_GENERATING_DRAW: return draw(g);
    case TG_GENERATING_SLIDE:
        TG_TRY(go_on_feeding(g, deadline_ms));
        g->stage = TG_GENERATING_FEED;
        return tg_feeding_begin(g->session, &g->token, 1, &g->feed);
    case TG_GENERATING_FEED:
        TG_TRY(go_on_feeding(g, deadline_ms));
        g->stage = TG_GENERATING_DRAW;
        return tg_time_over(deadline_ms) ? TG_PENDING : TG_OK;
    }
    return TG_OK;
}

static void abandon_feed(tg_generating *g) {
    if (g->feed.done < g->feed.n) tg_feeding_abandon(g->session, &g->feed);
    g->feed.done = g->feed.n;
}

/* What is told at the end, also of a text that was cancelled. */
static tg_status conclude(tg_generating *g, tg_status status) {
    if (status == TG_STOPPED) {
        abandon_feed(g);
        end(g, TG_END_CANCELLED);
    }
    if (status == TG_OK || status == TG_STOPPED) status = finish(g);
    g->busy_ms = spent(g);
    const double ms = g->busy_ms - g->stats.prompt_ms;
    if (ms > 0 && g->stats.new_tokens > 0)
        g->stats.tok_per_s = (double)g->stats.new_tokens / ms * 1e3;
    return status;
}

/* Where cancel ends a feed, that one is taken back. first_token_ms counts from the beginning,
 * prompt included; tok_per_s does not, and spans the draws and evaluations. Both are over the time
 * inside slices. */
tg_status tg_generating_go_on(tg_generating *g, double deadline_ms) {
    g->slice_ms = tg_time_ms();
    tg_status status = TG_OK;
    while (status == TG_OK && !g->ended) status = next_stage(g, deadline_ms);
    return conclude(g, status);
}

/* Until there is something to be fed with what the others feed. */
static tg_status go_on_until_feeding(tg_generating *g, double deadline_ms) {
    tg_status status = TG_OK;
    while (status == TG_OK && !g->ended && (g->feed.ahead || g->feed.done == g->feed.n))
        status = next_stage(g, deadline_ms);
    return status;
}

/* A run of several stops if all of them are to end: one that is cancelled alone ends at its next
 * token. */
static int all_are_cancelled(void *user) {
    const tg_generating_all *all = user;
    for (size_t k = 0; k < all->feed.n; k++) {
        const tg_generation *o = &all->g[all->who[k]].o;
        if (!o->cancel || !o->cancel(o->user)) return 0;
    }
    return 1;
}

static void end_one(tg_generating_all *all, size_t i, tg_status status) {
    all->status[i] = conclude(&all->g[i], status);
    all->g[i].ended = true;
}

/* Each as far as it gets alone; what is to be fed then is fed together. A slice may end before all
 * of them are there, and the next one finds those that are. */
static tg_status choose_feed(tg_generating_all *all, double deadline_ms) {
    tg_together *w = &all->feed;
    *w = (tg_together) { .d = all->g->session->d, .cancel = all_are_cancelled, .user = all };
    for (size_t i = 0; i < all->n; i++) {
        tg_generating *g = &all->g[i];
        if (all->status[i] != TG_OK || g->ended) continue;
        const tg_status status = go_on_until_feeding(g, deadline_ms);
        if (status == TG_PENDING) {
            w->n = 0;
            return status;
        }
        if (status != TG_OK || g->ended) {
            end_one(all, i, status);
            continue;
        }
        all->who[w->n] = i;
        w->entry[w->n++] = (tg_together_entry) { .s = g->session, .f = &g->feed };
    }
    return TG_OK;
}

static tg_status go_on_together(tg_generating_all *all, double deadline_ms) {
    tg_together *w = &all->feed;
    for (;;) {
        if (w->n == 0) TG_TRY(choose_feed(all, deadline_ms));
        if (w->n == 0) return TG_OK;
        if (tg_together_go_on(w, deadline_ms) == TG_PENDING) return TG_PENDING;
        for (size_t k = 0; k < w->n; k++) {
            if (w->entry[k].status == TG_OK) continue;
            all->g[all->who[k]].feed.done = all->g[all->who[k]].feed.n; /* it was taken back */
            end_one(all, all->who[k], w->entry[k].status);
        }
        w->n = 0;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
}

tg_status tg_generating_all_go_on(tg_generating_all *all, double deadline_ms) {
    for (size_t i = 0; i < all->n; i++) all->g[i].slice_ms = tg_time_ms();
    const tg_status status = go_on_together(all, deadline_ms);
    for (size_t i = 0; i < all->n && status == TG_PENDING; i++)
        if (all->status[i] == TG_OK && !all->g[i].ended) all->g[i].busy_ms = spent(&all->g[i]);
    return status;
}

void tg_generating_abandon(tg_generating *g) {
    abandon_feed(g);
    tg_ids_deinit(&g->prompt);
    tg_buf_deinit(&g->text);
    tg_block_free(&g->likely);
}
