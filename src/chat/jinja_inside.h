/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja_inside.h - what the parts of the interpreter share: the tree, values, and a run.
 *
 *     text -> jinja_lex.c -> tokens -> jinja_parse.c -> nodes -> jinja_run.c -> characters
 *                                                       jinja_value.c   numbers, texts, lists,
 * dicts jinja_text.c    what str has, and JSON jinja_filter.c  filters and tests
 *
 * Errors are sticky: the first one stays in the run, functions return undefined from there on, and
 * loops ask tg_jinja_failed. So an expression reads as what it computes.
 */
#ifndef TG_CHAT_JINJA_INSIDE_H
#define TG_CHAT_JINJA_INSIDE_H

#include "base/err.h"
#include "chat/jinja.h"

typedef tg_jinja_value value;

/* ---------------------------------------------------------------------------------- the tree */

typedef enum tg_jinja_node_kind {
    /* statements, linked by next */
    TG_JN_TEXT,  /* v */
    TG_JN_PRINT, /* a */
    TG_JN_IF,    /* a: condition, b: body, c: the rest; op: it is an elif */
    TG_JN_FOR,   /* a: target, b: over, c: body, d: filter, e: else */
    TG_JN_SET,   /* a: target, b: value */
    TG_JN_BLOCK, /* a: target or NULL, b: filters on a TG_JN_BODY, c: body; target NULL: printed */
    TG_JN_SCOPE, /* c: body: {% generation %} */
    TG_JN_MACRO, /* name, a: parameters (TG_JN_PARAM), c: body */
    TG_JN_BREAK,
    TG_JN_CONTINUE,
    /* expressions; items of lists and arguments are linked by next */
    TG_JN_CONST,  /* v */
    TG_JN_NAME,   /* name */
    TG_JN_LIST,   /* a: items */
    TG_JN_TUPLE,  /* a: items */
    TG_JN_DICT,   /* a: keys and values in turn */
    TG_JN_ATTR,   /* a, name, v: the name as text */
    TG_JN_ITEM,   /* a, b: index */
    TG_JN_SLICE,  /* a, b: from, c: to, d: step, each may be NULL */
    TG_JN_CALL,   /* a: callee, b: arguments */
    TG_JN_PARAM,  /* name, a: default or NULL; of a call: name NULL or keyword, a: argument; op: *a
                   */
    TG_JN_FILTER, /* a, name, index, b: arguments */
    TG_JN_TEST,   /* a, name, index, b: arguments */
    TG_JN_NOT,
    TG_JN_MINUS,
    TG_JN_PLUS,
    TG_JN_AND,
    TG_JN_OR,
    TG_JN_COMPARE, /* a, b: TG_JN_OPERAND */
    TG_JN_OPERAND, /* op, a */
    TG_JN_BINARY,  /* op, a, b */
    TG_JN_CHOICE,  /* a: condition, b: then, c: else or NULL */
    TG_JN_BODY     /* the text that a block has made */
} tg_jinja_node_kind;

typedef struct node {
    uint8_t kind, op;
    int16_t index; /* of a filter or test in its table; -1: it is not known */
    uint32_t line;
    const char *name; /* interned: equal names are one pointer */
    value v;
    struct node *a, *b, *c, *d, *e, *next;
} node;

/* Tokens: an operator of one character is that character. */
enum {
    TG_JT_END,
    TG_JT_TEXT = 128,
    TG_JT_PRINT,     /* {{ */
    TG_JT_PRINT_END, /* }} */
    TG_JT_TAG,       /* {% */
    TG_JT_TAG_END,   /* %} */
    TG_JT_NAME,
    TG_JT_STRING,
    TG_JT_INT,
    TG_JT_FLOAT,
    TG_JT_EQ,
    TG_JT_NE,
    TG_JT_LE,
    TG_JT_GE,
    TG_JT_FLOORDIV,
    TG_JT_POW,
    TG_JT_IN, /* of operands alone, as the next */
    TG_JT_NOT_IN,
    TG_JT_BAD /* at: what is wrong */
};

typedef struct tg_jinja_token {
    int type;
    const char *at; /* not terminated */
    size_t n;
    uint32_t line;
} tg_jinja_token;

typedef struct tg_jinja_lexer {
    const char *text; /* line ends are \n, the last one is dropped */
    size_t n, at;
    uint32_t line;
    int pending; /* a tag that begins here behind a text: TG_JT_PRINT or TG_JT_TAG; 0: none */
    int inside;  /* TG_JT_PRINT, TG_JT_TAG; 0: in the text between */
    int depth;   /* open brackets, inside */
    bool line_start;
} tg_jinja_lexer;

void tg_jinja_next(tg_jinja_lexer *l, tg_jinja_token *out);

struct tg_jinja {
    tg_arena arena;
    const char *name; /* for messages */
    const char *loop; /* "loop", interned */
    node *body;
    struct tg_jinja_name *names;
};

/* ------------------------------------------------------------------------------------- values */

typedef enum tg_jinja_type {
    TG_JV_UNDEFINED, /* zeros are an undefined value */
    TG_JV_NONE,
    TG_JV_BOOL,
    TG_JV_INT,
    TG_JV_FLOAT,
    TG_JV_TEXT,
    TG_JV_LIST,
    TG_JV_DICT,
    TG_JV_SPACE,  /* namespace() */
    TG_JV_LOOP,   /* tg_jinja_loop */
    TG_JV_MACRO,  /* tg_jinja_macro */
    TG_JV_METHOD, /* tg_jinja_bound */
    TG_JV_GLOBAL  /* i: which function */
} tg_jinja_type;

enum { TG_JV_SAFE = 1 };           /* text of |safe: what is added to it is escaped */
#define TG_JINJA_WORDS 0x80000000u /* of a character: somebody's */
#define TG_JINJA_CODE  0x7fffffffu

/* Lists, and what else Python iterates over. */
typedef enum tg_jinja_list_kind {
    TG_JL_LIST,
    TG_JL_TUPLE,
    TG_JL_RANGE,
    TG_JL_VIEW, /* dict.items() and so on: a length and no places */
    TG_JL_ONCE  /* generators: neither, always true, empty when they were gone through */
} tg_jinja_list_kind;

typedef struct tg_jinja_list {
    value *item;
    uint32_t n, room;
    uint8_t kind;
} tg_jinja_list;

typedef struct tg_jinja_dict { /* in the order of insertion */
    value *key, *item;
    uint32_t n, room;
} tg_jinja_dict;

typedef struct tg_jinja_binding {
    const char *name;
    value v;
    struct tg_jinja_binding *next;
} tg_jinja_binding;

/* Names that are seen in a part of the template; what is set goes into the innermost. */
typedef struct tg_jinja_scope {
    struct tg_jinja_scope *parent;
    tg_jinja_binding *first;
} tg_jinja_scope;

typedef struct tg_jinja_space {
    tg_jinja_binding *first;
} tg_jinja_space;

typedef struct tg_jinja_loop {
    const tg_jinja_list *list;
    uint32_t at;
    value changed; /* what loop.changed has seen last */
} tg_jinja_loop;

typedef struct tg_jinja_macro {
    const node *def;
    tg_jinja_scope *scope; /* where it was defined */
} tg_jinja_macro;

typedef struct tg_jinja_bound {
    value self;
    int method;
} tg_jinja_bound;

typedef struct tg_jinja_args {
    const value *v; /* [n] */
    uint32_t n, n_named;
    const char *const *name; /* [n_named] */
    const value *named;
} tg_jinja_args;

/* -------------------------------------------------------------------------------------- a run */

struct tg_jinja_run {
    tg_ctx *ctx;
    const tg_jinja *t;
    tg_arena arena;
    tg_status status;
    uint32_t line; /* of what is being done */
    uint32_t depth;
    uint64_t steps, steps_max;
    uint64_t memory_max;
    uint64_t set_bytes; /* of what the caller has set */
    uint32_t *out;      /* characters; from the arena of small pieces */
    size_t out_n, out_room, out_max;
    tg_jinja_scope globals;
    int leave;  /* TG_JN_BREAK or TG_JN_CONTINUE on its way to a loop; 0 */
    value body; /* of the block whose filters are applied */
    tg_jinja_date date;
};

static inline bool tg_jinja_failed(const tg_jinja_run *r) { return r->status != TG_OK; }

/* Records the first fault, with the template's name and line in front. Returns undefined. */
TG_PRINTF(3, 4) value tg_jinja_fail(tg_jinja_run *r, tg_status code, const char *format, ...);
/* What is not known here, by its name. */
value tg_jinja_unknown(tg_jinja_run *r, const char *what, const char *name);
/* Counts work; false, with an error: it is too much. */
bool tg_jinja_spend(tg_jinja_run *r, uint64_t steps);
/* Memory of the run; NULL: none, or too much. */
void *tg_jinja_alloc(tg_jinja_run *r, size_t n, size_t bytes);

/* Characters of the output, in place of a text in the making. */
void tg_jinja_emit(tg_jinja_run *r, const uint32_t *text, size_t n);
void tg_jinja_emit_ascii(tg_jinja_run *r, const char *text);
/* What came since out_n was start, as a text; it is taken back from the output. */
value tg_jinja_take(tg_jinja_run *r, size_t start);

value tg_jinja_ascii(tg_jinja_run *r, const char *text);  /* the template's own words */
value tg_jinja_piece(value text, size_t from, size_t to); /* shares its characters */
value tg_jinja_int(int64_t i);
value tg_jinja_float(double d);
value tg_jinja_undefined(const char *why);
value tg_jinja_list_of(tg_jinja_run *r, tg_jinja_list_kind kind, size_t room);
bool tg_jinja_has_text(value v, const char *ascii);  /* is it this text? */
const char *tg_jinja_type_name(value v);             /* as Python calls it */
const char *tg_jinja_show(value text, char out[64]); /* for messages */

bool tg_jinja_truth(tg_jinja_run *r, value v);
bool tg_jinja_equal(tg_jinja_run *r, value a, value b);
int tg_jinja_order(tg_jinja_run *r, value a, value b); /* <0 0 >0; fails for what has none */
bool tg_jinja_contains(tg_jinja_run *r, value in, value what);
const value *tg_jinja_dict_find(tg_jinja_run *r, const tg_jinja_dict *d, value key);
void tg_jinja_dict_put(tg_jinja_run *r, tg_jinja_dict *d, value key, value item);
/* The items of what Python's iter() takes; NULL: it takes it not, which is an error. */
tg_jinja_list *tg_jinja_items(tg_jinja_run *r, value v);
value tg_jinja_binary(tg_jinja_run *r, int op, value a, value b);
value tg_jinja_slice(tg_jinja_run *r, value v, const value at[3]);
value tg_jinja_length(tg_jinja_run *r, value v);
value tg_jinja_attr(tg_jinja_run *r, value v, const char *name, value key);
value tg_jinja_item(tg_jinja_run *r, value v, value key);

/* str(), repr() and json.dumps() of Python: to the output. */
void tg_jinja_emit_str(tg_jinja_run *r, value v);
void tg_jinja_emit_repr(tg_jinja_run *r, value v);
value tg_jinja_str(tg_jinja_run *r, value v); /* str(); a text is itself */
typedef struct tg_jinja_json {
    bool ascii, sort;
    bool indented;
    value indent; /* a text */
    value comma, colon;
} tg_jinja_json;
void tg_jinja_emit_json(tg_jinja_run *r, value v, const tg_jinja_json *how);
bool tg_jinja_space_char(uint32_t c);
uint32_t tg_jinja_upper(uint32_t c);
value tg_jinja_map_case(tg_jinja_run *r, value text, char how); /* l u c t(itle) T(do_title) */
value tg_jinja_strip(value text, const value *chars, bool left, bool right);
value tg_jinja_replace(tg_jinja_run *r, value text, value old, value new_text, int64_t most);
value tg_jinja_lines(tg_jinja_run *r, value text, bool keep_ends);
value tg_jinja_escape(tg_jinja_run *r, value text);
value tg_jinja_join(tg_jinja_run *r, value with, const tg_jinja_list *l, bool strict);
/* Python's int() and float() of a text; false: it is none. */
bool tg_jinja_read_int(value text, int64_t *out);
bool tg_jinja_read_float(value text, double *out);

/* Arguments: the i-th, or the one of that name; NULL: neither. */
const value *tg_jinja_arg(const tg_jinja_args *a, uint32_t i, const char *name);
/* At most so many, all by known names. */
bool tg_jinja_want_args(tg_jinja_run *r, const tg_jinja_args *a, const char *what, uint32_t least,
                        uint32_t most);

/* Methods, functions, filters and tests: an index of -1 is none. */
int tg_jinja_method_at(value self, const char *name);
bool tg_jinja_changes(value self, const char *name); /* a method that the sandbox refuses */
value tg_jinja_call_method(tg_jinja_run *r, int method, value self, const tg_jinja_args *a);
int tg_jinja_filter_at(const char *name);
value tg_jinja_call_filter(tg_jinja_run *r, int filter, value self, const tg_jinja_args *a);
int tg_jinja_test_at(const char *name);
bool tg_jinja_call_test(tg_jinja_run *r, int test, value self, const tg_jinja_args *a);
int tg_jinja_global_at(const char *name);
value tg_jinja_call_global(tg_jinja_run *r, int global, const tg_jinja_args *a);
value tg_jinja_call(tg_jinja_run *r, value callee, const tg_jinja_args *a);

#endif
