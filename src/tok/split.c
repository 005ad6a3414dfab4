/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.c - alternatives are tried in the order of the rules; each says how far it reaches, 0: not
 * at all. A character's class is found once or twice, so a step costs what it consumes.
 */
#include "tok/split.h"

#include "tok/unicode/unicode.h"

/* One character and where it ends; length 0: the text is over. */
typedef struct at_char {
    uint32_t code;
    size_t end;
    tg_uc_class class;
} at_char;

enum { END_OF_TEXT = TG_UC_CONTROL + 1 };

static at_char look(const char *text, size_t n, size_t at) {
    at_char c = { 0, at, (tg_uc_class)END_OF_TEXT };
    if (at >= n) return c;
    const uint8_t b = (uint8_t)text[at];
    if (b < 0x80) {
        c.code = b;
        c.end = at + 1;
        const uint8_t low = b | 0x20;
        c.class = low >= 'a' && low <= 'z'               ? TG_UC_LETTER
                  : b >= '0' && b <= '9'                 ? TG_UC_NUMBER
                  : b == ' ' || (b >= '\t' && b <= '\r') ? TG_UC_BLANK
                                                         : TG_UC_OTHER;
        return c;
    }
    c.end = at + tg_uc_next(text + at, n - at, &c.code);
    c.class = tg_uc_class_of(c.code);
    return c;
}

/* ------------------------------------------------------------------------- what a rule consists of
 */

typedef struct stretch {
    const char *text;
    size_t n;
    bool marks_are_letters;
} stretch;

static bool letter(const stretch *s, const at_char *c) {
    return c->class == TG_UC_LETTER ||
           (s->marks_are_letters && (c->class == TG_UC_MARK || c->class == TG_UC_NONSPACING));
}

/* [^SLN], of QWEN35 [^SLMN] */
static bool symbol(const stretch *s, const at_char *c) {
    return (int)c->class != END_OF_TEXT && c->class != TG_UC_BLANK && c->class != TG_UC_NUMBER &&
           !letter(s, c);
}

static bool line_end(const at_char *c) { return c->code == '\r' || c->code == '\n'; }

static size_t letters(const stretch *s, size_t at) {
    at_char c;
    while (c = look(s->text, s->n, at), letter(s, &c)) at = c.end;
    return at;
}

static size_t numbers(const stretch *s, size_t at, size_t most) {
    at_char c;
    for (size_t k = 0; k < most && (c = look(s->text, s->n, at), c.class == TG_UC_NUMBER); k++)
        at = c.end;
    return at;
}

static size_t symbols(const stretch *s, size_t at) {
    at_char c;
    while (c = look(s->text, s->n, at), symbol(s, &c)) at = c.end;
    return at;
}

/* 's 't 're 've 'm 'll 'd behind an apostrophe; without case, the long s is an s, too. */
static size_t contraction(const stretch *s, size_t at, bool any_case) {
    if (s->n - at < 2 || s->text[at] != '\'') return 0;
    const char *p = s->text + at + 1;
    const size_t left = s->n - at - 1;
    const char fold = any_case ? 0x20 : 0;
    const char a = (char)(p[0] | fold), b = left > 1 ? (char)(p[1] | fold) : '\0';
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    if (any_case && left > 1 && memcmp(p, "\xc5\xbf", 2) == 0) return at + 3;
    return 0;
}

/*
 * White space, starting at one: up to the last line end where lines count; else all of the run but
 * the last, which goes with the word behind it; all of it at the end, or if it is one alone.
 */
static size_t blanks(const stretch *s, size_t at, bool lines_count) {
    size_t last = at, end = at, after_line = 0;
    at_char c;
    while (c = look(s->text, s->n, end), c.class == TG_UC_BLANK) {
        last = end;
        end = c.end;
        if (line_end(&c)) after_line = end;
    }
    if (lines_count && after_line) return after_line;
    return end < s->n && last > at ? last : end;
}

/* ---------------------------------------------------------------------------------- the rules */

static size_t gpt2_word(const stretch *s, size_t at) {
    const size_t short_form = contraction(s, at, false);
    if (short_form) return short_form;
    const at_char first = look(s->text, s->n, at);
    const size_t from = first.code == ' ' ? first.end : at; /* behind the optional blank */
    const at_char c = from == at ? first : look(s->text, s->n, from);
    if (letter(s, &c)) return letters(s, c.end);
    if (c.class == TG_UC_NUMBER) return numbers(s, c.end, SIZE_MAX);
    if (symbol(s, &c)) return symbols(s, c.end);
    return blanks(s, at, false);
}

/* What is no word: a number, symbols with a blank before them and any of `tail` behind, white
 * space. */
static size_t no_word(const stretch *s, size_t at, size_t most_digits, const char *tail) {
    const at_char first = look(s->text, s->n, at);
    if (first.class == TG_UC_NUMBER) return numbers(s, at, most_digits);
    const bool blank = first.code == ' ';
    const at_char c = blank ? look(s->text, s->n, first.end) : first;
    if (!symbol(s, &c)) return blanks(s, at, true);
    size_t end = symbols(s, c.end);
    while (end < s->n && s->text[end] && strchr(tail, s->text[end])) end++;
    return end;
}

static size_t llama3_word(const stretch *s, size_t at, size_t most_digits) {
    const size_t short_form = contraction(s, at, true);
    if (short_form) return short_form;
    const at_char first = look(s->text, s->n, at);
    if (letter(s, &first)) return letters(s, first.end);
    const at_char second = look(s->text, s->n, first.end);
    if (!line_end(&first) && first.class != TG_UC_NUMBER && letter(s, &second)) {
        return letters(s, second.end);
    }
    return no_word(s, at, most_digits, "\r\n");
}

/* Of a word by case: what may stand in its first part, in its second, or in both (marks, and
 * letters without case). */
enum { FIRST = 1, SECOND = 2, BOTH = 3 };
static unsigned parts_of(const at_char *c) {
    if (c->class == TG_UC_MARK || c->class == TG_UC_NONSPACING) return BOTH;
    if (c->class != TG_UC_LETTER) return 0;
    const tg_uc_case how =
        c->code < 0x80 ? (c->code < 'a' ? TG_UC_CAPITAL : TG_UC_SMALL) : tg_uc_case_of(c->code);
    return how == TG_UC_CAPITAL ? FIRST : how == TG_UC_SMALL ? SECOND : BOTH;
}

static size_t parts(const stretch *s, size_t at, unsigned part) {
    at_char c;
    while (c = look(s->text, s->n, at), parts_of(&c) & part) at = c.end;
    return at;
}

/* [UM]*[DM]+, 0: none. Where nothing behind the first part is of the second, the first one gives
 * back what it has taken, up to the last that may be either. *capitals: where the first part ends.
 */
static size_t with_small(const stretch *s, size_t at, size_t *capitals) {
    size_t either = 0;
    at_char c;
    unsigned part;
    while (c = look(s->text, s->n, at), part = parts_of(&c), part & FIRST) {
        at = c.end;
        if (part == BOTH) either = at;
    }
    *capitals = at;
    const size_t end = parts(s, at, SECOND);
    return end > at ? end : either;
}

/* The character in front of a word is tried with it first, and then, as it may be a mark, alone. */
static size_t cased_word(const stretch *s, size_t at, size_t most_digits, bool takes_short_forms) {
    const at_char first = look(s->text, s->n, at);
    const bool leads = !line_end(&first) && first.class != TG_UC_LETTER &&
                       first.class != TG_UC_NUMBER && (int)first.class != END_OF_TEXT;
    size_t behind = at, here = at;
    size_t end = leads ? with_small(s, first.end, &behind) : 0;
    if (!end) end = with_small(s, at, &here);
    if (!end && leads && behind > first.end) end = behind;
    if (!end && here > at) end = here;
    if (end) {
        const size_t short_form = takes_short_forms ? contraction(s, end, true) : 0;
        return short_form ? short_form : end;
    }
    return no_word(s, at, most_digits, "\r\n/");
}

/* A number alone, or the end of the stretch before the next one, which is looked for once. */
static size_t smollm_word(tg_splitter *s) {
    if (s->at >= s->bound) {
        at_char c = look(s->text, s->n, s->at);
        if (c.class == TG_UC_NUMBER) return s->bound = c.end;
        s->bound = s->at;
        while (c = look(s->text, s->n, s->bound),
               (int)c.class != END_OF_TEXT && c.class != TG_UC_NUMBER)
            s->bound = c.end;
    }
    const stretch part = { s->text, s->bound, false };
    return gpt2_word(&part, s->at);
}

bool tg_split_next(tg_splitter *s, size_t *from) {
    *from = s->at;
    if (s->at >= s->n) return false;
    const stretch all = { s->text, s->n, s->rule == TG_TOK_SPLIT_QWEN35 };
    switch (s->rule) {
    case TG_TOK_SPLIT_GPT2: s->at = gpt2_word(&all, s->at); break;
    case TG_TOK_SPLIT_SMOLLM: s->at = smollm_word(s); break;
    case TG_TOK_SPLIT_LLAMA3: s->at = llama3_word(&all, s->at, 3); break;
    case TG_TOK_SPLIT_QWEN2:
    case TG_TOK_SPLIT_QWEN35: s->at = llama3_word(&all, s->at, 1); break;
    case TG_TOK_SPLIT_GPT4O: s->at = cased_word(&all, s->at, 3, true); break;
    case TG_TOK_SPLIT_TEKKEN: s->at = cased_word(&all, s->at, 1, false); break;
    default: s->at = s->n; break;
    }
    TG_ASSERT(s->at > *from && s->at <= s->n);
    return true;
}
