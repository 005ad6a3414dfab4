/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_run.c - a tree, run: scopes, statements, calls, and the limits.
 *
 * What is set inside of a loop's body, a block or a macro is seen there alone, and each round of a
 * loop begins anew; {% if %} has no names of its own. A macro sees the names around the place where
 * it was defined, as they are when it is called.
 *
 * How names are found, from the inside to the outside (a scope is a list of names, each with its
 * newest value):
 *
 *     round of a loop -> block, macro's call -> .. -> template -> what the caller has set ->
 * globals loop, item          parameters                            messages, tools ..     range ..
 *
 * jinja2 compiles templates to Python, where a name belongs to a function's frame; what it then
 * sees are these scopes (compiler.py, idtracking.py). Only a namespace carries a value out of a
 * loop. A name that is nowhere is an undefined value, which may be asked for, printed (as nothing)
 * and gone through (as nothing), and fails in all else.
 *
 * Everything that a run makes lies in one arena and ends with it. Nested expressions, tags, macros
 * and values recurse here; `depth` counts them all, so that a small stack is enough.
 */
#include "base/str.h"
#include "chat/jinja_inside.h"
#include "tok/unicode/unicode.h"

/* ------------------------------------------------------------------------------------- limits */

/* The first fault stays: what follows from it would only hide it. Every loop here asks for
 * tg_jinja_failed, and every value made afterwards is undefined, so a fault ends the run soon
 * without a jump. */
value tg_jinja_fail(tg_jinja_run *r, tg_status code, const char *format, ...) {
    if (tg_jinja_failed(r)) return tg_jinja_undefined(NULL);
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->status = tg_fail(r->ctx, code, "%s: chat template, line %u: %s", r->t->name,
                        (unsigned)r->line, text);
    return tg_jinja_undefined(NULL);
}

value tg_jinja_unknown(tg_jinja_run *r, const char *what, const char *name) {
    return tg_jinja_fail(r, TG_E_UNSUPPORTED, "not known here: %s%.60s", what, name);
}

/* Work is counted, not timed: the same template and conversation fail, or do not, on every machine.
 */
bool tg_jinja_spend(tg_jinja_run *r, uint64_t steps) {
    if (tg_jinja_failed(r)) return false;
    if (steps <= r->steps_max - r->steps) {
        r->steps += steps;
        return true;
    }
    tg_jinja_fail(r, TG_E_RANGE, "it takes too many steps (more than %llu)",
                  (unsigned long long)r->steps_max);
    return false;
}

/* All memory of a run goes by here, so the limit holds whatever a template builds. The product is
 * taken in 64 bits: n has at most 32. */
void *tg_jinja_alloc(tg_jinja_run *r, size_t n, size_t bytes) {
    if (tg_jinja_failed(r)) return NULL;
    const uint64_t want = (uint64_t)n * bytes;
    if (n > UINT32_MAX || r->arena.total_bytes + want > r->memory_max) {
        tg_jinja_fail(r, TG_E_RANGE, "it takes too much memory (more than %llu bytes)",
                      (unsigned long long)r->memory_max);
        return NULL;
    }
    void *out = tg_arena_alloc(&r->arena, (size_t)want);
    if (!out) r->status = tg_fail_memory(r->ctx, "a chat template", (size_t)want);
    return out;
}

/* ------------------------------------------------------------------------------------- output */

/* The output doubles as it grows. Sixteen characters cost a step, so that writing is bounded as
 * computing is. */
void tg_jinja_emit(tg_jinja_run *r, const uint32_t *text, size_t n) {
    if (n == 0 || !tg_jinja_spend(r, n / 16)) return;
    if (n > r->out_max - r->out_n) {
        tg_jinja_fail(r, TG_E_RANGE, "it writes too much (more than %zu characters)", r->out_max);
        return;
    }
    if (n > r->out_room - r->out_n) {
        size_t room = r->out_room ? 2 * r->out_room : 1024;
        while (room < r->out_n + n) room *= 2;
        uint32_t *grown =
            tg_realloc(&r->ctx->mem, r->out, r->out_room * sizeof *grown, room * sizeof *grown);
        if (!grown) {
            r->status = tg_fail_memory(r->ctx, "a chat template", room * sizeof *grown);
            return;
        }
        r->out = grown;
        r->out_room = room;
    }
    memcpy(r->out + r->out_n, text, n * sizeof *text);
    r->out_n += n;
}

void tg_jinja_emit_ascii(tg_jinja_run *r, const char *text) {
    uint32_t c[64];
    size_t n = 0;
    for (; *text; text++) {
        c[n++] = (unsigned char)*text;
        if (n < 64 && text[1]) continue;
        tg_jinja_emit(r, c, n);
        n = 0;
    }
}

value tg_jinja_take(tg_jinja_run *r, size_t start) {
    const size_t n = r->out_n - start;
    uint32_t *c = tg_jinja_alloc(r, n, sizeof *c);
    r->out_n = start;
    if (!c) return tg_jinja_undefined(NULL);
    if (n) memcpy(c, r->out + start, n * sizeof *c);
    return (value) { .type = TG_JV_TEXT, .n = (uint32_t)n, .u.text = c };
}

/* ------------------------------------------------------------------------------------- scopes */

/* One more level of the C stack. Who enters must leave, with depth--, also after a fault. */
static bool enter(tg_jinja_run *r, uint32_t line) {
    r->line = line;
    if (!tg_jinja_spend(r, 1)) return false;
    if (r->depth < TG_JINJA_DEPTH_MAX) {
        r->depth++;
        return true;
    }
    tg_jinja_fail(r, TG_E_RANGE, "too deep: expressions, tags or macros in each other");
    return false;
}

/* Sets a name in one scope: anew, or in place of what it was. */
static void bind(tg_jinja_run *r, tg_jinja_binding **first, const char *name, value v) {
    for (tg_jinja_binding *b = *first; b; b = b->next) {
        if (b->name != name && strcmp(b->name, name) != 0) continue;
        b->v = v;
        return;
    }
    tg_jinja_binding *b = tg_jinja_alloc(r, 1, sizeof *b);
    if (!b) return;
    *b = (tg_jinja_binding) { name, v, *first };
    *first = b;
}

/* Scopes are never freed alone: a macro may keep the one that it was defined in. */
static tg_jinja_scope *scope_in(tg_jinja_run *r, tg_jinja_scope *parent) {
    tg_jinja_scope *s = tg_jinja_alloc(r, 1, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

/* Names of the template are interned, those of the caller's variables are not. */
static value look_up(tg_jinja_run *r, const tg_jinja_scope *s, const char *name) {
    for (; s; s = s->parent)
        for (const tg_jinja_binding *b = s->first; b; b = b->next)
            if (b->name == name || (s == &r->globals && strcmp(b->name, name) == 0)) return b->v;
    const int global = tg_jinja_global_at(name);
    if (global < 0) return tg_jinja_undefined(name);
    return (value) { .type = TG_JV_GLOBAL, .u.i = global };
}

/* --------------------------------------------------------------------------------- attributes */

/* jinja2's LoopContext. Depths are those of recursive loops, which are refused, so 1 and 0. */
static value loop_attr(tg_jinja_run *r, const tg_jinja_loop *l, const char *name) {
    const int64_t i = l->at, n = l->list->n;
    static const char *const names[] = { "index", "index0", "revindex", "revindex0", "length",
                                         "first", "last",   "depth",    "depth0" };
    const int64_t values[] = { i + 1, i, n - i, n - i - 1, n, i == 0, i + 1 == n, 1, 0 };
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strcmp(name, names[k]) == 0)
            return k == 5 || k == 6 ? tg_jinja_bool(values[k] != 0) : tg_jinja_int(values[k]);
    if (strcmp(name, "previtem") == 0)
        return i > 0 ? l->list->item[i - 1] : tg_jinja_undefined("the item in front");
    if (strcmp(name, "nextitem") == 0)
        return i + 1 < n ? l->list->item[i + 1] : tg_jinja_undefined("the item behind");
    if (strcmp(name, "cycle") == 0 || strcmp(name, "changed") == 0)
        return tg_jinja_unknown(r, "loop.", name);
    return tg_jinja_undefined(name);
}

/* v.name: a method of the type comes before a key of that name, as Python's getattr does. */
value tg_jinja_attr(tg_jinja_run *r, value v, const char *name, value key) {
    if (v.type == TG_JV_UNDEFINED)
        return tg_jinja_fail(r, TG_E_ARG, "%s is undefined, and has no %.60s",
                             v.u.why ? v.u.why : "a value", name);
    const int method = tg_jinja_method_at(v, name);
    if (method >= 0) {
        tg_jinja_bound *b = tg_jinja_alloc(r, 1, sizeof *b);
        if (!b) return tg_jinja_undefined(NULL);
        *b = (tg_jinja_bound) { v, method };
        return (value) { .type = TG_JV_METHOD, .u.other = b };
    }
    if (tg_jinja_changes(v, name)) return tg_jinja_undefined("a method that changes a value");
    if (v.type == TG_JV_LOOP) return loop_attr(r, v.u.other, name);
    if (v.type == TG_JV_SPACE)
        for (const tg_jinja_binding *b = v.u.space->first; b; b = b->next)
            if (b->name == name || strcmp(b->name, name) == 0) return b->v;
    if (v.type == TG_JV_DICT) {
        const value *found = tg_jinja_dict_find(r, v.u.dict, key);
        if (found) return *found;
    }
    return tg_jinja_undefined(name);
}

/* -------------------------------------------------------------------------------- expressions */

typedef tg_jinja_scope scope;
static value eval(tg_jinja_run *r, const node *n, scope *s);
static void run_body(tg_jinja_run *r, const node *body, scope *s);

/* The values of arguments, in the arena. */
static bool eval_args(tg_jinja_run *r, const node *args, scope *s, tg_jinja_args *out) {
    uint32_t named = 0;
    *out = (tg_jinja_args) { .n = 0 };
    if (!args) return true;
    for (const node *a = args; a; a = a->next) named += a->name != NULL;
    const value places = tg_jinja_list_of(r, TG_JL_LIST, 4);
    value *v = tg_jinja_alloc(r, named, sizeof *v);
    const char **name = tg_jinja_alloc(r, named, sizeof *name);
    if (!v || !name) return false;
    for (const node *a = args; a && !tg_jinja_failed(r); a = a->next) {
        const value given = eval(r, a->a, s);
        const tg_jinja_list *spread = a->op ? tg_jinja_items(r, given) : NULL;
        if (a->name) {
            v[out->n_named] = given;
            name[out->n_named++] = a->name;
        } else if (!a->op) {
            tg_jinja_push(r, places, given);
        }
        for (uint32_t i = 0; spread && i < spread->n; i++)
            tg_jinja_push(r, places, spread->item[i]);
    }
    if (tg_jinja_failed(r)) return false;
    out->v = places.u.list->item;
    out->n = places.u.list->n;
    out->named = v;
    out->name = name;
    return true;
}

/* Binds the parameters and writes the body, whose text is the value. */
static value call_macro(tg_jinja_run *r, const tg_jinja_macro *m, const tg_jinja_args *a) {
    scope *s = scope_in(r, m->scope);
    uint32_t i = 0, taken = 0;
    if (!s) return tg_jinja_undefined(NULL);
    for (const node *p = m->def->a; p; p = p->next, i++) {
        const value *given = tg_jinja_arg(a, i, p->name);
        taken += given && i >= a->n;
        const value v = given ? *given : p->a ? eval(r, p->a, s) : tg_jinja_undefined(p->name);
        bind(r, &s->first, p->name, v);
    }
    if (a->n > i || taken != a->n_named)
        return tg_jinja_fail(r, TG_E_ARG, "macro %s: an argument that it does not take",
                             m->def->name);
    const size_t start = r->out_n;
    run_body(r, m->def->c, s);
    return tg_jinja_take(r, start);
}

/* Whatever a name may stand for: what cannot be called is an error, with the name where it is
 * undefined, since that is the likely slip. */
value tg_jinja_call(tg_jinja_run *r, value callee, const tg_jinja_args *a) {
    if (tg_jinja_failed(r)) return tg_jinja_undefined(NULL);
    switch (callee.type) {
    case TG_JV_GLOBAL: return tg_jinja_call_global(r, (int)callee.u.i, a);
    case TG_JV_MACRO: return call_macro(r, callee.u.other, a);
    case TG_JV_METHOD: {
        const tg_jinja_bound *b = callee.u.other;
        return tg_jinja_call_method(r, b->method, b->self, a);
    }
    case TG_JV_UNDEFINED:
        return tg_jinja_fail(r, TG_E_ARG, "%s is undefined, and is called",
                             callee.u.why ? callee.u.why : "a value");
    default:
        return tg_jinja_fail(r, TG_E_ARG, "want something to call, have a %s",
                             tg_jinja_type_name(callee));
    }
}

static value eval_call(tg_jinja_run *r, const node *n, scope *s) {
    tg_jinja_args args;
    const value callee = eval(r, n->a, s);
    if (tg_jinja_failed(r) || !eval_args(r, n->b, s, &args)) return tg_jinja_undefined(NULL);
    r->line = n->line;
    return tg_jinja_call(r, callee, &args);
}

/* [a, b] and (a, b) */
static value eval_items(tg_jinja_run *r, const node *n, scope *s) {
    uint32_t count = 0;
    for (const node *i = n->a; i; i = i->next) count++;
    const value out = tg_jinja_list_of(r, n->kind == TG_JN_TUPLE ? TG_JL_TUPLE : TG_JL_LIST, count);
    for (const node *i = n->a; i && !tg_jinja_failed(r); i = i->next)
        tg_jinja_push(r, out, eval(r, i, s));
    return out;
}

/* Keys and values are linked in turn, and evaluated so. */
static value eval_dict(tg_jinja_run *r, const node *n, scope *s) {
    const value out = tg_jinja_dict_new(r);
    for (const node *i = n->a; i && !tg_jinja_failed(r); i = i->next->next) {
        const value key = eval(r, i, s);
        tg_jinja_dict_put(r, out.u.dict, key, eval(r, i->next, s));
    }
    return out;
}

/* An order of 2 (one is NaN) makes each comparison false. */
static bool compare(tg_jinja_run *r, int op, value a, value b) {
    int order;
    switch (op) {
    case TG_JT_EQ: return tg_jinja_equal(r, a, b);
    case TG_JT_NE: return !tg_jinja_equal(r, a, b);
    case TG_JT_IN: return tg_jinja_contains(r, b, a);
    case TG_JT_NOT_IN: return !tg_jinja_contains(r, b, a);
    default: order = tg_jinja_order(r, a, b);
    }
    return op == '<'        ? order == -1
           : op == '>'      ? order == 1
           : op == TG_JT_LE ? order <= 0
                            : order == 0 || order == 1;
}

/* a < b < c is a < b and b < c, with b evaluated once, and c not at all where the first is false.
 */
static value eval_compare(tg_jinja_run *r, const node *n, scope *s) {
    value left = eval(r, n->a, s);
    bool is = true;
    for (const node *o = n->b; o && is && !tg_jinja_failed(r); o = o->next) {
        const value right = eval(r, o->a, s);
        if (tg_jinja_failed(r)) break;
        is = compare(r, o->op, left, right);
        left = right;
    }
    return tg_jinja_bool(is);
}

/* a ~ b: both as text, and never escaped: without autoescape jinja2 joins plain str. */
static value concat(tg_jinja_run *r, value a, value b) {
    const value x = tg_jinja_str(r, a), y = tg_jinja_str(r, b);
    if (tg_jinja_failed(r)) return tg_jinja_undefined(NULL);
    value plain_x = x, plain_y = y;
    plain_x.flags = plain_y.flags = 0;
    return tg_jinja_binary(r, '+', plain_x, plain_y);
}

/* -x is 0 - x, so that the least integer is refused as an overflow; of floats the sign alone
 * changes, or -0.0 would be lost. */
static value sign(tg_jinja_run *r, value v, bool minus) {
    if (v.type == TG_JV_FLOAT) return tg_jinja_float(minus ? -v.u.d : v.u.d);
    if (v.type == TG_JV_BOOL) v.type = TG_JV_INT;
    if (v.type == TG_JV_INT && !minus) return v;
    return tg_jinja_binary(r, '-', tg_jinja_int(0), v);
}

static value eval_slice(tg_jinja_run *r, const node *n, scope *s) {
    const value of = eval(r, n->a, s);
    const node *const parts[3] = { n->b, n->c, n->d };
    value at[3];
    for (int i = 0; i < 3; i++) at[i] = parts[i] ? eval(r, parts[i], s) : tg_jinja_none();
    return tg_jinja_failed(r) ? of : tg_jinja_slice(r, of, at);
}

/* A filter or test: what it is applied to, and its arguments. */
static value apply(tg_jinja_run *r, const node *n, scope *s) {
    const value v = eval(r, n->a, s);
    tg_jinja_args args;
    if (tg_jinja_failed(r) || !eval_args(r, n->b, s, &args)) return tg_jinja_undefined(NULL);
    r->line = n->line;
    if (n->index < 0)
        return tg_jinja_unknown(r, n->kind == TG_JN_TEST ? "test " : "filter ", n->name);
    if (n->kind == TG_JN_TEST) return tg_jinja_bool(tg_jinja_call_test(r, n->index, v, &args));
    return tg_jinja_call_filter(r, n->index, v, &args);
}

/* and, or: the value of one side, as in Python, and the other side only if it is needed. x if c
 * without an else is undefined where c is false. */
static value eval_kind(tg_jinja_run *r, const node *n, scope *s) {
    value v;
    switch ((tg_jinja_node_kind)n->kind) {
    case TG_JN_CONST: return n->v;
    case TG_JN_NAME: return look_up(r, s, n->name);
    case TG_JN_BODY: return r->body;
    case TG_JN_LIST:
    case TG_JN_TUPLE: return eval_items(r, n, s);
    case TG_JN_DICT: return eval_dict(r, n, s);
    case TG_JN_ATTR:
        v = eval(r, n->a, s);
        return tg_jinja_failed(r) ? v : tg_jinja_attr(r, v, n->name, n->v);
    case TG_JN_ITEM: {
        v = eval(r, n->a, s);
        const value key = eval(r, n->b, s);
        return tg_jinja_failed(r) ? v : tg_jinja_item(r, v, key);
    }
    case TG_JN_SLICE: return eval_slice(r, n, s);
    case TG_JN_CALL: return eval_call(r, n, s);
    case TG_JN_FILTER:
    case TG_JN_TEST: return apply(r, n, s);
    case TG_JN_NOT: return tg_jinja_bool(!tg_jinja_truth(r, eval(r, n->a, s)));
    case TG_JN_MINUS:
    case TG_JN_PLUS: return sign(r, eval(r, n->a, s), n->kind == TG_JN_MINUS);
    case TG_JN_AND:
    case TG_JN_OR:
        v = eval(r, n->a, s);
        return tg_jinja_truth(r, v) == (n->kind == TG_JN_OR) ? v : eval(r, n->b, s);
    case TG_JN_COMPARE: return eval_compare(r, n, s);
    case TG_JN_BINARY: {
        v = eval(r, n->a, s);
        const value right = eval(r, n->b, s);
        return n->op == '~' ? concat(r, v, right) : tg_jinja_binary(r, n->op, v, right);
    }
    case TG_JN_CHOICE:
        if (tg_jinja_truth(r, eval(r, n->a, s))) return eval(r, n->b, s);
        return n->c ? eval(r, n->c, s) : tg_jinja_undefined("a value without else");
    default: return tg_jinja_undefined(NULL);
    }
}

/* Constants neither nest nor cost a step. */
static value eval(tg_jinja_run *r, const node *n, scope *s) {
    if (n->kind == TG_JN_CONST) return n->v;
    if (!enter(r, n->line)) return tg_jinja_undefined(NULL);
    const value v = eval_kind(r, n, s);
    r->depth--;
    return v;
}

/* --------------------------------------------------------------------------------- statements */

/* To a name of this scope, a member of a namespace, or to as many names as there are values, which
 * may nest: {% for a, (b, c) in x %}. */
static void assign(tg_jinja_run *r, const node *target, scope *s, value v) {
    if (tg_jinja_failed(r)) return;
    if (target->kind == TG_JN_NAME) {
        bind(r, &s->first, target->name, v);
        return;
    }
    if (target->kind == TG_JN_ATTR) {
        const value space = look_up(r, s, target->a->name);
        if (space.type != TG_JV_SPACE) {
            tg_jinja_fail(r, TG_E_ARG, "want a namespace to set %s in, have a %s", target->name,
                          tg_jinja_type_name(space));
        } else if (target->name[0] == '_') {
            tg_jinja_fail(r, TG_E_ARG, "namespace: want no _ in front, have %s", target->name);
        } else {
            bind(r, &space.u.space->first, target->name, v);
        }
        return;
    }
    const tg_jinja_list *l = tg_jinja_items(r, v);
    uint32_t n = 0, i = 0;
    for (const node *t = target->a; t; t = t->next) n++;
    if (l && l->n != n)
        tg_jinja_fail(r, TG_E_ARG, "want %u values for as many names, have %u", (unsigned)n,
                      (unsigned)l->n);
    for (const node *t = target->a; t && !tg_jinja_failed(r); t = t->next) {
        if (++r->depth > TG_JINJA_DEPTH_MAX) tg_jinja_fail(r, TG_E_RANGE, "too deep");
        assign(r, t, s, l->item[i++]);
        r->depth--;
    }
}

/* The items that the loop's own condition takes. */
static tg_jinja_list *loop_items(tg_jinja_run *r, const node *n, scope *s) {
    tg_jinja_list *all = tg_jinja_items(r, eval(r, n->b, s));
    if (!n->d || !all) return all;
    const value out = tg_jinja_list_of(r, TG_JL_LIST, all->n);
    for (uint32_t i = 0; i < all->n && !tg_jinja_failed(r); i++) {
        scope *inner = scope_in(r, s);
        if (!inner) break;
        assign(r, n->a, inner, all->item[i]);
        if (tg_jinja_truth(r, eval(r, n->d, inner))) tg_jinja_push(r, out, all->item[i]);
    }
    return tg_jinja_failed(r) ? NULL : out.u.list;
}

/* Each round has a scope of its own, with the item and `loop` in it. break and continue arrive as
 * r->leave, which is cleared here and nowhere else. */
static void run_for(tg_jinja_run *r, const node *n, scope *s) {
    const tg_jinja_list *l = loop_items(r, n, s);
    tg_jinja_loop *loop = tg_jinja_alloc(r, 1, sizeof *loop); /* outlives the loop if it is kept */
    bool whole = false; /* a round came to its end: else is for loops without one, as in jinja2 */
    if (!l || !loop) return;
    loop->list = l;
    for (uint32_t i = 0; i < l->n && !tg_jinja_failed(r); i++) {
        scope *inner = scope_in(r, s);
        if (!inner) return;
        loop->at = i;
        bind(r, &inner->first, r->t->loop, (value) { .type = TG_JV_LOOP, .u.other = loop });
        assign(r, n->a, inner, l->item[i]);
        run_body(r, n->c, inner);
        const int leave = r->leave;
        r->leave = 0;
        whole = whole || !leave;
        if (leave == TG_JN_BREAK) break;
    }
    scope *other = n->e && !whole ? scope_in(r, s) : NULL;
    if (other) run_body(r, n->e, other);
}

/* {% set x | filters %}..{% endset %} and {% filter name %}..{% endfilter %} */
static void run_block(tg_jinja_run *r, const node *n, scope *s) {
    scope *inner = scope_in(r, s);
    const size_t start = r->out_n;
    if (!inner) return;
    run_body(r, n->c, inner);
    /* Blocks nest, and so do filters with blocks in their arguments: the outer text comes back. */
    const value before = r->body;
    r->body = tg_jinja_take(r, start);
    const value v = tg_jinja_failed(r) ? r->body : eval(r, n->b, s);
    r->body = before;
    if (n->a)
        assign(r, n->a, s, v);
    else
        tg_jinja_emit_str(r, v);
}

/* Defining binds a name, and runs nothing. */
static void run_macro(tg_jinja_run *r, const node *n, scope *s) {
    tg_jinja_macro *m = tg_jinja_alloc(r, 1, sizeof *m);
    if (!m) return;
    *m = (tg_jinja_macro) { n, s };
    bind(r, &s->first, n->name, (value) { .type = TG_JV_MACRO, .u.other = m });
}

/* if, elif, else: a chain that is walked, not descended. */
static void run_if(tg_jinja_run *r, const node *n, scope *s) {
    for (;;) {
        const bool is = tg_jinja_truth(r, eval(r, n->a, s));
        const bool more = n->c && n->c->kind == TG_JN_IF && n->c->op;
        if (tg_jinja_failed(r)) return;
        if (is || !more) {
            run_body(r, is ? n->b : n->c, s);
            return;
        }
        n = n->c;
    }
}

static void run_statement(tg_jinja_run *r, const node *n, scope *s) {
    switch ((tg_jinja_node_kind)n->kind) {
    case TG_JN_TEXT: tg_jinja_emit(r, n->v.u.text, n->v.n); return;
    case TG_JN_PRINT: tg_jinja_emit_str(r, eval(r, n->a, s)); return;
    case TG_JN_IF: run_if(r, n, s); return;
    case TG_JN_FOR: run_for(r, n, s); return;
    case TG_JN_SET: assign(r, n->a, s, eval(r, n->b, s)); return;
    case TG_JN_BLOCK: run_block(r, n, s); return;
    case TG_JN_MACRO: run_macro(r, n, s); return;
    case TG_JN_SCOPE: {
        scope *inner = scope_in(r, s);
        if (inner) run_body(r, n->c, inner);
        return;
    }
    default: r->leave = n->kind; /* break, continue */
    }
}

/* Ends early for a fault, and for a break or continue on its way out. */
static void run_body(tg_jinja_run *r, const node *body, scope *s) {
    for (const node *n = body; n && !tg_jinja_failed(r) && !r->leave; n = n->next) {
        if (!enter(r, n->line)) return;
        run_statement(r, n, s);
        r->depth--;
    }
}

/* -------------------------------------------------------------------------------------- a run */

tg_jinja_run *tg_jinja_run_new(tg_ctx *ctx, const tg_jinja *t) {
    tg_jinja_run *r = tg_alloc(&ctx->mem, sizeof *r);
    if (!r) {
        (void)tg_fail_memory(ctx, "a chat template", sizeof *r);
        return NULL;
    }
    r->ctx = ctx;
    r->t = t;
    tg_arena_init(&r->arena, &ctx->mem);
    r->steps_max = UINT64_MAX; /* of what the caller sets, whatever it is */
    r->memory_max = UINT64_MAX;
    return r;
}

void tg_jinja_run_free(tg_jinja_run *r) {
    if (!r) return;
    const tg_mem mem = r->ctx->mem;
    tg_arena_deinit(&r->arena);
    tg_free(&mem, r->out, r->out_room * sizeof *r->out);
    tg_free(&mem, r, sizeof *r);
}

void tg_jinja_set(tg_jinja_run *r, const char *name, value v) {
    bind(r, &r->globals.first, name, v);
}
void tg_jinja_set_date(tg_jinja_run *r, tg_jinja_date date) { r->date = date; }

/* The characters as bytes, and whose each byte is. */
static tg_status write_out(const tg_jinja_run *r, tg_jinja_out *out) {
    char *text = tg_buf_reserve(&out->text, 4 * r->out_n);
    char *words = tg_buf_reserve(&out->words, 4 * r->out_n);
    TG_TRY(tg_buf_status(r->ctx, &out->text, "a chat template"));
    TG_TRY(tg_buf_status(r->ctx, &out->words, "a chat template"));
    size_t n = 0;
    for (size_t i = 0; i < r->out_n; i++) {
        const size_t length = tg_uc_put(r->out[i] & TG_JINJA_CODE, text + n);
        memset(words + n, (r->out[i] & TG_JINJA_WORDS) != 0, length);
        n += length;
    }
    out->text.length += n;
    out->words.length += n;
    tg_buf_append(&out->text, "", 0);
    return TG_OK;
}

/* The limits grow with the conversation, so that a long one is no fault of its template; what grows
 * faster than that, a loop over all pairs of turns, meets them. */
tg_status tg_jinja_render(tg_jinja_run *r, tg_jinja_out *out) {
    TG_TRY(r->status);
    const uint64_t set = r->arena.total_bytes; /* four bytes a character and more */
    r->steps = 0;
    r->steps_max = TG_JINJA_STEPS_MAX + set;
    r->memory_max = TG_JINJA_MEMORY_MAX + 32 * set;
    r->out_max = TG_JINJA_OUTPUT_MAX + (size_t)set;
    scope *root = scope_in(r, &r->globals);
    if (root) run_body(r, r->t->body, root);
    TG_TRY(r->status);
    return write_out(r, out);
}
