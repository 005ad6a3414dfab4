/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.c - an answer taken apart as it comes, a byte at a time.
 *
 * What might become a mark is held back until it is one or cannot be; so text comes late by less
 * than the longest mark, and no part of a mark is ever shown as text.
 */
#include "chat/reply.h"

#include "base/str.h"

static const struct {
    tg_reply_part part;
    const char *open, *close;
} marks[] = {
#define MARKS(part, open, close) { part, open, close },
#include "chat/reply.def"
#undef MARKS
};
enum { N_MARKS = sizeof marks / sizeof marks[0] };

/* A mark that is a token of the vocabulary counts though the template may not spell it. */
static bool has_token(const tg_tok *tok, const char *mark) {
    return tok && *mark && tg_tok_find(tok, mark, strlen(mark)) >= 0;
}

static bool spells(const char *text, const char *mark) {
    return text && *mark && strstr(text, mark) != NULL;
}

/* Only marks of this model's family are looked for: to another one "<think>" is a word like any
 * other, which its answers may quote. */
void tg_reply_begin(tg_reply *r, const char *template_text, const tg_tok *tok) {
    *r = (tg_reply) { 0 };
    for (size_t i = 0; i < N_MARKS; i++)
        if (spells(template_text, marks[i].open) || spells(template_text, marks[i].close) ||
            has_token(tok, marks[i].open) || has_token(tok, marks[i].close))
            r->known |= 1u << i;
}

tg_reply_part tg_reply_now(const tg_reply *r) {
    return r->inside ? marks[r->inside - 1].part : TG_REPLY_ANSWER;
}

/* ----------------------------------------------------------------------------------- the answer */

/* Is what is held the mark's beginning, and if so, is it all of it? */
static bool may_become(const tg_reply *r, const char *mark, bool *whole) {
    const size_t n = strlen(mark);
    if (n < r->n_held || memcmp(mark, r->held, r->n_held) != 0) return false;
    *whole = n == r->n_held;
    return true;
}

/* May what is held become a mark? One that is whole is taken. Outside a part each mark counts that
 * opens one, inside it the one that closes it. */
static bool match(tg_reply *r) {
    bool whole = false, may = false;
    size_t then = 0;
    if (r->inside) may = may_become(r, marks[r->inside - 1].close, &whole);
    for (size_t i = 0; !may && !r->inside && i < N_MARKS; i++) {
        if (!(r->known >> i & 1)) continue;
        may = may_become(r, marks[i].open, &whole);
        then = i + 1;
    }
    if (!whole) return may;
    r->inside = then;
    r->n_held = 0;
    r->behind = true;
    return true;
}

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Goes out unless it is white space behind a mark. */
static void pass(tg_reply *r, char c, tg_reply_fn out, void *user) {
    if (r->behind && blank(c)) return;
    r->behind = false;
    if (out) out(user, tg_reply_now(r), &c, 1);
}

/* From its beginning on what is held goes out, until the rest may become a mark. */
void tg_reply_push(tg_reply *r, const char *text, size_t n_bytes, tg_reply_fn out, void *user) {
    for (size_t i = 0; i < n_bytes; i++) {
        r->held[r->n_held++] = text[i];
        while (r->n_held > 0 && !match(r)) {
            pass(r, r->held[0], out, user);
            memmove(r->held, r->held + 1, --r->n_held);
        }
    }
}

void tg_reply_end(tg_reply *r, tg_reply_fn out, void *user) {
    for (size_t i = 0; i < r->n_held; i++) pass(r, r->held[i], out, user);
    r->n_held = 0;
}

/* ------------------------------------------------------------------------------------ its tokens
 */

static bool is_mark(const tg_reply *r, const char *text, size_t n) {
    for (size_t i = 0; i < N_MARKS; i++) {
        if (!(r->known >> i & 1)) continue;
        if (strlen(marks[i].open) == n && memcmp(marks[i].open, text, n) == 0) return true;
        if (strlen(marks[i].close) == n && memcmp(marks[i].close, text, n) == 0) return true;
    }
    return false;
}

const char *tg_reply_bytes(const tg_reply *r, const tg_tok *tok, int32_t id, size_t *n_bytes) {
    const char *bytes = tg_tok_bytes(tok, id, n_bytes);
    size_t n;
    if (*n_bytes > 0) return bytes;
    const char *piece = tg_tok_piece(tok, id, &n);
    if (!piece || !is_mark(r, piece, n)) return bytes;
    *n_bytes = n;
    return piece;
}

/* Only what stands behind the last special token that is no mark counts: turns of people end with
 * one, so that nobody opens a part by spelling its mark. */
void tg_reply_prompt(tg_reply *r, const tg_tok *tok, const int32_t *ids, size_t n) {
    size_t from = n, n_bytes;
    if (!r->known) return;
    while (from > 0) {
        tg_reply_bytes(r, tok, ids[from - 1], &n_bytes);
        if (n_bytes == 0 && tg_tok_type(tok, ids[from - 1]) == TG_TOK_CONTROL) break;
        from--;
    }
    for (; from < n; from++) {
        const char *bytes = tg_reply_bytes(r, tok, ids[from], &n_bytes);
        tg_reply_push(r, bytes, n_bytes, NULL, NULL);
    }
    tg_reply_end(r, NULL, NULL);
}
