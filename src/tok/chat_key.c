/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat_key.c - which chat template a text is, as a whole.
 *
 * A template is a program in Jinja, and two programs that differ in a word give other prompts. So a
 * text is known or it is not: what is compared is a hash of all of it, in a form in which it does
 * not matter how the program was laid out. That form follows Jinja's own reading, with trim_blocks
 * and lstrip_blocks, as transformers reads templates:
 *
 *     text            as it is, without the white space that "-" beside it, trim_blocks and
 *                     lstrip_blocks remove
 *     {{ .. }}  {% .. %}   3, '{' or '%', what is inside, 4; white space inside goes, but for one
 *                     blank between two words
 *     {# .. #}        nothing
 *     'a\n' "a\n"     1, the bytes that it stands for, 1; an escape other than \n \\ \' \" is 2 and
 *                     its letter
 *     x.role          x['role'], and so for content: the same of a dictionary
 *
 * ChatML's templates may say a system turn of their own for conversations without one. What it says
 * is not hashed but handed out: '<|im_start|>system\n' text '<|im_end|>\n', in one literal.
 *
 * The rows of chat_known.def are made by tools/oracle/chat.py: a template stands there if it
 * renders each of the conversations there as the row's own does.
 */
#include "base/sha256.h"
#include "tok/chat.h"

/* Where the reading is. */
typedef struct reading {
    const char *text;
    size_t n, at;
    char last; /* the byte before, inside a tag; 0: none */
    bool line_start, unknown;
    tg_sha256 sha;
    tg_chat_found *found;
} reading;

static void put(reading *r, const char *bytes, size_t n) { tg_sha256_update(&r->sha, bytes, n); }
static void put_byte(reading *r, char c) { put(r, &c, 1); }

static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool here(const reading *r, size_t at, const char *what) {
    const size_t n = strlen(what);
    return at <= r->n && r->n - at >= n && memcmp(r->text + at, what, n) == 0;
}

/* Text in front of a tag whose sign is "-", "+" or none. */
static void put_text(reading *r, size_t from, size_t to, char sign, bool block) {
    size_t end = to;
    while (end > from && blank(r->text[end - 1])) end--;
    if (sign != '-') {
        size_t line = to; /* where the tag's line begins */
        while (line > from && r->text[line - 1] != '\n') line--;
        const bool lonely = line >= end && (line > from || r->line_start);
        end = block && sign != '+' && lonely ? line : to;
    }
    put(r, r->text + from, end - from);
}

/* The byte that is written so at i, which is moved behind it. *plain: it is one. */
static char unescape(const reading *r, size_t *i, size_t end, bool *plain) {
    static const char letters[] = "n\\'\"", bytes[] = "\n\\'\"";
    char c = r->text[(*i)++];
    *plain = true;
    if (c != '\\' || *i >= end) return c;
    c = r->text[(*i)++];
    const char *known = memchr(letters, c, sizeof letters - 1);
    *plain = known != NULL;
    return known ? bytes[known - letters] : c;
}

/* The literal [from, to) with its escapes; into `copy`, which has room for all, or into the hash.
 */
static size_t decode(reading *r, size_t from, size_t to, char *copy) {
    size_t n = 0;
    for (size_t i = from; i < to;) {
        bool plain;
        const char c = unescape(r, &i, to, &plain);
        if (copy) {
            if (!plain) r->unknown = true;
            copy[n++] = c;
        } else {
            if (!plain) put_byte(r, 2);
            put_byte(r, c);
        }
    }
    return n;
}

/* Of a literal that is a system turn: the text in it. One file has one. */
static void take_system(reading *r, size_t from, size_t to) {
    tg_chat_found *f = r->found;
    char text[TG_CHAT_SYSTEM_MAX];
    const size_t n = decode(r, from, to, text);
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == '<' && text[i + 1] == '|') r->unknown = true;
    if (f->system_bytes > 0 && (f->system_bytes != n || memcmp(f->system, text, n) != 0))
        r->unknown = true;
    memcpy(f->system, text, n);
    f->system_bytes = n;
}

/* How long a line end is that is written at i: as itself, or as an escape; 0: there is none. */
static size_t line_end(const reading *r, size_t i) {
    return here(r, i, "\n") ? 1 : here(r, i, "\\n") ? 2 : 0;
}

static void take_literal(reading *r) {
    static const char head[] = "<|im_start|>system", tail[] = "<|im_end|>";
    const char quote = r->text[r->at++];
    const size_t from = r->at;
    while (r->at < r->n && r->text[r->at] != quote) r->at += r->text[r->at] == '\\' ? 2 : 1;
    if (r->at >= r->n) {
        r->unknown = true;
        return;
    }
    const size_t to = r->at++;
    const size_t first = from + sizeof head - 1, n_tail = sizeof tail - 1;
    size_t begin = here(r, from, head) ? first + line_end(r, first) : first, end = to;
    while (end > begin && !here(r, end, tail)) end--;
    const bool turn = begin > first && end > begin && line_end(r, end + n_tail) > 0 &&
                      end + n_tail + line_end(r, end + n_tail) == to &&
                      end - begin <= TG_CHAT_SYSTEM_MAX;
    put_byte(r, 1);
    if (turn) {
        put(r, "<|im_start|>system\n<|im_end|>\n", 30);
        take_system(r, begin, end);
    } else {
        decode(r, from, to, NULL);
    }
    put_byte(r, 1);
    r->last = 1;
}

/* ".role" behind a value. */
static bool take_member(reading *r) {
    static const char *const names[] = { "role", "content" };
    if (!word(r->last) && r->last != ']' && r->last != ')') return false;
    for (size_t k = 0; k < 2; k++) {
        const size_t n = strlen(names[k]);
        if (!here(r, r->at + 1, names[k]) || (r->at + 1 + n < r->n && word(r->text[r->at + 1 + n])))
            continue;
        put(r, "[\1", 2);
        put(r, names[k], n);
        put(r, "\1]", 2);
        r->at += 1 + n;
        r->last = ']';
        return true;
    }
    return false;
}

/* What is between the marks of a tag; r->at is left at its closing ones, or the sign before. */
static void take_inside(reading *r, const char *close) {
    bool gap = false;
    int depth = 0;
    for (r->last = 0; r->at < r->n && !r->unknown;) {
        const char c = r->text[r->at];
        if (depth == 0 &&
            (here(r, r->at, close) || ((c == '-' || c == '+') && here(r, r->at + 1, close))))
            return;
        if (c == '\'' || c == '"') {
            take_literal(r);
            gap = false;
        } else if (blank(c)) {
            gap = true;
            r->at++;
        } else if (c != '.' || !take_member(r)) {
            depth += c == '(' || c == '[' || c == '{';
            depth -= c == ')' || c == ']' || c == '}';
            if (gap && word(c) && word(r->last)) put_byte(r, ' ');
            put_byte(r, c);
            gap = false;
            r->last = c;
            r->at++;
        }
    }
    r->unknown = true; /* it never ends */
}

/* The closing marks, and the white space that goes with them. */
static void take_end(reading *r, bool block, char sign) {
    r->at += 2;
    const size_t from = r->at;
    if (sign == '-')
        while (r->at < r->n && blank(r->text[r->at])) r->at++;
    else if (block && sign != '+' && here(r, r->at, "\n"))
        r->at++;
    r->line_start = r->at > from && r->text[r->at - 1] == '\n';
}

static void take_tag(reading *r, char kind) {
    static const char *const closes[] = { "}}", "%}" };
    if (kind == '#') {
        while (r->at < r->n && !here(r, r->at, "#}")) r->at++;
        r->unknown = r->unknown || r->at >= r->n;
        if (!r->unknown) take_end(r, true, r->text[r->at - 1] == '-' ? '-' : ' ');
        return;
    }
    put_byte(r, 3);
    put_byte(r, kind);
    const size_t from = r->at;
    take_inside(r, closes[kind == '%']);
    put_byte(r, 4);
    if (r->unknown) return;
    const char c = r->text[r->at], sign = c == '-' || c == '+' ? c : ' ';
    size_t begin = from; /* {% raw %} has other rules inside */
    while (begin < r->at && blank(r->text[begin])) begin++;
    if (kind == '%' && here(r, begin, "raw")) r->unknown = true;
    if (sign != ' ') r->at++;
    take_end(r, kind == '%', sign);
}

static size_t next_tag(const reading *r) {
    size_t at = r->at;
    while (at < r->n && !here(r, at, "{{") && !here(r, at, "{%") && !here(r, at, "{#")) at++;
    return at;
}

uint64_t tg_chat_key(const char *text, size_t n_bytes, tg_chat_found *found) {
    reading r = { .text = text, .n = n_bytes, .line_start = true, .found = found };
    found->system_bytes = 0;
    tg_sha256_init(&r.sha);
    if (r.n > 0 && text[r.n - 1] == '\n') r.n--;
    for (size_t i = 0; i < r.n; i++)
        if ((text[i] > 0 && text[i] < 5) || text[i] == 0 || text[i] == '\r') r.unknown = true;
    while (r.at < r.n && !r.unknown) {
        const size_t from = r.at, to = next_tag(&r);
        r.at = to;
        if (to == r.n) {
            put(&r, text + from, to - from);
            break;
        }
        const char kind = text[to + 1];
        r.at += 2;
        const char c = r.at < r.n ? text[r.at] : ' ';
        const char sign = c == '-' || (c == '+' && kind != '{') ? c : ' ';
        put_text(&r, from, to, sign, kind != '{');
        if (sign != ' ') r.at++;
        take_tag(&r, kind);
    }
    uint8_t digest[TG_SHA256_BYTES];
    tg_sha256_final(&r.sha, digest);
    uint64_t key = 0;
    for (int i = 0; i < 8; i++) key = key << 8 | digest[i];
    return r.unknown ? 0 : key;
}

static const struct {
    uint64_t key;
    const char *name;
} known[] = {
#define KNOWN(key, name) { UINT64_C(key), name },
#include "tok/chat_known.def"
#undef KNOWN
};

const tg_chat_template *tg_chat_detect(const char *text, size_t n_bytes, tg_chat_found *found) {
    const uint64_t key = tg_chat_key(text, n_bytes, found);
    for (size_t i = 0; key && i < sizeof known / sizeof known[0]; i++)
        if (known[i].key == key) return tg_chat_saying(tg_chat_named(known[i].name), found);
    return NULL;
}
