/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normal.c - each normaliser is a pass from one buffer to the other.
 *
 *     text -> buf[0] -> buf[1] -> buf[0] ..      a pass that idle() knows to do nothing is left out
 *
 * Composition works on stretches. A stretch begins at an ASCII character or at the beginning and
 * reaches to before the next ASCII character: nothing reorders or composes across that boundary,
 * since ASCII characters are starters and never the second half of a composition.
 *
 *     text        a  b  e  U+0301  c  d      "e" begins a stretch, since a mark follows it
 *     stretch           |-------|
 *     code              e  U+0301            decomposed, with combining classes 0 and 230
 *     result            U+00E9               after reorder and compose
 *
 * Every pass is linear in the text, whatever it holds. tg_normal keeps its buffers from call to
 * call, so that a text of many stretches between special tokens allocates at its beginning only.
 * The rules are Unicode's (UAX #15), the tables those of unicode.c.
 */
#include "tok/unicode/normal.h"

#include "tok/unicode/unicode.h"

void tg_normal_init(tg_normal *w, const tg_mem *mem) {
    memset(w, 0, sizeof *w);
    tg_buf_init(&w->buf[0], mem);
    tg_buf_init(&w->buf[1], mem);
}

/* The three arrays have one room, so one number frees them all. */
static void free_codes(tg_normal *w) {
    const tg_mem *mem = &w->buf[0].mem;
    tg_free(mem, w->code, w->room * sizeof *w->code);
    tg_free(mem, w->order, w->room * sizeof *w->order);
    tg_free(mem, w->swap, w->room * sizeof *w->swap);
    w->code = w->swap = NULL;
    w->order = NULL;
    w->n = w->room = 0;
}

void tg_normal_deinit(tg_normal *w) {
    free_codes(w);
    tg_buf_deinit(&w->buf[0]);
    tg_buf_deinit(&w->buf[1]);
}

/* Errors of the buffer are sticky: tg_normal_apply asks once, after the pass. */
static void put(tg_buf *out, uint32_t code) {
    char bytes[4];
    tg_buf_append(out, bytes, tg_uc_put(code, bytes));
}

/* ------------------------------------------------------------------------------ BERT's passes */

/* White space becomes a blank, but for the controls among it that BERT's own list lacks
 * (vertical tab, form feed, next line): those go, with all other controls. A byte that is no
 * UTF-8 comes as TG_UC_BYTE or more, and goes as the U+FFFD that BERT would have seen. */
static void clean(const char *text, size_t n, tg_buf *out) {
    uint32_t code;
    for (size_t at = 0; at < n;) {
        at += tg_uc_next(text + at, n - at, &code);
        const tg_uc_class class = tg_uc_class_of(code);
        if (code >= TG_UC_BYTE || code == 0xFFFD || class == TG_UC_CONTROL) continue;
        if (code == 0x0B || code == 0x0C || code == 0x85) continue;
        put(out, class == TG_UC_BLANK ? ' ' : code);
    }
}

/* The blocks of ideographs that the first BERT knew. Later blocks of Unicode are left out on
 * purpose: BERT's list was never extended, and vocabularies were trained with it. */
static bool ideograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x2F800 && c <= 0x2FA1F);
}

static void space_ideographs(const char *text, size_t n, tg_buf *out) {
    uint32_t code;
    for (size_t at = 0; at < n;) {
        const size_t length = tg_uc_next(text + at, n - at, &code);
        const bool apart = ideograph(code);
        if (apart) tg_buf_putc(out, ' ');
        tg_buf_append(out, text + at, length);
        if (apart) tg_buf_putc(out, ' ');
        at += length;
    }
}

/* Full mapping: one character may become two (U+0130 does). ASCII goes without the tables. */
static void lower(const char *text, size_t n, tg_buf *out) {
    uint32_t code, low[2];
    for (size_t at = 0; at < n;) {
        if ((uint8_t)text[at] < 0x80) {
            const char c = text[at++];
            tg_buf_putc(out, c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c);
            continue;
        }
        at += tg_uc_next(text + at, n - at, &code);
        const size_t count = tg_uc_lower(code, low);
        for (size_t i = 0; i < count; i++) put(out, low[i]);
    }
}

/* -------------------------------------------------------------- decomposition and composition */

/* Doubles at least, so that n codes cost O(n) moves. */
static void grow_codes(tg_normal *w, size_t more) {
    if (w->failed || w->n + more <= w->room) return;
    const tg_mem *mem = &w->buf[0].mem;
    const size_t room = (w->n + more) * 2;
    uint32_t *code = tg_realloc(mem, w->code, w->room * sizeof *code, room * sizeof *code);
    if (code) w->code = code;
    uint8_t *order = tg_realloc(mem, w->order, w->room * sizeof *order, room * sizeof *order);
    if (order) w->order = order;
    uint32_t *swap = tg_realloc(mem, w->swap, w->room * sizeof *swap, room * sizeof *swap);
    if (swap) w->swap = swap;
    if (code && order && swap) {
        w->room = room;
        return;
    }
    /* The three must have one size, or freeing them would be wrong: those that grew are let go. */
    tg_free(mem, w->code, (code ? room : w->room) * sizeof *code);
    tg_free(mem, w->order, (order ? room : w->room) * sizeof *order);
    tg_free(mem, w->swap, (swap ? room : w->room) * sizeof *swap);
    w->code = w->swap = NULL;
    w->order = NULL;
    w->n = w->room = 0;
    w->failed = true;
}

/* The order beside each code saves reorder() and compose() the table's look-up. */
static void push_code(tg_normal *w, uint32_t code, bool compatibility) {
    uint32_t full[TG_UC_DECOMPOSED_MAX];
    const size_t n = tg_uc_decompose(code, compatibility, full);
    grow_codes(w, n);
    for (size_t i = 0; i < n && !w->failed; i++) {
        w->code[w->n] = full[i];
        w->order[w->n++] = tg_uc_order(full[i]);
    }
}

/* Marks [from, to) by rising class, equal ones as they were: counted, so a megabyte of marks takes
 * no longer than a megabyte of anything else. */
static void sort_marks(tg_normal *w, size_t from, size_t to) {
    size_t start[256] = { 0 };
    for (size_t i = from; i < to; i++) start[w->order[i]]++;
    size_t sum = from;
    for (size_t k = 0; k < 256; k++) {
        const size_t count = start[k];
        start[k] = sum;
        sum += count;
    }
    for (size_t i = from; i < to; i++) w->swap[start[w->order[i]]++] = w->code[i];
    for (size_t i = from; i < to; i++) {
        w->code[i] = w->swap[i];
        w->order[i] = tg_uc_order(w->code[i]);
    }
}

/* A run of marks ends at a starter, whose class is 0. Most runs are in order already, and are
 * only looked at. */
static void reorder(tg_normal *w) {
    for (size_t i = 0; i < w->n;) {
        size_t end = i;
        bool sorted = true;
        for (; end < w->n && w->order[end] > 0; end++) {
            if (end > i && w->order[end] < w->order[end - 1]) sorted = false;
        }
        if (!sorted) sort_marks(w, i, end);
        i = end + 1;
    }
}

/* Canonical composition in place: a character joins the last starter unless one of its class or
 * a higher one stands between them (blocked). The write index n never passes the read index, and
 * a starter that was joined stays where it is. */
static void compose(tg_normal *w) {
    size_t n = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < w->n; i++) {
        const bool blocked =
            starter != SIZE_MAX && n - 1 > starter && w->order[n - 1] >= w->order[i];
        const uint32_t made =
            starter == SIZE_MAX || blocked ? 0 : tg_uc_compose(w->code[starter], w->code[i]);
        if (made) {
            w->code[starter] = made;
            continue;
        }
        w->code[n] = w->code[i];
        w->order[n] = w->order[i];
        if (w->order[n] == 0) starter = n;
        n++;
    }
    w->n = n;
}

/* Accents are stripped of decomposed text, which is not composed again, as BERT's own code has
 * it. */
static void end_stretch(tg_normal *w, unsigned how, tg_buf *out) {
    reorder(w);
    if (how != TG_TOK_STRIP_ACCENTS) compose(w);
    for (size_t i = 0; i < w->n; i++) {
        if (how == TG_TOK_STRIP_ACCENTS && tg_uc_class_of(w->code[i]) == TG_UC_NONSPACING) continue;
        put(out, w->code[i]);
    }
    w->n = 0;
}

static void recompose(tg_normal *w, unsigned how, const char *text, size_t n, tg_buf *out) {
    for (size_t at = 0; at < n && !w->failed;) {
        size_t plain = at; /* ASCII that is followed by ASCII is what it is */
        while (plain < n && (uint8_t)text[plain] < 0x80) plain++;
        if (plain < n && plain > at) plain--;
        tg_buf_append(out, text + at, plain - at);
        at = plain;
        for (size_t k = 0; at < n && (k == 0 || (uint8_t)text[at] >= 0x80); k++) {
            uint32_t code;
            at += tg_uc_next(text + at, n - at, &code);
            push_code(w, code, how == TG_TOK_NFKC);
        }
        end_stretch(w, how, out);
    }
}

/* ---------------------------------------------------------------------- SentencePiece's passes */

/* Blanks are ASCII here: marks for them come in a later pass. */
static void squeeze(const char *text, size_t n, tg_buf *out) {
    while (n > 0 && text[n - 1] == ' ') n--;
    for (size_t at = 0; at < n; at++) {
        if (text[at] == ' ' && (out->length == 0 || text[at - 1] == ' ')) continue;
        tg_buf_putc(out, text[at]);
    }
}

static bool starts_blank(const char *text, size_t n) {
    return (n > 0 && text[0] == ' ') || (n >= 3 && memcmp(text, TG_BLANK_MARK, 3) == 0);
}

static void mark_blanks(const char *text, size_t n, tg_buf *out) {
    for (size_t at = 0; at < n;) {
        const char *blank = memchr(text + at, ' ', n - at);
        const size_t end = blank ? (size_t)(blank - text) : n;
        tg_buf_append(out, text + at, end - at);
        if (blank) tg_buf_append(out, TG_BLANK_MARK, 3);
        at = end + 1;
    }
}

/* ----------------------------------------------------------------------------------- all of it */

/* PREFIX_MISSING comes here as PREFIX_BLANK: idle() has seen that it is missing. */
static void pass(tg_normal *w, unsigned flag, const char *text, size_t n, tg_buf *out) {
    switch (flag) {
    case TG_TOK_CLEAN: clean(text, n, out); break;
    case TG_TOK_CJK_SPACES: space_ideographs(text, n, out); break;
    case TG_TOK_STRIP_ACCENTS:
    case TG_TOK_NFC:
    case TG_TOK_NFKC: recompose(w, flag, text, n, out); break;
    case TG_TOK_LOWER: lower(text, n, out); break;
    case TG_TOK_SQUEEZE: squeeze(text, n, out); break;
    case TG_TOK_PREFIX_BLANK:
        tg_buf_putc(out, ' ');
        tg_buf_append(out, text, n);
        break;
    default: mark_blanks(text, n, out); break;
    }
}

static bool ascii(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if ((uint8_t)text[i] >= 0x80) return false;
    }
    return true;
}

/* Would this pass leave the text as it is? Asked where that is cheap to tell and common. */
static bool idle(unsigned flag, const char *text, size_t n) {
    switch (flag) {
    case TG_TOK_CJK_SPACES:
    case TG_TOK_STRIP_ACCENTS:
    case TG_TOK_NFC:
    case TG_TOK_NFKC: return ascii(text, n);
    case TG_TOK_PREFIX_BLANK: return n == 0;
    case TG_TOK_PREFIX_MISSING: return n == 0 || starts_blank(text, n);
    case TG_TOK_BLANK_MARK: return n == 0 || !memchr(text, ' ', n);
    default: return false;
    }
}

/* From flag to flag in the order of their numbers, which is part of the format (tok.h). A
 * failure leaves w fit for the next call. */
tg_status tg_normal_apply(tg_ctx *ctx, tg_normal *w, unsigned flags, const char **text, size_t *n) {
    size_t turn = 0;
    for (unsigned flag = TG_TOK_CLEAN; flag <= TG_TOK_BLANK_MARK; flag <<= 1) {
        if (!(flags & flag) || idle(flag, *text, *n)) continue;
        tg_buf *out = &w->buf[turn];
        tg_buf_clear(out);
        pass(w, flag == TG_TOK_PREFIX_MISSING ? TG_TOK_PREFIX_BLANK : flag, *text, *n, out);
        TG_TRY(tg_buf_status(ctx, out, "normalised text"));
        if (w->failed) {
            w->failed = false;
            return tg_fail_memory(ctx, "normalised text", *n);
        }
        *text = tg_buf_text(out);
        *n = out->length;
        turn ^= 1;
    }
    return TG_OK;
}
