/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.h - conversations as the tokens that a model was tuned on.
 *
 * A model's file carries a template, which is a program in Jinja; it is run (jinja.h), with turns,
 * tools and settings as its variables. For files without one there are some of our own
 * (chat_builtin.def), which go by name.
 *
 * Special tokens come from the template alone. What people, tools and models have written is
 * encoded as text, so that nobody can end their turn and begin another one's by spelling it. In
 * this transformers differs: it takes whatever spells a special token for one.
 */
#ifndef TG_CHAT_CHAT_H
#define TG_CHAT_CHAT_H

#include "chat/jinja.h"
#include "tok/tok.h"

typedef enum tg_chat_role { TG_CHAT_SYSTEM, TG_CHAT_USER, TG_CHAT_ASSISTANT } tg_chat_role;

typedef struct tg_chat_turn {
    tg_chat_role role;
    const char *text; /* borrowed */
    size_t n_bytes;
} tg_chat_turn;

/* A template: of a file, of a text or built in. */
typedef struct tg_chat_template {
    tg_jinja *jinja;
    const char
        *needs; /* a special token without which it is none of this vocabulary's; NULL: any */
} tg_chat_template;

/* Names of what is built in, for lists and for --template NAME; NULL: behind the last. */
const char *tg_chat_name_at(size_t i);
/* Text of a template: where=NULL fails. Errors: those of tg_jinja_new, with name in front. */
tg_status tg_chat_template_new(tg_ctx *ctx, const char *name, const char *text, size_t n_bytes,
                               tg_chat_template *out);
/* The one that is built in under this name; TG_E_ARG: there is none. */
tg_status tg_chat_template_named(tg_ctx *ctx, const char *name, tg_chat_template *out);
/* The text of one that is built in; NULL: there is none of this name. */
const char *tg_chat_text_named(const char *name);
void tg_chat_template_deinit(tg_chat_template *t); /* zeros are fine */

/* Can it be told to think or not to (TG_CHAT_NO_THINKING)? */
bool tg_chat_thinks(const tg_chat_template *t);

enum {
    TG_CHAT_NO_THINKING = 1,
    TG_CHAT_CONTINUE = 2, /* the last turn is the model's, and goes on where it ends */
    TG_CHAT_WHOLE = 4     /* nothing is asked behind the last message; of JSON alone */
};

/* "YYYY-MM-DD", a day of the Gregorian calendar, as year, month and day; false: it is none, and
 * date stays. */
bool tg_chat_date(const char *text, int date[3]);
/* Does a template ask for a date, and *todays: has it none of its own? */
bool tg_chat_asks_date(const tg_chat_template *t, bool *todays);
/* Of seconds since 1970, not negative, in UTC. */
tg_jinja_date tg_chat_date_of(int64_t seconds);

/* What is said, as turns or as JSON. */
typedef struct tg_chat_said {
    const tg_chat_turn *turns; /* [n] */
    size_t n;
    const tg_json *json; /* in place of turns: {"messages": [..], "tools": [..], ..}; each member is
                            a variable of the template */
    unsigned flags;
    tg_jinja_date date; /* that templates write; day 0: their own, or today's in UTC */
} tg_chat_said;

/*
 * The conversation and the beginning of the model's answer: as ids, which are appended, or as text.
 * tok may be NULL for text; it gives the template its bos_token and so on. Errors: TG_E_ARG for a
 * conversation that the template refuses, or without a turn that can be answered; TG_E_FORMAT if
 * the vocabulary lacks the token that a built-in template needs; those of tg_jinja_render and
 * tg_tok_encode.
 */
tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_said *said, tg_ids *ids);
tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_said *said, tg_jinja_out *out);

/* The tokens that end an answer: the one that the template writes behind a model's turn, and the
 * vocabulary's. ends [TG_CHAT_ENDS_MAX], *n of them. */
enum { TG_CHAT_ENDS_MAX = 32 };
tg_status tg_chat_ends(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok, int32_t *ends,
                       size_t *n);

#endif
