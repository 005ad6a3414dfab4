/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_method.c - the methods that templates call on texts, lists and dictionaries, and the
 * functions that transformers gives them: range, dict, namespace, raise_exception, strftime_now.
 *
 * Methods do what CPython's do (Objects/unicodeobject.c and its neighbours; the library reference
 * says it in words), on code points and not on bytes. Indices may be negative, and count from the
 * end. What differs from one version of Python to the next is as in 3.12.
 *
 * What changes a value (list.append, dict.pop) is refused by the sandbox of transformers, and so
 * here.
 */
#include "base/str.h"
#include "chat/jinja_inside.h"
#include "tok/unicode/unicode.h"

/* ------------------------------------------------------------------------------- arguments */

/* As Python binds arguments: by place first, then by keyword. UINT32_MAX as the place asks for the
 * keyword alone, name NULL for the place alone. */
const value *tg_jinja_arg(const tg_jinja_args *a, uint32_t i, const char *name) {
    if (i < a->n) return &a->v[i];
    for (uint32_t k = 0; name && k < a->n_named; k++)
        if (strcmp(a->name[k], name) == 0) return &a->named[k];
    return NULL;
}

/* The number alone is checked here: which names there are is the function's to know, and one that
 * it does not look for is passed over. So keywords are rare among what templates call. */
bool tg_jinja_want_args(tg_jinja_run *r, const tg_jinja_args *a, const char *what, uint32_t least,
                        uint32_t most) {
    const uint32_t n = a->n + a->n_named;
    if (tg_jinja_failed(r)) return false;
    if (n >= least && n <= most) return true;
    tg_jinja_fail(r, TG_E_ARG, "%s: want %u to %u arguments, have %u", what, (unsigned)least,
                  (unsigned)most, (unsigned)n);
    return false;
}

/* Is the argument there, and not None? */
static bool given(const value *v) { return v && v->type != TG_JV_NONE; }

/* Methods of str take str alone: Python raises a TypeError for all else, and so it is an error of
 * the template and none of what is known here. */
static bool want_text(tg_jinja_run *r, const value *v) {
    if (v && v->type == TG_JV_TEXT) return true;
    tg_jinja_fail(r, TG_E_ARG, "want a str, have a %s", v ? tg_jinja_type_name(*v) : "missing one");
    return false;
}

/* An index or a count. True is 1 to Python, and a float is an error even if it is whole. */
static int64_t int_or(tg_jinja_run *r, const value *v, int64_t other) {
    if (!given(v)) return other;
    if (v->type == TG_JV_INT || v->type == TG_JV_BOOL) return v->u.i;
    tg_jinja_fail(r, TG_E_ARG, "want an int, have a %s", tg_jinja_type_name(*v));
    return other;
}

/* ------------------------------------------------------------------------------------- str */

/* self has the type that the method's line in the table names. */
typedef value method_fn(tg_jinja_run *r, value self, const tg_jinja_args *a, int how);

/* strip, lstrip, rstrip: bit 0 of how is the left end, bit 1 the right one. The argument is a set
 * of characters and not a text, which "  -".strip("- ") shows. */
static value strip(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    const value *chars = tg_jinja_arg(a, 0, NULL);
    if (given(chars) && !want_text(r, chars)) return self;
    return tg_jinja_strip(self, given(chars) ? chars : NULL, how & 1, how & 2);
}

/* By their codes: whose words they are makes no difference to what is equal. */
static bool same_at(value text, size_t at, value what) {
    for (uint32_t i = 0; i < what.n; i++)
        if (at + i >= text.n || ((text.u.text[at + i] ^ what.u.text[i]) & TG_JINJA_CODE))
            return false;
    return true;
}

/* Words between white space; from the right the rest stands in front. */
static void split_words(tg_jinja_run *r, value self, int64_t most, bool right, value out) {
    size_t from = 0, to = self.n;
    for (;;) {
        while (from < to && tg_jinja_space_char(self.u.text[from])) from++;
        while (to > from && tg_jinja_space_char(self.u.text[to - 1])) to--;
        if (from >= to || tg_jinja_failed(r)) return;
        if (most == 0) { /* the rest keeps the white space at its other end */
            tg_jinja_push(r, out, tg_jinja_piece(self, right ? 0 : from, right ? to : self.n));
            return;
        }
        size_t at = right ? to : from;
        if (right) {
            while (at > from && !tg_jinja_space_char(self.u.text[at - 1])) at--;
            tg_jinja_push(r, out, tg_jinja_piece(self, at, to));
            to = at;
        } else {
            while (at < to && !tg_jinja_space_char(self.u.text[at])) at++;
            tg_jinja_push(r, out, tg_jinja_piece(self, from, at));
            from = at;
        }
        most--;
    }
}

/* Pieces from the right are found last first. */
static void reverse(tg_jinja_list *l) {
    for (uint32_t i = 0; i < l->n / 2; i++) {
        const value v = l->item[i];
        l->item[i] = l->item[l->n - 1 - i];
        l->item[l->n - 1 - i] = v;
    }
}

/* str.split and rsplit. Without a separator runs of white space divide, and none stands at an end;
 * with one, each occurrence does, and two in a row have an empty text between them. maxsplit below
 * 0 is all. Pieces share the characters of the text, so that a long one is not copied. */
static value split(tg_jinja_run *r, value self, const tg_jinja_args *a, int right) {
    const value *by = tg_jinja_arg(a, 0, "sep");
    int64_t most = int_or(r, tg_jinja_arg(a, 1, "maxsplit"), -1);
    value out = tg_jinja_list_new(r);
    if (!tg_jinja_spend(r, self.n / 4) || out.type != TG_JV_LIST) return out;
    if (!given(by)) {
        split_words(r, self, most, right, out);
        if (right) reverse(out.u.list);
        return out;
    }
    if (!want_text(r, by)) return out;
    if (by->n == 0) return tg_jinja_fail(r, TG_E_ARG, "an empty text splits nothing");
    size_t from = 0, to = self.n;
    for (size_t at = right ? self.n - (by->n < self.n ? by->n : self.n) : 0;
         most != 0 && self.n >= by->n && at + by->n <= self.n && !tg_jinja_failed(r);) {
        const bool here = at >= from && at + by->n <= to && same_at(self, at, *by);
        if (here && right) {
            tg_jinja_push(r, out, tg_jinja_piece(self, at + by->n, to));
            to = at;
        } else if (here) {
            tg_jinja_push(r, out, tg_jinja_piece(self, from, at));
            from = at + by->n;
        }
        most -= here;
        if (right && at == 0) break;
        at = right ? at - 1 : here ? from : at + 1;
    }
    tg_jinja_push(r, out, tg_jinja_piece(self, from, to));
    if (right) reverse(out.u.list);
    return out;
}

/* [start, end) of startswith, find, count; false: start is behind the end of the text. */
static bool part(tg_jinja_run *r, value self, const tg_jinja_args *a, size_t *from, value *out) {
    const int64_t n = self.n;
    int64_t start = int_or(r, tg_jinja_arg(a, 1, NULL), 0);
    int64_t end = int_or(r, tg_jinja_arg(a, 2, NULL), n);
    if (start < 0) start = start + n < 0 ? 0 : start + n;
    if (end < 0) end = end + n < 0 ? 0 : end + n;
    if (end > n) end = n;
    *from = (size_t)start;
    if (start > end || tg_jinja_failed(r)) return false;
    *out = tg_jinja_piece(self, (size_t)start, (size_t)end);
    return true;
}

/* Does the text begin, or end, with what? The empty text is at both ends of any. */
static bool at_end_of(value text, value what, bool end) {
    return what.n <= text.n && same_at(text, end ? text.n - what.n : 0, what);
}

/* startswith and endswith, of a text or of a tuple of texts, any of which will do. A start behind
 * the text's end finds nothing, not even the empty text, as in CPython's tailmatch. */
static value starts(tg_jinja_run *r, value self, const tg_jinja_args *a, int end) {
    const value *what = tg_jinja_arg(a, 0, NULL);
    size_t from;
    bool found = false;
    const bool inside = part(r, self, a, &from, &self);
    if (what && what->type == TG_JV_LIST && what->u.list->kind == TG_JL_TUPLE) {
        for (uint32_t i = 0; i < what->u.list->n && want_text(r, &what->u.list->item[i]); i++)
            found = found || (inside && at_end_of(self, what->u.list->item[i], end));
    } else if (want_text(r, what)) {
        found = inside && at_end_of(self, *what, end);
    }
    return tg_jinja_bool(found);
}

enum { FIND, RFIND, INDEX, RINDEX, COUNT };

/* One walk for five methods: the first or the last place, or how often without overlap. An empty
 * text is found everywhere, and n + 1 times. index fails where find says -1. */
static value find(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    const value *what = tg_jinja_arg(a, 0, NULL);
    size_t from;
    int64_t found = -1, count = 0;
    if (!want_text(r, what) || !tg_jinja_spend(r, self.n / 4)) return self;
    value text;
    if (part(r, self, a, &from, &text)) {
        for (size_t i = 0; i + what->n <= text.n;) {
            const bool here = same_at(text, i, *what);
            if (here && (found < 0 || how == RFIND || how == RINDEX)) found = (int64_t)(from + i);
            count += here;
            if (here && how != COUNT && how != RFIND && how != RINDEX) break;
            i += here && how == COUNT && what->n > 0 ? what->n : 1;
        }
    }
    if (how == COUNT) return tg_jinja_int(count);
    if (found < 0 && how >= INDEX)
        return tg_jinja_fail(r, TG_E_ARG, "the text is not in the other");
    return tg_jinja_int(found);
}

/* str.replace, whose count has had a name since Python 3.13; its place is what templates use. */
static value replace(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *old = tg_jinja_arg(a, 0, NULL), *other = tg_jinja_arg(a, 1, NULL);
    if (!want_text(r, old) || !want_text(r, other)) return self;
    return tg_jinja_replace(r, self, *old, *other, int_or(r, tg_jinja_arg(a, 2, "count"), -1));
}

/* lower, upper, capitalize, title: str's own, which begin words behind each character without case.
 */
static value map_case(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    return tg_jinja_map_case(r, self, (char)how);
}

/* str.join, which takes texts alone: what is meant for anything is the filter of that name. */
static value join(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    return tg_jinja_join(r, self, tg_jinja_items(r, a->v[0]), true);
}

/* str.splitlines: at all ends of lines that Unicode has, and not at \n alone. */
static value lines(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *keep = tg_jinja_arg(a, 0, "keepends");
    return tg_jinja_lines(r, self, keep && tg_jinja_truth(r, *keep));
}

/* removeprefix and removesuffix: once, and only where it is there. */
static value without(tg_jinja_run *r, value self, const tg_jinja_args *a, int end) {
    const value *what = tg_jinja_arg(a, 0, NULL);
    if (!want_text(r, what) || !at_end_of(self, *what, end)) return self;
    return end ? tg_jinja_piece(self, 0, self.n - what->n) : tg_jinja_piece(self, what->n, self.n);
}

/* The part before, the separator, the part behind; where it is missing, the text and two empty
 * ones, or for rpartition two empty ones and the text. */
static value partition(tg_jinja_run *r, value self, const tg_jinja_args *a, int right) {
    const value *by = tg_jinja_arg(a, 0, NULL);
    if (!want_text(r, by)) return self;
    if (by->n == 0) return tg_jinja_fail(r, TG_E_ARG, "an empty text splits nothing");
    const value at = find(r, self, a, right ? RFIND : FIND);
    value out = tg_jinja_list_of(r, TG_JL_TUPLE, 3);
    if (tg_jinja_failed(r)) return out;
    const size_t from = at.u.i < 0 ? (right ? 0 : self.n) : (size_t)at.u.i;
    const size_t to = at.u.i < 0 ? from : from + by->n;
    tg_jinja_push(r, out, tg_jinja_piece(self, 0, from));
    tg_jinja_push(r, out, tg_jinja_piece(self, from, to));
    tg_jinja_push(r, out, tg_jinja_piece(self, to, self.n));
    return out;
}

/* isdigit and its kin: of all characters, and of at least one. For upper and lower case it is
 * enough that one has case and none has the other. The tables of tok/unicode/unicode.h know numbers
 * as one class, while Python tells digits, decimals and numerals apart: beyond ASCII the answer
 * could be wrong, so it is refused. */
static value is_all(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    bool all = self.n > 0, any = false;
    for (uint32_t i = 0; i < self.n && tg_jinja_spend(r, 1); i++) {
        const uint32_t c = self.u.text[i] & TG_JINJA_CODE;
        const tg_uc_class class = tg_uc_class_of(c);
        uint32_t low[2];
        const bool upper = tg_uc_lower(c, low) != 1 || low[0] != c;
        const bool lower = !upper && tg_jinja_upper(c) != c;
        if (c >= 128 && class == TG_UC_NUMBER && (how == 'd' || how == 'n'))
            return tg_jinja_unknown(r, "isdigit() of other digits than 0 to 9", "");
        any = any || (how == 'u' ? upper : lower);
        switch (how) {
        case 'd':
        case 'n': all = all && c >= '0' && c <= '9'; break;
        case 'a': all = all && class == TG_UC_LETTER; break;
        case 'A': all = all && (class == TG_UC_LETTER || class == TG_UC_NUMBER); break;
        case 's': all = all && tg_jinja_space_char(c); break;
        case 'u': all = all && !lower; break;
        default: all = all && !upper; break;
        }
    }
    return tg_jinja_bool(all && (any || (how != 'u' && how != 'l')));
}

/* "{} {0} {name}": values as text, without anything behind a colon. */
static value format(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const size_t start = r->out_n;
    uint32_t next = 0;
    bool counted = false; /* {0} was there, which must not be mixed with {} */
    for (uint32_t i = 0; i < self.n && !tg_jinja_failed(r); i++) {
        const uint32_t c = self.u.text[i] & TG_JINJA_CODE;
        const bool twice = i + 1 < self.n && (self.u.text[i + 1] & TG_JINJA_CODE) == c;
        if (c != '{' && c != '}') {
            tg_jinja_emit(r, self.u.text + i, 1);
            continue;
        }
        if (twice) {
            tg_jinja_emit(r, self.u.text + i++, 1);
            continue;
        }
        char name[64];
        uint32_t end = i + 1;
        while (end < self.n && (self.u.text[end] & TG_JINJA_CODE) != '}') end++;
        tg_jinja_show(tg_jinja_piece(self, i + 1, end), name);
        if (c == '}' || end >= self.n || end - i > 15 || strchr(name, ':') || strchr(name, '!') ||
            strchr(name, '.') || strchr(name, '['))
            return tg_jinja_unknown(r, "format() with more than names in {}", "");
        int64_t at = next;
        const value *v;
        if (name[0] == 0 || tg_parse_int64(name, strlen(name), &at)) {
            v = at >= 0 && at < a->n ? &a->v[at] : NULL;
            next += name[0] == 0;
            counted = counted || name[0] != 0;
            if (counted && next > 0)
                return tg_jinja_fail(r, TG_E_ARG, "format: {} and {0} cannot be mixed");
        } else {
            v = tg_jinja_arg(a, UINT32_MAX, name);
        }
        if (!v) return tg_jinja_fail(r, TG_E_ARG, "format: want a value for {%s}, have none", name);
        tg_jinja_emit_str(r, *v);
        i = end;
    }
    return tg_jinja_take(r, start);
}

/* ------------------------------------------------------------------------------- list and dict */

/* list.index and list.count, by equality. */
static value list_find(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    int64_t count = 0;
    for (uint32_t i = 0; i < self.u.list->n; i++) {
        if (!tg_jinja_equal(r, self.u.list->item[i], a->v[0])) continue;
        if (how == INDEX) return tg_jinja_int(i);
        count++;
    }
    if (how == INDEX) return tg_jinja_fail(r, TG_E_ARG, "the value is not in the list");
    return tg_jinja_int(count);
}

static value copy(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)r;
    (void)a;
    (void)how;
    return self; /* nothing here changes a value */
}

/* dict.get: None where the key is missing, unless another value is given. A list or a dictionary is
 * no key in Python, which an error says rather than "missing". */
static value get(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    if (a->v[0].type == TG_JV_DICT || (a->v[0].type == TG_JV_LIST && a->v[0].u.list->kind == 0))
        return tg_jinja_fail(r, TG_E_ARG, "a %s is no key", tg_jinja_type_name(a->v[0]));
    const value *found = tg_jinja_dict_find(r, self.u.dict, a->v[0]);
    return found ? *found : a->n > 1 ? a->v[1] : tg_jinja_none();
}

/* how: 1 keys, 2 values, 3 both */
static value view(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    const tg_jinja_dict *d = self.u.dict;
    value out = tg_jinja_list_of(r, TG_JL_VIEW, d->n);
    for (uint32_t i = 0; i < d->n && tg_jinja_spend(r, 1); i++) {
        value pair = how == 1 ? d->key[i] : d->item[i];
        if (how == 3) {
            pair = tg_jinja_list_of(r, TG_JL_TUPLE, 2);
            tg_jinja_push(r, pair, d->key[i]);
            tg_jinja_push(r, pair, d->item[i]);
        }
        tg_jinja_push(r, out, pair);
    }
    return out;
}

/* Methods by name and type; how few and how many arguments. Names that Python has and this does not
 * stand here without a function, so that a template which calls one is told its name, and not that
 * something is undefined. */
static const struct {
    const char *name;
    method_fn *fn; /* NULL: known to Python, and not here */
    uint8_t type, least, most;
    char how;
} methods[] = {
    { "strip", strip, TG_JV_TEXT, 0, 1, 3 },
    { "lstrip", strip, TG_JV_TEXT, 0, 1, 1 },
    { "rstrip", strip, TG_JV_TEXT, 0, 1, 2 },
    { "split", split, TG_JV_TEXT, 0, 2, 0 },
    { "rsplit", split, TG_JV_TEXT, 0, 2, 1 },
    { "splitlines", lines, TG_JV_TEXT, 0, 1, 0 },
    { "startswith", starts, TG_JV_TEXT, 1, 3, 0 },
    { "endswith", starts, TG_JV_TEXT, 1, 3, 1 },
    { "find", find, TG_JV_TEXT, 1, 3, FIND },
    { "rfind", find, TG_JV_TEXT, 1, 3, RFIND },
    { "index", find, TG_JV_TEXT, 1, 3, INDEX },
    { "rindex", find, TG_JV_TEXT, 1, 3, RINDEX },
    { "count", find, TG_JV_TEXT, 1, 3, COUNT },
    { "replace", replace, TG_JV_TEXT, 2, 3, 0 },
    { "lower", map_case, TG_JV_TEXT, 0, 0, 'l' },
    { "upper", map_case, TG_JV_TEXT, 0, 0, 'u' },
    { "capitalize", map_case, TG_JV_TEXT, 0, 0, 'c' },
    { "title", map_case, TG_JV_TEXT, 0, 0, 't' },
    { "join", join, TG_JV_TEXT, 1, 1, 0 },
    { "removeprefix", without, TG_JV_TEXT, 1, 1, 0 },
    { "removesuffix", without, TG_JV_TEXT, 1, 1, 1 },
    { "partition", partition, TG_JV_TEXT, 1, 1, 0 },
    { "rpartition", partition, TG_JV_TEXT, 1, 1, 1 },
    { "isdigit", is_all, TG_JV_TEXT, 0, 0, 'd' },
    { "isnumeric", is_all, TG_JV_TEXT, 0, 0, 'n' },
    { "isalpha", is_all, TG_JV_TEXT, 0, 0, 'a' },
    { "isalnum", is_all, TG_JV_TEXT, 0, 0, 'A' },
    { "isspace", is_all, TG_JV_TEXT, 0, 0, 's' },
    { "isupper", is_all, TG_JV_TEXT, 0, 0, 'u' },
    { "islower", is_all, TG_JV_TEXT, 0, 0, 'l' },
    { "format", format, TG_JV_TEXT, 0, 255, 0 },
    { "index", list_find, TG_JV_LIST, 1, 1, INDEX },
    { "count", list_find, TG_JV_LIST, 1, 1, COUNT },
    { "copy", copy, TG_JV_LIST, 0, 0, 0 },
    { "get", get, TG_JV_DICT, 1, 2, 0 },
    { "keys", view, TG_JV_DICT, 0, 0, 1 },
    { "values", view, TG_JV_DICT, 0, 0, 2 },
    { "items", view, TG_JV_DICT, 0, 0, 3 },
    { "copy", copy, TG_JV_DICT, 0, 0, 0 },
    { "fromkeys", NULL, TG_JV_DICT, 0, 0, 0 },
    { "casefold", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "center", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "encode", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "expandtabs", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "format_map", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "isascii", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "isdecimal", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "isidentifier", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "isprintable", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "istitle", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "ljust", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "rjust", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "swapcase", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "translate", NULL, TG_JV_TEXT, 0, 0, 0 },
    { "zfill", NULL, TG_JV_TEXT, 0, 0, 0 },
};

/* Ranges and tuples have index and count of lists; views and generators have no methods that a
 * template calls. copy is of lists and dictionaries alone. */
int tg_jinja_method_at(value self, const char *name) {
    const int kind = self.type == TG_JV_LIST ? self.u.list->kind : TG_JL_LIST;
    if (kind > TG_JL_RANGE || (kind != TG_JL_LIST && strcmp(name, "copy") == 0)) return -1;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (methods[i].type == self.type && strcmp(methods[i].name, name) == 0) return (int)i;
    return -1;
}

/* jinja2's ImmutableSandboxedEnvironment (sandbox.py, _mutable_spec): these are undefined there, so
 * that a template which asks whether they are there goes the other way. */
bool tg_jinja_changes(value self, const char *name) {
    static const char *const of_lists[] = { "append", "clear", "pop",    "reverse",
                                            "insert", "sort",  "extend", "remove" };
    static const char *const of_dicts[] = { "clear", "pop", "popitem", "setdefault", "update" };
    const bool list = self.type == TG_JV_LIST && self.u.list->kind == TG_JL_LIST;
    if (!list && self.type != TG_JV_DICT) return false;
    const char *const *names = list ? of_lists : of_dicts;
    const size_t n = list ? sizeof of_lists / sizeof *of_lists : sizeof of_dicts / sizeof *of_dicts;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Functions may look at a->v[0 .. least) without asking: what is given by name alone would not be
 * there, and is refused, as Python refuses it for the methods of its own types. */
value tg_jinja_call_method(tg_jinja_run *r, int method, value self, const tg_jinja_args *a) {
    if (!methods[method].fn) return tg_jinja_unknown(r, "method ", methods[method].name);
    if (!tg_jinja_want_args(r, a, methods[method].name, methods[method].least,
                            methods[method].most) ||
        !tg_jinja_spend(r, 1))
        return tg_jinja_undefined(NULL);
    if (methods[method].least > a->n)
        return tg_jinja_unknown(r, "arguments by name of ", methods[method].name);
    return methods[method].fn(r, self, a, methods[method].how);
}

/* ---------------------------------------------------------------------------------- functions */

/* range(stop), range(start, stop[, step]). The numbers are made at once, so their count has a
 * limit: that of jinja2's sandbox (MAX_RANGE), beyond which it raises OverflowError. Bounds are
 * kept so far from the ends of 64 bits that no difference of two overflows. */
static value range(tg_jinja_run *r, const tg_jinja_args *a) {
    int64_t at[3] = { 0, 0, 1 };
    if (!tg_jinja_want_args(r, a, "range", 1, 3)) return tg_jinja_undefined(NULL);
    for (uint32_t i = 0; i < a->n; i++) at[i] = int_or(r, &a->v[i], 0);
    if (a->n == 1) {
        at[1] = at[0];
        at[0] = 0;
    }
    if (at[2] == 0) return tg_jinja_fail(r, TG_E_ARG, "range: want a step that is not 0");
    /* ceil((stop - start) / step), of differences that cannot overflow. */
    const int64_t limit = INT64_MAX / 4;
    uint64_t n = 0;
    for (int i = 0; i < 3; i++)
        if (at[i] > limit || at[i] < -limit) return tg_jinja_unknown(r, "a range so far away", "");
    if (at[2] > 0 && at[1] > at[0]) n = (uint64_t)((at[1] - at[0] - 1) / at[2]) + 1;
    if (at[2] < 0 && at[1] < at[0]) n = (uint64_t)((at[0] - at[1] - 1) / -at[2]) + 1;
    if (n > TG_JINJA_RANGE_MAX)
        return tg_jinja_fail(r, TG_E_RANGE, "range: want at most %d numbers, have %llu",
                             TG_JINJA_RANGE_MAX, (unsigned long long)n);
    value out = tg_jinja_list_of(r, TG_JL_RANGE, (size_t)n);
    for (uint64_t i = 0; i < n && tg_jinja_spend(r, 1); i++)
        tg_jinja_push(r, out, tg_jinja_int(at[0] + (int64_t)i * at[2]));
    return out;
}

/* dict(), of a dictionary, of pairs, and of keywords, which come last and win. */
static value make_dict(tg_jinja_run *r, const tg_jinja_args *a) {
    value out = tg_jinja_dict_new(r);
    if (tg_jinja_failed(r)) return out;
    if (a->n > 1) return tg_jinja_fail(r, TG_E_ARG, "dict: want at most one value, have more");
    if (a->n == 1 && a->v[0].type == TG_JV_DICT) {
        for (uint32_t i = 0; i < a->v[0].u.dict->n; i++)
            tg_jinja_dict_put(r, out.u.dict, a->v[0].u.dict->key[i], a->v[0].u.dict->item[i]);
    } else if (a->n == 1) {
        const tg_jinja_list *pairs = tg_jinja_items(r, a->v[0]);
        for (uint32_t i = 0; pairs && i < pairs->n; i++) {
            const tg_jinja_list *pair = tg_jinja_items(r, pairs->item[i]);
            if (!pair || pair->n != 2)
                return tg_jinja_fail(r, TG_E_ARG, "dict: want pairs, have others");
            tg_jinja_dict_put(r, out.u.dict, pair->item[0], pair->item[1]);
        }
    }
    for (uint32_t i = 0; i < a->n_named; i++)
        tg_jinja_dict_put(r, out.u.dict, tg_jinja_ascii(r, a->name[i]), a->named[i]);
    return out;
}

/* namespace(): the one value that a template may change, since what is set in a loop is gone behind
 * it. Names with _ in front are refused as the sandbox refuses them. */
static value make_space(tg_jinja_run *r, const tg_jinja_args *a) {
    tg_jinja_space *s = tg_jinja_alloc(r, 1, sizeof *s);
    if (!s) return tg_jinja_undefined(NULL);
    if (a->n > 0) return tg_jinja_unknown(r, "namespace of a value", "");
    for (uint32_t i = 0; i < a->n_named; i++) {
        if (a->name[i][0] == '_')
            return tg_jinja_fail(r, TG_E_ARG, "namespace: want no _ in front, have %s", a->name[i]);
        tg_jinja_binding *b = tg_jinja_alloc(r, 1, sizeof *b);
        if (!b) return tg_jinja_undefined(NULL);
        *b = (tg_jinja_binding) { a->name[i], a->named[i], s->first };
        s->first = b;
    }
    return (value) { .type = TG_JV_SPACE, .u.space = s };
}

/* How a template says that it cannot write a conversation: "roles must alternate". Its words become
 * those of the error, cut to what a message has room for, at a whole character. */
static value raise(tg_jinja_run *r, const tg_jinja_args *a) {
    if (!tg_jinja_want_args(r, a, "raise_exception", 1, 1)) return tg_jinja_undefined(NULL);
    char text[64 * 4 + 4];
    const value why = tg_jinja_str(r, a->n ? a->v[0] : a->named[0]);
    size_t n = 0;
    for (uint32_t i = 0; i < why.n && n < sizeof text - 5; i++)
        n += tg_uc_put(why.u.text[i] & TG_JINJA_CODE, text + n);
    text[n] = 0;
    return tg_jinja_fail(r, TG_E_ARG, "it refuses: %s", text);
}

/* The day as %d %b %Y and so on; of the time of the day nothing is known, so it is refused. */
static value strftime_now(tg_jinja_run *r, const tg_jinja_args *a) {
    static const char *const months[] = { "January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December" };
    static const char *const days[] = { "Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday" };
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    const tg_jinja_date d = r->date;
    if (!tg_jinja_want_args(r, a, "strftime_now", 1, 1) || a->n == 0 || !want_text(r, &a->v[0]))
        return tg_jinja_undefined(NULL);
    if (d.day == 0) return tg_jinja_unknown(r, "strftime_now without a date", "");
    const bool leap = d.year % 4 == 0 && (d.year % 100 != 0 || d.year % 400 == 0);
    const int of_year = before[d.month - 1] + d.day + (leap && d.month > 2);
    /* 1 January of year 1 was a Monday in the calendar that we have; a year adds one day of the
     * week, and a leap year two. */
    const int y = d.year - 1, weekday = (y + y / 4 - y / 100 + y / 400 + of_year) % 7;
    const size_t start = r->out_n;
    char out[32];
    for (uint32_t i = 0; i < a->v[0].n && !tg_jinja_failed(r); i++) {
        uint32_t c = a->v[0].u.text[i] & TG_JINJA_CODE;
        if (c != '%' || i + 1 == a->v[0].n) {
            tg_jinja_emit(r, a->v[0].u.text + i, 1);
            continue;
        }
        c = a->v[0].u.text[++i] & TG_JINJA_CODE;
        /* glibc's flag, which templates use though the C standard has it not. */
        const bool bare = c == '-' && i + 1 < a->v[0].n; /* %-d: without a zero in front */
        if (bare) c = a->v[0].u.text[++i] & TG_JINJA_CODE;
        const int width = bare ? 1 : 2;
        out[0] = 0;
        switch (c) {
        case 'd': snprintf(out, sizeof out, "%.*d", width, d.day); break;
        case 'm': snprintf(out, sizeof out, "%.*d", width, d.month); break;
        case 'y': snprintf(out, sizeof out, "%.*d", width, d.year % 100); break;
        case 'j': snprintf(out, sizeof out, "%.*d", bare ? 1 : 3, of_year); break;
        case 'Y': snprintf(out, sizeof out, "%d", d.year); break;
        case 'B': tg_str_append(out, sizeof out, "%s", months[d.month - 1]); break;
        case 'b': tg_str_append(out, sizeof out, "%.3s", months[d.month - 1]); break;
        case 'A': tg_str_append(out, sizeof out, "%s", days[weekday]); break;
        case 'a': tg_str_append(out, sizeof out, "%.3s", days[weekday]); break;
        case 'F': snprintf(out, sizeof out, "%d-%02d-%02d", d.year, d.month, d.day); break;
        case '%': out[0] = '%', out[1] = 0; break;
        default: return tg_jinja_unknown(r, "of strftime_now: more than a day", "");
        }
        tg_jinja_emit_ascii(r, out);
    }
    return tg_jinja_take(r, start);
}

/* What stands in the environment besides the caller's variables: jinja2's defaults.py, and the two
 * that transformers adds. */
static const struct {
    const char *name;
    value (*fn)(tg_jinja_run *r, const tg_jinja_args *a); /* NULL: jinja2's, and not here */
} globals[] = {
    { "range", range },
    { "dict", make_dict },
    { "namespace", make_space },
    { "raise_exception", raise },
    { "strftime_now", strftime_now },
    { "cycler", NULL },
    { "joiner", NULL },
    { "lipsum", NULL },
};

int tg_jinja_global_at(const char *name) {
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++)
        if (strcmp(globals[i].name, name) == 0) return (int)i;
    return -1;
}

value tg_jinja_call_global(tg_jinja_run *r, int global, const tg_jinja_args *a) {
    if (!globals[global].fn) return tg_jinja_unknown(r, "function ", globals[global].name);
    return tg_jinja_spend(r, 1) ? globals[global].fn(r, a) : tg_jinja_undefined(NULL);
}
