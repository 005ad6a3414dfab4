/*
 * bpe.c - byte pair encoding: of all neighbours that merge, the best ranked, leftmost first.
 *
 * A word is a list of symbols in an array, linked both ways; a heap holds the merges that are
 * possible, by (rank, place). Merging two symbols changes the merges to the left and right of them:
 * those are looked up and pushed, and what the heap still holds of the old ones no longer agrees
 * with the symbol's rank and is dropped when it comes up. So a word of n bytes takes O(n log n).
 *
 *     place    0   1   2   3   4   5            symbol 2 is "nan": it ends where its next begins
 *     word     b   a   n   a   n   a
 *     symbols  b - a - nan - - a
 *
 * Three models differ only in how a merge is found: by a table of pairs (BYTE_BPE, MERGE_BPE), or
 * because the joined text is a piece (SCORE_BPE), in which case its score is the rank.
 */
#include "tok/tok_inside.h"

enum { HEAP_ARITY = 4, NONE = -1, GONE = -2 };
#define NO_RANK UINT32_MAX
#define NOWHERE UINT32_MAX

/* ------------------------------------------------------------------------------------ heap */

static bool sooner(tg_bpe_entry a, tg_bpe_entry b) {
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static tg_status heap_push(tg_tok_work *w, tg_bpe_entry e) {
    if (w->heap_n == w->heap_room) {
        const size_t room = w->heap_room ? w->heap_room + w->heap_room / 2 : 64;
        tg_bpe_entry *heap =
            tg_realloc(&w->mem, w->heap, w->heap_room * sizeof *heap, room * sizeof *heap);
        if (!heap) return tg_fail_memory(w->ctx, "merges of a word", room * sizeof *heap);
        w->heap = heap;
        w->heap_room = room;
    }
    size_t at = w->heap_n++;
    while (at > 0 && sooner(e, w->heap[(at - 1) / HEAP_ARITY])) {
        w->heap[at] = w->heap[(at - 1) / HEAP_ARITY];
        at = (at - 1) / HEAP_ARITY;
    }
    w->heap[at] = e;
    return TG_OK;
}

static tg_bpe_entry heap_pop(tg_tok_work *w) {
    const tg_bpe_entry top = w->heap[0], last = w->heap[--w->heap_n];
    size_t at = 0;
    for (;;) {
        const size_t first = at * HEAP_ARITY + 1;
        if (first >= w->heap_n) break;
        const size_t end = first + HEAP_ARITY < w->heap_n ? first + HEAP_ARITY : w->heap_n;
        size_t best = first;
        for (size_t child = first + 1; child < end; child++) {
            if (sooner(w->heap[child], w->heap[best])) best = child;
        }
        if (!sooner(w->heap[best], last)) break;
        w->heap[at] = w->heap[best];
        at = best;
    }
    w->heap[at] = last;
    return top;
}

/* --------------------------------------------------------------------------------- symbols */

static tg_status symbols_reserve(tg_tok_work *w, size_t n) {
    if (n <= w->symbol_room) return TG_OK;
    const size_t room = n < 256 ? 256 : n;
    tg_free(&w->mem, w->symbol, w->symbol_room * sizeof *w->symbol);
    w->symbol_room = 0;
    w->symbol = tg_alloc(&w->mem, room * sizeof *w->symbol);
    if (!w->symbol) return tg_fail_memory(w->ctx, "a word", room * sizeof *w->symbol);
    w->symbol_room = room;
    return TG_OK;
}

/* One symbol a byte or a character. */
static void make_symbols(tg_tok_work *w, const char *word, uint32_t n) {
    const tg_tok *t = w->tok;
    uint32_t prev = NOWHERE, code;
    for (uint32_t at = 0; at < n;) {
        uint32_t length = 1;
        int32_t id;
        if (t->model == TG_TOK_BYTE_BPE) {
            id = t->byte_id[(uint8_t)word[at]];
        } else {
            length = (uint32_t)tg_uc_next(word + at, n - at, &code);
            id = tg_tok_find_normal(t, word + at, length);
        }
        w->symbol[at] = (tg_bpe_symbol) { id, prev, at + length, NO_RANK, NONE };
        prev = at;
        at += length;
    }
}

/* The merge of the symbol at `at` with the next one, into the symbol and the heap. */
static tg_status find_merge(tg_tok_work *w, const char *word, uint32_t n, uint32_t at) {
    const tg_tok *t = w->tok;
    tg_bpe_symbol *s = &w->symbol[at];
    s->rank = NO_RANK;
    if (s->next >= n) return TG_OK;
    const tg_bpe_symbol *right = &w->symbol[s->next];
    if (t->model == TG_TOK_SCORE_BPE) {
        const int32_t made = tg_tok_find_normal(t, word + at, right->next - at);
        if (made < 0) return TG_OK;
        s->rank = t->rank[made];
        s->made = made;
    } else {
        if (s->id < 0 || right->id < 0) return TG_OK;
        const tg_pair *pair = tg_pair_find(&t->pairs, s->id, right->id);
        if (!pair) return TG_OK;
        s->rank = pair->rank;
        s->made = pair->made;
    }
    return heap_push(w, (tg_bpe_entry) { s->rank, at });
}

static tg_status merge(tg_tok_work *w, const char *word, uint32_t n) {
    w->heap_n = 0;
    for (uint32_t at = 0; at < n; at = w->symbol[at].next) {
        TG_TRY(find_merge(w, word, n, at));
    }
    while (w->heap_n > 0) {
        const tg_bpe_entry e = heap_pop(w);
        tg_bpe_symbol *s = &w->symbol[e.at];
        if (s->id == GONE || s->rank != e.rank) continue;
        tg_bpe_symbol *right = &w->symbol[s->next];
        s->id = s->made;
        s->next = right->next;
        right->id = GONE;
        if (s->next < n) w->symbol[s->next].prev = e.at;
        TG_TRY(find_merge(w, word, n, e.at));
        if (s->prev != NOWHERE) TG_TRY(find_merge(w, word, n, s->prev));
    }
    return TG_OK;
}

/* A stretch that no token reaches out of. */
static tg_status encode_part(tg_tok_work *w, const char *word, size_t n) {
    TG_TRY(symbols_reserve(w, n));
    const uint32_t end = (uint32_t)n;
    make_symbols(w, word, end);
    TG_TRY(merge(w, word, end));
    for (uint32_t at = 0; at < end; at = w->symbol[at].next) {
        const tg_bpe_symbol *s = &w->symbol[at];
        if (s->id >= 0) {
            TG_TRY(tg_tok_push(w, s->id));
        } else {
            TG_TRY(tg_tok_push_unknown(w, word + at, s->next - at));
        }
    }
    return TG_OK;
}

/* The whole word as one piece. Byte-level pieces are found by their spelling. */
static int32_t whole_word(const tg_tok *t, const char *word, size_t n) {
    enum { LONGEST = 256 };
    if (t->model != TG_TOK_BYTE_BPE) return tg_tok_find_normal(t, word, n);
    char spelled[2 * LONGEST];
    size_t used = 0;
    if (n > LONGEST) return NONE;
    for (size_t i = 0; i < n; i++) {
        used += tg_uc_put(tg_alphabet_char((uint8_t)word[i]), spelled + used);
    }
    return tg_tok_find_normal(t, spelled, used);
}

/* What a word is made of: a byte or a character, and where it ends. */
static size_t unit(const tg_tok *t, const char *word, size_t n, size_t at, uint32_t *code) {
    if (t->model != TG_TOK_BYTE_BPE) return at + tg_uc_next(word + at, n - at, code);
    *code = (uint8_t)word[at];
    return at + 1;
}

tg_status tg_bpe_encode(tg_tok_work *w, const char *word, size_t n) {
    const tg_tok *t = w->tok;
    if (t->ignore_merges) {
        const int32_t id = whole_word(t, word, n);
        if (id >= 0) return tg_tok_push(w, id);
    }
    uint32_t left, right;
    for (size_t from = 0; from < n;) {
        size_t end = unit(t, word, n, from, &left);
        while (end < n) {
            const size_t next = unit(t, word, n, end, &right);
            if (!tg_tok_joined(t, left, right)) break;
            left = right;
            end = next;
        }
        TG_TRY(encode_part(w, word + from, end - from));
        from = end;
    }
    return TG_OK;
}

/* ---------------------------------------------------------------------------------- making */

/* Rising numbers for falling scores. */
static uint32_t rank_of(double score) {
    uint32_t bits;
    const float plain = (float)score + 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &plain, sizeof bits);
    return bits >> 31 ? bits : ~bits & 0x7fffffffu;
}

static tg_status make_ranks(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    t->rank = tg_arena_array(&t->arena, t->n, sizeof *t->rank);
    if (!t->rank) return tg_fail_memory(ctx, "tokenizer", t->n * sizeof *t->rank);
    for (size_t i = 0; i < t->n; i++) t->rank[i] = rank_of(d->scores[i]);
    return TG_OK;
}

/* What a merge makes is found by its spelling, which is longer than either half: so merges cannot
 * lead in a circle, whatever a file says. */
static tg_status put_merge(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d, size_t i, tg_buf *joined) {
    const tg_tok_text *half = &d->merges[2 * i];
    int32_t id[3];
    tg_buf_clear(joined);
    for (int k = 0; k < 2; k++) {
        id[k] = tg_piece_find(&t->by_piece, half[k].bytes, half[k].n_bytes);
        if (half[k].n_bytes == 0) id[k] = NONE;
        tg_buf_append(joined, half[k].bytes, half[k].n_bytes);
    }
    TG_TRY(tg_buf_status(ctx, joined, "merges"));
    id[2] = tg_piece_find(&t->by_piece, tg_buf_text(joined), joined->length);
    for (int k = 0; k < 3; k++) {
        if (id[k] >= 0) continue;
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: merge %zu: want pieces that make one, have %s",
                       i,
                       k == 0   ? "no left one"
                       : k == 1 ? "no right one"
                                : "two that do not");
    }
    if (t->types[id[2]] == TG_TOK_CONTROL) return TG_OK;
    const tg_pair pair = { id[0], id[1], id[2], (uint32_t)i };
    return tg_pair_put(ctx, &t->pairs, &pair);
}

static tg_status make_pairs(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    TG_TRY(tg_pair_table_make(ctx, &t->arena, d->n_merges, &t->pairs));
    tg_buf joined;
    tg_buf_init(&joined, &t->arena.mem);
    tg_status status = TG_OK;
    for (size_t i = 0; status == TG_OK && i < d->n_merges; i++) {
        status = put_merge(ctx, t, d, i, &joined);
    }
    tg_buf_deinit(&joined);
    return status;
}

tg_status tg_bpe_make(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    return t->model == TG_TOK_SCORE_BPE ? make_ranks(ctx, t, d) : make_pairs(ctx, t, d);
}
