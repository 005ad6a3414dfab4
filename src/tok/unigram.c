/*
 * unigram.c - SentencePiece unigram: of all ways to cut a text into pieces, the one with the
 * highest sum of scores (Viterbi, by bytes).
 *
 *     cell[i]   the best way to cut the first i bytes: its score, the last piece and its start
 *
 * A character that no piece begins with counts as an unknown one at the lowest score less 10, as
 * SentencePiece has it. Of two ways of equal score the one found first stays, which is the one with
 * the longer last piece.
 */
#include "tok/tok_inside.h"

#include "base/math.h"

typedef struct tg_unigram_cell {
    double score;
    uint32_t from;
    int32_t id; /* -1: an unknown character */
} tg_unigram_cell;

static const double unknown_penalty = 10;

static tg_status reserve(tg_tok_work *w, size_t n) {
    if (n <= w->cell_room) return TG_OK;
    tg_unigram_release(w);
    w->cell = tg_alloc(&w->mem, n * sizeof *w->cell);
    if (!w->cell) return tg_fail_memory(w->ctx, "a text", n * sizeof *w->cell);
    w->cell_room = n;
    return TG_OK;
}

void tg_unigram_release(tg_tok_work *w) {
    tg_free(&w->mem, w->cell, w->cell_room * sizeof *w->cell);
    w->cell = NULL;
    w->cell_room = 0;
}

static void offer(tg_unigram_cell *to, double score, size_t from, int32_t id) {
    if (score > to->score) *to = (tg_unigram_cell) { score, (uint32_t)from, id };
}

/* A stretch that no piece reaches out of. Sums run on through a word, though its parts do not
 * depend on each other: where two ways are equal but for rounding, the reference's rounding
 * decides. */
static tg_status encode_part(tg_tok_work *w, const char *text, size_t n, double *sum) {
    const tg_tok *t = w->tok;
    TG_TRY(reserve(w, n + 1));
    tg_unigram_cell *cell = w->cell;
    for (size_t i = 1; i <= n; i++) cell[i].score = -TG_INF;
    cell[0].score = n >= 3 && memcmp(text, TG_BLANK_MARK, 3) == 0 ? 0 : *sum;
    for (size_t from = 0; from < n;) {
        uint32_t code, node = 0;
        const size_t length = tg_uc_next(text + from, n - from, &code);
        bool covered = false; /* by a piece of just this character */
        for (size_t end = from;
             end < n && (node = tg_trie_step(&t->unigrams, node, (uint8_t)text[end]));) {
            end++;
            const int32_t id = t->unigrams.id[node];
            if (id < 0) continue;
            offer(&cell[end], cell[from].score + t->scores[id], from, id);
            covered = covered || end == from + length;
        }
        if (!covered) offer(&cell[from + length], cell[from].score + t->unknown_score, from, -1);
        from += length;
    }
    *sum = cell[n].score;
    /* The way back is turned around in place: each cell's start becomes its successor's end. */
    size_t end = n, after = SIZE_MAX;
    while (end > 0) {
        const size_t from = cell[end].from;
        cell[end].from = (uint32_t)after;
        after = end;
        end = from;
    }
    for (size_t from = 0, to = after; from < n; from = to, to = cell[to].from) {
        if (cell[to].id >= 0) {
            TG_TRY(tg_tok_push(w, cell[to].id));
        } else {
            TG_TRY(tg_tok_push_unknown(w, text + from, to - from));
        }
    }
    return TG_OK;
}

tg_status tg_unigram_encode(tg_tok_work *w, const char *text, size_t n) {
    double sum = 0;
    for (size_t from = 0; from < n;) {
        uint32_t left, right;
        size_t end = from + tg_uc_next(text + from, n - from, &left);
        while (end < n) {
            const size_t length = tg_uc_next(text + end, n - end, &right);
            if (!tg_tok_joined(w->tok, left, right)) break;
            left = right;
            end += length;
        }
        TG_TRY(encode_part(w, text + from, end - from, &sum));
        from = end;
    }
    return TG_OK;
}

tg_status tg_unigram_make(tg_ctx *ctx, tg_tok *t, const tg_tok_desc *d) {
    size_t total = 0;
    double lowest = 0;
    t->scores = tg_arena_array(&t->arena, t->n, sizeof *t->scores);
    if (!t->scores) return tg_fail_memory(ctx, "tokenizer", t->n * sizeof *t->scores);
    for (size_t i = 0; i < t->n; i++) {
        t->scores[i] = d->scores[i];
        if (t->types[i] != TG_TOK_NORMAL) continue;
        total += d->pieces[i].n_bytes;
        if (d->scores[i] < lowest) lowest = d->scores[i];
    }
    t->unknown_score = lowest - unknown_penalty;
    TG_TRY(tg_trie_make(ctx, &t->arena, total, &t->unigrams));
    for (size_t i = 0; i < t->n; i++) {
        if (t->types[i] != TG_TOK_NORMAL) continue;
        TG_TRY(
            tg_trie_put(ctx, &t->unigrams, d->pieces[i].bytes, d->pieces[i].n_bytes, (int32_t)i));
    }
    return TG_OK;
}
