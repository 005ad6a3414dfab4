/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.h - how a model's files say that embeddings are pooled: by one way, or by several, whose
 * results lie one behind the other.
 *
 *   pooling_type    llama.cpp's number of one way
 *   pooling_modes   ours, for all else: names with commas between them, "cls,max"
 */
#ifndef TG_IO_POOLING_H
#define TG_IO_POOLING_H

#include "io/gguf/gguf.h"

enum {
#define TG_POOLING(way, name, older, type) TG_POOLING_BY_##way,
#include "io/pooling.def"
#undef TG_POOLING
    TG_POOLING_COUNT
};

typedef struct tg_pooling_row {
    const char *name, *older;
    int type;
} tg_pooling_row;
extern const tg_pooling_row tg_pooling_table[TG_POOLING_COUNT];

/* pooling_type of rerankers, whose pooled rows become a score. */
enum { TG_POOLING_TYPE_RANK = 4 };
enum { TG_POOLING_WAYS_MOST = 8, TG_POOLING_NAMES_BYTES = 256 };
typedef struct tg_pooling_ways {
    int32_t n; /* 0: nothing is said */
    uint8_t way[TG_POOLING_WAYS_MOST];
} tg_pooling_ways;

/* False: no such name, or too many. */
bool tg_pooling_add(tg_pooling_ways *list, const char *name, size_t n_bytes);
bool tg_pooling_read(tg_pooling_ways *list, const char *names, size_t n_bytes);
void tg_pooling_write(const tg_pooling_ways *list, char out[TG_POOLING_NAMES_BYTES]);
/* Empty: llama.cpp has other types, too. */
tg_pooling_ways tg_pooling_of_type(int type);

/* All that a file says of embeddings, under the keys of its architecture. */
typedef struct tg_embed_rules {
    tg_pooling_ways ways;
    int32_t type;           /* a pooling_type that gives no vector; -1: none */
    int32_t most_tok;       /* embedding_tokens: of a text; 0: not said */
    bool only;              /* embeds_only: it has no head, so that its logits mean nothing */
    tg_gguf_string prompt;  /* embedding_prompt: goes in front of every text; and */
    tg_gguf_string prompts; /* embedding_prompts: those that have a name, as an object of JSON */
} tg_embed_rules;
tg_status tg_embed_rules_read(const tg_gguf *g, const char *architecture, tg_embed_rules *out);

#endif
