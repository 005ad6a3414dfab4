/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.h - what a tg_tokenizer is inside: a tokenizer and a chat template, out of a file.
 */
#ifndef TG_LOAD_VOCABULARY_H
#define TG_LOAD_VOCABULARY_H

#include "chat/chat.h"
#include "load/keys.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

struct tg_tokenizer {
    tg_context *ctx;
    tg_tok *tok;
    tg_keys *keys; /* of one that was opened from a vocabulary; NULL: a model's, or of bytes */
    tg_chat_template chat; /* zeros: the file has none, or one that cannot be read */
    char *template_text;   /* of the file, terminated; NULL: none */
    size_t template_bytes;
    int date[3]; /* of a run's conversations; zeros: none, and always in a model's tokenizer */
};

/* From the metadata of a GGUF file, which n_tokens (0: any number) must agree with. *out stays NULL
 * where the file has no tokenizer. */
tg_status tg_vocabulary_gguf(const tg_gguf *g, size_t n_tokens, tg_tok **out);
/* Its chat template: to the fields of t about it. One that cannot be read is a warning here, and an
 * error where somebody wants it. */
tg_status tg_vocabulary_chat(const tg_gguf *g, tg_tokenizer *t);
/* Frees what tg_vocabulary_chat has made. */
void tg_vocabulary_chat_deinit(tg_tokenizer *t);

/* A GGUF file, or tokenizer.json; *out stays NULL where it is neither, without an error. */
tg_status tg_vocabulary_open(tg_context *ctx, const char *path, tg_tokenizer **out);
/* Of a section KEYS, whose name begins messages. */
tg_status tg_vocabulary_keys(tg_context *ctx, const char *name, const uint8_t *bytes,
                             size_t n_bytes, tg_tokenizer **out);
/* Tokens are bytes. */
tg_status tg_vocabulary_bytes(tg_context *ctx, tg_tokenizer **out);
void tg_vocabulary_free(tg_tokenizer *t);

#endif
