/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_table.h - the three look-ups of tokenizers: piece to id, pair of ids to merge, and a trie.
 *
 * All are open addressing in arrays of a power of two, at most half full. The keys come from files,
 * so a table gives up where a probe grows longer than chance allows: a crafted vocabulary is then
 * an error in milliseconds, and no look-up ever takes more than TG_PROBE_MAX steps.
 */
#ifndef TG_TOK_TOK_TABLE_H
#define TG_TOK_TOK_TABLE_H

#include "base/err.h"
#include "base/mem.h"

enum { TG_PROBE_MAX = 512 };

/* Many strings, one after another; string i is bytes [at[i], at[i + 1]). */
typedef struct tg_strings {
    char *bytes;
    uint32_t *at; /* [n + 1]; a zero stands behind each, in front of the next one */
    size_t n;
} tg_strings;

static inline const char *tg_strings_get(const tg_strings *s, size_t i, size_t *n_bytes) {
    *n_bytes = s->at[i + 1] - s->at[i] - 1;
    return s->bytes + s->at[i];
}

/* Pieces, at most 2^24: slots hold id + 1 and bits of the hash. Of equal pieces the first is found.
 */
typedef struct tg_piece_table {
    const tg_strings *strings;
    uint32_t *slot;
    uint32_t mask;
    bool repeats; /* some pieces are equal */
} tg_piece_table;

tg_status tg_piece_table_make(tg_ctx *ctx, tg_arena *arena, const tg_strings *strings,
                              tg_piece_table *out);
int32_t tg_piece_find(const tg_piece_table *t, const char *bytes, size_t n_bytes);

/* Merges: (left, right) gives rank and the id of what they make. */
typedef struct tg_pair {
    int32_t left, right, made;
    uint32_t rank;
} tg_pair;

typedef struct tg_pair_table {
    tg_pair *slot; /* rank UINT32_MAX: free */
    uint32_t mask;
} tg_pair_table;

tg_status tg_pair_table_make(tg_ctx *ctx, tg_arena *arena, size_t n_pairs, tg_pair_table *out);
/* A pair that is there already keeps its first rank. */
tg_status tg_pair_put(tg_ctx *ctx, tg_pair_table *t, const tg_pair *pair);
const tg_pair *tg_pair_find(const tg_pair_table *t, int32_t left, int32_t right);

/* Trie: an edge (node, byte) leads to a node; node 0 is the root. */
typedef struct tg_trie_edge {
    uint32_t from_byte; /* node << 8 | byte */
    uint32_t to;        /* 0: free */
} tg_trie_edge;

typedef struct tg_trie {
    tg_trie_edge *slot;
    uint32_t mask, n_nodes;
    int32_t *id; /* [n_nodes] the string that ends there; -1: none */
} tg_trie;

/* Room for strings of total_bytes together; below 2^24 of them, else TG_E_FORMAT. */
tg_status tg_trie_make(tg_ctx *ctx, tg_arena *arena, size_t total_bytes, tg_trie *out);
/* Empty strings are left out. Of equal strings the first stays. */
tg_status tg_trie_put(tg_ctx *ctx, tg_trie *t, const char *bytes, size_t n_bytes, int32_t id);
/* The node behind an edge; 0: no such edge. */
uint32_t tg_trie_step(const tg_trie *t, uint32_t node, uint8_t byte);

#endif
