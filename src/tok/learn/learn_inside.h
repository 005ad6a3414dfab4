/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_inside.h - what the kinds of learning share: different words with their counts, and merges.
 */
#ifndef TG_TOK_LEARN_INSIDE_H
#define TG_TOK_LEARN_INSIDE_H

#include "tok/learn/learn.h"
#include "tok/tok_inside.h"

/* ----------------------------------------------------------------------------------- words */

typedef struct tg_word {
    uint32_t at, n; /* in the bytes */
    uint64_t count;
} tg_word;

typedef struct tg_words {
    tg_buf bytes;  /* of all, one behind the other */
    tg_word *word; /* [room] in the order in which they came */
    size_t n, room;
    uint32_t *slot; /* [mask + 1] number + 1; 0: free */
    uint32_t mask;
} tg_words;

/* One more of a word; one of more than TG_LEARN_WORD bytes is cut between characters. */
tg_status tg_words_add(tg_ctx *ctx, tg_words *w, const char *bytes, size_t n);
void tg_words_deinit(const tg_mem *mem, tg_words *w);

/* ---------------------------------------------------------------------------------- merges */

/* A word as ids, which become fewer; the words' ids lie one behind the other. */
typedef struct tg_merge_word {
    uint32_t at, n;
    uint64_t count;
} tg_merge_word;

/* Two neighbours. */
typedef struct tg_merge_pair {
    int32_t left, right;
    int64_t count;  /* in all words; of one that was merged it stays as it was */
    uint32_t *word; /* [n] words that have come to hold it and are not in the queue yet */
    uint32_t n, room;
} tg_merge_pair;

/* Of the queue: a pair with the count that it had, and words to merge it in. */
typedef struct tg_merge_entry {
    int64_t count;
    uint32_t pair;
    uint32_t *word; /* [n] */
    uint32_t n, room;
} tg_merge_entry;

/* Bytes of all tokens so far, found by what they spell. */
typedef struct tg_merge_token {
    uint32_t at, n;
} tg_merge_token;

typedef struct tg_merging {
    tg_ctx *ctx;
    size_t n_wanted;       /* tokens */
    const char *prefix;    /* of a token that goes on in a word, dropped where it becomes a right
                              half; "" */
    tg_buf spelled;        /* of the tokens */
    tg_merge_token *token; /* [n_tokens] */
    size_t n_tokens, token_room;
    uint32_t *by_spelling; /* [spelling_mask + 1] id + 1 */
    uint32_t spelling_mask;
    int32_t *id; /* of the words, [n_ids] */
    tg_merge_word *word;
    size_t n_ids, id_room, n_words, word_room;
    tg_merge_pair *pair;
    size_t n_pairs, pair_room;
    uint32_t *by_pair; /* [pair_mask + 1] number + 1 */
    uint32_t pair_mask;
    tg_merge_entry *heap; /* [heap_room] */
    size_t n_heap, heap_room;
    uint32_t *touched; /* [n_touched] pairs with words that wait for the queue */
    size_t n_touched, touched_room;
    uint32_t *merge; /* [n_merges] pairs, the first one first */
    size_t n_merges, merge_room;
    size_t next_word; /* whose pairs are to be counted */
    bool counted, done;
} tg_merging;

void tg_merging_init(tg_merging *m, tg_ctx *ctx, size_t n_wanted, const char *prefix);
void tg_merging_deinit(tg_merging *m);
/* The id of that spelling, a new one if there is none. */
tg_status tg_merging_token(tg_merging *m, const char *bytes, size_t n, int32_t *id);
/* A word that occurs count times, id by id. */
tg_status tg_merging_word(tg_merging *m, uint64_t count);
tg_status tg_merging_id(tg_merging *m, int32_t id);
/* TG_PENDING until all merges are there. */
tg_status tg_merging_go_on(tg_merging *m, double deadline_ms);

/* ----------------------------------------------------------------------------------- kinds */

typedef struct tg_learn_kind {
    const char *name;
    size_t fewest;                     /* tokens; 0: the number may be left open */
    tg_status (*make)(tg_learning *l); /* before the first piece; NULL: nothing to make */
    /* Counts text [n] up to *used, where it may be cut; last: all of it. */
    tg_status (*take)(tg_learning *l, const char *text, size_t n, bool last, size_t *used);
    /* TG_PENDING, or done. */
    tg_status (*go_on)(tg_learning *l, const char *name, double deadline_ms);
    /* What was learnt; pieces and merges lie in the arena, or in l. */
    tg_status (*describe)(tg_learning *l, tg_arena *arena, tg_tok_desc *out);
} tg_learn_kind;

/* A bit for each character. */
enum { TG_LEARN_CHAR_MAX = 0x10ffff, TG_LEARN_CHARS_BYTES = (TG_LEARN_CHAR_MAX + 1) / 8 };

struct tg_learning {
    tg_ctx *ctx;
    const tg_learn_kind *kind;
    size_t n_tokens;
    tg_buf left; /* of the piece before, not counted yet */
    tg_words words;
    tg_normal normal;   /* wordpiece */
    tg_merging merging; /* bpe, wordpiece */
    uint64_t *chars;    /* chars: a bit for each that occurs */
    size_t next;        /* word that is to be taken apart */
    bool begun;
};

/* E_DATA where fewer tokens came out than were asked for. */
tg_status tg_learn_want(const tg_learning *l, const char *name, size_t have);
/* Pieces and merges of l->merging. spell writes what a token is in the file, at most room bytes;
 * NULL: its own bytes. */
typedef size_t (*tg_learn_spell_fn)(const char *bytes, size_t n, char *out);
tg_status tg_learn_describe_merging(tg_learning *l, tg_arena *arena, tg_learn_spell_fn spell,
                                    tg_tok_desc *out);

#endif
