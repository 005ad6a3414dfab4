/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_parse.c - tokens to the tree, in one arena.
 *
 * Expressions, from what binds least to what binds most (a row is left-associative):
 *
 *     x if c else y  |  or  |  and  |  not  |  == != < <= > >= in, chained  |  + -  |  ~
 *     |  * / // %  |  **  |  unary - +  |  .name [i] (args) |filter  is test
 *
 * The grammar, that of jinja2/parser.py but for what is refused ([x]: may be missing, {x}: any
 * number of them, name: a token TG_JT_NAME):
 *
 *     body       {TEXT | "{{" tuple "}}" | "{%" statement}
 *     statement  "if" tuple body {"elif" tuple body} ["else" body] "endif"
 *                "for" target "in" tuple ["if" expr] body ["else" body] "endfor"
 *                "set" target "=" tuple  |  "set" target {filter} body "endset"
 *                "macro" name "(" [param {"," param}] ")" body "endmacro"
 *                "filter" name [args] {filter} body "endfilter"
 *                "generation" body "endgeneration"  |  "break"  |  "continue"
 *     target     name {"," name}  |  "(" target ")"  |  name "." name
 *     param      name ["=" expr]
 *     tuple      expr {"," expr} [","]
 *     expr       or ["if" or ["else" expr]]
 *     or         and {"or" and}             and  not {"and" not}         not  ["not"] compare
 *     compare    sum {op sum}               sum  concat {("+" | "-") concat}
 *     concat     product {"~" product}      product  power {("*" | "/" | "//" | "%") power}
 *     power      unary {"**" unary}
 *     unary      ("-" | "+") unary  |  primary, and behind either {postfix} {filter | test | args}
 *     postfix    "." name  |  "." INT  |  "[" expr "]"  |  "[" [expr] ":" [expr] [":" [expr]] "]"
 *                args
 *     filter     "|" name [args]
 *     test       "is" ["not"] name [args | primary {postfix}]
 *     args       "(" [arg {"," arg}] ")"    arg  expr  |  name "=" expr  |  "*" expr
 *     primary    name  |  STRING {STRING}  |  INT  |  FLOAT  |  true false none
 *                "[" [tuple] "]"  |  "(" [tuple] ")"  |  "{" [expr ":" expr {"," ..}] "}"
 *
 * Filters and tests bind more than a sign that stands before them does: -1 | abs is (-1) | abs.
 * What the language has and this does not (include, import, extends, block, recursive loops,
 * **kwargs) is refused by its name.
 */
#include "base/str.h"
#include "chat/jinja_inside.h"
#include "tok/unicode/unicode.h"

/* Each name once, so that names are compared as pointers. */
typedef struct tg_jinja_name {
    struct tg_jinja_name *next;
    size_t n;
    char text[];
} name_entry;

typedef struct parser {
    tg_ctx *ctx;
    tg_jinja *t;
    tg_jinja_lexer lexer;
    tg_jinja_token now, ahead;
    bool looked; /* ahead holds the token behind now */
    int nested;  /* brackets and tags around */
    int loops;   /* around, within the same macro */
    tg_status status;
} parser;

/* Says what is wrong once; from there on every token is an end, so that all loops end. */
static node *fail(parser *p, tg_status code, const char *what, const char *which, size_t n) {
    if (p->status == TG_OK)
        p->status = tg_fail(p->ctx, code, "%s: chat template, line %u: %s%.*s", p->t->name,
                            (unsigned)p->now.line, what, (int)(n < 60 ? n : 60), which);
    p->now = (tg_jinja_token) { TG_JT_END, "", 0, p->now.line };
    p->looked = true;
    p->ahead = p->now;
    return NULL;
}

/* Goes on to the next token: the one that was looked at, if one was. */
static void next(parser *p) {
    if (p->status != TG_OK) return;
    if (p->looked) {
        p->now = p->ahead;
        p->looked = false;
    } else {
        tg_jinja_next(&p->lexer, &p->now);
    }
    if (p->now.type == TG_JT_BAD) fail(p, TG_E_FORMAT, p->now.at, "", 0);
}

/* The token behind the present one. One is enough for the whole grammar: it tells name=value from a
 * name, and "not in" from "not". */
static const tg_jinja_token *look(parser *p) {
    if (!p->looked) tg_jinja_next(&p->lexer, &p->ahead);
    p->looked = true;
    return &p->ahead;
}

/* Where there is no memory the parser fails, and NULL comes back from here on. */
static node *make(parser *p, tg_jinja_node_kind kind) {
    node *n = p->status == TG_OK ? tg_arena_alloc(&p->t->arena, sizeof *n) : NULL;
    if (!n) {
        if (p->status == TG_OK) p->status = tg_fail_memory(p->ctx, "a chat template", sizeof *n);
        fail(p, p->status, "", "", 0);
        return NULL;
    }
    n->kind = (uint8_t)kind;
    n->line = p->now.line;
    n->index = -1;
    return n;
}

/* Searched from the front: a template has few names. */
static const char *intern(parser *p, const char *text, size_t n) {
    for (name_entry *e = p->t->names; e; e = e->next)
        if (e->n == n && memcmp(e->text, text, n) == 0) return e->text;
    name_entry *e = tg_arena_alloc(&p->t->arena, sizeof *e + n + 1);
    if (!e) {
        if (p->status == TG_OK) p->status = tg_fail_memory(p->ctx, "a chat template", n);
        return "";
    }
    memcpy(e->text, text, n);
    e->n = n;
    e->next = p->t->names;
    p->t->names = e;
    return e->text;
}

/* Keywords are names to the lexer, as in jinja2: what one means depends on where it stands, so that
 * a variable may be called `set` or `filter`. */
static bool is_name(const tg_jinja_token *t, const char *name) {
    return t->type == TG_JT_NAME && t->n == strlen(name) && memcmp(t->at, name, t->n) == 0;
}
static bool at_name(const parser *p, const char *name) { return is_name(&p->now, name); }

/* Passes the token if it is of this type. */
static bool accept(parser *p, int type) {
    const bool is = p->now.type == type;
    if (is) next(p);
    return is;
}

static bool accept_name(parser *p, const char *name) {
    const bool is = at_name(p, name);
    if (is) next(p);
    return is;
}

/* The usual message: what was wanted, and what stands there. */
static void unexpected(parser *p, const char *wanted) {
    char what[80];
    what[0] = 0;
    const bool end = p->now.type == TG_JT_END;
    tg_str_append(what, sizeof what, "want %s, have %s", wanted, end ? "the end" : "");
    fail(p, TG_E_FORMAT, what, p->now.at, p->now.n);
}

static void expect(parser *p, int type, const char *wanted) {
    if (!accept(p, type)) unexpected(p, wanted);
}

static const char *expect_name(parser *p) {
    if (p->now.type != TG_JT_NAME) {
        unexpected(p, "a name");
        return "";
    }
    const char *name = intern(p, p->now.at, p->now.n);
    next(p);
    return name;
}

/* Every recursion of the parser goes by here, through brackets, signs, not, if and tags: so the
 * stack has a bound, and the tree, which others walk by recursion, has the same one. */
static bool enter(parser *p) {
    if (++p->nested <= TG_JINJA_NESTED_MAX) return true;
    fail(p, TG_E_RANGE, "too many brackets or tags in each other", "", 0);
    return false;
}

/* ---------------------------------------------------------------------------------- constants */

/* UTF-8 as characters; the caller has room for n. */
static uint32_t decode(const char *text, size_t n, uint32_t *out) {
    uint32_t count = 0;
    for (size_t i = 0; i < n;) i += tg_uc_next(text + i, n - i, &out[count++]);
    return count;
}

/* Characters of the template: nobody's words. */
static value text_value(parser *p, const char *text, size_t n) {
    uint32_t *c = tg_arena_array(&p->t->arena, n + 1, sizeof *c);
    if (!c) {
        if (p->status == TG_OK) p->status = tg_fail_memory(p->ctx, "a chat template", n);
        return (value) { 0 };
    }
    const uint32_t count = decode(text, n, c);
    return (value) { .type = TG_JV_TEXT, .n = count, .u.text = c };
}

static int hex_digit(uint32_t c) {
    return c >= '0' && c <= '9'   ? (int)c - '0'
           : c >= 'a' && c <= 'f' ? (int)c - 'a' + 10
           : c >= 'A' && c <= 'F' ? (int)c - 'A' + 10
                                  : -1;
}

/* Python's escapes, in place: \n \t .. \ooo \xhh \uhhhh \Uhhhhhhhh; others stay as they are. */
static uint32_t unescape(parser *p, uint32_t *c, uint32_t n) {
    static const char letters[] = "\\'\"abfnrtv", codes[] = "\\'\"\a\b\f\n\r\t\v";
    uint32_t out = 0;
    for (uint32_t i = 0; i < n;) {
        if (c[i] != '\\' || i + 1 >= n) {
            c[out++] = c[i++];
            continue;
        }
        const uint32_t e = c[i + 1];
        const char *known = e && e < 128 ? strchr(letters, (int)e) : NULL;
        const int hex = e == 'x' ? 2 : e == 'u' ? 4 : e == 'U' ? 8 : 0;
        i += 2;
        if (known) {
            c[out++] = (uint32_t)(unsigned char)codes[known - letters];
        } else if (e == '\n') {
            continue;
        } else if (e >= '0' && e <= '7') {
            uint32_t code = e - '0';
            for (int k = 1; k < 3 && i < n && c[i] >= '0' && c[i] <= '7'; k++)
                code = 8 * code + (c[i++] - '0');
            c[out++] = code;
        } else if (hex) {
            uint32_t code = 0;
            int k = 0;
            for (; k < hex && i < n && hex_digit(c[i]) >= 0 && code < 0x1000000; k++)
                code = 16 * code + (uint32_t)hex_digit(c[i++]);
            if (k < hex || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
                fail(p, TG_E_FORMAT, "an escape that is no character", "", 0);
                return 0;
            }
            c[out++] = code;
        } else if (e == 'N') {
            fail(p, TG_E_UNSUPPORTED, "not known here: \\N{name} in a text", "", 0);
            return 0;
        } else {
            c[out++] = '\\';
            c[out++] = e;
        }
    }
    return out;
}

/* One or more literals in a row are one text. Its room doubles, so that many short ones take no
 * more memory than one long one would. */
static node *parse_strings(parser *p) {
    node *n = make(p, TG_JN_CONST);
    size_t room = 0;
    uint32_t *c = NULL;
    uint32_t count = 0;
    while (n && p->now.type == TG_JT_STRING) {
        if (!c || count + p->now.n > room) {
            room = 2 * (count + p->now.n);
            uint32_t *grown = tg_arena_array(&p->t->arena, room + 1, sizeof *c);
            if (!grown) {
                p->status = tg_fail_memory(p->ctx, "a chat template", room);
                break;
            }
            if (count) memcpy(grown, c, count * sizeof *c);
            c = grown;
        }
        count += unescape(p, c + count, decode(p->now.at, p->now.n, c + count));
        next(p);
    }
    if (n) n->v = (value) { .type = TG_JV_TEXT, .n = count, .u.text = c };
    return n;
}

/* "_" between digits means nothing. What needs more than 64 bits, or more digits than anybody
 * writes, is refused. */
static node *parse_number(parser *p) {
    node *n = make(p, TG_JN_CONST);
    char digits[64];
    size_t length = 0;
    for (size_t i = 0; i < p->now.n && length < sizeof digits; i++)
        if (p->now.at[i] != '_') digits[length++] = p->now.at[i];
    int64_t i = 0;
    double d = 0;
    const bool whole = p->now.type == TG_JT_INT;
    if (length == sizeof digits ||
        !(whole ? tg_parse_int64(digits, length, &i) : tg_parse_double(digits, length, &d)))
        return fail(p, TG_E_UNSUPPORTED, "not known here: the number ", p->now.at, p->now.n);
    if (n) {
        n->v.type = whole ? TG_JV_INT : TG_JV_FLOAT;
        if (whole) n->v.u.i = i;
        if (!whole) n->v.u.d = d;
    }
    next(p);
    return n;
}

/* -------------------------------------------------------------------------------- expressions */

static node *parse_expression(parser *p);
static node *parse_binary(parser *p, int level);

/* Items up to the closing bracket, which is passed; *comma: there was one. */
static node *parse_items(parser *p, int close, bool *comma) {
    node *first = NULL, **end = &first;
    *comma = false;
    while (p->status == TG_OK && p->now.type != close) {
        node *item = parse_expression(p);
        if (!item) return NULL;
        *end = item;
        end = &item->next;
        if (!accept(p, ',')) break;
        *comma = true;
    }
    expect(p, close, "a comma or a closing bracket");
    return first;
}

/* [list], (tuple,), (expression) or {dict} */
static node *parse_bracket(parser *p) {
    bool comma;
    if (!enter(p)) return NULL;
    node *n = NULL;
    if (accept(p, '[')) {
        n = make(p, TG_JN_LIST);
        node *items = parse_items(p, ']', &comma);
        if (n) n->a = items;
    } else if (accept(p, '(')) {
        node *items = parse_items(p, ')', &comma);
        if (items && !comma) {
            n = items;
        } else {
            n = make(p, TG_JN_TUPLE);
            if (n) n->a = items;
        }
    } else {
        next(p); /* { */
        n = make(p, TG_JN_DICT);
        node **end = n ? &n->a : NULL;
        while (p->status == TG_OK && p->now.type != '}') {
            node *key = parse_expression(p);
            expect(p, ':', "a colon");
            node *item = parse_expression(p);
            if (p->status != TG_OK) return NULL;
            *end = key;
            key->next = item;
            end = &item->next;
            if (!accept(p, ',')) break;
        }
        expect(p, '}', "a comma or }");
    }
    p->nested--;
    return n;
}

/* parse_primary of jinja2/parser.py: constants in both spellings, since templates are written by
 * people who know Python and by people who know Jinja. */
static node *parse_primary(parser *p) {
    static const struct {
        const char *name;
        value v;
    } constants[] = {
        { "true", { .type = TG_JV_BOOL, .u.i = 1 } }, { "True", { .type = TG_JV_BOOL, .u.i = 1 } },
        { "false", { .type = TG_JV_BOOL } },          { "False", { .type = TG_JV_BOOL } },
        { "none", { .type = TG_JV_NONE } },           { "None", { .type = TG_JV_NONE } },
    };
    switch (p->now.type) {
    case TG_JT_STRING: return parse_strings(p);
    case TG_JT_INT:
    case TG_JT_FLOAT: return parse_number(p);
    case '[':
    case '(':
    case '{': return parse_bracket(p);
    case TG_JT_NAME: break;
    default: unexpected(p, "an expression"); return NULL;
    }
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (!at_name(p, constants[i].name)) continue;
        node *n = make(p, TG_JN_CONST);
        if (n) n->v = constants[i].v;
        next(p);
        return n;
    }
    node *n = make(p, TG_JN_NAME);
    const char *name = expect_name(p);
    if (n) n->name = name;
    return n;
}

/* Arguments of a call, the brackets included. */
static node *parse_args(parser *p) {
    node *first = NULL, **end = &first;
    bool named = false;
    if (!enter(p)) return NULL;
    next(p);
    while (p->status == TG_OK && p->now.type != ')') {
        if (p->now.type == TG_JT_POW)
            return fail(p, TG_E_UNSUPPORTED, "not known here: **kwargs", "", 0);
        node *arg = make(p, TG_JN_PARAM);
        if (!arg) return NULL;
        if (accept(p, '*')) {
            arg->op = 1;
        } else if (p->now.type == TG_JT_NAME && look(p)->type == '=') {
            arg->name = expect_name(p);
            next(p);
            named = true;
        } else if (named) {
            return fail(p, TG_E_FORMAT, "an argument without a name behind one with a name", "", 0);
        }
        arg->a = parse_expression(p);
        *end = arg;
        end = &arg->next;
        if (!accept(p, ',')) break;
    }
    expect(p, ')', "a comma or )");
    p->nested--;
    return first;
}

/* x[i], x[from:to:step] */
static node *parse_index(parser *p, node *of) {
    node *n = make(p, TG_JN_ITEM), *at[3] = { NULL, NULL, NULL };
    if (!n || !enter(p)) return NULL;
    next(p);
    n->a = of;
    int i = 0;
    for (; i < 3; i++) {
        if (p->now.type != ':' && p->now.type != ']') at[i] = parse_expression(p);
        if (p->now.type != ':' || i == 2) break;
        next(p);
        n->kind = TG_JN_SLICE;
    }
    if (n->kind == TG_JN_ITEM && !at[0]) unexpected(p, "an index");
    expect(p, ']', "]");
    n->b = at[0];
    n->c = at[1];
    n->d = at[2];
    p->nested--;
    return n;
}

/* x.name, and x.0, which is x[0]. */
static node *parse_member(parser *p, node *of) {
    next(p);
    if (p->now.type == TG_JT_INT) {
        node *n = make(p, TG_JN_ITEM);
        if (!n) return NULL;
        n->a = of;
        n->b = parse_number(p);
        return n;
    }
    node *n = make(p, TG_JN_ATTR);
    const char *name = expect_name(p);
    if (!n) return NULL;
    n->a = of;
    n->name = name;
    n->v = text_value(p, name, strlen(name));
    return n;
}

/* of(args): of any expression, since what it is will be known when it is run. */
static node *parse_call(parser *p, node *of) {
    node *n = make(p, TG_JN_CALL);
    node *args = parse_args(p);
    if (!n) return NULL;
    n->a = of;
    n->b = args;
    return n;
}

/* Members, indices and calls, as many as follow. A chain is a loop here, but a tree whose depth is
 * its length, which is walked by recursion: so it has a bound of its own. */
static node *parse_postfix(parser *p, node *n) {
    for (int i = 0; n && p->status == TG_OK; i++) {
        if (i > TG_JINJA_NESTED_MAX) return fail(p, TG_E_RANGE, "too long a chain", "", 0);
        if (p->now.type == '.') {
            n = parse_member(p, n);
        } else if (p->now.type == '[') {
            n = parse_index(p, n);
        } else if (p->now.type == '(') {
            n = parse_call(p, n);
        } else {
            break;
        }
    }
    return n;
}

/* | name(args), behind the bar. */
static node *parse_filter(parser *p, node *of) {
    node *n = make(p, TG_JN_FILTER);
    const char *name = expect_name(p);
    node *args = p->now.type == '(' ? parse_args(p) : NULL;
    if (!n || p->status != TG_OK) return NULL;
    n->a = of;
    n->b = args;
    n->name = name;
    n->index = (int16_t)tg_jinja_filter_at(name);
    return n;
}

/* is not name arg, behind "is": an argument may stand there without brackets. */
static node *parse_test(parser *p, node *of) {
    node *n = make(p, TG_JN_TEST), *args = NULL;
    const bool negated = accept_name(p, "not");
    const char *name = expect_name(p);
    const int type = p->now.type;
    if (type == '(') {
        args = parse_args(p);
    } else if (type == TG_JT_STRING || type == TG_JT_INT || type == TG_JT_FLOAT || type == '[' ||
               type == '{' ||
               (type == TG_JT_NAME && !at_name(p, "else") && !at_name(p, "or") &&
                !at_name(p, "and"))) {
        if (at_name(p, "is")) return fail(p, TG_E_FORMAT, "tests cannot be chained", "", 0);
        args = make(p, TG_JN_PARAM);
        node *arg = parse_postfix(p, parse_primary(p));
        if (args) args->a = arg;
    }
    if (!n || p->status != TG_OK) return NULL;
    n->a = of;
    n->b = args;
    n->name = name;
    n->index = (int16_t)tg_jinja_test_at(name);
    if (!negated) return n;
    node *not = make(p, TG_JN_NOT);
    if (not) not->a = n;
    return not;
}

/* Filters, tests and calls of what they gave. parse_filter_expr of jinja2 takes them in any order,
 * so "x is defined | trim" filters the answer. */
static node *parse_filters(parser *p, node *n) {
    for (int i = 0; n && p->status == TG_OK; i++) {
        if (i > TG_JINJA_NESTED_MAX) return fail(p, TG_E_RANGE, "too long a chain", "", 0);
        if (accept(p, '|')) {
            n = parse_filter(p, n);
        } else if (accept_name(p, "is")) {
            n = parse_test(p, n);
        } else if (p->now.type == '(') {
            n = parse_call(p, n);
        } else {
            break;
        }
    }
    return n;
}

/* A sign binds less than a member of what it stands before, and more than a filter: parse_unary of
 * jinja2 parses its operand without filters, and takes them for the whole. */
static node *parse_unary(parser *p, bool filters) {
    node *n;
    if (p->now.type == '-' || p->now.type == '+') {
        n = make(p, p->now.type == '-' ? TG_JN_MINUS : TG_JN_PLUS);
        if (!n || !enter(p)) return NULL;
        next(p);
        n->a = parse_unary(p, false);
        p->nested--;
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    return filters ? parse_filters(p, n) : n;
}

/* Is the token an operator of this level? "not" of "not in" is passed by. */
static int operator_at(parser *p, int level) {
    static const int of[][6] = {
        { TG_JT_EQ, TG_JT_NE, TG_JT_LE, TG_JT_GE, '<', '>' },
        { '+', '-' },
        { '~' },
        { '*', '/', '%', TG_JT_FLOORDIV },
        { TG_JT_POW },
    };
    if (level == 0 && at_name(p, "in")) return TG_JT_IN;
    if (level == 0 && at_name(p, "not") && is_name(look(p), "in")) {
        next(p);
        return TG_JT_NOT_IN;
    }
    for (int i = 0; i < 6 && of[level][i]; i++)
        if (p->now.type == of[level][i]) return of[level][i];
    return 0;
}

/* Level 0: comparisons, whose operands are a list; 1: sums; 2: ~; 3: products; 4: powers. */
static node *parse_binary(parser *p, int level) {
    enum { LEVELS = 5 };
    node *left = level + 1 < LEVELS ? parse_binary(p, level + 1) : parse_unary(p, true);
    node **operand = NULL;
    for (int op; left && p->status == TG_OK && (op = operator_at(p, level));) {
        node *n = make(p, level == 0 ? TG_JN_OPERAND : TG_JN_BINARY);
        next(p);
        node *right = level + 1 < LEVELS ? parse_binary(p, level + 1) : parse_unary(p, true);
        if (!n || !right) return NULL;
        n->op = (uint8_t)op;
        if (level > 0) {
            n->a = left;
            n->b = right;
            left = n;
            continue;
        }
        n->a = right;
        if (!operand) {
            node *all = make(p, TG_JN_COMPARE);
            if (!all) return NULL;
            all->a = left;
            left = all;
            operand = &all->b;
        }
        *operand = n;
        operand = &n->next;
    }
    return left;
}

/* not binds less than comparisons, so "not a == b" is not (a == b); it nests. */
static node *parse_not(parser *p) {
    if (!at_name(p, "not")) return parse_binary(p, 0);
    node *n = make(p, TG_JN_NOT);
    if (!n || !enter(p)) return NULL;
    next(p);
    n->a = parse_not(p);
    p->nested--;
    return n;
}

/* Left-associative, as all that is written in a row. */
static node *parse_and(parser *p) {
    node *left = parse_not(p);
    while (left && accept_name(p, "and")) {
        node *n = make(p, TG_JN_AND), *right = parse_not(p);
        if (!n || !right) return NULL;
        n->a = left;
        n->b = right;
        left = n;
    }
    return left;
}

/* The least of the operators. */
static node *parse_or(parser *p) {
    node *left = parse_and(p);
    while (left && accept_name(p, "or")) {
        node *n = make(p, TG_JN_OR), *right = parse_and(p);
        if (!n || !right) return NULL;
        n->a = left;
        n->b = right;
        left = n;
    }
    return left;
}

/* x if c else y, whose last part may be such an expression again. Without an else it is undefined
 * where c is false, which jinja2 allows. */
static node *parse_expression(parser *p) {
    node *left = parse_or(p);
    while (left && accept_name(p, "if")) {
        node *n = make(p, TG_JN_CHOICE);
        if (!n || !enter(p)) return NULL;
        n->b = left;
        n->a = parse_or(p);
        if (accept_name(p, "else")) n->c = parse_expression(p);
        p->nested--;
        left = n;
    }
    return p->status == TG_OK ? left : NULL;
}

/* What may be a tuple without brackets; plain: without "x if c". */
static node *parse_tuple(parser *p, bool plain) {
    node *first = plain ? parse_or(p) : parse_expression(p), *n = first;
    for (node *last = first; last && accept(p, ',');) {
        if (n == first) {
            n = make(p, TG_JN_TUPLE);
            if (!n) return NULL;
            n->a = first;
        }
        if (p->now.type == TG_JT_TAG_END || p->now.type == TG_JT_PRINT_END || p->now.type == '=' ||
            at_name(p, "in"))
            break;
        last->next = plain ? parse_or(p) : parse_expression(p);
        last = last->next;
    }
    return n;
}

/* --------------------------------------------------------------------------------- statements */

static node *parse_body(parser *p, const char *const *ends);

/* The "%}" of a statement. */
static void tag_end(parser *p) { expect(p, TG_JT_TAG_END, "%}"); }

/* The body up to {% end %}, which is passed. */
static node *parse_until(parser *p, const char *end) {
    const char *const ends[] = { end, NULL };
    tag_end(p);
    node *body = parse_body(p, ends);
    next(p);
    tag_end(p);
    return body;
}

/* elif is an if in the place of else, marked so that running walks the chain rather than descending
 * it. It is made by a loop: a chain may be as long as the template, and nests nothing. */
static node *parse_if(parser *p) {
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    node *first = NULL, **end = &first;
    do {
        node *n = make(p, TG_JN_IF);
        node *condition = parse_tuple(p, true);
        tag_end(p);
        node *body = parse_body(p, ends);
        if (!n || p->status != TG_OK) return NULL;
        n->op = first != NULL;
        n->a = condition;
        n->b = body;
        *end = n;
        end = &n->c;
    } while (accept_name(p, "elif"));
    if (accept_name(p, "else")) {
        *end = parse_until(p, "endif");
        return first;
    }
    next(p);
    tag_end(p);
    return first;
}

/* Where something is assigned to: a name, names, or a member of a namespace. */
static node *parse_target(parser *p, bool member) {
    node *first = NULL, **end = &first;
    bool comma = false;
    do {
        if (comma && (p->now.type == '=' || at_name(p, "in"))) break;
        node *n;
        if (p->now.type == '(') {
            if (!enter(p)) return NULL;
            next(p);
            n = parse_target(p, false);
            expect(p, ')', ")");
            p->nested--;
        } else {
            n = make(p, TG_JN_NAME);
            const char *name = expect_name(p);
            if (n) n->name = name;
        }
        if (n && member && !comma && p->now.type == '.') {
            next(p);
            node *m = make(p, TG_JN_ATTR);
            const char *name = expect_name(p);
            if (!m) return NULL;
            m->a = n;
            m->name = name;
            n = m;
        }
        if (!n) return NULL;
        *end = n;
        end = &n->next;
        if (p->now.type != ',') break;
        comma = true;
        next(p);
    } while (p->status == TG_OK);
    if (!comma) return first;
    node *n = make(p, TG_JN_TUPLE);
    if (n) n->a = first;
    return n;
}

/* for target in list [if condition]: the condition is evaluated for each item before the loop runs,
 * so that loop.index counts what passed. */
static node *parse_for(parser *p) {
    static const char *const ends[] = { "else", "endfor", NULL };
    node *n = make(p, TG_JN_FOR);
    if (!n) return NULL;
    n->a = parse_target(p, false);
    if (!accept_name(p, "in")) unexpected(p, "in");
    n->b = parse_tuple(p, true);
    if (accept_name(p, "if")) n->d = parse_expression(p);
    if (at_name(p, "recursive"))
        return fail(p, TG_E_UNSUPPORTED, "not known here: recursive loops", "", 0);
    tag_end(p);
    p->loops++;
    n->c = parse_body(p, ends);
    p->loops--;
    if (accept_name(p, "else")) {
        n->e = parse_until(p, "endfor");
    } else {
        next(p);
        tag_end(p);
    }
    return n;
}

/* Filters on what a block has made: "| trim | upper". */
static node *parse_block_filters(parser *p, bool bar) {
    node *n = make(p, TG_JN_BODY);
    if (!bar && n) n = parse_filter(p, n);
    while (n && accept(p, '|')) n = parse_filter(p, n);
    return n;
}

/* set a = x, set a, b = x, y, set ns.a = x, and the block whose output becomes the value. */
static node *parse_set(parser *p) {
    node *n = make(p, TG_JN_SET);
    if (!n) return NULL;
    n->a = parse_target(p, true);
    if (accept(p, '=')) {
        n->b = parse_tuple(p, false);
        tag_end(p);
        return n;
    }
    n->kind = TG_JN_BLOCK;
    n->b = parse_block_filters(p, true);
    n->c = parse_until(p, "endset");
    return n;
}

/* A loop around a macro is none of its own: break inside it has nothing to leave. */
static node *parse_macro(parser *p) {
    node *n = make(p, TG_JN_MACRO);
    if (!n) return NULL;
    n->name = expect_name(p);
    expect(p, '(', "(");
    node **end = &n->a;
    while (p->status == TG_OK && p->now.type != ')') {
        node *param = make(p, TG_JN_PARAM);
        const char *name = expect_name(p);
        if (!param) return NULL;
        param->name = name;
        if (accept(p, '=')) {
            param->a = parse_expression(p);
        } else if (end != &n->a && n->b) {
            return fail(p, TG_E_FORMAT, "a parameter without a default behind one with one", "", 0);
        }
        if (param->a) n->b = param; /* one had a default */
        *end = param;
        end = &param->next;
        if (!accept(p, ',')) break;
    }
    expect(p, ')', ")");
    n->b = NULL;
    const int loops = p->loops;
    p->loops = 0;
    n->c = parse_until(p, "endmacro");
    p->loops = loops;
    return n;
}

/* break and continue, of jinja2's extension loopcontrols, which transformers loads. */
static node *parse_leave(parser *p, tg_jinja_node_kind kind) {
    if (p->loops == 0) return fail(p, TG_E_FORMAT, "break or continue outside of a loop", "", 0);
    node *n = make(p, kind);
    tag_end(p);
    return n;
}

/* The tag by its first word. "generation" is transformers' own: it marks what the model has said,
 * for training, and writes its body as it is. */
static node *parse_statement(parser *p) {
    if (accept_name(p, "if")) return parse_if(p);
    if (accept_name(p, "for")) return parse_for(p);
    if (accept_name(p, "set")) return parse_set(p);
    if (accept_name(p, "macro")) return parse_macro(p);
    if (accept_name(p, "break")) return parse_leave(p, TG_JN_BREAK);
    if (accept_name(p, "continue")) return parse_leave(p, TG_JN_CONTINUE);
    if (accept_name(p, "generation")) {
        node *n = make(p, TG_JN_SCOPE);
        node *body = parse_until(p, "endgeneration");
        if (n) n->c = body;
        return n;
    }
    if (accept_name(p, "filter")) {
        node *n = make(p, TG_JN_BLOCK);
        node *filters = parse_block_filters(p, false), *body = parse_until(p, "endfilter");
        if (!n) return NULL;
        n->b = filters;
        n->c = body;
        return n;
    }
    static const char *const others[] = { "include", "import", "from", "extends",
                                          "block",   "call",   "with", "autoescape" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (at_name(p, others[i]))
            return fail(p, TG_E_UNSUPPORTED, "not known here: tag ", p->now.at, p->now.n);
    return fail(p, TG_E_FORMAT, "want a tag that is known, have ", p->now.at, p->now.n);
}

/* Statements up to a tag with one of these names, at which it stops; NULL: up to the end. */
static node *parse_body(parser *p, const char *const *ends) {
    node *first = NULL, **end = &first;
    if (!enter(p)) return NULL;
    while (p->status == TG_OK) {
        node *n = NULL;
        if (p->now.type == TG_JT_TEXT) {
            n = make(p, TG_JN_TEXT);
            if (n) n->v = text_value(p, p->now.at, p->now.n);
            next(p);
        } else if (accept(p, TG_JT_PRINT)) {
            n = make(p, TG_JN_PRINT);
            node *a = parse_tuple(p, false);
            if (n) n->a = a;
            expect(p, TG_JT_PRINT_END, "}}");
        } else if (accept(p, TG_JT_TAG)) {
            for (int i = 0; ends && ends[i]; i++) {
                if (!at_name(p, ends[i])) continue;
                p->nested--;
                return first;
            }
            n = parse_statement(p);
        } else {
            const char *want = NULL; /* the last one is what ends it in any case */
            for (int i = 0; ends && ends[i]; i++) want = ends[i];
            if (want) unexpected(p, want);
            break;
        }
        if (!n) break;
        *end = n;
        end = &n->next;
    }
    p->nested--;
    return first;
}

/* ------------------------------------------------------------------------------ the template */

/* The text with line ends as Jinja reads them: \r\n and \r are \n, and the last one goes. */
static char *line_ends(tg_arena *arena, const char *text, size_t n, size_t *out_n) {
    char *out = tg_arena_alloc(arena, n + 1);
    size_t k = 0;
    for (size_t i = 0; out && i < n; i++) {
        if (text[i] == '\n' && i > 0 && text[i - 1] == '\r') continue;
        out[k++] = text[i] == '\r' ? '\n' : text[i];
    }
    if (k > 0 && out[k - 1] == '\n') k--;
    *out_n = k;
    return out;
}

/* One arena holds the tree, and one pass makes it; whatever goes wrong, all of it is freed. A
 * faulty template is an error with its line, at once and not when it is run. */
tg_status tg_jinja_new(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                       tg_jinja **out) {
    *out = NULL;
    if (n_bytes > TG_JINJA_TEMPLATE_MAX)
        return tg_fail(ctx, TG_E_RANGE, "%s: chat template: want at most %d bytes, have %zu", name,
                       TG_JINJA_TEMPLATE_MAX, n_bytes);
    tg_jinja *t = tg_alloc(&ctx->mem, sizeof *t);
    if (!t) return tg_fail_memory(ctx, "a chat template", sizeof *t);
    tg_arena_init(&t->arena, &ctx->mem);
    parser p = { .ctx = ctx, .t = t, .lexer = { .line = 1, .line_start = true } };
    t->name = tg_arena_strdup(&t->arena, name);
    p.lexer.text = line_ends(&t->arena, text, n_bytes, &p.lexer.n);
    if (!t->name || !p.lexer.text) {
        tg_jinja_free(t);
        return tg_fail_memory(ctx, "a chat template", n_bytes);
    }
    t->loop = intern(&p, "loop", 4);
    next(&p);
    t->body = parse_body(&p, NULL);
    if (p.status != TG_OK) {
        tg_jinja_free(t);
        return p.status;
    }
    *out = t;
    return TG_OK;
}

void tg_jinja_free(tg_jinja *t) {
    if (!t) return;
    const tg_mem mem = t->arena.mem;
    tg_arena_deinit(&t->arena);
    tg_free(&mem, t, sizeof *t);
}

/* Of all names that stand in it as variables, members or arguments; not of words in its texts. */
bool tg_jinja_mentions(const tg_jinja *t, const char *name) {
    for (const name_entry *e = t->names; e; e = e->next)
        if (strcmp(e->text, name) == 0) return true;
    return false;
}
