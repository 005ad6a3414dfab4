/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.h - what a tg_tokenizer is inside: a tokenizer and a chat template, out of a file.
 */
#ifndef TG_LOAD_VOCABULARY_H
#define TG_LOAD_VOCABULARY_H

#include "io/gguf.h"
#include "runtime/runtime.h"
#include "tok/chat.h"
#include "tok/tok.h"

struct tg_tokenizer {
    tg_context *ctx;
    tg_tok *tok;
    const tg_chat_template *chat; /* NULL: the file has none, or one that is none of ours */
    tg_chat_found chat_found;     /* with it */
    bool has_template;            /* in the file */
    const char *looks_like;       /* a template that is none of ours: which; NULL: none */
};

/* From the metadata of a GGUF file, which n_tokens (0: any number) must agree with. *out stays NULL
 * where the file has no tokenizer. */
tg_status tg_vocabulary_gguf(const tg_gguf *g, size_t n_tokens, tg_tok **out);
/* The template of its text: to the fields of t about it. */
tg_status tg_vocabulary_chat(const tg_gguf *g, tg_tokenizer *t);

/* A GGUF file, or tokenizer.json; *out stays NULL where it is neither, without an error. */
tg_status tg_vocabulary_open(tg_context *ctx, const char *path, tg_tokenizer **out);
/* Tokens are bytes. */
tg_status tg_vocabulary_bytes(tg_context *ctx, tg_tokenizer **out);
void tg_vocabulary_free(tg_tokenizer *t);

#endif
