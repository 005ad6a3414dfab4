/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_chars.c - every character of a text is a token, in the order of their numbers; the first
 * one is "<unk>", for those that the text lacks.
 *
 * In the file it is byte pair encoding without any merge. Bytes that are no UTF-8 have no token.
 */
#include "tok/learn/learn_inside.h"

#define UNKNOWN "<unk>"

static tg_status make(tg_learning *l) {
    l->chars = tg_alloc(&l->ctx->mem, TG_LEARN_CHARS_BYTES);
    return l->chars ? TG_OK : tg_fail_memory(l->ctx, "vocabulary", TG_LEARN_CHARS_BYTES);
}

/* A character that the piece's end may have cut waits for the next one. */
static tg_status take(tg_learning *l, const char *text, size_t n, bool last, size_t *used) {
    size_t at = 0;
    while (at < n && (last || n - at >= 4)) {
        uint32_t code;
        const size_t length = tg_uc_next(text + at, n - at, &code);
        if (code <= TG_LEARN_CHAR_MAX) l->chars[code / 64] |= UINT64_C(1) << code % 64;
        at += length;
    }
    *used = at;
    return TG_OK;
}

static size_t count(const tg_learning *l) {
    size_t n = 0;
    for (size_t c = 0; c <= TG_LEARN_CHAR_MAX; c++) n += l->chars[c / 64] >> c % 64 & 1;
    return n;
}

static tg_status go_on(tg_learning *l, const char *name, double deadline_ms) {
    (void)deadline_ms; /* a glance at the bits */
    const size_t have = count(l) + 1;
    if (l->n_tokens == 0 || have == l->n_tokens) return TG_OK;
    if (have < l->n_tokens) return tg_learn_want(l, name, have);
    return tg_fail(l->ctx, TG_E_RANGE,
                   "%s: want a token for each of its %zu characters and one for all others, have "
                   "room for %zu",
                   name, have - 1, l->n_tokens);
}

static tg_status describe(tg_learning *l, tg_arena *arena, tg_tok_desc *d) {
    const size_t n = count(l) + 1;
    tg_tok_text *pieces = tg_arena_array(arena, n, sizeof *pieces);
    uint8_t *types = tg_arena_array(arena, n, 1);
    char *room = tg_arena_array(arena, 4 * n, 1);
    if (!pieces || !types || !room) return tg_fail_memory(l->ctx, "vocabulary", n * sizeof *pieces);
    pieces[0] = (tg_tok_text) { UNKNOWN, sizeof UNKNOWN - 1 };
    types[0] = TG_TOK_UNKNOWN;
    size_t i = 1;
    for (uint32_t c = 0; c <= TG_LEARN_CHAR_MAX; c++) {
        if (!(l->chars[c / 64] >> c % 64 & 1)) continue;
        const size_t length = tg_uc_put(c, room);
        pieces[i] = (tg_tok_text) { room, (uint32_t)length };
        types[i++] = TG_TOK_NORMAL;
        room += length;
    }
    d->model = TG_TOK_MERGE_BPE;
    d->n_tokens = n;
    d->pieces = pieces;
    d->types = types;
    d->unknown = 0;
    return TG_OK;
}

const tg_learn_kind tg_learn_chars = {
    .name = "chars", .make = make, .take = take, .go_on = go_on, .describe = describe
};
