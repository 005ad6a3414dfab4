/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_banned.c - no token that would end a banned text.
 */
#include "engine/samplers/sampler.h"

/* Does the text end at byte `end` of tail and piece together, which is within the piece? */
static bool ends_at(const char *text, size_t n, const char *tail, size_t n_tail, const char *piece,
                    size_t end) {
    for (size_t k = 1; k <= n; k++) {
        char c;
        if (k <= end) {
            c = piece[end - k];
        } else if (k - end <= n_tail) {
            c = tail[n_tail - (k - end)];
        } else {
            return false;
        }
        if (c != text[n - k]) return false;
    }
    return true;
}

/* Every byte of a token is tried as the last one of a banned text, which may have begun in the
 * tail. What is banned is never drawn, so nothing that was written has to be taken back. */
void tg_logits_ban(float *logits, size_t V, const tg_logits_texts *banned, const char *tail,
                   size_t n_tail, tg_logits_piece_fn piece, const void *user) {
    for (size_t id = 0; id < V && banned->n > 0; id++) {
        size_t n_bytes = 0;
        const char *bytes = piece(user, (int32_t)id, &n_bytes);
        for (size_t end = 1; bytes && end <= n_bytes; end++) {
            bool hit = false;
            for (size_t i = 0; i < banned->n && !hit; i++) {
                hit = ends_at(banned->text[i].bytes, banned->text[i].n_bytes, tail, n_tail, bytes,
                              end);
            }
            if (!hit) continue;
            logits[id] = (float)-TG_INF;
            break;
        }
    }
}

static const char *piece_of(const void *user, int32_t id, size_t *n_bytes) {
    return tg_tok_bytes(user, id, n_bytes);
}

/* The end of the session's text, at most room bytes, at the end of out; returns where it begins. */
static size_t tail_of(const tg_session *s, char *out, size_t room) {
    size_t at = room;
    for (int32_t i = s->n_tokens; i-- > 0 && at > 0;) {
        size_t n = 0;
        const char *bytes = tg_tok_bytes(s->model->tok, s->fed[i], &n);
        for (; bytes && n > 0 && at > 0; n--) out[--at] = bytes[n - 1];
    }
    return at;
}

static bool wanted(const tg_session *s, const tg_sample_options *o) {
    (void)o;
    return s->banned && s->banned->n + s->banned->n_ids > 0;
}

static void apply(const tg_drawing *d) {
    const tg_session *s = d->s;
    if (s->banned->n > 0) {
        char tail[TG_LOGITS_TEXT_BYTES_MAX];
        const size_t at = tail_of(s, tail, sizeof tail);
        tg_logits_ban(d->logits, d->V, s->banned, tail + at, sizeof tail - at, piece_of,
                      s->model->tok);
    }
    for (size_t i = 0; i < s->banned->n_ids; i++) d->logits[s->banned->ids[i]] = (float)-TG_INF;
}

const tg_sampler tg_sampler_banned = { .wanted = wanted, .apply = apply };
