/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_table.c - hashes: FNV-1a's step over words of the key, then a finaliser that spreads the
 * bits.
 */
#include "tok/tok_table.h"

/* A slot of a table of pieces: | 7 bits of the hash | 25 bits: id + 1 |. Pieces are compared only
 * where those seven bits are the same: a miss in the caches less for nearly every probe in vain. */
enum { ID_BITS = 25, PIECES_MAX = 1 << 24 };
#define ID_MASK ((1u << ID_BITS) - 1)

/* A hash: products modulo 2^64 stir the bits. */
TG_WRAPS static uint32_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x ^ x >> 32);
}

/* n < 8 bytes as a number; those of different bytes differ. */
static uint64_t last_word(const char *bytes, size_t n) {
    uint32_t first, last;
    if (n == 0) return 0;
    if (n < sizeof first)
        return (uint64_t)(uint8_t)bytes[0] << 16 | (uint64_t)(uint8_t)bytes[n / 2] << 8 |
               (uint8_t)bytes[n - 1];
    memcpy(&first, bytes, sizeof first);
    memcpy(&last, bytes + n - sizeof last, sizeof last);
    return (uint64_t)first << 32 | last;
}

/* The same, of words of eight bytes. */
TG_WRAPS static uint32_t hash_bytes(const char *bytes, size_t n) {
    uint64_t h = 0xcbf29ce484222325u ^ n, word;
    for (; n >= sizeof word; bytes += sizeof word, n -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return mix((h ^ last_word(bytes, n)) * 0x9e3779b97f4a7c15u);
}

/* Slots for n keys: a power of two, at least twice as many; 0 if that is more than 2^30. */
static uint32_t slots_for(size_t n) {
    uint32_t slots = 16;
    while (slots < 1u << 30 && slots / 2 < n) slots *= 2;
    return slots / 2 < n ? 0 : slots;
}

static tg_status too_many(tg_ctx *ctx, size_t n, uint32_t most) {
    return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want at most %u entries, have %zu", most, n);
}

static tg_status crowded(tg_ctx *ctx) {
    return tg_fail(ctx, TG_E_FORMAT,
                   "tokenizer: want entries that differ by chance, have over %d with one hash",
                   TG_PROBE_MAX);
}

/* ---------------------------------------------------------------------------------- pieces */

static bool is_piece(const tg_piece_table *t, uint32_t slot, uint32_t hash, const char *bytes,
                     size_t n_bytes) {
    if ((slot ^ hash) >> ID_BITS) return false;
    size_t have_bytes;
    const char *have = tg_strings_get(t->strings, (slot & ID_MASK) - 1, &have_bytes);
    return have_bytes == n_bytes && memcmp(have, bytes, n_bytes) == 0;
}

tg_status tg_piece_table_make(tg_ctx *ctx, tg_arena *arena, const tg_strings *strings,
                              tg_piece_table *out) {
    const uint32_t slots = strings->n <= PIECES_MAX ? slots_for(strings->n) : 0;
    if (slots == 0) return too_many(ctx, strings->n, PIECES_MAX);
    out->strings = strings;
    out->mask = slots - 1;
    out->repeats = false;
    out->slot = tg_arena_array(arena, slots, sizeof *out->slot);
    if (!out->slot) return tg_fail_memory(ctx, "tokenizer", slots * sizeof *out->slot);
    for (size_t i = 0; i < strings->n; i++) {
        size_t n_bytes;
        const char *bytes = tg_strings_get(strings, i, &n_bytes);
        const uint32_t hash = hash_bytes(bytes, n_bytes);
        uint32_t at = hash & out->mask, probe = 0;
        for (; out->slot[at]; at = (at + 1) & out->mask) {
            if (is_piece(out, out->slot[at], hash, bytes, n_bytes)) break;
            if (++probe > TG_PROBE_MAX) return crowded(ctx);
        }
        if (out->slot[at])
            out->repeats = true;
        else
            out->slot[at] = (hash & ~ID_MASK) | ((uint32_t)i + 1);
    }
    return TG_OK;
}

int32_t tg_piece_find(const tg_piece_table *t, const char *bytes, size_t n_bytes) {
    const uint32_t hash = hash_bytes(bytes, n_bytes);
    for (uint32_t at = hash & t->mask; t->slot[at]; at = (at + 1) & t->mask)
        if (is_piece(t, t->slot[at], hash, bytes, n_bytes))
            return (int32_t)((t->slot[at] & ID_MASK) - 1);
    return -1;
}

/* ---------------------------------------------------------------------------------- merges */

tg_status tg_pair_table_make(tg_ctx *ctx, tg_arena *arena, size_t n_pairs, tg_pair_table *out) {
    const uint32_t slots = slots_for(n_pairs);
    if (slots == 0) return too_many(ctx, n_pairs, 1u << 29);
    out->mask = slots - 1;
    out->slot = tg_arena_array(arena, slots, sizeof *out->slot);
    if (!out->slot) return tg_fail_memory(ctx, "merges", slots * sizeof *out->slot);
    for (uint32_t i = 0; i < slots; i++) out->slot[i].rank = UINT32_MAX;
    return TG_OK;
}

static uint32_t hash_pair(int32_t left, int32_t right) {
    return mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

tg_status tg_pair_put(tg_ctx *ctx, tg_pair_table *t, const tg_pair *pair) {
    uint32_t at = hash_pair(pair->left, pair->right) & t->mask, probe = 0;
    for (; t->slot[at].rank != UINT32_MAX; at = (at + 1) & t->mask) {
        if (t->slot[at].left == pair->left && t->slot[at].right == pair->right) return TG_OK;
        if (++probe > TG_PROBE_MAX) return crowded(ctx);
    }
    t->slot[at] = *pair;
    return TG_OK;
}

const tg_pair *tg_pair_find(const tg_pair_table *t, int32_t left, int32_t right) {
    uint32_t at = hash_pair(left, right) & t->mask;
    for (; t->slot[at].rank != UINT32_MAX; at = (at + 1) & t->mask) {
        if (t->slot[at].left == left && t->slot[at].right == right) return &t->slot[at];
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------ trie */

tg_status tg_trie_make(tg_ctx *ctx, tg_arena *arena, size_t total_bytes, tg_trie *out) {
    if (total_bytes >= 1u << 24) {
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: want less than %u bytes of pieces, have %zu",
                       1u << 24, total_bytes);
    }
    const uint32_t slots = slots_for(total_bytes);
    out->mask = slots - 1;
    out->n_nodes = 1;
    out->slot = tg_arena_array(arena, slots, sizeof *out->slot);
    out->id = tg_arena_array(arena, total_bytes + 1, sizeof *out->id);
    if (!out->slot || !out->id) return tg_fail_memory(ctx, "tokenizer", slots * sizeof *out->slot);
    for (size_t i = 0; i <= total_bytes; i++) out->id[i] = -1;
    return TG_OK;
}

/* The edge's slot: its own, or the free one where it would be; *probes says how far that was. */
static uint32_t edge_at(const tg_trie *t, uint32_t from_byte, uint32_t *probes) {
    uint32_t at = mix(from_byte) & t->mask;
    for (*probes = 0; t->slot[at].to && t->slot[at].from_byte != from_byte; ++*probes) {
        at = (at + 1) & t->mask;
    }
    return at;
}

tg_status tg_trie_put(tg_ctx *ctx, tg_trie *t, const char *bytes, size_t n_bytes, int32_t id) {
    uint32_t node = 0, probes;
    for (size_t i = 0; i < n_bytes; i++) {
        const uint32_t from_byte = node << 8 | (uint8_t)bytes[i];
        const uint32_t at = edge_at(t, from_byte, &probes);
        if (probes > TG_PROBE_MAX) return crowded(ctx);
        if (!t->slot[at].to) t->slot[at] = (tg_trie_edge) { from_byte, t->n_nodes++ };
        node = t->slot[at].to;
    }
    if (n_bytes > 0 && t->id[node] < 0) t->id[node] = id;
    return TG_OK;
}

uint32_t tg_trie_step(const tg_trie *t, uint32_t node, uint8_t byte) {
    uint32_t probes;
    return t->slot[edge_at(t, node << 8 | byte, &probes)].to;
}
