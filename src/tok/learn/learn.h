/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn.h - vocabularies out of texts.
 *
 *     TG_TRY(tg_learning_new(ctx, "bpe", 4096, &l));
 *     while (..) TG_TRY(tg_learning_feed(l, bytes, n, last));      the text, piece by piece
 *     while ((s = tg_learning_go_on(l, deadline)) == TG_PENDING) ..
 *     tg_learning_put_json(l, &buf);                               a tokenizer.json
 *
 * A text becomes words and how often each occurs (learn_words.c); what is learnt then depends on
 * these alone, so its time is that of one pass and of the different words. Each kind is a file
 * (learn_<kind>.c) and a line in learn_kinds.def. All of it follows the trainers of Hugging Face's
 * tokenizers (their documentation and source, version 0.22), from which it may differ only where
 * theirs depends on the order of a hash table; each file says where.
 *
 * Memory is bounded: MAX_WORDS different words of MAX_WORD_BYTES together. A word longer than
 * TG_LEARN_WORD bytes counts as several.
 */
#ifndef TG_TOK_LEARN_H
#define TG_TOK_LEARN_H

#include "base/buf.h"
#include "base/err.h"

enum { TG_LEARN_WORD = 4096, TG_LEARN_TOKENS_MAX = 1 << 20 };

typedef struct tg_learning tg_learning;

/* NULL beyond the end. */
const char *tg_learn_kind_at(size_t i);

/* E_ARG names the kinds; E_RANGE: a number of tokens that the kind cannot have. */
tg_status tg_learning_new(tg_ctx *ctx, const char *kind, size_t n_tokens, tg_learning **out);
void tg_learning_free(tg_learning *l); /* NULL is fine */
/* last: nothing follows. Words that end in the next piece are kept until then. */
tg_status tg_learning_feed(tg_learning *l, const char *bytes, size_t n, bool last);
/* Once all is fed. name: of the text, for messages. */
tg_status tg_learning_go_on(tg_learning *l, const char *name, double deadline_ms);
tg_status tg_learning_put_json(tg_learning *l, tg_buf *out);

#endif
