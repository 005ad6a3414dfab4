/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - what tokens.c does for other calls of the public header.
 */
#ifndef TG_API_TOKENS_H
#define TG_API_TOKENS_H

#include "load/vocabulary.h"

/* As tg_tokenizer_chat, to the end of ids. */
tg_status tg_turns_encode(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                          const tg_turn *turns, size_t n_turns, unsigned flags, tg_ids *ids);

/* The file's own (name NULL), one that is built in, or a text: only texts have braces. *made is to
 * be given to tg_chat_template_deinit, *out is the one to use. */
tg_status tg_template_want(tg_context *ctx, const tg_tokenizer *tok, const char *name,
                           tg_chat_template *made, const tg_chat_template **out);

#endif
