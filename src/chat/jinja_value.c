/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_value.c - Python's values as far as templates see them: what is true, equal, less, in, and
 * what + - * and [] make of them.
 *
 * What a value is, and who holds its memory: numbers are in the value itself; a text points to
 * characters that never change, so parts and copies share them; lists and dictionaries are behind a
 * pointer, and two values may be one list, as in Python. All of it lies in the arena of the run.
 *
 * Integers have 64 bits: what would need more is refused. Dictionaries keep their order and are
 * searched from the front; those of a conversation are small, and the search counts as steps.
 */
#include "base/math.h"
#include "base/str.h"
#include "chat/jinja_inside.h"
#include "tok/unicode/unicode.h"

value tg_jinja_int(int64_t i) { return (value) { .type = TG_JV_INT, .u.i = i }; }
value tg_jinja_float(double d) { return (value) { .type = TG_JV_FLOAT, .u.d = d }; }
value tg_jinja_bool(bool b) { return (value) { .type = TG_JV_BOOL, .u.i = b }; }
value tg_jinja_none(void) { return (value) { .type = TG_JV_NONE }; }
value tg_jinja_undefined(const char *why) {
    return (value) { .type = TG_JV_UNDEFINED, .u.why = why };
}

/* A byte that is no UTF-8 becomes one code point of its own, which goes out as that byte again.
 * There are at most as many characters as bytes, so room for these is enough. */
value tg_jinja_text(tg_jinja_run *r, const char *bytes, size_t n_bytes, bool words) {
    if (n_bytes >= TG_JINJA_CODE) return tg_jinja_fail(r, TG_E_RANGE, "a text that is too long");
    uint32_t *c = tg_jinja_alloc(r, n_bytes, sizeof *c), n = 0;
    if (!c) return tg_jinja_undefined(NULL);
    for (size_t i = 0; i < n_bytes; n++) {
        i += tg_uc_next(bytes + i, n_bytes - i, &c[n]);
        if (words) c[n] |= TG_JINJA_WORDS;
    }
    return (value) { .type = TG_JV_TEXT, .n = n, .u.text = c };
}

value tg_jinja_ascii(tg_jinja_run *r, const char *text) {
    return tg_jinja_text(r, text, strlen(text), false);
}

/* Shares the characters, and keeps the flags: a part of a safe text is safe in jinja2, too. */
value tg_jinja_piece(value text, size_t from, size_t to) {
    text.u.text += from;
    text.n = to > from ? (uint32_t)(to - from) : 0;
    return text;
}

bool tg_jinja_has_text(value v, const char *ascii) {
    if (v.type != TG_JV_TEXT || strlen(ascii) != v.n) return false;
    for (uint32_t i = 0; i < v.n; i++)
        if ((v.u.text[i] & TG_JINJA_CODE) != (unsigned char)ascii[i]) return false;
    return true;
}

/* Names of filters and keys fit; of longer texts the beginning is shown. 59 leaves room for one
 * more character of four bytes and the end. */
const char *tg_jinja_show(value text, char out[64]) {
    size_t n = 0;
    for (uint32_t i = 0; i < text.n && n < 59; i++)
        n += tg_uc_put(text.u.text[i] & TG_JINJA_CODE, out + n);
    out[n] = 0;
    return out;
}

/* In the order of tg_jinja_type. */
const char *tg_jinja_type_name(value v) {
    static const char *const names[] = { "undefined", "None",   "bool",    "int",       "float",
                                         "str",       "list",   "dict",    "namespace", "loop",
                                         "macro",     "method", "function" };
    return names[v.type];
}

/* -------------------------------------------------------------------------- lists and dicts */

/* A list whose items found no memory has room for none; pushing to it then fails, and says so. */
value tg_jinja_list_of(tg_jinja_run *r, tg_jinja_list_kind kind, size_t room) {
    tg_jinja_list *l = tg_jinja_alloc(r, 1, sizeof *l);
    if (!l) return tg_jinja_undefined(NULL);
    l->kind = (uint8_t)kind;
    l->item = tg_jinja_alloc(r, room, sizeof *l->item);
    l->room = l->item ? (uint32_t)room : 0;
    return (value) { .type = TG_JV_LIST, .u.list = l };
}
value tg_jinja_list_new(tg_jinja_run *r) { return tg_jinja_list_of(r, TG_JL_LIST, 4); }

/* Twice the room for n + 1 things; the old one stays behind in the arena. */
static bool grow(tg_jinja_run *r, value **items, uint32_t n, uint32_t room) {
    value *grown = tg_jinja_alloc(r, 2 * (size_t)room + 4, sizeof *grown);
    if (!grown) return false;
    if (n) memcpy(grown, *items, n * sizeof *grown);
    *items = grown;
    return true;
}

/* Doubling makes n pushes cost n, in an arena where nothing is freed before the end: less than
 * twice the last size stays behind. */
void tg_jinja_push(tg_jinja_run *r, value list, value item) {
    if (tg_jinja_failed(r) || list.type != TG_JV_LIST) return;
    tg_jinja_list *l = list.u.list;
    if (l->n == l->room) {
        if (!grow(r, &l->item, l->n, l->room)) return;
        l->room = 2 * l->room + 4;
    }
    l->item[l->n++] = item;
}

value tg_jinja_dict_new(tg_jinja_run *r) {
    tg_jinja_dict *d = tg_jinja_alloc(r, 1, sizeof *d);
    if (!d) return tg_jinja_undefined(NULL);
    return (value) { .type = TG_JV_DICT, .u.dict = d };
}

/* Without a look whether the key is there: for those who have looked, and for JSON, whose reader
 * has refused doubles. */
static void append(tg_jinja_run *r, tg_jinja_dict *d, value key, value item) {
    if (d->n == d->room) {
        if (!grow(r, &d->key, d->n, d->room) || !grow(r, &d->item, d->n, d->room)) return;
        d->room = 2 * d->room + 4;
    }
    d->key[d->n] = key;
    d->item[d->n++] = item;
}

void tg_jinja_put(tg_jinja_run *r, value dict, const char *key, value item) {
    if (tg_jinja_failed(r)) return;
    append(r, dict.u.dict, tg_jinja_ascii(r, key), item);
}

/* What Python lets be a key: no dictionary, no list; a tuple passes, though one that holds a list
 * would not. A view has no hash either. */
static bool hashable(tg_jinja_run *r, value v) {
    const int kind = v.type == TG_JV_LIST ? v.u.list->kind : TG_JL_TUPLE;
    if (v.type == TG_JV_DICT || kind == TG_JL_LIST || kind == TG_JL_VIEW) {
        tg_jinja_fail(r, TG_E_ARG, "a %s is no key", tg_jinja_type_name(v));
        return false;
    }
    return true;
}

/* By equality as Python has it, so 1, 1.0 and True are one key. */
const value *tg_jinja_dict_find(tg_jinja_run *r, const tg_jinja_dict *d, value key) {
    for (uint32_t i = 0; i < d->n; i++)
        if (tg_jinja_equal(r, d->key[i], key)) return &d->item[i];
    return NULL;
}

/* A key that is there keeps its place and gets the new item, as in Python's ordered dictionaries.
 */
void tg_jinja_dict_put(tg_jinja_run *r, tg_jinja_dict *d, value key, value item) {
    if (!hashable(r, key)) return;
    const value *old = tg_jinja_dict_find(r, d, key);
    if (old) {
        d->item[old - d->item] = item;
    } else if (!tg_jinja_failed(r)) {
        append(r, d, key, item);
    }
}

/* A number as JSON writes it: an integer, if it is written as one. */
static value json_number(tg_jinja_run *r, const tg_json *v) {
    int64_t i;
    double d;
    if (tg_parse_int64(v->u.text, v->length, &i)) return tg_jinja_int(i);
    if (!memchr(v->u.text, '.', v->length) && !memchr(v->u.text, 'e', v->length) &&
        !memchr(v->u.text, 'E', v->length))
        return tg_jinja_unknown(r, "an integer of more than 64 bits: ", v->u.text);
    return tg_parse_double(v->u.text, v->length, &d) ? tg_jinja_float(d)
                                                     : tg_jinja_float(DBL_MAX * 2);
}

/* Nested as deep as the reader of JSON lets it be. */
value tg_jinja_from_json(tg_jinja_run *r, const tg_json *v, bool words) {
    if (tg_jinja_failed(r)) return tg_jinja_undefined(NULL);
    value out = tg_jinja_none();
    switch (tg_json_kind(v)) {
    case TG_JSON_NULL: return out;
    case TG_JSON_TRUE:
    case TG_JSON_FALSE: return tg_jinja_bool(tg_json_kind(v) == TG_JSON_TRUE);
    case TG_JSON_NUMBER: return json_number(r, v);
    case TG_JSON_STRING: return tg_jinja_text(r, v->u.text, v->length, words);
    case TG_JSON_ARRAY: out = tg_jinja_list_of(r, TG_JL_LIST, v->count); break;
    case TG_JSON_OBJECT: out = tg_jinja_dict_new(r); break;
    }
    for (const tg_json *item = tg_json_first(v); item && !tg_jinja_failed(r);
         item = tg_json_next(item)) {
        const value i = tg_jinja_from_json(r, item, words);
        if (out.type == TG_JV_LIST) {
            tg_jinja_push(r, out, i);
        } else if (out.type == TG_JV_DICT) {
            append(r, out.u.dict, tg_jinja_text(r, item->key, item->key_length, words), i);
        }
    }
    return out;
}

/* ------------------------------------------------------------------------------- comparisons */

static bool is_number(value v) {
    return v.type == TG_JV_BOOL || v.type == TG_JV_INT || v.type == TG_JV_FLOAT;
}
static double as_double(value v) { return v.type == TG_JV_FLOAT ? v.u.d : (double)v.u.i; }

/* bool(): nothing, zero and what is empty are false. A generator is true though it may hold
 * nothing: nobody can know before it was gone through. */
bool tg_jinja_truth(tg_jinja_run *r, value v) {
    (void)r;
    switch (v.type) {
    case TG_JV_UNDEFINED:
    case TG_JV_NONE: return false;
    case TG_JV_BOOL:
    case TG_JV_INT: return v.u.i != 0;
    case TG_JV_FLOAT: return v.u.d != 0;
    case TG_JV_TEXT: return v.n > 0;
    case TG_JV_LIST: return v.u.list->kind == TG_JL_ONCE || v.u.list->n > 0;
    case TG_JV_DICT: return v.u.dict->n > 0;
    default: return true;
    }
}

/* By code points, as Python compares str; not by bytes, though in UTF-8 that would be the same, and
 * not by any language's order. */
static int compare_texts(value a, value b) {
    for (uint32_t i = 0; i < a.n && i < b.n; i++) {
        const uint32_t x = a.u.text[i] & TG_JINJA_CODE, y = b.u.text[i] & TG_JINJA_CODE;
        if (x != y) return x < y ? -1 : 1;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

/* -1, 0, 1, or 2 where one is NaN. Two integers are compared as such: as doubles, those above 2^53
 * would meet. An integer and a float are compared as doubles, which Python does exactly. */
static int compare_numbers(value a, value b) {
    if (a.type != TG_JV_FLOAT && b.type != TG_JV_FLOAT) return a.u.i < b.u.i ? -1 : a.u.i > b.u.i;
    const double x = as_double(a), y = as_double(b);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

/* A list equals no tuple. Views and generators equal themselves alone. */
static bool equal_lists(tg_jinja_run *r, const tg_jinja_list *a, const tg_jinja_list *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->kind > TG_JL_RANGE || a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!tg_jinja_equal(r, a->item[i], b->item[i])) return false;
    return true;
}

/* In any order of their keys. */
static bool equal_dicts(tg_jinja_run *r, const tg_jinja_dict *a, const tg_jinja_dict *b) {
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const value *other = tg_jinja_dict_find(r, b, a->key[i]);
        if (!other || !tg_jinja_equal(r, *other, a->item[i])) return false;
    }
    return true;
}

/* Values hold no cycles, and are nested as deep as the template or JSON nests them. */
bool tg_jinja_equal(tg_jinja_run *r, value a, value b) {
    if (!tg_jinja_spend(r, 1)) return false;
    if (is_number(a) && is_number(b)) return compare_numbers(a, b) == 0;
    if (a.type != b.type) return false;
    switch (a.type) {
    case TG_JV_UNDEFINED:
    case TG_JV_NONE: return true;
    case TG_JV_TEXT: return a.n == b.n && tg_jinja_spend(r, a.n / 16) && compare_texts(a, b) == 0;
    case TG_JV_LIST:
    case TG_JV_DICT: break;
    default: return a.u.other == b.u.other;
    }
    if (++r->depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
    const bool same =
        !tg_jinja_failed(r) && (a.type == TG_JV_LIST ? equal_lists(r, a.u.list, b.u.list)
                                                     : equal_dicts(r, a.u.dict, b.u.dict));
    r->depth--;
    return same;
}

/* Numbers, texts, lists and tuples have an order among their kind; all else raises a TypeError in
 * Python. Lists compare at their first difference, and then by length. */
int tg_jinja_order(tg_jinja_run *r, value a, value b) {
    if (!tg_jinja_spend(r, 1)) return 0;
    if (is_number(a) && is_number(b)) return compare_numbers(a, b);
    if (a.type == TG_JV_TEXT && b.type == TG_JV_TEXT)
        return tg_jinja_spend(r, a.n / 16) ? compare_texts(a, b) : 0;
    const bool lists = a.type == TG_JV_LIST && b.type == TG_JV_LIST &&
                       a.u.list->kind == b.u.list->kind && a.u.list->kind <= TG_JL_TUPLE;
    if (!lists) {
        tg_jinja_fail(r, TG_E_ARG, "want two values of which one is less, have a %s and a %s",
                      tg_jinja_type_name(a), tg_jinja_type_name(b));
        return 0;
    }
    const tg_jinja_list *x = a.u.list, *y = b.u.list;
    if (++r->depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
    int order = x->n < y->n ? -1 : x->n > y->n;
    for (uint32_t i = 0; i < x->n && i < y->n && !tg_jinja_failed(r); i++) {
        if (tg_jinja_equal(r, x->item[i], y->item[i])) continue;
        order = tg_jinja_order(r, x->item[i], y->item[i]);
        break;
    }
    r->depth--;
    return order;
}

/* Where needle is in [from, text.n); text.n + 1: nowhere. */
static size_t find(value text, value needle, size_t from) {
    for (size_t i = from; i + needle.n <= text.n; i++)
        if (compare_texts(tg_jinja_piece(text, i, i + needle.n), needle) == 0) return i;
    return (size_t)text.n + 1;
}

/* The operator "in": a text in a text, a key in a dictionary, an item in what can be gone through,
 * which uses a generator up. */
bool tg_jinja_contains(tg_jinja_run *r, value in, value what) {
    if (in.type == TG_JV_TEXT) {
        if (what.type != TG_JV_TEXT) {
            tg_jinja_fail(r, TG_E_ARG, "want a str to be in a str, have a %s",
                          tg_jinja_type_name(what));
            return false;
        }
        return tg_jinja_spend(r, in.n / 16) && find(in, what, 0) <= in.n;
    }
    if (in.type == TG_JV_DICT)
        return hashable(r, what) && tg_jinja_dict_find(r, in.u.dict, what) != NULL;
    const tg_jinja_list *l = tg_jinja_items(r, in);
    for (uint32_t i = 0; l && i < l->n; i++)
        if (tg_jinja_equal(r, l->item[i], what)) return true;
    return false;
}

/* --------------------------------------------------------------------------------- iteration */

/* iter() of Python. A list is handed out as it is, since nothing here changes one; the keys of a
 * dictionary and the characters of a text are made into one. An undefined value has no items:
 * jinja2 lets a template go through what is not there. */
tg_jinja_list *tg_jinja_items(tg_jinja_run *r, value v) {
    value out = tg_jinja_undefined(NULL);
    switch (v.type) {
    case TG_JV_LIST:
        if (v.u.list->kind != TG_JL_ONCE) return v.u.list;
        /* A generator is gone through once: its items move to the list that is handed out, and it
         * is empty from now on, wherever else it is held. */
        out = tg_jinja_list_of(r, TG_JL_LIST, 0);
        if (out.type != TG_JV_LIST) return NULL;
        *out.u.list = *v.u.list;
        out.u.list->kind = TG_JL_LIST;
        v.u.list->n = 0;
        return out.u.list;
    case TG_JV_UNDEFINED: out = tg_jinja_list_of(r, TG_JL_LIST, 0); break;
    case TG_JV_TEXT:
        out = tg_jinja_list_of(r, TG_JL_LIST, v.n);
        for (uint32_t i = 0; i < v.n && tg_jinja_spend(r, 1); i++)
            tg_jinja_push(r, out, tg_jinja_piece(v, i, (size_t)i + 1));
        break;
    case TG_JV_DICT:
        out = tg_jinja_list_of(r, TG_JL_LIST, v.u.dict->n);
        for (uint32_t i = 0; i < v.u.dict->n; i++) tg_jinja_push(r, out, v.u.dict->key[i]);
        break;
    default:
        tg_jinja_fail(r, TG_E_ARG, "want something to go through, have a %s",
                      tg_jinja_type_name(v));
    }
    return out.type == TG_JV_LIST && !tg_jinja_failed(r) ? out.u.list : NULL;
}

/* len(), which a generator has not. Of an undefined value it is 0, as jinja2 has it. */
value tg_jinja_length(tg_jinja_run *r, value v) {
    switch (v.type) {
    case TG_JV_UNDEFINED: return tg_jinja_int(0);
    case TG_JV_TEXT: return tg_jinja_int(v.n);
    case TG_JV_DICT: return tg_jinja_int(v.u.dict->n);
    case TG_JV_LIST:
        if (v.u.list->kind != TG_JL_ONCE) return tg_jinja_int(v.u.list->n);
        break;
    default: break;
    }
    return tg_jinja_fail(r, TG_E_ARG, "want something with a length, have a %s",
                         v.type == TG_JV_LIST ? "generator" : tg_jinja_type_name(v));
}

/* ------------------------------------------------------------------------------- places in it */

/* An index from the front or, below 0, from the end. */
static int64_t place(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

/* What has places: views have a length and none. */
static bool sequence(value v) {
    return v.type == TG_JV_TEXT || (v.type == TG_JV_LIST && v.u.list->kind <= TG_JL_RANGE);
}
static uint32_t count_of(value v) { return v.type == TG_JV_TEXT ? v.n : v.u.list->n; }

/* Environment.getitem of jinja2: v[key], and where that fails the attribute of that name, if the
 * key is a text. What is not there is undefined and no error; an item of what is undefined is one.
 */
value tg_jinja_item(tg_jinja_run *r, value v, value key) {
    if (v.type == TG_JV_UNDEFINED)
        return tg_jinja_fail(r, TG_E_ARG, "%s is undefined", v.u.why ? v.u.why : "a value");
    if (v.type == TG_JV_DICT && key.type != TG_JV_DICT &&
        (key.type != TG_JV_LIST || key.u.list->kind == TG_JL_TUPLE)) {
        const value *found = tg_jinja_dict_find(r, v.u.dict, key);
        if (found) return *found;
    }
    if (sequence(v) && (key.type == TG_JV_INT || key.type == TG_JV_BOOL)) {
        const int64_t n = count_of(v), i = place(key.u.i, n);
        if (i < 0 || i >= n) return tg_jinja_undefined("an item beyond the end");
        return v.type == TG_JV_LIST ? v.u.list->item[i]
                                    : tg_jinja_piece(v, (size_t)i, (size_t)i + 1);
    }
    char name[64]; /* d['items'] is the method, if there is no such key */
    if (key.type != TG_JV_TEXT || key.n >= sizeof name / 4) return tg_jinja_undefined("an item");
    v = tg_jinja_attr(r, v, tg_jinja_show(key, name), key);
    return v.type == TG_JV_UNDEFINED ? tg_jinja_undefined("an item") : v;
}

/* One end of a slice, as CPython's PySlice_AdjustIndices clamps it: counted from the end below 0,
 * and then within [low, high], which are -1 and n - 1 where the step goes backwards. */
static bool bound(tg_jinja_run *r, value v, int64_t n, int64_t low, int64_t high, int64_t *out) {
    if (v.type == TG_JV_NONE) return true;
    if (v.type != TG_JV_INT && v.type != TG_JV_BOOL) {
        tg_jinja_fail(r, TG_E_ARG, "want an int between [ and ], have a %s", tg_jinja_type_name(v));
        return false;
    }
    const int64_t i = v.u.i < 0 ? (v.u.i < -n ? low : v.u.i + n) : v.u.i;
    *out = i < low ? low : i > high ? high : i;
    return true;
}

/* Steps longer than the sequence take one item, whatever they are: they are clamped first, so that
 * no sum overflows. A text with step 1, which is nearly every slice, shares its characters. */
value tg_jinja_slice(tg_jinja_run *r, value v, const value at[3]) {
    if (v.type == TG_JV_UNDEFINED)
        return tg_jinja_fail(r, TG_E_ARG, "%s is undefined", v.u.why ? v.u.why : "a value");
    if (!sequence(v))
        return tg_jinja_fail(r, TG_E_ARG, "want something with parts, have a %s",
                             tg_jinja_type_name(v));
    const int64_t n = count_of(v);
    int64_t step = 1;
    if (at[2].type == TG_JV_INT || at[2].type == TG_JV_BOOL) step = at[2].u.i;
    if (step == 0 || (at[2].type != TG_JV_NONE && at[2].type != TG_JV_INT))
        return tg_jinja_fail(r, TG_E_ARG, "want a step that is an int and not 0");
    if (step < -n - 1) step = -n - 1;
    if (step > n + 1) step = n + 1;
    int64_t from = step > 0 ? 0 : n - 1, to = step > 0 ? n : -1;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (!bound(r, at[0], n, low, high, &from) || !bound(r, at[1], n, low, high, &to))
        return tg_jinja_undefined(NULL);
    if (v.type == TG_JV_TEXT && step == 1)
        return tg_jinja_piece(v, (size_t)from, (size_t)(to > from ? to : from));
    const int64_t count = step > 0 ? (to > from ? (to - from + step - 1) / step : 0)
                                   : (to < from ? (from - to - step - 1) / -step : 0);
    if (!tg_jinja_spend(r, (uint64_t)count / 4)) return tg_jinja_undefined(NULL);
    if (v.type == TG_JV_TEXT) {
        uint32_t *c = tg_jinja_alloc(r, (size_t)count, sizeof *c);
        if (!c) return tg_jinja_undefined(NULL);
        for (int64_t i = 0; i < count; i++) c[i] = v.u.text[from + i * step];
        v.u.text = c;
        v.n = (uint32_t)count;
        return v;
    }
    value out = tg_jinja_list_of(r, (tg_jinja_list_kind)v.u.list->kind, (size_t)count);
    for (int64_t i = 0; i < count; i++) tg_jinja_push(r, out, v.u.list->item[from + i * step]);
    return out;
}

/* ------------------------------------------------------------------------------- arithmetic */

/* The undefined one of the two is named, for it is what the author of a template looks for. */
static value no_such(tg_jinja_run *r, int op, value a, value b) {
    static const char *const names[] = { "//", "**" };
    const char one[2] = { (char)op, 0 };
    const value *u = a.type == TG_JV_UNDEFINED ? &a : b.type == TG_JV_UNDEFINED ? &b : NULL;
    if (u) return tg_jinja_fail(r, TG_E_ARG, "%s is undefined", u->u.why ? u->u.why : "a value");
    return tg_jinja_fail(r, TG_E_ARG, "want two values for %s, have a %s and a %s",
                         op == TG_JT_FLOORDIV ? names[0]
                         : op == TG_JT_POW    ? names[1]
                                              : one,
                         tg_jinja_type_name(a), tg_jinja_type_name(b));
}

static value too_large(tg_jinja_run *r) {
    return tg_jinja_unknown(r, "an integer of more than 64 bits", "");
}

/* By squaring. The square behind the last bit is not made: it may overflow where the result does
 * not. */
static value power(tg_jinja_run *r, int64_t base, int64_t times) {
    int64_t out = 1;
    for (; times > 0; times >>= 1) {
        if ((times & 1) && __builtin_mul_overflow(out, base, &out)) return too_large(r);
        if (times > 1 && __builtin_mul_overflow(base, base, &base)) return too_large(r);
    }
    return tg_jinja_int(out);
}

/* Overflow is found by the compiler's builtins, since a signed one is undefined in C. / is a float,
 * as in Python 3, also where it comes out even; // and % round towards minus infinity, where C
 * rounds towards 0. A divisor of -1 apart: INT64_MIN / -1 traps. */
static value of_ints(tg_jinja_run *r, int op, int64_t a, int64_t b) {
    int64_t out = 0;
    bool over = false;
    switch (op) {
    case '+': over = __builtin_add_overflow(a, b, &out); break;
    case '-': over = __builtin_sub_overflow(a, b, &out); break;
    case '*': over = __builtin_mul_overflow(a, b, &out); break;
    case '/': return tg_jinja_float((double)a / (double)b); /* b is not 0: of_numbers */
    case TG_JT_POW:
        if (b >= 0) return power(r, a, b);
        return tg_jinja_unknown(r, "a power below 0", "");
    default: /* // and %, which round down */
        if (b == -1) {
            over = a == INT64_MIN && op == TG_JT_FLOORDIV;
            out = op == '%' || over ? 0 : -a;
            break;
        }
        const bool down = a % b != 0 && (a < 0) != (b < 0);
        out = op == '%' ? a % b + (down ? b : 0) : a / b - down;
    }
    return over ? too_large(r) : tg_jinja_int(out);
}

/* One float makes the other one a float. Division by zero is an error in Python for floats as well.
 */
static value of_numbers(tg_jinja_run *r, int op, value a, value b) {
    if ((op == '/' || op == '%' || op == TG_JT_FLOORDIV) && as_double(b) == 0)
        return tg_jinja_fail(r, TG_E_ARG, "a division by 0");
    if (a.type != TG_JV_FLOAT && b.type != TG_JV_FLOAT) return of_ints(r, op, a.u.i, b.u.i);
    const double x = as_double(a), y = as_double(b);
    switch (op) {
    case '+': return tg_jinja_float(x + y);
    case '-': return tg_jinja_float(x - y);
    case '*': return tg_jinja_float(x * y);
    case '/': return tg_jinja_float(x / y);
    default: return tg_jinja_unknown(r, "//, % and ** of a float", "");
    }
}

/* Each character keeps whose words it is. A safe text beside one that is not has the other escaped,
 * as markupsafe's __add__ and __radd__ do. */
static value add_texts(tg_jinja_run *r, value a, value b) {
    if (a.flags & TG_JV_SAFE && !(b.flags & TG_JV_SAFE)) b = tg_jinja_escape(r, b);
    if (b.flags & TG_JV_SAFE && !(a.flags & TG_JV_SAFE)) a = tg_jinja_escape(r, a);
    const size_t n = (size_t)a.n + b.n;
    if (!tg_jinja_spend(r, n / 16)) return tg_jinja_undefined(NULL);
    uint32_t *c = tg_jinja_alloc(r, n, sizeof *c);
    if (!c) return tg_jinja_undefined(NULL);
    if (a.n) memcpy(c, a.u.text, a.n * sizeof *c);
    if (b.n) memcpy(c + a.n, b.u.text, b.n * sizeof *c);
    a.flags |= b.flags;
    a.u.text = c;
    a.n = (uint32_t)n;
    return a;
}

/* A list and a list, or a tuple and a tuple: the caller has seen to it. */
static value add_lists(tg_jinja_run *r, const tg_jinja_list *a, const tg_jinja_list *b) {
    value out = tg_jinja_list_of(r, (tg_jinja_list_kind)a->kind, (size_t)a->n + b->n);
    if (!tg_jinja_spend(r, ((uint64_t)a->n + b->n) / 4)) return out;
    for (uint32_t i = 0; i < a->n; i++) tg_jinja_push(r, out, a->item[i]);
    for (uint32_t i = 0; i < b->n; i++) tg_jinja_push(r, out, b->item[i]);
    return out;
}

/* A text or a list so many times. */
static value repeat(tg_jinja_run *r, value v, int64_t times) {
    value out = tg_jinja_piece(v, 0, 0);
    if (v.type == TG_JV_LIST) out = tg_jinja_list_of(r, (tg_jinja_list_kind)v.u.list->kind, 0);
    const uint64_t n = times > 0 ? count_of(v) : 0;
    if (n == 0) return out;
    if ((uint64_t)times > TG_JINJA_STEPS_MAX || !tg_jinja_spend(r, n * (uint64_t)times / 4))
        return tg_jinja_fail(r, TG_E_RANGE, "a text or list that is too long");
    if (v.type == TG_JV_LIST) {
        for (uint64_t i = 0; i < n * (uint64_t)times && !tg_jinja_failed(r); i++)
            tg_jinja_push(r, out, v.u.list->item[i % n]);
        return out;
    }
    uint32_t *c = tg_jinja_alloc(r, (size_t)(n * (uint64_t)times), sizeof *c);
    if (!c) return tg_jinja_undefined(NULL);
    for (uint64_t i = 0; i < n * (uint64_t)times; i++) c[i] = v.u.text[i % n];
    out.u.text = c;
    out.n = (uint32_t)(n * (uint64_t)times);
    return out;
}

/* Which types an operator knows, in the order of their likelihood in templates. Python's % behind a
 * text is printf's language, and is refused. */
value tg_jinja_binary(tg_jinja_run *r, int op, value a, value b) {
    if (tg_jinja_failed(r)) return tg_jinja_undefined(NULL);
    if (is_number(a) && is_number(b)) return of_numbers(r, op, a, b);
    if (op == '+' && a.type == TG_JV_TEXT && b.type == TG_JV_TEXT) return add_texts(r, a, b);
    if (op == '+' && a.type == TG_JV_LIST && b.type == TG_JV_LIST &&
        a.u.list->kind == b.u.list->kind && a.u.list->kind <= TG_JL_TUPLE)
        return add_lists(r, a.u.list, b.u.list);
    if (op == '*' && (b.type == TG_JV_INT || b.type == TG_JV_BOOL) && sequence(a))
        return repeat(r, a, b.u.i);
    if (op == '*' && (a.type == TG_JV_INT || a.type == TG_JV_BOOL) && sequence(b))
        return repeat(r, b, a.u.i);
    if (op == '%' && a.type == TG_JV_TEXT) return tg_jinja_unknown(r, "% behind a text", "");
    return no_such(r, op, a, b);
}
