/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_lex.c - a template as tokens, with the white space that its tags remove.
 *
 *     text {{- name | trim -}} text {%+ if x %} text {# .. #} {% raw %} .. {% endraw %}
 *
 * A tag's first "-" removes white space in front of it, its last "-" the white space behind it. As
 * transformers sets it, a tag (but no {{ }}) that stands first in its line removes the blanks
 * before it (lstrip_blocks) and the line end behind it (trim_blocks); "+" keeps them.
 */
#include "chat/jinja_inside.h"

/* What re's \s matches of ASCII in a str, the separators 28 to 31 among it: jinja2's lexer is made
 * of such patterns. */
static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 28 && c <= 31); }
static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool word(char c) {
    return c == '_' || digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80;
}

/* Does `what` stand at a place? Never reads behind the end, wherever that is. */
static bool here(const tg_jinja_lexer *l, size_t at, const char *what) {
    const size_t n = strlen(what);
    return at <= l->n && l->n - at >= n && memcmp(l->text + at, what, n) == 0;
}

/* Lines are counted as they are passed, for messages. */
static void move(tg_jinja_lexer *l, size_t to) {
    for (; l->at < to; l->at++) l->line += l->text[l->at] == '\n';
}

/* A token that says what is wrong with it: the parser makes the error, since it knows the name of
 * the template. */
static void bad(tg_jinja_token *t, const char *why) {
    t->type = TG_JT_BAD;
    t->at = why;
    t->n = strlen(why);
}

/* Text [from, to) in front of a tag whose sign is "-", "+" or another character. */
static size_t cut_before(const tg_jinja_lexer *l, size_t from, size_t to, char sign, bool print) {
    size_t end = to, line = to;
    while (end > from && blank(l->text[end - 1])) end--;
    if (sign == '-') return end;
    if (sign == '+' || print) return to;
    while (line > from && l->text[line - 1] != '\n') line--;
    return line >= end && (line > from || l->line_start) ? line : to;
}

/* White space behind a tag whose last sign is this. */
static void cut_behind(tg_jinja_lexer *l, char sign, bool print) {
    const size_t from = l->at;
    size_t to = from;
    if (sign == '-')
        while (to < l->n && blank(l->text[to])) to++;
    else if (!print && sign != '+' && here(l, to, "\n"))
        to++;
    move(l, to);
    l->line_start = to > from && l->text[to - 1] == '\n';
}

/* The "-" or "+" of a tag; a blank where there is none. */
static char sign_at(const tg_jinja_lexer *l, size_t at) {
    return at < l->n && (l->text[at] == '-' || l->text[at] == '+') ? l->text[at] : ' ';
}

/* A tag of one word at `at`, "{% raw %}": its end, or 0. *first and *last are its signs. */
static size_t word_tag(const tg_jinja_lexer *l, size_t at, const char *name, char *first,
                       char *last) {
    if (!here(l, at, "{%")) return 0;
    *first = sign_at(l, at + 2);
    at += *first == ' ' ? 2 : 3;
    while (at < l->n && blank(l->text[at])) at++;
    if (!here(l, at, name)) return 0;
    at += strlen(name);
    while (at < l->n && blank(l->text[at])) at++;
    *last = sign_at(l, at);
    if (*last != ' ') at++;
    return here(l, at, "%}") ? at + 2 : 0;
}

/* {% raw %} .. {% endraw %}, whose text is a token. Behind its first tag no line end goes. */
static void raw(tg_jinja_lexer *l, size_t behind, char last, tg_jinja_token *out) {
    move(l, behind);
    if (last == '-') cut_behind(l, '-', false);
    l->line_start = false;
    const size_t from = l->at;
    char first = ' ', end_last = ' ';
    size_t at = from, end = 0;
    while (at < l->n && !(end = word_tag(l, at, "endraw", &first, &end_last))) at++;
    if (!end) {
        bad(out, "want {% endraw %}, have none");
        return;
    }
    out->type = TG_JT_TEXT;
    out->at = l->text + from;
    out->n = cut_before(l, from, at, first, false) - from;
    move(l, end);
    cut_behind(l, end_last, false);
}

/* A comment at l->at; false: it does not end. */
static bool skip_comment(tg_jinja_lexer *l) {
    const size_t from = l->at + (sign_at(l, l->at + 2) == ' ' ? 2 : 3);
    size_t at = from;
    while (at < l->n && !here(l, at, "#}")) at++;
    if (at >= l->n) return false;
    const char sign = at > from ? sign_at(l, at - 1) : ' ';
    move(l, at + 2);
    cut_behind(l, sign, false);
    return true;
}

/* Between tags: a text, or the next tag's beginning. */
static void next_outside(tg_jinja_lexer *l, tg_jinja_token *out) {
    while (l->at < l->n) {
        const size_t from = l->at;
        size_t at = from;
        while (at < l->n && !here(l, at, "{{") && !here(l, at, "{%") && !here(l, at, "{#")) at++;
        const bool print = here(l, at, "{{");
        const char sign = at < l->n ? sign_at(l, at + 2) : '+';
        const size_t end = cut_before(l, from, at, sign, print);
        *out = (tg_jinja_token) { TG_JT_TEXT, l->text + from, end - from, l->line };
        move(l, at);
        if (end > from) return;
        char first, last;
        const size_t behind = at < l->n ? word_tag(l, at, "raw", &first, &last) : 0;
        if (behind) {
            raw(l, behind, last, out);
            return;
        }
        if (here(l, at, "{#")) {
            if (skip_comment(l)) continue;
            bad(out, "want #}, have none");
            return;
        }
        if (at == l->n) break;
        move(l, at + (sign == ' ' ? 2 : 3));
        l->inside = print ? TG_JT_PRINT : TG_JT_TAG;
        l->depth = 0;
        out->type = l->inside;
        return;
    }
    *out = (tg_jinja_token) { TG_JT_END, "", 0, l->line };
}

/* -------------------------------------------------------------------------------------- inside */

/* Up to the same quote again; a backslash hides what follows it. The escapes are the parser's. */
static void string_token(tg_jinja_lexer *l, tg_jinja_token *out) {
    const char quote = l->text[l->at];
    size_t at = l->at + 1;
    while (at < l->n && l->text[at] != quote) at += l->text[at] == '\\' ? 2 : 1;
    if (at >= l->n) {
        bad(out, "want a quote that ends the text, have none");
        return;
    }
    *out = (tg_jinja_token) { TG_JT_STRING, l->text + l->at + 1, at - l->at - 1, l->line };
    move(l, at + 1);
}

/* Digits, which may have one "_" between two of them. */
static size_t digits(const tg_jinja_lexer *l, size_t at) {
    while (at < l->n && (digit(l->text[at]) || (l->text[at] == '_' && at + 1 < l->n &&
                                                digit(l->text[at - 1]) && digit(l->text[at + 1]))))
        at++;
    return at;
}

/* jinja2's integer_re and float_re. Behind a point (x.0.1) digits are a member's number and no
 * fraction. A point without digits behind it ends the number: 1.foo is a member of 1. */
static void number_token(tg_jinja_lexer *l, tg_jinja_token *out) {
    size_t at = digits(l, l->at);
    const bool member = l->at > 0 && l->text[l->at - 1] == '.';
    out->type = TG_JT_INT;
    if (!member && here(l, at, ".") && at + 1 < l->n && digit(l->text[at + 1])) {
        at = digits(l, at + 1);
        out->type = TG_JT_FLOAT;
    }
    if (!member && at < l->n && (l->text[at] == 'e' || l->text[at] == 'E')) {
        size_t power = at + 1;
        if (power < l->n && (l->text[power] == '+' || l->text[power] == '-')) power++;
        if (power < l->n && digit(l->text[power])) {
            at = digits(l, power);
            out->type = TG_JT_FLOAT;
        }
    }
    out->at = l->text + l->at;
    out->n = at - l->at;
    const bool zeros = out->type == TG_JT_INT && out->n > 1 && out->at[0] == '0';
    move(l, at);
    if (at < l->n && word(l->text[at])) bad(out, "a number that goes on as a word");
    if (zeros) bad(out, "a number that begins with 0");
}

/* The longest that fits: two characters before one. Brackets are counted here, since within them no
 * "}}" ends a tag: {{ {"a": {"b": 1}} }} has one in its middle. */
static void operator_token(tg_jinja_lexer *l, tg_jinja_token *out) {
    static const struct {
        char text[3];
        int type;
    } pairs[] = { { "==", TG_JT_EQ }, { "!=", TG_JT_NE },       { "<=", TG_JT_LE },
                  { ">=", TG_JT_GE }, { "//", TG_JT_FLOORDIV }, { "**", TG_JT_POW } };
    out->at = l->text + l->at;
    out->n = 2;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (here(l, l->at, pairs[i].text)) out->type = pairs[i].type;
    const char c = l->text[l->at];
    if (out->type == TG_JT_END) {
        out->type = c;
        out->n = 1;
        if (c == 0 || !strchr("+-/*%~[](){}<>=.:|,", c)) bad(out, "a character that means nothing");
        if (c == '(' || c == '[' || c == '{') l->depth++;
        if (c == ')' || c == ']' || c == '}') l->depth--;
        if (l->depth < 0) bad(out, "a bracket that closes none");
    }
    if (out->type != TG_JT_BAD) move(l, l->at + out->n);
}

/* The end of the tag, with a sign or without; false: it is not here. */
static bool tag_end(tg_jinja_lexer *l, tg_jinja_token *out) {
    const bool print = l->inside == TG_JT_PRINT;
    const char *close = print ? "}}" : "%}";
    char sign = sign_at(l, l->at);
    if (print && sign == '+') sign = ' ';
    if (l->depth > 0 || !here(l, l->at + (sign == ' ' ? 0 : 1), close)) return false;
    out->type = print ? TG_JT_PRINT_END : TG_JT_TAG_END;
    out->n = sign == ' ' ? 2 : 3;
    move(l, l->at + (sign == ' ' ? 2 : 3));
    cut_behind(l, sign, print);
    l->inside = 0;
    return true;
}

void tg_jinja_next(tg_jinja_lexer *l, tg_jinja_token *out) {
    if (!l->inside) {
        next_outside(l, out);
        return;
    }
    size_t at = l->at;
    while (at < l->n && blank(l->text[at])) at++;
    move(l, at);
    *out = (tg_jinja_token) { TG_JT_END, l->text + at, 0, l->line };
    if (at == l->n) {
        bad(out, "want the end of a tag, have none");
    } else if (tag_end(l, out)) {
        return;
    } else if (digit(l->text[at])) {
        number_token(l, out);
    } else if (l->text[at] == '\'' || l->text[at] == '"') {
        string_token(l, out);
    } else if (word(l->text[at])) {
        while (at < l->n && word(l->text[at])) at++;
        *out = (tg_jinja_token) { TG_JT_NAME, l->text + l->at, at - l->at, l->line };
        l->at = at;
    } else {
        operator_token(l, out);
    }
}
