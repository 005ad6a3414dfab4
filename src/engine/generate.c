/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generate.c - from a prompt to a stream of text.
 *
 * Tokens are bytes or a few of them, a terminal wants characters: the UTF-8 hold-back of tok/ is
 * between them, and behind it, where a session has stops, the one that watches for those.
 */
#include "base/time.h"
#include "engine/session.h"

/* The receiver's refusal is remembered: it is not called again. */
static void hand_out(void *user, const char *bytes, size_t n) {
    tg_generating *g = user;
    if (!g->refused && g->write && g->write(g->user, bytes, n) != 0) g->refused = true;
}

/* Whole characters, from the hold-back to the stop match. */
static void pass(void *user, const char *bytes, size_t n) {
    tg_generating *g = user;
    const tg_logits_texts *stops = g->session->stops;
    if (stops && stops->n > 0) {
        tg_stop_match_push(&g->stop, stops, bytes, n, hand_out, g);
    } else {
        hand_out(g, bytes, n);
    }
}

/* ---------------------------------------------------------------------------------------- stages
 */

/* A text, of which an empty one is a newline; or ids, copied: they lie in the job's memory, which
 * need not be aligned for them. */
static tg_status take_prompt(tg_generating *g) {
    tg_ctx *err = &g->session->ctx->err;
    tg_ids_init(&g->prompt_ids, &err->mem);
    if (!g->is_ids && g->prompt_bytes == 0) {
        g->prompt = "\n";
        g->prompt_bytes = 1;
    }
    if (!g->is_ids)
        return tg_tok_encode(err, g->session->model->tok, g->prompt, g->prompt_bytes, TG_TOK_ENDS,
                             &g->prompt_ids);
    g->prompt_ids.id = tg_alloc(&err->mem, g->prompt_bytes);
    if (!g->prompt_ids.id) return tg_fail_memory(err, "prompt", g->prompt_bytes);
    memcpy(g->prompt_ids.id, g->prompt, g->prompt_bytes);
    g->prompt_ids.n = g->prompt_ids.room = g->prompt_bytes / sizeof(int32_t);
    return TG_OK;
}

/* Only the newest part of a long prompt is fed, which leaves room for one token, behind the token
 * that begins texts: models that were trained with one write nonsense without it. Of ids, what the
 * session has of them already is kept. */
tg_status tg_generating_begin(tg_generating *g) {
    tg_session *s = g->session;
    TG_TRY(tg_sample_options_check(&s->ctx->err, &g->o));
    TG_TRY(take_prompt(g));
    const size_t room = s->capacity > 1 ? (size_t)s->capacity - 1 : 1, n = g->prompt_ids.n;
    int32_t *ids = g->prompt_ids.id;
    size_t same = 0;
    g->stats.prompt_tokens = n;
    if (n > room) {
        const bool begun = ids[0] >= 0 && ids[0] == tg_tok_bos(s->model->tok);
        g->at = g->stats.prompt_dropped = n - room;
        if (begun && room > 1) ids[g->at] = ids[0];
    } else if (g->is_ids) {
        while (same + 1 < n && same < (size_t)s->n_tokens && s->fed[same] == ids[same]) same++;
        g->at = same;
    }
    tg_session_go_back(s, (int32_t)same);
    return TG_OK;
}

/* Milliseconds of all slices so far. */
static double spent(const tg_generating *g) { return g->busy_ms + tg_time_ms() - g->slice_ms; }

static tg_status go_on_feeding(tg_generating *g, double deadline_ms) {
    g->feed.run.cancel = g->cancel;
    g->feed.run.cancel_user = g->user;
    return tg_feeding_go_on(g->session, &g->feed, deadline_ms);
}

/* A feed of nothing, which is where it starts, is done at once. */
static tg_status feed_prompt(tg_generating *g, double deadline_ms) {
    for (;;) {
        TG_TRY(go_on_feeding(g, deadline_ms));
        if (g->at == g->prompt_ids.n) break;
        const size_t left = g->prompt_ids.n - g->at, most = sizeof g->piece / sizeof g->piece[0];
        const size_t k = left < most ? left : most;
        memcpy(g->piece, g->prompt_ids.id + g->at, k * sizeof *g->piece);
        g->at += k;
        TG_TRY(tg_feeding_begin(g->session, g->piece, k, &g->feed));
    }
    g->stats.prompt_ms = spent(g);
    g->at = 0;
    g->stage = TG_GENERATING_DRAW;
    return TG_OK;
}

/* The caller's ends, else the vocabulary's; and stops that are tokens. */
static bool ends(const tg_generating *g, int32_t id) {
    const tg_session *s = g->session;
    for (size_t i = 0; i < g->n_ends; i++)
        if (g->ends[i] == id) return true;
    for (size_t i = 0; s->stops && i < s->stops->n_ids; i++)
        if (s->stops->ids[i] == id) return true;
    return g->n_ends == 0 && tg_tok_is_end(s->model->tok, id);
}

/* The last token is drawn but not fed: nobody asks what follows it, and a step of the model is what
 * costs. So after n tokens the cache holds the prompt and n - 1 of them. */
static tg_status draw(tg_generating *g, bool *over) {
    tg_session *s = g->session;
    *over = g->at == g->n_tokens;
    if (*over) return TG_OK;
    TG_TRY(tg_session_draw(s, &g->o, g->at, &g->piece[0]));
    if (g->ids) g->ids[g->at] = g->piece[0];
    if (g->at == 0) g->stats.first_token_ms = spent(g);
    g->at++;
    g->stats.new_tokens++;
    const bool ended = ends(g, g->piece[0]);
    size_t n_bytes;
    const char *bytes = tg_tok_bytes(s->model->tok, g->piece[0], &n_bytes);
    if (!ended) tg_utf8_holdback_push(&g->holdback, bytes, n_bytes, pass, g);
    *over = ended || g->at == g->n_tokens || g->refused || g->stop.stopped;
    if (*over) return TG_OK;
    *over = g->cancelled = g->cancel && g->cancel(g->user);
    if (*over) return TG_OK;
    if (s->n_tokens == s->capacity) {
        tg_feeding_begin_slide(s, &g->feed);
        g->stats.slides++;
        g->stage = TG_GENERATING_SLIDE;
        return TG_OK;
    }
    g->stage = TG_GENERATING_FEED;
    return tg_feeding_begin(s, g->piece, 1, &g->feed);
}

/* first_token_ms counts from the beginning, prompt included; tok_per_s does not, and spans the
 * draws and evaluations. Both are over the time inside slices. */
static tg_status finish(tg_generating *g) {
    tg_utf8_holdback_end(&g->holdback, pass, g);
    tg_stop_match_end(&g->stop, hand_out, g);
    const double ms = spent(g) - g->stats.prompt_ms;
    g->stats.tok_per_s = ms > 0 ? (double)g->stats.new_tokens / ms * 1e3 : 0;
    if (g->refused) return tg_stopped(&g->session->ctx->err, "text");
    return g->cancelled ? TG_STOPPED : TG_OK;
}

static tg_status next_stage(tg_generating *g, double deadline_ms, bool *over) {
    switch (g->stage) {
    case TG_GENERATING_PROMPT: return feed_prompt(g, deadline_ms);
    case TG_GENERATING_DRAW: return draw(g, over);
    case TG_GENERATING_SLIDE:
        TG_TRY(go_on_feeding(g, deadline_ms));
        g->stage = TG_GENERATING_FEED;
        return tg_feeding_begin(g->session, g->piece, 1, &g->feed);
    case TG_GENERATING_FEED:
        TG_TRY(go_on_feeding(g, deadline_ms));
        g->stage = TG_GENERATING_DRAW;
        return tg_time_over(deadline_ms) ? TG_PENDING : TG_OK;
    }
    return TG_OK;
}

/* Where cancel ends a feed, that one is taken back. */
tg_status tg_generating_go_on(tg_generating *g, double deadline_ms) {
    g->slice_ms = tg_time_ms();
    tg_status status = TG_OK;
    for (bool over = false; status == TG_OK && !over;) status = next_stage(g, deadline_ms, &over);
    if (status == TG_STOPPED) {
        tg_generating_abandon(g);
        g->cancelled = true;
    }
    if (status == TG_OK || status == TG_STOPPED) status = finish(g);
    g->busy_ms = spent(g);
    return status;
}

void tg_generating_abandon(tg_generating *g) {
    if (g->feed.done < g->feed.n) tg_feeding_abandon(g->session, &g->feed);
    tg_ids_deinit(&g->prompt_ids);
}
