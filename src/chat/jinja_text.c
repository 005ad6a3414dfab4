/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_text.c - texts: what Python's str makes of them, and values as text: str(), repr(), JSON.
 *
 * Texts are arrays of code points, as Python's are for those who count and slice. Whose words a
 * character is goes with it wherever it goes; what is made here (quotes, brackets, digits) is the
 * template's own.
 *
 * Three forms of a value, and what differs:
 *
 *                 text     None   True   1.0    1e16    a list     a dictionary
 *     str()       a'b      None   True   1.0    1e+16   ["a'b"]    {'k': 1}
 *     repr()      "a'b"    None   True   1.0    1e+16   ["a'b"]    {'k': 1}
 *     JSON        "a'b"    null   true   1.0    1e+16   ["a'b"]    {"k": 1}
 *
 * Both of Python's forms of a float are its repr: the fewest digits that read back as the same
 * double (float_repr_style "short"). base/str.h writes those digits, in another form of its own.
 */
#include "base/str.h"
#include "chat/jinja_inside.h"
#include "tok/unicode/unicode.h"

/* What str.isspace() says. */
bool tg_jinja_space_char(uint32_t c) {
    c &= TG_JINJA_CODE;
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31) ||
           (c > 127 && tg_uc_class_of(c) == TG_UC_BLANK);
}

/* --------------------------------------------------------------------------------- upper, lower */

/* The code whose lower case this is: the tables have that direction alone. The blocks of scripts
 * with two cases are searched; of letters that become two only ß is known (map_case). */
uint32_t tg_jinja_upper(uint32_t c) {
    static const uint32_t ranges[][2] = { { 0xc0, 0x588 },    { 0x10a0, 0x10ff },
                                          { 0x1c90, 0x1cbf }, { 0x1e00, 0x1fff },
                                          { 0x2160, 0x2183 }, { 0x24b6, 0x24e9 },
                                          { 0x2c00, 0x2cff }, { 0xa640, 0xa7ff },
                                          { 0xff21, 0xff5a } };
    if (c < 128) return c >= 'a' && c <= 'z' ? c - 32 : c;
    if (c == 0xdf) return c;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        for (uint32_t u = ranges[i][0]; u <= ranges[i][1]; u++) {
            uint32_t low[2];
            if (u != c && tg_uc_lower(u, low) == 1 && low[0] == c) return u;
        }
    }
    return c;
}

/* Has it an upper or a lower case? What has neither (digits, Han) ends a word of title(). */
static bool cased(uint32_t c) {
    uint32_t low[2];
    if (c < 128) return (c | 32) >= 'a' && (c | 32) <= 'z';
    return tg_uc_lower(c, low) != 1 || low[0] != c || tg_jinja_upper(c) != c;
}

/* Where jinja2's filter "title" begins a word. */
static bool begins_word(uint32_t c) {
    return tg_jinja_space_char(c) || (c < 128 && c && strchr("-({[<", (int)c));
}

/* how: l lower, u upper, c the first upper and the rest lower, t each word so, T the same by the
 * filter's idea of a word. At most two characters come of one. Looking for the upper case of a
 * letter beyond ASCII is a search of tables, so it costs steps of its own. */
value tg_jinja_map_case(tg_jinja_run *r, value text, char how) {
    uint32_t *c = tg_jinja_alloc(r, 2 * (size_t)text.n, sizeof *c), n = 0;
    if (!c || !tg_jinja_spend(r, text.n)) return tg_jinja_undefined(NULL);
    bool start = true; /* of a word, or of the text */
    for (uint32_t i = 0; i < text.n; i++) {
        const uint32_t code = text.u.text[i] & TG_JINJA_CODE;
        const uint32_t whose = text.u.text[i] & TG_JINJA_WORDS;
        uint32_t made[2] = { code, 0 };
        size_t count = 1;
        if (code == 0xdf && (how == 'u' || (how != 'l' && start))) { /* ß */
            made[0] = 'S';
            made[1] = how == 'u' ? 'S' : 's';
            count = 2;
        } else if (how == 'u' || (how != 'l' && start))
            made[0] = tg_jinja_upper(code);
        else
            count = tg_uc_lower(code, made);
        if (how != 'u' && code >= 128 && code != made[0] && !tg_jinja_spend(r, 16)) break;
        for (size_t k = 0; k < count; k++) c[n++] = made[k] | whose;
        start = how == 't' ? !cased(code) : how == 'T' ? begins_word(code) : false;
    }
    text.u.text = c;
    text.n = n;
    return text;
}

/* ---------------------------------------------------------------------------- parts of texts */

/* chars NULL: white space. */
static bool among(uint32_t c, const value *chars) {
    if (!chars) return tg_jinja_space_char(c);
    for (uint32_t i = 0; i < chars->n; i++)
        if (((chars->u.text[i] ^ c) & TG_JINJA_CODE) == 0) return true;
    return false;
}

/* The rest shares the characters of the text. */
value tg_jinja_strip(value text, const value *chars, bool left, bool right) {
    size_t from = 0, to = text.n;
    while (left && from < to && among(text.u.text[from], chars)) from++;
    while (right && to > from && among(text.u.text[to - 1], chars)) to--;
    return tg_jinja_piece(text, from, to);
}

/* XOR leaves bit 31 where the words are of two hands; only the codes count. */
static bool same_at(value text, size_t at, value what) {
    for (uint32_t i = 0; i < what.n; i++)
        if (at + i >= text.n || ((text.u.text[at + i] ^ what.u.text[i]) & TG_JINJA_CODE))
            return false;
    return true;
}

/* most < 0: all of them. */
value tg_jinja_replace(tg_jinja_run *r, value text, value old, value new_text, int64_t most) {
    const size_t start = r->out_n;
    size_t at = 0;
    if (!tg_jinja_spend(r, text.n / 4)) return tg_jinja_undefined(NULL);
    if (old.n == 0 && most != 0) { /* in front of each, and at the end */
        for (;; at++) {
            if (most < 0 || most-- > 0) tg_jinja_emit(r, new_text.u.text, new_text.n);
            if (at >= text.n || tg_jinja_failed(r)) break;
            tg_jinja_emit(r, text.u.text + at, 1);
        }
        return tg_jinja_take(r, start);
    }
    size_t from = 0;
    for (; most != 0 && old.n <= text.n && at <= text.n - old.n && !tg_jinja_failed(r);) {
        if (!same_at(text, at, old)) {
            at++;
            continue;
        }
        tg_jinja_emit(r, text.u.text + from, at - from);
        tg_jinja_emit(r, new_text.u.text, new_text.n);
        from = at += old.n;
        most--;
    }
    tg_jinja_emit(r, text.u.text + from, text.n - from);
    return tg_jinja_take(r, start);
}

/* str.splitlines() */
value tg_jinja_lines(tg_jinja_run *r, value text, bool keep_ends) {
    value out = tg_jinja_list_new(r);
    size_t from = 0;
    for (size_t i = 0; i < text.n && tg_jinja_spend(r, 1); i++) {
        const uint32_t c = text.u.text[i] & TG_JINJA_CODE;
        if (!((c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 ||
              c == 0x2029))
            continue;
        size_t behind = i + 1;
        if (c == '\r' && behind < text.n && (text.u.text[behind] & TG_JINJA_CODE) == '\n') behind++;
        tg_jinja_push(r, out, tg_jinja_piece(text, from, keep_ends ? behind : i));
        from = behind;
        i = behind - 1;
    }
    if (from < text.n) tg_jinja_push(r, out, tg_jinja_piece(text, from, text.n));
    return out;
}

/* The five characters of HTML; the result is safe. */
value tg_jinja_escape(tg_jinja_run *r, value text) {
    static const char chars[] = "&<>\"'";
    static const char *const names[] = { "&amp;", "&lt;", "&gt;", "&#34;", "&#39;" };
    const size_t start = r->out_n;
    for (uint32_t i = 0; i < text.n; i++) {
        const uint32_t c = text.u.text[i] & TG_JINJA_CODE;
        const char *at = c && c < 128 ? strchr(chars, (int)c) : NULL;
        if (at)
            tg_jinja_emit_ascii(r, names[at - chars]);
        else
            tg_jinja_emit(r, text.u.text + i, 1);
    }
    value out = tg_jinja_take(r, start);
    out.flags |= TG_JV_SAFE;
    return out;
}

/* strict: as str.join() has it, which takes texts alone; the filter takes anything. */
value tg_jinja_join(tg_jinja_run *r, value with, const tg_jinja_list *l, bool strict) {
    const size_t start = r->out_n;
    for (uint32_t i = 0; l && i < l->n && tg_jinja_spend(r, 1); i++) {
        if (i > 0) tg_jinja_emit(r, with.u.text, with.n);
        if (strict && l->item[i].type != TG_JV_TEXT)
            return tg_jinja_fail(r, TG_E_ARG, "want texts to join, have a %s",
                                 tg_jinja_type_name(l->item[i]));
        tg_jinja_emit_str(r, l->item[i]);
    }
    return tg_jinja_take(r, start);
}

/* ------------------------------------------------------------------------- numbers in texts */

/* The text without white space around, in ASCII; false: it is longer than a number. */
static bool plain(value text, char out[48], size_t *n) {
    text = tg_jinja_strip(text, NULL, true, true);
    *n = 0;
    for (uint32_t i = 0; i < text.n; i++) {
        const uint32_t c = text.u.text[i] & TG_JINJA_CODE;
        if (c >= 128 || *n >= 40) return false;
        const bool between = c == '_' && i > 0 && i + 1 < text.n;
        if (!between) out[(*n)++] = (char)c;
    }
    return true;
}

bool tg_jinja_read_int(value text, int64_t *out) {
    /* "+5" is a number to Python and none to tg_parse_int64; "+-5" is none to either. */
    char digits[48];
    size_t n;
    if (!plain(text, digits, &n)) return false;
    const size_t from = n > 1 && digits[0] == '+' && digits[1] != '-' ? 1 : 0;
    return tg_parse_int64(digits + from, n - from, out);
}

/* "1." and ".5" are numbers to Python, too. */
bool tg_jinja_read_float(value text, double *out) {
    char digits[48], made[52];
    size_t n, k = 0, i = 0;
    if (!plain(text, digits, &n)) return false;
    if (n > 0 && (digits[0] == '+' || digits[0] == '-')) {
        if (digits[i++] == '-') made[k++] = '-';
    }
    while (i + 1 < n && digits[i] == '0' && digits[i + 1] >= '0' && digits[i + 1] <= '9') i++;
    if (i < n && digits[i] == '.' && i + 1 < n) made[k++] = '0';
    for (; i < n; i++) {
        made[k++] = digits[i];
        if (digits[i] == '.' && (i + 1 == n || digits[i + 1] == 'e' || digits[i + 1] == 'E'))
            made[k++] = '0';
    }
    return tg_parse_double(made, k, out);
}

/* ------------------------------------------------------------------------- values as text */

/* repr(float): shortest digits; an exponent of two digits below 1e-4 and from 1e16 on. */
static void put_float(tg_jinja_run *r, double d, const char *nan, const char *infinity) {
    char text[TG_NUMBER_BYTES], digits[24];
    if (d != d) {
        tg_jinja_emit_ascii(r, nan);
        return;
    }
    if (d < 0 || (d == 0 && 1 / d < 0)) tg_jinja_emit_ascii(r, "-");
    d = d < 0 ? -d : d == 0 ? 0 : d;
    if (d > DBL_MAX) {
        tg_jinja_emit_ascii(r, infinity);
        return;
    }
    /* Zeros in front move the point and are no digits, zeros behind are dropped again below. */
    tg_format_double(d, text);
    /* text is d.ddde-dd in one of its forms: digits, and the place of the point behind the first */
    int n = 0, point = 0, exponent = 0;
    bool fraction = false;
    const char *c = text;
    for (; *c && *c != 'e'; c++) {
        if (*c == '.') {
            fraction = true;
        } else if (n > 0 || *c != '0') {
            if (n < 20) digits[n++] = *c;
            point += !fraction;
        } else {
            point -= fraction;
        }
    }
    if (*c == 'e') {
        int64_t e = 0;
        tg_parse_int64(c + 1 + (c[1] == '+'), strlen(c + 1 + (c[1] == '+')), &e);
        exponent = (int)e;
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    if (n == 0) {
        digits[n++] = '0';
        point = 1;
    }
    point += exponent;
    digits[n] = 0;
    /* As format_float_short of CPython chooses: no exponent for 1e-4 <= d < 1e16. */
    char out[64];
    out[0] = 0;
    if (point > -4 && point <= 16) {
        if (point <= 0) tg_str_append(out, sizeof out, "0.%.*s%s", -point, "0000", digits);
        for (int i = 0; point > 0 && (i < n || i < point); i++)
            tg_str_append(out, sizeof out, "%s%c", i == point ? "." : "", i < n ? digits[i] : '0');
        if (point >= n && point > 0) tg_str_append(out, sizeof out, ".0");
    } else {
        const int e = point - 1;
        tg_str_append(out, sizeof out, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "", digits + 1,
                      e < 0 ? '-' : '+', e < 0 ? -e : e);
    }
    tg_jinja_emit_ascii(r, out);
}

/* No digits in groups, and a sign only below 0: as str() has it. */
static void put_int(tg_jinja_run *r, int64_t i) {
    char text[TG_NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRId64, i);
    tg_jinja_emit_ascii(r, text);
}

/* str(): an undefined value is nothing, which is jinja2's default and no error. */
void tg_jinja_emit_str(tg_jinja_run *r, value v) {
    if (v.type == TG_JV_UNDEFINED) return;
    if (v.type == TG_JV_TEXT) {
        tg_jinja_emit(r, v.u.text, v.n);
        return;
    }
    tg_jinja_emit_repr(r, v);
}

/* The output buffer serves as the place where a text is made: what was emitted since is taken back
 * from its end. So texts in the making nest without memory of their own. */
value tg_jinja_str(tg_jinja_run *r, value v) {
    if (v.type == TG_JV_TEXT || tg_jinja_failed(r)) return v;
    const size_t start = r->out_n;
    tg_jinja_emit_str(r, v);
    return tg_jinja_take(r, start);
}

/* str.isprintable(), by the classes of tok/unicode/unicode.h. */
static bool printable(uint32_t c) {
    if (c < 128) return c >= 32 && c < 127;
    const tg_uc_class class = tg_uc_class_of(c);
    return class != TG_UC_BLANK && class != TG_UC_CONTROL;
}

/* "\x0a", "\u00e9": small letters, as Python and json.dumps write them. */
static void put_hex(tg_jinja_run *r, const char *letter, int digits, uint32_t c) {
    char text[16];
    snprintf(text, sizeof text, "\\%s%.*x", letter, digits, (unsigned)c);
    tg_jinja_emit_ascii(r, text);
}

/* repr(str): in ' unless it holds one and no ". */
static void repr_text(tg_jinja_run *r, value v) {
    const char *quote = "'";
    bool single = false, twice = false;
    for (uint32_t i = 0; i < v.n; i++) {
        single = single || (v.u.text[i] & TG_JINJA_CODE) == '\'';
        twice = twice || (v.u.text[i] & TG_JINJA_CODE) == '"';
    }
    if (single && !twice) quote = "\"";
    tg_jinja_emit_ascii(r, quote);
    for (uint32_t i = 0; i < v.n && !tg_jinja_failed(r); i++) {
        const uint32_t c = v.u.text[i] & TG_JINJA_CODE;
        if (c == '\n' || c == '\t' || c == '\r') {
            tg_jinja_emit_ascii(r, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
        } else if (c == '\\' || c == (unsigned char)*quote) {
            tg_jinja_emit_ascii(r, "\\");
            tg_jinja_emit(r, v.u.text + i, 1);
        } else if (!printable(c)) {
            put_hex(r,
                    c < 0x100     ? "x"
                    : c < 0x10000 ? "u"
                                  : "U",
                    c < 0x100     ? 2
                    : c < 0x10000 ? 4
                                  : 8,
                    c);
        } else {
            tg_jinja_emit(r, v.u.text + i, 1);
        }
    }
    tg_jinja_emit_ascii(r, quote);
}

/* A tuple of one has a comma, so that it is not read as brackets. */
static void repr_list(tg_jinja_run *r, const tg_jinja_list *l) {
    if (l->kind > TG_JL_TUPLE) {
        tg_jinja_unknown(r, "a generator, range or view as text", "");
        return;
    }
    tg_jinja_emit_ascii(r, l->kind == TG_JL_LIST ? "[" : "(");
    for (uint32_t i = 0; i < l->n && !tg_jinja_failed(r); i++) {
        if (i > 0) tg_jinja_emit_ascii(r, ", ");
        tg_jinja_emit_repr(r, l->item[i]);
    }
    tg_jinja_emit_ascii(r, l->kind == TG_JL_LIST ? "]" : l->n == 1 ? ",)" : ")");
}

/* In the order of insertion. */
static void repr_dict(tg_jinja_run *r, const tg_jinja_dict *d) {
    tg_jinja_emit_ascii(r, "{");
    for (uint32_t i = 0; i < d->n && !tg_jinja_failed(r); i++) {
        if (i > 0) tg_jinja_emit_ascii(r, ", ");
        tg_jinja_emit_repr(r, d->key[i]);
        tg_jinja_emit_ascii(r, ": ");
        tg_jinja_emit_repr(r, d->item[i]);
    }
    tg_jinja_emit_ascii(r, "}");
}

/* What a list or a dictionary shows of its items. Values nest as deep as the conversation's JSON,
 * so depth is counted here, too. Names of classes and addresses, which Python writes for the rest,
 * mean nothing to a model: they are refused. */
void tg_jinja_emit_repr(tg_jinja_run *r, value v) {
    if (++r->depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
    if (tg_jinja_failed(r)) return;
    switch (v.type) {
    case TG_JV_UNDEFINED: tg_jinja_emit_ascii(r, "Undefined"); break;
    case TG_JV_NONE: tg_jinja_emit_ascii(r, "None"); break;
    case TG_JV_BOOL: tg_jinja_emit_ascii(r, v.u.i ? "True" : "False"); break;
    case TG_JV_INT: put_int(r, v.u.i); break;
    case TG_JV_FLOAT: put_float(r, v.u.d, "nan", "inf"); break;
    case TG_JV_TEXT:
        if (v.flags & TG_JV_SAFE) {
            tg_jinja_unknown(r, "a safe text inside of another value as text", "");
            break;
        }
        repr_text(r, v);
        break;
    case TG_JV_LIST: repr_list(r, v.u.list); break;
    case TG_JV_DICT: repr_dict(r, v.u.dict); break;
    default: tg_jinja_unknown(r, "as text: a ", tg_jinja_type_name(v));
    }
    r->depth--;
}

/* ---------------------------------------------------------------------------------------- JSON */

/* py_encode_basestring of Python's json. The escape of somebody's character is somebody's, so that
 * no special token can be put together of them. With ensure_ascii, characters beyond 16 bits become
 * a pair of surrogates. */
static void json_text(tg_jinja_run *r, value v, bool ascii) {
    static const char chars[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    tg_jinja_emit_ascii(r, "\"");
    for (uint32_t i = 0; i < v.n && !tg_jinja_failed(r); i++) {
        const uint32_t c = v.u.text[i] & TG_JINJA_CODE;
        const char *at = c && c < 128 ? strchr(chars, (int)c) : NULL;
        if (at) {
            const uint32_t pair[2] = { '\\' | (v.u.text[i] & TG_JINJA_WORDS),
                                       (uint32_t)letters[at - chars] |
                                           (v.u.text[i] & TG_JINJA_WORDS) };
            tg_jinja_emit(r, pair, 2);
        } else if (c < 32 || (ascii && c >= 127 && c < 0x10000)) {
            put_hex(r, "u", 4, c);
        } else if (ascii && c >= 127) {
            put_hex(r, "u", 4, 0xd800 + ((c - 0x10000) >> 10));
            put_hex(r, "u", 4, 0xdc00 + ((c - 0x10000) & 0x3ff));
        } else {
            tg_jinja_emit(r, v.u.text + i, 1);
        }
    }
    tg_jinja_emit_ascii(r, "\"");
}

/* Only with an indent; without one all stands in a line. */
static void new_line(tg_jinja_run *r, const tg_jinja_json *how, uint32_t depth) {
    if (!how->indented) return;
    tg_jinja_emit_ascii(r, "\n");
    for (uint32_t i = 0; i < depth && !tg_jinja_failed(r); i++)
        tg_jinja_emit(r, how->indent.u.text, how->indent.n);
}

static void json_value(tg_jinja_run *r, value v, const tg_jinja_json *how, uint32_t depth);

/* Keys are texts, or what JSON has a text for. */
static void json_key(tg_jinja_run *r, value key, const tg_jinja_json *how) {
    if (key.type == TG_JV_TEXT) {
        json_text(r, key, how->ascii);
    } else if (key.type == TG_JV_LIST) {
        tg_jinja_fail(r, TG_E_ARG, "want keys for JSON, have a tuple");
    } else {
        tg_jinja_emit_ascii(r, "\"");
        json_value(r, key, how, 0);
        tg_jinja_emit_ascii(r, "\"");
    }
}

/* The n-th key, or the n-th in order: selected anew each time, since members are few. */
static uint32_t sorted_key(tg_jinja_run *r, const tg_jinja_dict *d, uint32_t n) {
    for (uint32_t i = 0; i < d->n; i++) {
        uint32_t before = 0;
        for (uint32_t k = 0; k < d->n && !tg_jinja_failed(r); k++)
            before += k != i && tg_jinja_order(r, d->key[k], d->key[i]) < 0;
        if (before == n) return i;
    }
    return 0;
}

/* An empty list has no line of its own inside: "[]". */
static void json_items(tg_jinja_run *r, value v, const tg_jinja_json *how, uint32_t depth) {
    const bool dict = v.type == TG_JV_DICT;
    const uint32_t n = dict ? v.u.dict->n : v.u.list->n;
    tg_jinja_emit_ascii(r, dict ? "{" : "[");
    for (uint32_t i = 0; i < n && !tg_jinja_failed(r); i++) {
        const uint32_t k = dict && how->sort ? sorted_key(r, v.u.dict, i) : i;
        if (i > 0) tg_jinja_emit(r, how->comma.u.text, how->comma.n);
        new_line(r, how, depth + 1);
        if (dict) {
            json_key(r, v.u.dict->key[k], how);
            tg_jinja_emit(r, how->colon.u.text, how->colon.n);
        }
        json_value(r, dict ? v.u.dict->item[k] : v.u.list->item[k], how, depth + 1);
    }
    if (n > 0) new_line(r, how, depth);
    tg_jinja_emit_ascii(r, dict ? "}" : "]");
}

static void json_value(tg_jinja_run *r, value v, const tg_jinja_json *how, uint32_t depth) {
    if (depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
    if (!tg_jinja_spend(r, 1)) return;
    const bool list = v.type == TG_JV_LIST && v.u.list->kind <= TG_JL_TUPLE;
    switch (v.type) {
    case TG_JV_NONE: tg_jinja_emit_ascii(r, "null"); return;
    case TG_JV_BOOL: tg_jinja_emit_ascii(r, v.u.i ? "true" : "false"); return;
    case TG_JV_INT: put_int(r, v.u.i); return;
    case TG_JV_FLOAT: put_float(r, v.u.d, "NaN", "Infinity"); return;
    case TG_JV_TEXT: json_text(r, v, how->ascii); return;
    default: break;
    }
    if (list || v.type == TG_JV_DICT) {
        json_items(r, v, how, depth);
        return;
    }
    tg_jinja_fail(r, TG_E_ARG, "want something that JSON has, have a %s",
                  v.type == TG_JV_LIST ? "generator" : tg_jinja_type_name(v));
}

void tg_jinja_emit_json(tg_jinja_run *r, value v, const tg_jinja_json *how) {
    json_value(r, v, how, 0);
}
