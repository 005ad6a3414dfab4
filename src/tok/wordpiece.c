/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wordpiece.c - BERT: words at white space and punctuation, each the longest pieces from its left.
 *
 * A word that cannot be cut into pieces, or is longer than 100 characters, is unknown as a whole.
 * Pieces that continue a word are spelled "##ing"; GGUF spells the others with a mark in front and
 * leaves these bare. The text has been through BERT's normalisers.
 */
#include "tok/tok_inside.h"

enum { WORD_CHARS_MAX = 100, PREFIX_BYTES = 3 };

/* BERT counts all printable ASCII that is no letter and no digit, Unicode's symbols not. */
static bool punctuation(uint32_t c) {
    if (c < 0x80) {
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
               (c >= 123 && c <= 126);
    }
    return tg_uc_class_of(c) == TG_UC_PUNCTUATION;
}

/* The longest piece that n bytes of a word begin with; *length says how much of them it is. Where
 * the text itself has the mark of beginnings within a word, a piece that is more than the mark
 * would be the beginning of another word. */
static int32_t longest(const tg_tok *t, const char *word, size_t n, bool begins, size_t *length) {
    char spelled[PREFIX_BYTES + 4 * WORD_CHARS_MAX];
    const char *prefix = t->word_starts_marked ? (begins ? TG_BLANK_MARK : "") : begins ? "" : "##";
    const size_t before = strlen(prefix), mark = sizeof TG_BLANK_MARK - 1, all = n;
    const bool bare = t->word_starts_marked && !begins;
    if (bare && n > mark && memcmp(word, TG_BLANK_MARK, mark) == 0) n = mark;
    if (n > t->longest) n = t->longest;
    memcpy(spelled, prefix, before);
    memcpy(spelled + before, word, n);
    for (; n > 0; n--) {
        if (n < all && ((uint8_t)word[n] & 0xc0) == 0x80) continue; /* within a character */
        const int32_t id = tg_tok_find_normal(t, spelled, before + n);
        if (id >= 0) {
            *length = n;
            return id;
        }
    }
    return -1;
}

static tg_status encode_word(tg_tok_work *w, const char *word, size_t n, size_t n_chars) {
    const size_t start = w->ids->n;
    for (size_t at = 0; n_chars <= WORD_CHARS_MAX && at < n;) {
        size_t length = 0;
        const int32_t id = longest(w->tok, word + at, n - at, at == 0, &length);
        if (id < 0) break;
        TG_TRY(tg_tok_push(w, id));
        at += length;
        if (at == n) return TG_OK;
    }
    w->ids->n = start;
    if (w->tok->unknown >= 0) return tg_tok_push(w, w->tok->unknown);
    return tg_fail(w->ctx, TG_E_FORMAT, "tokenizer: want an unknown token for \"%.*s\", have none",
                   (int)(n < 40 ? n : 40), word);
}

bool tg_wordpiece_next(const char *text, size_t n, size_t *at, size_t *from, size_t *chars) {
    *chars = 0;
    while (*at < n) {
        uint32_t code;
        const size_t length = tg_uc_next(text + *at, n - *at, &code);
        const bool mark = punctuation(code), blank = tg_uc_class_of(code) == TG_UC_BLANK;
        if (*chars > 0 && (mark || blank)) return true;
        if (!blank && *chars == 0) *from = *at;
        *chars += !blank;
        *at += length;
        if (mark) return true;
    }
    return *chars > 0;
}

tg_status tg_wordpiece_encode(tg_tok_work *w, const char *text, size_t n) {
    size_t at = 0, from, chars;
    while (tg_wordpiece_next(text, n, &at, &from, &chars))
        TG_TRY(encode_word(w, text + from, at - from, chars));
    return TG_OK;
}
