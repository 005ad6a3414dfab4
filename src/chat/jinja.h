/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jinja.h - the templates of model files, run: a small, strict and bounded part of Jinja.
 *
 *     tg_jinja *t;                                   parsed once, read-only afterwards
 *     TG_TRY(tg_jinja_new(ctx, "model.gguf", text, n_bytes, &t));
 *     tg_jinja_run *r = tg_jinja_run_new(ctx, t);    one rendering: its memory and its limits
 *     tg_jinja_set(r, "messages", tg_jinja_from_json(r, messages, true));
 *     TG_TRY(tg_jinja_render(r, &out));
 *     tg_jinja_run_free(r);
 *
 * It gives what jinja2 gives in the environment of transformers (trim_blocks, lstrip_blocks,
 * loopcontrols, the tag "generation", the immutable sandbox), or an error: TG_E_FORMAT for what is
 * no template, TG_E_UNSUPPORTED with the name of what is not known here, TG_E_ARG for what the
 * template itself refuses or what fails in Python, too, and TG_E_RANGE for a limit.
 *
 * Every character knows whether it came from the template or from a value that was set as
 * somebody's words. That is kept through sums, slices, filters and JSON, so that the caller can
 * tell a special token that the template has written from one that a user has typed.
 */
#ifndef TG_CHAT_JINJA_H
#define TG_CHAT_JINJA_H

#include "base/buf.h"
#include "base/codec/json.h"

typedef struct tg_jinja tg_jinja;
typedef struct tg_jinja_run tg_jinja_run;

/* Limits of one rendering. Steps are expressions, statements and blocks of 16 characters that are
 * moved; each of the last three grows with what was set. */
enum {
    TG_JINJA_TEMPLATE_MAX = 1 << 20, /* bytes of a template */
    TG_JINJA_NESTED_MAX = 48,        /* brackets and tags in each other */
    TG_JINJA_DEPTH_MAX = 200,        /* expressions, tags and macros that wait for each other */
    TG_JINJA_RANGE_MAX = 100000,     /* numbers of one range(), as in jinja2's sandbox */
    TG_JINJA_STEPS_MAX = 4 << 20,
    TG_JINJA_OUTPUT_MAX = 1 << 20, /* characters */
    TG_JINJA_MEMORY_MAX = 64 << 20 /* bytes */
};

/* Parses; name is for messages. Nothing of text is kept. */
tg_status tg_jinja_new(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                       tg_jinja **out);
void tg_jinja_free(tg_jinja *t); /* NULL is fine */
/* Does the template name this variable anywhere? */
bool tg_jinja_mentions(const tg_jinja *t, const char *name);

/* A value of a run: valid as long as it. */
typedef struct tg_jinja_value {
    uint8_t type; /* tg_jinja_type, jinja_inside.h */
    uint8_t flags;
    uint32_t n; /* text: characters */
    union {
        int64_t i; /* bool, int */
        double d;
        const uint32_t *text; /* code points, with bit 31 of somebody's words */
        const char *why;      /* undefined: what was looked for */
        struct tg_jinja_list *list;
        struct tg_jinja_dict *dict;
        struct tg_jinja_space *space;
        const void *other;
    } u;
} tg_jinja_value;

/* NULL: no memory. t must live as long. */
tg_jinja_run *tg_jinja_run_new(tg_ctx *ctx, const tg_jinja *t);
void tg_jinja_run_free(tg_jinja_run *r);

/* Values. words: somebody's, rather than the template's own. Out of memory is remembered by the
 * run. Bytes that are no UTF-8 travel through as they are. */
tg_jinja_value tg_jinja_text(tg_jinja_run *r, const char *bytes, size_t n_bytes, bool words);
tg_jinja_value tg_jinja_bool(bool b);
tg_jinja_value tg_jinja_none(void);
tg_jinja_value tg_jinja_list_new(tg_jinja_run *r);
void tg_jinja_push(tg_jinja_run *r, tg_jinja_value list, tg_jinja_value item);
tg_jinja_value tg_jinja_dict_new(tg_jinja_run *r);
void tg_jinja_put(tg_jinja_run *r, tg_jinja_value dict, const char *key, tg_jinja_value item);
tg_jinja_value tg_jinja_from_json(tg_jinja_run *r, const tg_json *v, bool words);

/* A variable of the template. */
void tg_jinja_set(tg_jinja_run *r, const char *name, tg_jinja_value v);
/* What strftime_now writes; day 0: it is refused. */
typedef struct tg_jinja_date {
    int year, month, day; /* 1.. */
} tg_jinja_date;
void tg_jinja_set_date(tg_jinja_run *r, tg_jinja_date date);

/* What was rendered. Both have one byte a byte. */
typedef struct tg_jinja_out {
    tg_buf text;  /* UTF-8 */
    tg_buf words; /* 1: somebody's words, 0: the template's */
} tg_jinja_out;
/* Appends to out. Once a run. */
tg_status tg_jinja_render(tg_jinja_run *r, tg_jinja_out *out);

#endif
