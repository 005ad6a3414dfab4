/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - the parts of an answer: what a model says, what it thinks before, the tools it calls.
 *
 * Models mark parts by texts of their own (reply.def). A pair of marks counts if the chat template
 * spells one of the two, or if the vocabulary has a token for one: a model without them may write
 * "<think>" as it may write any other word. Marks may come in any number of pieces; they are no
 * part's text, and neither is the white space behind them.
 *
 *     tg_reply_begin(&r, template_text, tok);
 *     tg_reply_prompt(&r, tok, ids, n);               some templates open the thinking themselves
 *     tg_reply_push(&r, text, n_bytes, hear, user);   .. as it comes
 *     tg_reply_end(&r, hear, user);
 */
#ifndef TG_CHAT_REPLY_H
#define TG_CHAT_REPLY_H

#include "tok/tok.h"

typedef enum tg_reply_part { TG_REPLY_ANSWER, TG_REPLY_THINKING, TG_REPLY_TOOL_CALL } tg_reply_part;

enum { TG_REPLY_MARK_MAX = 24 }; /* bytes */

/* Zero-initialised, no marks count, and all is the answer. No memory is owned. */
typedef struct tg_reply {
    uint32_t known; /* bit i: line i of reply.def counts */
    size_t inside;  /* 1 + the line whose part is open; 0: the answer */
    bool behind;    /* a mark, with nothing but white space since */
    char held[TG_REPLY_MARK_MAX];
    size_t n_held; /* that may become a mark */
} tg_reply;

/* Bytes [n_bytes] >= 1 of one part. */
typedef void (*tg_reply_fn)(void *user, tg_reply_part part, const char *text, size_t n_bytes);

/* template_text and tok may be NULL. */
void tg_reply_begin(tg_reply *r, const char *template_text, const tg_tok *tok);
/* ids [n] up to where the answer begins: what they leave open, the answer goes on with. */
void tg_reply_prompt(tg_reply *r, const tg_tok *tok, const int32_t *ids, size_t n);
void tg_reply_push(tg_reply *r, const char *text, size_t n_bytes, tg_reply_fn out, void *user);
/* What is held at the end was no mark. */
void tg_reply_end(tg_reply *r, tg_reply_fn out, void *user);

tg_reply_part tg_reply_now(const tg_reply *r);
/* What a token adds: its bytes, or those of the mark that a special token is. */
const char *tg_reply_bytes(const tg_reply *r, const tg_tok *tok, int32_t id, size_t *n_bytes);

#endif
