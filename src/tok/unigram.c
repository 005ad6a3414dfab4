/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unigram.c - SentencePiece unigram: of all ways to cut a text into pieces, the one with the
 * highest sum of scores (Viterbi, by bytes).
 *
 *     last[i]   the last piece of the best way to cut the first i bytes; -k: an unknown character
 *               of k bytes
 *     score[i % ring]   the sum of that way, kept for as long as a piece may begin there
 *
 * A character that no piece begins with counts as an unknown one at the lowest score less 10, as
 * SentencePiece has it. Of two ways of equal score the one found first stays, which is the one with
 * the longer last piece.
 */
#include "tok/tok_inside.h"

#include "base/math.h"

static const double unknown_penalty = 10;

/* last[n + 1] and the ring, all of it at no score. */
static tg_status reserve(tg_tok_work *w, size_t n) {
    if (n + 1 > w->last_room) {
        tg_free(&w->mem, w->last, w->last_room * sizeof *w->last);
        w->last_room = 0;
        w->last = tg_alloc(&w->mem, (n + 1) * sizeof *w->last);
        if (!w->last) return tg_fail_memory(w->ctx, "a text", (n + 1) * sizeof *w->last);
        w->last_room = n + 1;
    }
    if (w->score) return TG_OK;
    size_t ring = 8;
    while (ring <= w->tok->longest) ring *= 2;
    w->score = tg_alloc(&w->mem, ring * sizeof *w->score);
    if (!w->score) return tg_fail_memory(w->ctx, "a text", ring * sizeof *w->score);
    w->ring = ring;
    for (size_t i = 0; i < ring; i++) w->score[i] = -TG_INF;
    return TG_OK;
}

void tg_unigram_release(tg_tok_work *w) {
    tg_free(&w->mem, w->last, w->last_room * sizeof *w->last);
    tg_free(&w->mem, w->score, w->ring * sizeof *w->score);
    w->last = NULL;
    w->score = NULL;
    w->last_room = w->ring = 0;
}

static void offer(tg_tok_work *w, size_t end, double score, int32_t id) {
    double *have = &w->score[end & (w->ring - 1)];
    if (!(score > *have)) return;
    *have = score;
    w->last[end] = id;
}

static size_t bytes_of(const tg_tok *t, int32_t last) {
    return last < 0 ? (size_t)-last : t->pieces.at[last + 1] - t->pieces.at[last] - 1;
}

/* Which piece every place of a part was reached by. The sum of the best way to its end is left. */
static double forward(tg_tok_work *w, const char *text, size_t n, double sum) {
    const tg_tok *t = w->tok;
    const size_t mask = w->ring - 1;
    w->score[0] = sum;
    for (size_t from = 0; from < n;) {
        uint32_t code, node = 0;
        const size_t length = tg_uc_next(text + from, n - from, &code);
        const double before = w->score[from & mask];
        bool covered = false; /* by a piece of just this character */
        for (size_t end = from;
             end < n && (node = tg_trie_step(&t->unigrams, node, (uint8_t)text[end]));) {
            end++;
            const int32_t id = t->unigrams.id[node];
            if (id < 0) continue;
            offer(w, end, before + t->scores[id], id);
            covered = covered || end == from + length;
        }
        if (!covered) offer(w, from + length, before + t->unknown_score, -(int32_t)length);
        w->score[from & mask] = -TG_INF; /* the place is free for another */
        from += length;
    }
    sum = w->score[n & mask];
    w->score[n & mask] = -TG_INF;
    return sum;
}

/* A stretch that no piece reaches out of. Sums run on through a word, though its parts do not
 * depend on each other: where two ways are equal but for rounding, the reference's rounding
 * decides. */
static tg_status encode_part(tg_tok_work *w, const char *text, size_t n, double *sum) {
    TG_TRY(reserve(w, n));
    const bool new_word = n >= 3 && memcmp(text, TG_BLANK_MARK, 3) == 0;
    *sum = forward(w, text, n, new_word ? 0 : *sum);
    /* The way back is turned around in place: each piece moves from its end to its beginning. */
    int32_t *last = w->last, id = last[n];
    for (size_t end = n; end > 0;) {
        end -= bytes_of(w->tok, id);
        const int32_t before = end > 0 ? last[end] : 0;
        last[end] = id;
        id = before;
    }
    for (size_t at = 0; at < n; at += bytes_of(w->tok, last[at])) {
        if (last[at] >= 0) {
            TG_TRY(tg_tok_push(w, last[at]));
        } else {
            TG_TRY(tg_tok_push_unknown(w, text + at, bytes_of(w->tok, last[at])));
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
