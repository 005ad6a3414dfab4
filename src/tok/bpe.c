/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe.c - byte pair encoding: of all neighbours that merge, the best ranked, leftmost first.
 *
 * A word is a list of symbols in an array, linked both ways; a heap holds the merges that are
 * possible, by (rank, place). Merging two symbols changes the merges to the left and right of them:
 * those are looked up and pushed, and what the heap still holds of the old ones no longer agrees
 * with the symbol's rank and is dropped when it comes up.
 *
 *     place    0   1   2   3   4   5            symbol 2 is "nan": it ends where its next begins
 *     word     b   a   n   a   n   a
 *     symbols  b - a - nan - - a
 *
 * A long word goes through a window at a time, with the same result: what lies behind the window's
 * edge can change a symbol before the edge only by merging with the last one. The earliest that it
 * could, the best rank of any merge of that symbol with a piece that the text there begins with, is
 * in the heap, too. When it comes up the symbol goes behind the edge, and the one before it is the
 * last one. What is left before the edge when the heap is empty is what the whole word would give,
 * and no merge reaches across; so the next window starts at the edge. Time is linear, and memory
 * bounded, unless a vocabulary lets the edge run back through half a window, which then doubles.
 *
 *     window     int|ern|ational|iz|a        the edge starts behind "iz", "a": "iz" may yet become
 *     edge                      ^           "ization", and "a" anything, so both wait
 *
 * Three models differ only in how a merge is found: by a table of pairs (BYTE_BPE, MERGE_BPE), or
 * because the joined text is a piece (SCORE_BPE), in which case its score is the rank.
 */
#include "tok/tok_inside.h"

enum { HEAP_ARITY = 4, NONE = -1, GONE = -2, BEYOND = -3 };
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

/* The part of a word that is being merged: symbols lie before the edge. */
typedef struct window {
    const char *word;
    uint32_t n; /* bytes of the word */
    uint32_t edge;
} window;

/* One symbol a byte or a character, up to the edge or just beyond. */
static void make_symbols(tg_tok_work *w, window *v) {
    const tg_tok *t = w->tok;
    uint32_t prev = NOWHERE, code, at = 0;
    while (at < v->edge) {
        uint32_t length = 1;
        int32_t id;
        if (t->model == TG_TOK_BYTE_BPE) {
            id = t->byte_id[(uint8_t)v->word[at]];
        } else {
            length = (uint32_t)tg_uc_next(v->word + at, v->n - at, &code);
            id = tg_tok_find_normal(t, v->word + at, length);
        }
        w->symbol[at] = (tg_bpe_symbol) { id, prev, at + length, NO_RANK, NONE };
        prev = at;
        at += length;
    }
    v->edge = at;
}

static uint32_t pair_rank(const tg_tok *t, int32_t left, int32_t right) {
    const tg_pair *pair = right < 0 ? NULL : tg_pair_find(&t->pairs, left, right);
    return pair ? pair->rank : NO_RANK;
}

static uint32_t best_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* No merge of the last symbol with what may stand behind the edge is better than this. */
static uint32_t rank_beyond(const tg_tok_work *w, const window *v, uint32_t at) {
    const tg_tok *t = w->tok;
    const tg_bpe_symbol *s = &w->symbol[at];
    const char *text = v->word + v->edge;
    size_t most = v->n - v->edge, used = 0;
    uint32_t best = NO_RANK;
    if (most > t->longest) most = t->longest;
    if (t->model == TG_TOK_SCORE_BPE) {
        for (size_t n = 1; n <= most; n++) {
            const int32_t made = tg_tok_find_normal(t, v->word + at, v->edge - at + n);
            if (made >= 0) best = best_of(best, t->rank[made]);
        }
        return best;
    }
    if (s->id < 0) return NO_RANK;
    char spelled[2 * TG_LONGEST_PIECE];
    const bool by_byte = t->model == TG_TOK_BYTE_BPE;
    if (by_byte) best = pair_rank(t, s->id, t->byte_id[(uint8_t)text[0]]);
    for (size_t n = 1; n <= most; n++) {
        if (by_byte) used += tg_uc_put(tg_alphabet_char((uint8_t)text[n - 1]), spelled + used);
        const int32_t right = by_byte ? tg_piece_find(&t->by_piece, spelled, used)
                                      : tg_piece_find(&t->by_piece, text, n);
        best = best_of(best, pair_rank(t, s->id, right));
    }
    return best;
}

/* The merge of the symbol at `at` with the next one, into the symbol and the heap. */
static tg_status find_merge(tg_tok_work *w, const window *v, uint32_t at) {
    const tg_tok *t = w->tok;
    tg_bpe_symbol *s = &w->symbol[at];
    s->rank = NO_RANK;
    if (s->next >= v->n) return TG_OK;
    if (s->next == v->edge) {
        s->rank = rank_beyond(w, v, at);
        s->made = BEYOND;
        return s->rank == NO_RANK ? TG_OK : heap_push(w, (tg_bpe_entry) { s->rank, at });
    }
    const tg_bpe_symbol *right = &w->symbol[s->next];
    if (t->model == TG_TOK_SCORE_BPE) {
        const int32_t made = tg_tok_find_normal(t, v->word + at, right->next - at);
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

static tg_status merge(tg_tok_work *w, window *v) {
    w->heap_n = 0;
    for (uint32_t at = 0; at < v->edge; at = w->symbol[at].next) TG_TRY(find_merge(w, v, at));
    while (w->heap_n > 0) {
        const tg_bpe_entry e = heap_pop(w);
        tg_bpe_symbol *s = &w->symbol[e.at];
        if (s->id == GONE || s->rank != e.rank) continue;
        if (s->made == BEYOND) {
            s->id = GONE;
            v->edge = e.at;
        } else {
            tg_bpe_symbol *right = &w->symbol[s->next];
            s->id = s->made;
            s->next = right->next;
            right->id = GONE;
            if (s->next < v->edge) w->symbol[s->next].prev = e.at;
            TG_TRY(find_merge(w, v, e.at));
        }
        if (s->prev != NOWHERE) TG_TRY(find_merge(w, v, s->prev));
    }
    return TG_OK;
}

/* The beginning of a stretch that no token reaches out of; *done says how much of it. */
static tg_status encode_window(tg_tok_work *w, const char *word, size_t n, size_t room,
                               size_t *done) {
    const uint32_t edge = (uint32_t)(n < room ? n : room);
    window v = { word, (uint32_t)n, edge };
    TG_TRY(symbols_reserve(w, edge));
    make_symbols(w, &v);
    TG_TRY(merge(w, &v));
    for (uint32_t at = 0; at < v.edge; at = w->symbol[at].next) {
        const tg_bpe_symbol *s = &w->symbol[at];
        if (s->id >= 0) {
            TG_TRY(tg_tok_push(w, s->id));
        } else {
            TG_TRY(tg_tok_push_unknown(w, word + at, s->next - at));
        }
    }
    *done = v.edge;
    return TG_OK;
}

static tg_status encode_part(tg_tok_work *w, const char *word, size_t n) {
    const tg_tok *t = w->tok;
    if (n == 1 && t->model == TG_TOK_BYTE_BPE && t->byte_id[(uint8_t)word[0]] >= 0)
        return tg_tok_push(w, t->byte_id[(uint8_t)word[0]]);
    size_t room = t->longest <= TG_LONGEST_PIECE ? t->window : n, done;
    for (size_t at = 0; at < n; at += done) {
        TG_TRY(encode_window(w, word + at, n - at, room, &done));
        if (done < room / 2 || done == 0) room *= 2;
    }
    return TG_OK;
}

/* The whole word as one piece. Byte-level pieces are found by their spelling. */
static int32_t whole_word(const tg_tok *t, const char *word, size_t n) {
    if (t->model != TG_TOK_BYTE_BPE) return tg_tok_find_normal(t, word, n);
    char spelled[2 * TG_LONGEST_PIECE];
    size_t used = 0;
    if (n > TG_LONGEST_PIECE) return NONE;
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

static bool spells(const tg_tok *t, int32_t id, const tg_tok_text half[2]) {
    size_t n;
    const char *piece = tg_strings_get(&t->pieces, (size_t)id, &n);
    return n == (size_t)half[0].n_bytes + half[1].n_bytes &&
           memcmp(piece, half[0].bytes, half[0].n_bytes) == 0 &&
           memcmp(piece + half[0].n_bytes, half[1].bytes, half[1].n_bytes) == 0;
}

/* The piece of that spelling; -1: none. Nearly always it is the one after `last`, what the merge
 * before made, since vocabularies have pieces in the order of their merges. Of equal pieces it is
 * the first. */
static tg_status find_made(tg_ctx *ctx, tg_tok *t, const tg_tok_text half[2], int32_t last,
                           tg_buf *joined, int32_t *out) {
    *out = last + 1;
    if (!t->by_piece.repeats && (size_t)*out < t->n && spells(t, *out, half)) return TG_OK;
    tg_buf_clear(joined);
    for (int k = 0; k < 2; k++) tg_buf_append(joined, half[k].bytes, half[k].n_bytes);
    TG_TRY(tg_buf_status(ctx, joined, "merges"));
    *out = tg_piece_find(&t->by_piece, tg_buf_text(joined), joined->length);
    return TG_OK;
}

/* What a merge makes is found by its spelling, which is longer than either half: so merges cannot
 * lead in a circle, whatever a file says. */
static tg_status put_merge(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d, size_t i, tg_buf *joined,
                           int32_t *made) {
    const tg_tok_text *half = &d->merges[2 * i];
    int32_t id[3];
    for (int k = 0; k < 2; k++)
        id[k] =
            half[k].n_bytes ? tg_piece_find(&t->by_piece, half[k].bytes, half[k].n_bytes) : NONE;
    TG_TRY(find_made(ctx, t, half, *made, joined, &id[2]));
    for (int k = 0; k < 3; k++) {
        if (id[k] >= 0) continue;
        return tg_fail(ctx, TG_E_FORMAT, "tokenizer: merge %zu: want pieces that make one, have %s",
                       i,
                       k == 0   ? "no left one"
                       : k == 1 ? "no right one"
                                : "two that do not");
    }
    *made = id[2];
    if (t->types[id[2]] == TG_TOK_CONTROL) return TG_OK;
    const tg_pair pair = { id[0], id[1], id[2], (uint32_t)i };
    return tg_pair_put(ctx, &t->pairs, &pair);
}

static tg_status make_pairs(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    TG_TRY(tg_pair_table_make(ctx, &t->arena, d->n_merges, &t->pairs));
    tg_buf joined;
    tg_buf_init(&joined, &t->arena.mem);
    tg_status status = TG_OK;
    int32_t made = NONE;
    for (size_t i = 0; status == TG_OK && i < d->n_merges; i++) {
        status = put_merge(ctx, t, d, i, &joined, &made);
    }
    tg_buf_deinit(&joined);
    return status;
}

tg_status tg_bpe_make(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    return t->model == TG_TOK_SCORE_BPE ? make_ranks(ctx, t, d) : make_pairs(ctx, t, d);
}
