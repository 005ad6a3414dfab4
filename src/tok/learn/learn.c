/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn.c - what all kinds of learning do: pieces of a text are joined where a word goes on, and
 * what was learnt becomes a tokenizer.json. See learn.h.
 */
#include "tok/learn/learn_inside.h"

/* Of a text without any place to cut it at. */
enum { LEFT_MAX = 1 << 16 };

#define X(kind) extern const tg_learn_kind tg_learn_##kind;
#include "tok/learn/learn_kinds.def"
#undef X

static const tg_learn_kind *const kinds[] = {
#define X(kind) &tg_learn_##kind,
#include "tok/learn/learn_kinds.def"
#undef X
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

const char *tg_learn_kind_at(size_t i) { return i < N_KINDS ? kinds[i]->name : NULL; }

static tg_status want_tokens(tg_ctx *ctx, const tg_learn_kind *kind, size_t n_tokens) {
    if (n_tokens >= kind->fewest && n_tokens <= TG_LEARN_TOKENS_MAX) return TG_OK;
    return tg_fail(ctx, TG_E_RANGE, "vocabulary: %s: want %zu to %d tokens, have %zu", kind->name,
                   kind->fewest, TG_LEARN_TOKENS_MAX, n_tokens);
}

tg_status tg_learning_new(tg_ctx *ctx, const char *name, size_t n_tokens, tg_learning **out) {
    const tg_learn_kind *kind = NULL;
    char known[128] = "";
    *out = NULL;
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strcmp(name, kinds[i]->name) == 0) kind = kinds[i];
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", kinds[i]->name);
    }
    if (!kind)
        return tg_fail(ctx, TG_E_ARG, "vocabulary: want a kind of %s, have %.40s", known, name);
    TG_TRY(want_tokens(ctx, kind, n_tokens));
    tg_learning *l = tg_alloc(&ctx->mem, sizeof *l);
    if (!l) return tg_fail_memory(ctx, "vocabulary", sizeof *l);
    l->ctx = ctx;
    l->kind = kind;
    l->n_tokens = n_tokens;
    tg_buf_init(&l->left, &ctx->mem);
    tg_normal_init(&l->normal, &ctx->mem);
    const tg_status s = kind->make(l);
    if (s == TG_OK)
        *out = l;
    else
        tg_learning_free(l);
    return s;
}

void tg_learning_free(tg_learning *l) {
    if (!l) return;
    const tg_mem mem = l->ctx->mem;
    tg_buf_deinit(&l->left);
    tg_words_deinit(&mem, &l->words);
    tg_normal_deinit(&l->normal);
    tg_merging_deinit(&l->merging);
    tg_free(&mem, l->chars, l->chars ? TG_LEARN_CHARS_BYTES : 0);
    tg_free(&mem, l, sizeof *l);
}

tg_status tg_learning_feed(tg_learning *l, const char *bytes, size_t n, bool last) {
    size_t used = 0;
    tg_buf_append(&l->left, bytes, n);
    TG_TRY(tg_buf_status(l->ctx, &l->left, "piece of a text"));
    TG_TRY(l->kind->take(l, tg_buf_text(&l->left), l->left.length, last, &used));
    /* One word that goes on and on is cut, at the end of a character. */
    if (used == 0 && !last && l->left.length > LEFT_MAX) {
        used = l->left.length;
        while (used > LEFT_MAX - 4 && ((uint8_t)l->left.data[used - 1] & 0xc0) == 0x80) used--;
        if ((uint8_t)l->left.data[used - 1] >= 0xc0) used--;
        size_t all;
        TG_TRY(l->kind->take(l, l->left.data, used, true, &all));
    }
    memmove(l->left.data, l->left.data + used, l->left.length - used);
    l->left.length -= used;
    return TG_OK;
}

tg_status tg_learning_go_on(tg_learning *l, const char *name, double deadline_ms) {
    return l->kind->go_on(l, name, deadline_ms);
}

tg_status tg_learn_want(const tg_learning *l, const char *name, size_t have) {
    if (have >= l->n_tokens) return TG_OK;
    return tg_fail(
        l->ctx, TG_E_DATA,
        "%s: want a text that gives %zu tokens, have one that gives %zu: a vocabulary of "
        "at most so many can be trained on it",
        name, l->n_tokens, have);
}

/* A pair that was merged twice has its later place, as in tokenizers. */
static size_t last_merges(const tg_merging *m, tg_arena *arena, uint32_t **out) {
    uint32_t *last = tg_arena_array(arena, m->n_pairs + 1, sizeof *last);
    uint32_t *kept = *out = tg_arena_array(arena, m->n_merges + 1, sizeof *kept);
    size_t n = 0;
    if (!last || !kept) return SIZE_MAX;
    for (size_t i = 0; i < m->n_merges; i++) last[m->merge[i]] = (uint32_t)i;
    for (size_t i = 0; i < m->n_merges; i++)
        if (last[m->merge[i]] == i) kept[n++] = m->merge[i];
    return n;
}

tg_status tg_learn_describe_merging(tg_learning *l, tg_arena *arena, tg_learn_spell_fn spell,
                                    tg_tok_desc *out) {
    const tg_merging *m = &l->merging;
    uint32_t *kept;
    tg_tok_text *pieces = tg_arena_array(arena, m->n_tokens + 1, sizeof *pieces);
    const size_t n = last_merges(m, arena, &kept);
    tg_tok_text *halves = n == SIZE_MAX ? NULL : tg_arena_array(arena, 2 * n + 1, sizeof *halves);
    char *room = tg_arena_array(arena, 2 * m->spelled.length + 1, 1);
    if (!pieces || !halves || !room)
        return tg_fail_memory(l->ctx, "vocabulary", 2 * m->spelled.length);
    for (size_t i = 0; i < m->n_tokens; i++) {
        const char *bytes = m->spelled.data + m->token[i].at;
        size_t n_bytes = m->token[i].n;
        if (spell) {
            n_bytes = spell(bytes, n_bytes, room);
            bytes = room;
            room += n_bytes;
        }
        pieces[i] = (tg_tok_text) { bytes, (uint32_t)n_bytes };
    }
    for (size_t i = 0; i < n; i++) {
        halves[2 * i] = pieces[m->pair[kept[i]].left];
        halves[2 * i + 1] = pieces[m->pair[kept[i]].right];
    }
    out->n_tokens = m->n_tokens;
    out->pieces = pieces;
    out->n_merges = n;
    out->merges = halves;
    return TG_OK;
}

tg_status tg_learning_put_json(tg_learning *l, tg_buf *out) {
    tg_arena arena;
    tg_tok_desc d;
    tg_tok *tok = NULL;
    tg_arena_init(&arena, &l->ctx->mem);
    tg_tok_desc_init(&d);
    tg_status s = l->kind->describe(l, &arena, &d);
    if (s == TG_OK) s = tg_tok_new(l->ctx, &d, &tok);
    if (s == TG_OK) s = tg_tok_put_json(l->ctx, tok, out);
    tg_tok_free(tok);
    tg_arena_deinit(&arena);
    return s;
}
