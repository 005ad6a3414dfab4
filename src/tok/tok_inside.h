/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_inside.h - what a tg_tok is inside, and what the models share.
 */
#ifndef TG_TOK_TOK_INSIDE_H
#define TG_TOK_TOK_INSIDE_H

#include "tok/split.h"
#include "tok/tok.h"
#include "tok/tok_table.h"
#include "tok/unicode/normal.h"
#include "tok/unicode/unicode.h"

enum { TG_JOIN_BITS = 21, TG_LONGEST_PIECE = 1024 };

struct tg_tok {
    tg_arena arena; /* everything below */
    tg_tok_model model;
    tg_tok_split split;
    unsigned normal;
    bool add_bos, add_eos, ignore_merges, word_starts_marked;
    int32_t bos, eos, unknown, pad;
    int32_t ends[TG_TOK_ENDS_MAX];
    size_t n_ends;

    size_t n;          /* V */
    size_t longest;    /* no piece has more bytes; SIZE_MAX: one may be made of other bytes than its
                          spelling says, so nothing can be said of what is not merged yet */
    size_t window;     /* BPE: bytes of a word that are merged at once */
    tg_strings pieces; /* as the file spells them */
    tg_strings outs;   /* what they add to a text */
    uint8_t *types;
    double *scores; /* UNIGRAM */
    uint32_t *rank; /* SCORE_BPE: 0 the best score; equal scores, equal ranks */
    tg_piece_table by_piece;
    tg_pair_table pairs; /* BYTE_BPE, MERGE_BPE */
    tg_trie unigrams;    /* UNIGRAM: the normal pieces */
    int32_t truncation;  /* of tokenizer.json; 0: none */
    tg_trie raw, cooked; /* tokens to be found in the text as it is, and after the normaliser */
    bool raw_first[256]; /* bytes that a string of the trie begins with */
    bool cooked_first[256];
    int32_t byte_id[256]; /* -1: no token stands for this byte alone */
    double unknown_score; /* UNIGRAM */
    /* A bit for each pair of neighbours (characters; bytes for BYTE_BPE) that some piece holds, by
     * a hash. Where it is 0 no token spans the two, so a long word can be cut there. */
    uint64_t *joins;
};

/* One symbol of a word in the making: its index is its offset in the word, its end is next. */
typedef struct tg_bpe_symbol {
    int32_t id;          /* -1: no piece */
    uint32_t prev, next; /* UINT32_MAX: none;  the word's length: none */
    uint32_t rank;       /* of the merge with the next one; UINT32_MAX: none */
    int32_t made;        /* by that merge */
} tg_bpe_symbol;

typedef struct tg_bpe_entry {
    uint32_t rank, at;
} tg_bpe_entry;

/* Scratch of one tg_tok_encode: grows to the longest window, or a unigram's longest word. */
typedef struct tg_tok_work {
    tg_ctx *ctx;
    const tg_tok *tok;
    tg_mem mem;
    tg_normal normal;
    tg_ids *ids;
    const char *words; /* a byte a byte of the text: 1 somebody's; NULL: none is */
    tg_bpe_symbol *symbol;
    size_t symbol_room;
    tg_bpe_entry *heap;
    size_t heap_n, heap_room;
    int32_t *last; /* unigram.c */
    double *score;
    size_t last_room, ring;
} tg_tok_work;

tg_status tg_tok_push(tg_tok_work *w, int32_t id);
/* A character that no piece covers: tokens of its bytes, or the unknown token, which follows on
 * itself only once. */
tg_status tg_tok_push_unknown(tg_tok_work *w, const char *bytes, size_t n);

/* The normal piece with this spelling; -1: none. Control tokens are never built out of text. */
int32_t tg_tok_find_normal(const tg_tok *tok, const char *bytes, size_t n);

/* The place of two neighbours in joins: the high bits of a product that wraps. */
TG_WRAPS static inline uint64_t tg_tok_join_at(uint32_t left, uint32_t right) {
    return ((uint64_t)left << 21 | right) * 0x9e3779b97f4a7c15u >> (64 - TG_JOIN_BITS);
}
static inline bool tg_tok_joined(const tg_tok *tok, uint32_t left, uint32_t right) {
    const uint64_t h = tg_tok_join_at(left, right);
    return tok->joins[h / 64] >> h % 64 & 1;
}

/* Each model: a word, normalised, to ids; and what it needs made by tg_tok_new. */
tg_status tg_bpe_encode(tg_tok_work *w, const char *word, size_t n);
tg_status tg_bpe_make(tg_ctx *ctx, tg_tok *tok, const tg_tok_desc *d);
tg_status tg_unigram_encode(tg_tok_work *w, const char *text, size_t n);
tg_status tg_unigram_make(tg_ctx *ctx, tg_tok *tok, const tg_tok_desc *d);
void tg_unigram_release(tg_tok_work *w);
tg_status tg_wordpiece_encode(tg_tok_work *w, const char *text, size_t n);
/* The next word of a normalised text is text[*from, *at), of so many characters; *at begins at 0.
 * False: there is none. */
bool tg_wordpiece_next(const char *text, size_t n, size_t *at, size_t *from, size_t *chars);

/* Merges in the order in which they go: pair[order[i]]. */
typedef struct tg_tok_merges {
    const tg_pair *pair;
    const uint32_t *order; /* [n] */
    size_t n;
} tg_tok_merges;
/* Of BYTE_BPE and MERGE_BPE, and those that SCORE_BPE's scores stand for. They live as long as the
 * arena and the tokenizer. */
tg_status tg_tok_merges_of(tg_ctx *ctx, const tg_tok *tok, tg_arena *arena, tg_tok_merges *out);

/* Merges over characters, with a mark for each blank and nothing else done to a text: what GGUF
 * calls gemma4. */
static inline bool tg_tok_is_gemma(const tg_tok *t) {
    return t->model == TG_TOK_MERGE_BPE && t->normal == TG_TOK_BLANK_MARK && !t->ignore_merges;
}

/* As tokenizer.json has it; NULL: a splitter that is none of its patterns. */
const char *tg_tok_split_pattern(tg_tok_split split);

/* GPT-2's alphabet: byte b is written as a printable character, below U+0144. */
enum { TG_ALPHABET_END = 0x144 };
uint32_t tg_alphabet_char(uint8_t byte);
int tg_alphabet_byte(uint32_t code); /* -1: not in the alphabet */

#endif
