/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_filter.c - the filters and tests of jinja2 that chat templates use, and transformers' own
 * tojson.
 *
 * Sources: jinja2/filters.py (do_ and the filter's name) and jinja2/tests.py, as of version 3.1.
 * Each takes its arguments by place or by the name that stands there. What a filter does to a type
 * that Python refuses is an error here, too; where jinja2 would give something that only makes
 * sense in Python (an address, a class), it is refused as not known.
 *
 * map, select, reject and their kin make generators in jinja2: true whatever they hold, without a
 * length, and empty when they were gone through once. They are made at once here, and otherwise the
 * same (TG_JL_ONCE).
 */
#include "chat/jinja_inside.h"

/* A filter: what stands before the bar, and what in the brackets behind its name. `how` comes from
 * its line in the table, so that one function serves filters that differ in a word alone. */
typedef value filter_fn(tg_jinja_run *r, value self, const tg_jinja_args *a, int how);

/* A switch among the arguments, by its place or its name; off where it is not given. What counts as
 * true is Python's business: a text that is not empty does. */
static bool flag(tg_jinja_run *r, const tg_jinja_args *a, uint32_t i, const char *name) {
    const value *v = tg_jinja_arg(a, i, name);
    return v && tg_jinja_truth(r, *v);
}

/* soft_str() of jinja2. */
static value text_of(tg_jinja_run *r, value v) { return tg_jinja_str(r, v); }

/* ---------------------------------------------------------------------------------- of texts */

/* do_trim: strip() of the text, at both ends. None is as good as nothing, since the signature of
 * jinja2 has it as the default; any other type than a text is an error in Python, too. */
static value trim(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *chars = tg_jinja_arg(a, 0, "chars");
    if (chars && chars->type == TG_JV_NONE) chars = NULL;
    if (chars && chars->type != TG_JV_TEXT)
        return tg_jinja_fail(r, TG_E_ARG, "trim: want a str, have a %s",
                             tg_jinja_type_name(*chars));
    return tg_jinja_strip(text_of(r, self), chars, true, true);
}

/* do_upper, do_lower, do_capitalize, do_title: how is the letter that tg_jinja_map_case knows. The
 * filter's title begins words at brackets and signs, too, which str.title() does not. */
static value map_case(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    self = text_of(r, self);
    return tg_jinja_failed(r) ? self : tg_jinja_map_case(r, self, (char)how);
}

/* do_string: a text that is safe stays so, since soft_str leaves it alone. */
static value string(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    return text_of(r, self);
}

/* do_mark_safe and markupsafe's escape: what is safe already is not escaped again. Templates are
 * run without autoescape, so nobody's words are escaped unasked. */
static value safe(tg_jinja_run *r, value self, const tg_jinja_args *a, int escape) {
    (void)a;
    const bool already = self.type == TG_JV_TEXT && self.flags & TG_JV_SAFE;
    self = text_of(r, self);
    if (tg_jinja_failed(r) || already) return self;
    if (escape) return tg_jinja_escape(r, self);
    self.flags |= TG_JV_SAFE;
    return self;
}

/* do_replace. The count is -1 where it is missing or no number, which means all. Both texts go
 * through str() first, as soft_str does in jinja2, so numbers may stand there. */
static value replace(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *old = tg_jinja_arg(a, 0, "old"), *other = tg_jinja_arg(a, 1, "new"),
                *most = tg_jinja_arg(a, 2, "count");
    self = text_of(r, self);
    if (!old || !other)
        return tg_jinja_fail(r, TG_E_ARG, "replace: want two texts, have one or none");
    const value x = text_of(r, *old), y = text_of(r, *other);
    if (tg_jinja_failed(r)) return self;
    return tg_jinja_replace(r, self, x, y, most && most->type == TG_JV_INT ? most->u.i : -1);
}

/* do_indent: a width in blanks, or a text that is put in front of lines. The first line has none
 * unless it is asked for, and lines that are empty have none unless `blank` says so. */
static value indent(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *width = tg_jinja_arg(a, 0, "width");
    const bool first = flag(r, a, 1, "first"), blank = flag(r, a, 2, "blank");
    value by = tg_jinja_ascii(r, "    ");
    if (width && width->type == TG_JV_TEXT) by = *width;
    if (width && width->type == TG_JV_INT)
        by = tg_jinja_binary(r, '*', tg_jinja_ascii(r, " "), *width);
    if (width && width->type != TG_JV_TEXT && width->type != TG_JV_INT)
        return tg_jinja_fail(r, TG_E_ARG, "indent: want an int or a str, have a %s",
                             tg_jinja_type_name(*width));
    if (self.type != TG_JV_TEXT)
        return tg_jinja_fail(r, TG_E_ARG, "indent: want a str, have a %s",
                             tg_jinja_type_name(self));
    /* jinja2 adds a line end, so that one at the text's end stays */
    self = tg_jinja_binary(r, '+', self, tg_jinja_ascii(r, "\n"));
    const value lines = tg_jinja_lines(r, self, false);
    const size_t start = r->out_n;
    for (uint32_t i = 0; !tg_jinja_failed(r) && i < lines.u.list->n; i++) {
        const value line = lines.u.list->item[i];
        if (i > 0) tg_jinja_emit_ascii(r, "\n");
        if (i == 0 ? first : blank || line.n > 0) tg_jinja_emit(r, by.u.text, by.n);
        tg_jinja_emit(r, line.u.text, line.n);
    }
    return tg_jinja_take(r, start);
}

/* Not jinja2's tojson, which escapes < > & and ' for HTML, but the one that transformers puts in
 * its place (chat_template_utils.py): json.dumps(x, ensure_ascii=False, ...). Its defaults are
 * those of json.dumps: ", " and ": ", and with an indent a comma without the blank behind it. */
static value tojson(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    /* The order of the arguments is that of transformers' function, not that of json.dumps. */
    const value *indent = tg_jinja_arg(a, 1, "indent"), *marks = tg_jinja_arg(a, 2, "separators");
    tg_jinja_json j = { .ascii = flag(r, a, 0, "ensure_ascii"),
                        .sort = flag(r, a, 3, "sort_keys") };
    j.indented = indent && indent->type != TG_JV_NONE;
    j.comma = tg_jinja_ascii(r, j.indented ? "," : ", ");
    j.colon = tg_jinja_ascii(r, ": ");
    if (j.indented)
        j.indent = indent->type == TG_JV_TEXT
                       ? *indent
                       : tg_jinja_binary(r, '*', tg_jinja_ascii(r, " "), *indent);
    if (marks && marks->type != TG_JV_NONE) {
        const tg_jinja_list *l = tg_jinja_items(r, *marks);
        if (!l || l->n != 2 || l->item[0].type != TG_JV_TEXT || l->item[1].type != TG_JV_TEXT)
            return tg_jinja_fail(r, TG_E_ARG, "tojson: want two texts as separators, have others");
        j.comma = l->item[0];
        j.colon = l->item[1];
    }
    const size_t start = r->out_n;
    tg_jinja_emit_json(r, self, &j);
    return tg_jinja_take(r, start);
}

/* --------------------------------------------------------------------------------- numbers */

/* do_int: int(x), then int(float(x)), then the default. An undefined value fails in int() with an
 * error that the filter does not catch, where other values give the default. Numbers beyond 64 bits
 * are right in Python; here they are refused, as nothing shorter would be the same. */
static value to_int(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *other = tg_jinja_arg(a, 0, "default");
    if (tg_jinja_arg(a, 1, "base")) return tg_jinja_unknown(r, "int with a base", "");
    int64_t i;
    double d = 0;
    if (self.type == TG_JV_UNDEFINED)
        return tg_jinja_fail(r, TG_E_ARG, "int: a value is undefined");
    if (self.type == TG_JV_INT || self.type == TG_JV_BOOL) return tg_jinja_int(self.u.i);
    if (self.type == TG_JV_TEXT && tg_jinja_read_int(self, &i)) return tg_jinja_int(i);
    const bool is = self.type == TG_JV_FLOAT || self.type == TG_JV_TEXT;
    if (self.type == TG_JV_FLOAT) d = self.u.d;
    if (is && (self.type == TG_JV_FLOAT || tg_jinja_read_float(self, &d)) && d > -9e18 && d < 9e18)
        return tg_jinja_int((int64_t)d);
    /* A NaN and an infinity have no integer in Python either: those give the default. */
    if (is && d == d && d >= -DBL_MAX && d <= DBL_MAX && (d <= -9e18 || d >= 9e18))
        return tg_jinja_unknown(r, "an integer of more than 64 bits", "");
    return other ? *other : tg_jinja_int(0);
}

/* do_float: float(x), or the default. */
static value to_float(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *other = tg_jinja_arg(a, 0, "default");
    double d;
    if (self.type == TG_JV_UNDEFINED)
        return tg_jinja_fail(r, TG_E_ARG, "float: a value is undefined");
    if (self.type == TG_JV_FLOAT) return self;
    if (self.type == TG_JV_INT || self.type == TG_JV_BOOL) return tg_jinja_float((double)self.u.i);
    if (self.type == TG_JV_TEXT && tg_jinja_read_float(self, &d)) return tg_jinja_float(d);
    return other ? *other : tg_jinja_float(0);
}

/* abs() of Python: True becomes 1, and the least integer overflows into a refusal, through 0 - x.
 */
static value absolute(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    if (self.type == TG_JV_FLOAT) return tg_jinja_float(self.u.d < 0 ? -self.u.d : self.u.d);
    if (self.type == TG_JV_BOOL) return tg_jinja_int(self.u.i);
    if (self.type == TG_JV_INT && self.u.i >= 0) return self;
    return tg_jinja_binary(r, '-', tg_jinja_int(0), self);
}

/* ----------------------------------------------------------------------------------- of lists */

/* The attribute "a.b.0" of an item, as make_attrgetter has it. */
static value attribute_of(tg_jinja_run *r, value item, value path) {
    if (path.type != TG_JV_TEXT) return tg_jinja_item(r, item, path);
    for (size_t from = 0; from <= path.n && !tg_jinja_failed(r);) {
        size_t to = from;
        bool number = true;
        int64_t i = 0;
        for (; to < path.n && (path.u.text[to] & TG_JINJA_CODE) != '.'; to++) {
            const uint32_t c = path.u.text[to] & TG_JINJA_CODE;
            number = number && c >= '0' && c <= '9' && to - from < 9;
            if (number) i = 10 * i + (int64_t)(c - '0');
        }
        number = number && to > from;
        item = tg_jinja_item(r, item, number ? tg_jinja_int(i) : tg_jinja_piece(path, from, to));
        from = to + 1;
    }
    return item;
}

/* What filters compare by: the attribute that is named, if one is, without regard to case. */
static value key_of(tg_jinja_run *r, value item, const value *attribute, bool fold) {
    if (attribute && attribute->type != TG_JV_NONE) item = attribute_of(r, item, *attribute);
    if (fold && item.type == TG_JV_TEXT) item = tg_jinja_map_case(r, item, 'l');
    return item;
}

/* do_default: of what is undefined, and with `boolean` of all that is false: the empty text, 0 and
 * None are taken for missing then. */
static value default_of(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *other = tg_jinja_arg(a, 0, "default_value");
    const bool falsy = flag(r, a, 1, "boolean") && !tg_jinja_truth(r, self);
    if (self.type != TG_JV_UNDEFINED && !falsy) return self;
    return other ? *other : tg_jinja_ascii(r, "");
}

/* len(): also under the name count. */
static value length(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    return tg_jinja_length(r, self);
}

/* A list of its own, since items may be put in order or in their attributes' place afterwards. A
 * step is counted for each, so that copies of long lists in loops meet the limit. */
static value copy_of(tg_jinja_run *r, value self, tg_jinja_list_kind kind) {
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = tg_jinja_list_of(r, kind, l ? l->n : 0);
    for (uint32_t i = 0; l && i < l->n && tg_jinja_spend(r, 1); i++)
        tg_jinja_push(r, out, l->item[i]);
    return out;
}

/* do_list: list(x), the characters of a text and the keys of a dictionary. */
static value list(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    return copy_of(r, self, TG_JL_LIST);
}

/* do_first and do_last: next(iter(x)) and next(iter(reversed(x))). Of nothing it is an undefined
 * value and no error; a generator has no way back, so its last item is one. */
static value first(tg_jinja_run *r, value self, const tg_jinja_args *a, int last) {
    (void)a;
    if (last && self.type == TG_JV_LIST && self.u.list->kind == TG_JL_ONCE)
        return tg_jinja_fail(r, TG_E_ARG,
                             "last: want something that goes backwards, have a generator");
    if (self.type == TG_JV_TEXT && self.n > 0)
        return tg_jinja_piece(self, last ? self.n - 1 : 0, last ? self.n : 1);
    const tg_jinja_list *l = tg_jinja_items(r, self);
    if (!l || l->n == 0) return tg_jinja_undefined("an item of nothing");
    return l->item[last ? l->n - 1 : 0];
}

/* do_join: items as text, with an attribute of each in their place where one is named. Without
 * autoescape it is str.join over str(), and so takes any type, unlike the method. */
static value join(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *with = tg_jinja_arg(a, 0, "d"), *attribute = tg_jinja_arg(a, 1, "attribute");
    const value between = with ? text_of(r, *with) : tg_jinja_ascii(r, "");
    value items = copy_of(r, self, TG_JL_LIST);
    for (uint32_t i = 0; attribute && !tg_jinja_failed(r) && i < items.u.list->n; i++)
        items.u.list->item[i] = key_of(r, items.u.list->item[i], attribute, false);
    return tg_jinja_failed(r) ? self : tg_jinja_join(r, between, items.u.list, false);
}

/* do_reverse: a text is turned at once; a list gives a generator in jinja2, so what is returned has
 * no length and can be gone through once. */
static value reverse(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    if (self.type == TG_JV_TEXT) {
        const value at[3] = { tg_jinja_none(), tg_jinja_none(), tg_jinja_int(-1) };
        return tg_jinja_slice(r, self, at);
    }
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = tg_jinja_list_of(r, TG_JL_ONCE, l ? l->n : 0);
    for (uint32_t i = l ? l->n : 0; i > 0 && tg_jinja_spend(r, 1); i--)
        tg_jinja_push(r, out, l->item[i - 1]);
    return out;
}

/* do_items: pairs, one after the other. An undefined value has none, which lets a template go
 * through arguments that a tool call may not have. */
static value items(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)a;
    (void)how;
    static const tg_jinja_args none = { .n = 0 };
    value out = tg_jinja_list_of(r, TG_JL_ONCE, 0);
    if (self.type == TG_JV_UNDEFINED) return out;
    if (self.type != TG_JV_DICT)
        return tg_jinja_fail(r, TG_E_ARG, "items: want a dict, have a %s",
                             tg_jinja_type_name(self));
    out = tg_jinja_call_method(r, tg_jinja_method_at(self, "items"), self, &none);
    if (out.type == TG_JV_LIST) out.u.list->kind = TG_JL_ONCE;
    return out;
}

/* Stable, by insertion: conversations are short, and steps are counted. lists: the keys stand for
 * lists of one, as those of an attribute are in jinja2, and what is equal need not have an order.
 */
static void sort_by(tg_jinja_run *r, tg_jinja_list *l, value *key, bool backwards, bool lists) {
    for (uint32_t i = 1; i < l->n && !tg_jinja_failed(r); i++) {
        const value k = key[i], v = l->item[i];
        uint32_t at = i;
        while (at > 0 && !tg_jinja_failed(r)) {
            if (lists && tg_jinja_equal(r, k, key[at - 1])) break;
            const int order =
                tg_jinja_order(r, backwards ? key[at - 1] : k, backwards ? k : key[at - 1]);
            if (order >= 0) break;
            key[at] = key[at - 1];
            l->item[at] = l->item[at - 1];
            at--;
        }
        key[at] = k;
        l->item[at] = v;
    }
}

/* do_sort: sorted() by an attribute or the items themselves, texts without regard to case unless it
 * is asked for. Python's sort is stable, with reverse, too, where equal ones keep their order. */
static value sort(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const bool backwards = flag(r, a, 0, "reverse"), fold = !flag(r, a, 1, "case_sensitive");
    const value *attribute = tg_jinja_arg(a, 2, "attribute");
    value out = copy_of(r, self, TG_JL_LIST);
    const uint32_t n = tg_jinja_failed(r) ? 0 : out.u.list->n;
    value *key = tg_jinja_alloc(r, n, sizeof *key);
    if (!key) return out;
    for (uint32_t i = 0; i < n; i++) key[i] = key_of(r, out.u.list->item[i], attribute, fold);
    sort_by(r, out.u.list, key, backwards, attribute && attribute->type != TG_JV_NONE);
    return out;
}

/* do_dictsort: pairs by their key, or by="value". */
static value dictsort(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const bool fold = !flag(r, a, 0, "case_sensitive"), backwards = flag(r, a, 2, "reverse");
    const value *by = tg_jinja_arg(a, 1, "by");
    const bool values = by && tg_jinja_has_text(*by, "value");
    if (self.type != TG_JV_DICT)
        return tg_jinja_fail(r, TG_E_ARG, "dictsort: want a dict, have a %s",
                             tg_jinja_type_name(self));
    /* Pairs of its own, of which `values` chooses the first or the second as the key. */
    value out = items(r, self, a, 0);
    if (tg_jinja_failed(r)) return out;
    out.u.list->kind = TG_JL_LIST;
    value *key = tg_jinja_alloc(r, out.u.list->n, sizeof *key);
    if (!key) return out;
    for (uint32_t i = 0; i < out.u.list->n; i++)
        key[i] = key_of(r, out.u.list->item[i].u.list->item[values], NULL, fold);
    sort_by(r, out.u.list, key, backwards, false);
    return out;
}

/* do_unique: the first of each key, in the order of coming. Keys live in a set there, so that what
 * cannot be hashed is an error. */
static value unique(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const bool fold = !flag(r, a, 0, "case_sensitive");
    const value *attribute = tg_jinja_arg(a, 1, "attribute");
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = tg_jinja_list_of(r, TG_JL_ONCE, 4), seen = tg_jinja_list_of(r, TG_JL_LIST, 4);
    for (uint32_t i = 0; l && i < l->n && !tg_jinja_failed(r); i++) {
        const value key = key_of(r, l->item[i], attribute, fold);
        if (key.type == TG_JV_DICT || (key.type == TG_JV_LIST && key.u.list->kind != TG_JL_TUPLE))
            return tg_jinja_fail(r, TG_E_ARG, "unique: a %s is no key", tg_jinja_type_name(key));
        if (tg_jinja_contains(r, seen, key)) continue;
        tg_jinja_push(r, seen, key);
        tg_jinja_push(r, out, l->item[i]);
    }
    return out;
}

/* The smallest (how < 0) or the largest. */
static value extreme(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    const bool fold = !flag(r, a, 0, "case_sensitive");
    const value *attribute = tg_jinja_arg(a, 1, "attribute");
    const tg_jinja_list *l = tg_jinja_items(r, self);
    if (!l || l->n == 0) return tg_jinja_undefined("an item of nothing");
    uint32_t at = 0;
    for (uint32_t i = 1; i < l->n && !tg_jinja_failed(r); i++) {
        const int order = tg_jinja_order(r, key_of(r, l->item[i], attribute, fold),
                                         key_of(r, l->item[at], attribute, fold));
        if (how < 0 ? order < 0 : order > 0) at = i;
    }
    return l->item[at];
}

/* do_sum: start + each, which makes sums of lists as well, where start is one. */
static value sum(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *attribute = tg_jinja_arg(a, 0, "attribute"), *start = tg_jinja_arg(a, 1, "start");
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = start ? *start : tg_jinja_int(0);
    for (uint32_t i = 0; l && i < l->n && tg_jinja_spend(r, 1); i++)
        out = tg_jinja_binary(r, '+', out, key_of(r, l->item[i], attribute, false));
    return out;
}

/* ------------------------------------------------------------------- other filters and tests */

static const tg_jinja_args no_args = { .n = 0 };

/* The arguments behind the first ones. */
static tg_jinja_args rest(const tg_jinja_args *a, uint32_t n) {
    tg_jinja_args out = *a;
    n = n < a->n ? n : a->n;
    if (n > 0) out.v += n;
    out.n -= n;
    return out;
}

/* do_map: of each item an attribute (map(attribute="x", default=..)), or what a filter makes of it
 * (map("upper")), whose arguments are those behind its name. prepare_map decides by the absence of
 * positional arguments, and so does this. Filters of filters nest, which depth counts. */
static value map(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    (void)how;
    const value *attribute = a->n == 0 ? tg_jinja_arg(a, 0, "attribute") : NULL;
    const value *other = tg_jinja_arg(a, UINT32_MAX, "default");
    const tg_jinja_args behind = rest(a, 1);
    char name[64];
    int filter = -1;
    if (!tg_jinja_truth(r, self)) return tg_jinja_list_of(r, TG_JL_ONCE, 0);
    if (!attribute) {
        if (a->n == 0 || a->v[0].type != TG_JV_TEXT)
            return tg_jinja_fail(r, TG_E_ARG,
                                 "map: want a filter's name or attribute, have neither");
        filter = tg_jinja_filter_at(tg_jinja_show(a->v[0], name));
        if (filter < 0) return tg_jinja_unknown(r, "filter ", name);
    }
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = tg_jinja_list_of(r, TG_JL_ONCE, l ? l->n : 0);
    for (uint32_t i = 0; l && i < l->n && tg_jinja_spend(r, 1); i++) {
        value v = attribute ? attribute_of(r, l->item[i], *attribute)
                            : tg_jinja_call_filter(r, filter, l->item[i], &behind);
        if (attribute && other && v.type == TG_JV_UNDEFINED) v = *other;
        tg_jinja_push(r, out, v);
    }
    return out;
}

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

/* select(test, ..), selectattr(attribute, test, ..) and what they leave out; no test: what is true.
 */
static value select(tg_jinja_run *r, value self, const tg_jinja_args *a, int how) {
    const uint32_t skip = how & BY_ATTRIBUTE ? 1 : 0;
    if (a->n < skip) return tg_jinja_fail(r, TG_E_ARG, "want the name of an attribute, have none");
    const tg_jinja_args behind = rest(a, skip + 1);
    char name[64];
    int test = -1;
    if (!tg_jinja_truth(r, self)) return tg_jinja_list_of(r, TG_JL_ONCE, 0);
    if (a->n > skip) {
        if (a->v[skip].type == TG_JV_TEXT) test = tg_jinja_test_at(tg_jinja_show(a->v[skip], name));
        if (test < 0)
            return tg_jinja_unknown(r, "test ", a->v[skip].type == TG_JV_TEXT ? name : "");
    }
    const tg_jinja_list *l = tg_jinja_items(r, self);
    value out = tg_jinja_list_of(r, TG_JL_ONCE, 4);
    for (uint32_t i = 0; l && i < l->n && tg_jinja_spend(r, 1); i++) {
        const value v = skip ? attribute_of(r, l->item[i], a->v[0]) : l->item[i];
        const bool is = test < 0 ? tg_jinja_truth(r, v) : tg_jinja_call_test(r, test, v, &behind);
        if (is != ((how & REJECT) != 0)) tg_jinja_push(r, out, l->item[i]);
    }
    return out;
}

/* By name: the function, how few and how many arguments there may be (255: any number), and its
 * `how`. What jinja2 has beyond these (batch, groupby, slice, urlize, wordwrap ..) occurs in no
 * chat template that we know of, and is refused by name when it is met. */
static const struct {
    const char *name;
    filter_fn *fn;
    uint8_t least, most;
    signed char how;
} filters[] = {
    { "abs", absolute, 0, 0, 0 },
    { "capitalize", map_case, 0, 0, 'c' },
    { "count", length, 0, 0, 0 },
    { "d", default_of, 0, 2, 0 },
    { "default", default_of, 0, 2, 0 },
    { "dictsort", dictsort, 0, 3, 0 },
    { "e", safe, 0, 0, 1 },
    { "escape", safe, 0, 0, 1 },
    { "first", first, 0, 0, 0 },
    { "float", to_float, 0, 1, 0 },
    { "indent", indent, 0, 3, 0 },
    { "int", to_int, 0, 2, 0 },
    { "items", items, 0, 0, 0 },
    { "join", join, 0, 2, 0 },
    { "last", first, 0, 0, 1 },
    { "length", length, 0, 0, 0 },
    { "list", list, 0, 0, 0 },
    { "lower", map_case, 0, 0, 'l' },
    { "map", map, 1, 255, 0 },
    { "max", extreme, 0, 2, 1 },
    { "min", extreme, 0, 2, -1 },
    { "reject", select, 0, 255, REJECT },
    { "rejectattr", select, 1, 255, REJECT | BY_ATTRIBUTE },
    { "replace", replace, 2, 3, 0 },
    { "reverse", reverse, 0, 0, 0 },
    { "safe", safe, 0, 0, 0 },
    { "select", select, 0, 255, 0 },
    { "selectattr", select, 1, 255, BY_ATTRIBUTE },
    { "sort", sort, 0, 3, 0 },
    { "string", string, 0, 0, 0 },
    { "sum", sum, 0, 2, 0 },
    { "title", map_case, 0, 0, 'T' },
    { "tojson", tojson, 0, 4, 0 },
    { "trim", trim, 0, 1, 0 },
    { "unique", unique, 0, 2, 0 },
    { "upper", map_case, 0, 0, 'u' },
};

int tg_jinja_filter_at(const char *name) {
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (strcmp(filters[i].name, name) == 0) return (int)i;
    return -1;
}

/* One place counts the step and the depth for all filters: map and select call it again for each of
 * their items, so that a chain of them cannot go deeper than the stack that was planned for. */
value tg_jinja_call_filter(tg_jinja_run *r, int filter, value self, const tg_jinja_args *a) {
    if (!tg_jinja_want_args(r, a, filters[filter].name, filters[filter].least,
                            filters[filter].most) ||
        !tg_jinja_spend(r, 1))
        return tg_jinja_undefined(NULL);
    if (++r->depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
    const value out =
        tg_jinja_failed(r) ? self : filters[filter].fn(r, self, a, filters[filter].how);
    r->depth--;
    return out;
}

/* ---------------------------------------------------------------------------------------- tests */

typedef enum test_kind {
    DEFINED,
    UNDEFINED,
    NONE,
    TRUE,
    FALSE,
    BOOLEAN,
    INTEGER,
    FLOAT,
    NUMBER,
    STRING,
    MAPPING,
    ITERABLE,
    SEQUENCE,
    CALLABLE,
    ODD,
    EVEN,
    DIVISIBLE,
    LOWER,
    UPPER,
    EQUAL,
    UNEQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    IN,
    SAME,
    FILTER,
    TEST
} test_kind;

/* jinja2/tests.py: TESTS. Signs stand there beside words, since select("==", 1) names them so. A
 * number of arguments is exact: a test has as many as it has, and they have no names. */
static const struct {
    const char *name;
    uint8_t kind, args;
} tests[] = {
    { "defined", DEFINED, 0 },
    { "undefined", UNDEFINED, 0 },
    { "none", NONE, 0 },
    { "true", TRUE, 0 },
    { "false", FALSE, 0 },
    { "boolean", BOOLEAN, 0 },
    { "integer", INTEGER, 0 },
    { "float", FLOAT, 0 },
    { "number", NUMBER, 0 },
    { "string", STRING, 0 },
    { "mapping", MAPPING, 0 },
    { "iterable", ITERABLE, 0 },
    { "sequence", SEQUENCE, 0 },
    { "callable", CALLABLE, 0 },
    { "odd", ODD, 0 },
    { "even", EVEN, 0 },
    { "divisibleby", DIVISIBLE, 1 },
    { "lower", LOWER, 0 },
    { "upper", UPPER, 0 },
    { "eq", EQUAL, 1 },
    { "equalto", EQUAL, 1 },
    { "==", EQUAL, 1 },
    { "ne", UNEQUAL, 1 },
    { "!=", UNEQUAL, 1 },
    { "lt", LESS, 1 },
    { "lessthan", LESS, 1 },
    { "<", LESS, 1 },
    { "le", LESS_EQUAL, 1 },
    { "<=", LESS_EQUAL, 1 },
    { "gt", GREATER, 1 },
    { "greaterthan", GREATER, 1 },
    { ">", GREATER, 1 },
    { "ge", GREATER_EQUAL, 1 },
    { ">=", GREATER_EQUAL, 1 },
    { "in", IN, 1 },
    { "sameas", SAME, 1 },
    { "filter", FILTER, 0 },
    { "test", TEST, 0 },
};

int tg_jinja_test_at(const char *name) {
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strcmp(tests[i].name, name) == 0) return (int)i;
    return -1;
}

/* x % by == want, by Python's rule that the remainder has the divisor's sign: -3 is odd. */
static bool remainder_is(tg_jinja_run *r, value self, value by, int64_t want) {
    const value left = tg_jinja_binary(r, '%', self, by);
    return tg_jinja_equal(r, left, tg_jinja_int(want));
}

/* str(x).islower() and isupper(): of any type, as jinja2's tests have it. */
static bool in_case(tg_jinja_run *r, value self, const char *method) {
    self = tg_jinja_str(r, self);
    if (tg_jinja_failed(r)) return false;
    return tg_jinja_truth(
        r, tg_jinja_call_method(r, tg_jinja_method_at(self, method), self, &no_args));
}

/* Are they one object? What is made at once can be told from nothing here but numbers. */
static bool same(tg_jinja_run *r, value a, value b) {
    if (a.type != b.type) return false;
    if (a.type == TG_JV_NONE) return true;
    if (a.type == TG_JV_BOOL) return a.u.i == b.u.i;
    if (a.type == TG_JV_LIST || a.type == TG_JV_DICT || a.type == TG_JV_SPACE)
        return a.u.other == b.u.other;
    tg_jinja_unknown(r, "test sameas of a ", tg_jinja_type_name(a));
    return false;
}

/* Tests ask and change nothing; only a comparison of two types without an order, a division by zero
 * and what is not known here can fail. Of an order -1, 0, 1 are less, equal, greater; a NaN gives
 * 2, for which all four comparisons are false. */
bool tg_jinja_call_test(tg_jinja_run *r, int test, value v, const tg_jinja_args *a) {
    char name[64];
    if (!tg_jinja_want_args(r, a, tests[test].name, tests[test].args, tests[test].args))
        return false;
    if (tests[test].args > a->n) {
        tg_jinja_unknown(r, "arguments by name of ", tests[test].name);
        return false;
    }
    const bool number = v.type == TG_JV_BOOL || v.type == TG_JV_INT || v.type == TG_JV_FLOAT;
    switch ((test_kind)tests[test].kind) {
    case DEFINED: return v.type != TG_JV_UNDEFINED;
    case UNDEFINED: return v.type == TG_JV_UNDEFINED;
    case NONE: return v.type == TG_JV_NONE;
    case TRUE: return v.type == TG_JV_BOOL && v.u.i;
    case FALSE: return v.type == TG_JV_BOOL && !v.u.i;
    case BOOLEAN: return v.type == TG_JV_BOOL;
    case INTEGER: return v.type == TG_JV_INT;
    case FLOAT: return v.type == TG_JV_FLOAT;
    case NUMBER: return number;
    case STRING: return v.type == TG_JV_TEXT;
    case MAPPING: return v.type == TG_JV_DICT;
    case ITERABLE:
        return v.type == TG_JV_UNDEFINED || v.type == TG_JV_TEXT || v.type == TG_JV_LIST ||
               v.type == TG_JV_DICT || v.type == TG_JV_LOOP;
    case SEQUENCE: /* what has a length and places: an undefined value passes, too */
        return v.type == TG_JV_TEXT || v.type == TG_JV_DICT || v.type == TG_JV_UNDEFINED ||
               (v.type == TG_JV_LIST && v.u.list->kind <= TG_JL_RANGE);
    case CALLABLE: return v.type >= TG_JV_MACRO || v.type == TG_JV_UNDEFINED;
    case ODD: return remainder_is(r, v, tg_jinja_int(2), 1);
    case EVEN: return remainder_is(r, v, tg_jinja_int(2), 0);
    case DIVISIBLE: return remainder_is(r, v, a->v[0], 0);
    case LOWER: return in_case(r, v, "islower");
    case UPPER: return in_case(r, v, "isupper");
    case EQUAL: return tg_jinja_equal(r, v, a->v[0]);
    case UNEQUAL: return !tg_jinja_equal(r, v, a->v[0]);
    case LESS: return tg_jinja_order(r, v, a->v[0]) == -1;
    case LESS_EQUAL: return tg_jinja_order(r, v, a->v[0]) <= 0;
    case GREATER: return tg_jinja_order(r, v, a->v[0]) == 1;
    case GREATER_EQUAL: {
        const int order = tg_jinja_order(r, v, a->v[0]);
        return order == 0 || order == 1;
    }
    case IN: return tg_jinja_contains(r, a->v[0], v);
    case SAME: return same(r, v, a->v[0]);
    case FILTER: return v.type == TG_JV_TEXT && tg_jinja_filter_at(tg_jinja_show(v, name)) >= 0;
    case TEST: return v.type == TG_JV_TEXT && tg_jinja_test_at(tg_jinja_show(v, name)) >= 0;
    }
    return false;
}
