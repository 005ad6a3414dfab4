/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chat.h - conversations as the tokens that a model was tuned on.
 *
 * Model files carry a template, which is a program. It is never run: a text that is known as a
 * whole (chat_key.c) is one of the templates that are written out as data in chat.c. A file whose
 * template is none of them is told what it looks like, and the user may name one.
 *
 * Special tokens come from the template alone. What people and models have written is encoded as
 * text, so that nobody can end their turn and begin another one's by spelling it.
 */
#ifndef TG_TOK_CHAT_H
#define TG_TOK_CHAT_H

#include "base/buf.h"
#include "tok/tok.h"

typedef enum tg_chat_role { TG_CHAT_SYSTEM, TG_CHAT_USER, TG_CHAT_ASSISTANT } tg_chat_role;

typedef struct tg_chat_turn {
    tg_chat_role role;
    const char *text; /* borrowed */
    size_t n_bytes;
} tg_chat_turn;

typedef struct tg_chat_template tg_chat_template;

/* What there is, for lists and for --template NAME; NULL: no such one. */
const tg_chat_template *tg_chat_at(size_t i);
const tg_chat_template *tg_chat_named(const char *name);
const char *tg_chat_name(const tg_chat_template *t);
/* Can it be told to think or not to (TG_CHAT_NO_THINKING)? */
bool tg_chat_thinks(const tg_chat_template *t);

/* What a file's template says that its row does not: the text of the system's turn in
 * conversations without one; system_bytes 0: nothing. */
enum { TG_CHAT_SYSTEM_MAX = 1024 };
typedef struct tg_chat_found {
    size_t system_bytes;
    char system[TG_CHAT_SYSTEM_MAX];
} tg_chat_found;

/* The template that a file's template text is, as a whole; NULL: none of ours. */
const tg_chat_template *tg_chat_detect(const char *text, size_t n_bytes, tg_chat_found *found);
/* The one that it has fragments of, for messages; NULL: none. */
const tg_chat_template *tg_chat_looks_like(const char *text, size_t n_bytes);
/* What tg_chat_detect looks up; 0: a text that cannot be read. For tests. */
uint64_t tg_chat_key(const char *text, size_t n_bytes, tg_chat_found *found);
/* The row that says by itself what was found, or t. */
const tg_chat_template *tg_chat_saying(const tg_chat_template *t, const tg_chat_found *found);

enum { TG_CHAT_NO_THINKING = 1 };

typedef struct tg_chat_date {
    int year, month, day; /* 1.., day 0: none is given */
} tg_chat_date;
/* Of seconds since 1970, not negative, in UTC. */
tg_chat_date tg_chat_date_of(int64_t seconds);

typedef struct tg_chat_how {
    unsigned flags;
    tg_chat_date date;          /* that templates write; none: their own, or today's in UTC */
    const tg_chat_found *found; /* of the file whose template it is; NULL: the row counts */
} tg_chat_how;

/*
 * Appends the conversation and the beginning of the model's answer.
 *   turns [n]   a system turn may come first; then the user's and the model's; the user's comes
 *               last
 * A model's thinking in earlier turns is left out where the template does so. Errors: TG_E_ARG for
 * an order of turns that the template does not know; TG_E_FORMAT if the vocabulary lacks one of its
 * special tokens; what tg_tok_encode says.
 */
tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_turn *turns, size_t n, const tg_chat_how *how, tg_ids *ids);
/* The same as text, for people: a token that begins texts is left out where only the vocabulary
 * knows it. */
tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                         size_t n, const tg_chat_how *how, tg_buf *out);

/* The tokens that end an answer: the template's, and the vocabulary's. Returns how many. */
enum { TG_CHAT_ENDS_MAX = 32 };
size_t tg_chat_ends(const tg_chat_template *t, const tg_tok *tok, int32_t ends[TG_CHAT_ENDS_MAX]);

#endif
