/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_wordpiece.c - pieces of words for BERT's tokenizer: lower case, without accents.
 *
 * As in tokenizers' WordPieceTrainer behind BertNormalizer and BertPreTokenizer: merges of byte
 * pair encoding are learnt over characters, those that do not begin a word spelled "##c", and the
 * tokens they make are kept, the merges not. Ids there depend on the order of a hash table, and
 * with them which of two pairs that occur equally often goes first; here characters have theirs in
 * the order of their numbers, all beginnings before all that go on.
 */
#include "tok/learn/learn_inside.h"

static const char *const specials[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
enum { N_SPECIALS = sizeof specials / sizeof specials[0], UNK = 1, CLS = 2, SEP = 3 };
enum { NORMAL = TG_TOK_CLEAN | TG_TOK_CJK_SPACES | TG_TOK_STRIP_ACCENTS | TG_TOK_LOWER };
#define GOES_ON "##"

static tg_status make(tg_learning *l) {
    l->chars = tg_alloc(&l->ctx->mem, TG_LEARN_CHARS_BYTES);
    if (!l->chars) return tg_fail_memory(l->ctx, "vocabulary", TG_LEARN_CHARS_BYTES);
    tg_merging_init(&l->merging, l->ctx, l->n_tokens, GOES_ON);
    for (int i = 0; i < N_SPECIALS; i++) {
        int32_t id;
        TG_TRY(tg_merging_token(&l->merging, specials[i], strlen(specials[i]), &id));
    }
    return TG_OK;
}

/* Up to the last blank: no normaliser looks across one. */
static tg_status take(tg_learning *l, const char *text, size_t n, bool last, size_t *used) {
    size_t at = 0, from, chars;
    while (!last && n > 0 && text[n - 1] != ' ' && text[n - 1] != '\n') n--;
    *used = n;
    TG_TRY(tg_normal_apply(l->ctx, &l->normal, NORMAL, &text, &n));
    while (tg_wordpiece_next(text, n, &at, &from, &chars))
        TG_TRY(tg_words_add(l->ctx, &l->words, text + from, at - from));
    return TG_OK;
}

/* How a character is spelled, at the beginning of a word or behind; at most 6 bytes. */
static size_t spelled(uint32_t code, bool begins, char *out) {
    const size_t before = begins ? 0 : sizeof GOES_ON - 1;
    memcpy(out, GOES_ON, before);
    return before + tg_uc_put(code, out + before);
}

static tg_status id_of(tg_learning *l, uint32_t code, bool begins, int32_t *id) {
    char spelling[8];
    const size_t n = spelled(code, begins, spelling);
    return tg_merging_token(&l->merging, spelling, n, id);
}

/* Tokens of all characters: first for beginnings of words, then for what goes on. Bytes that are no
 * UTF-8 have been dropped by the normaliser. */
static tg_status make_alphabet(tg_learning *l, bool begins) {
    memset(l->chars, 0, TG_LEARN_CHARS_BYTES);
    for (size_t i = 0; i < l->words.n; i++) {
        const char *text = l->words.bytes.data + l->words.word[i].at;
        uint32_t code;
        for (size_t k = 0, n = l->words.word[i].n; k < n;) {
            const bool first = k == 0;
            k += tg_uc_next(text + k, n - k, &code);
            if (begins || !first) l->chars[code / 64] |= UINT64_C(1) << code % 64;
        }
    }
    int32_t id;
    for (uint32_t c = 0; c <= TG_LEARN_CHAR_MAX; c++)
        if (l->chars[c / 64] >> c % 64 & 1) TG_TRY(id_of(l, c, begins, &id));
    return TG_OK;
}

static tg_status take_apart(tg_learning *l) {
    TG_TRY(make_alphabet(l, true));
    TG_TRY(make_alphabet(l, false));
    for (size_t i = 0; i < l->words.n; i++) {
        const tg_word w = l->words.word[i];
        const char *text = l->words.bytes.data + w.at;
        TG_TRY(tg_merging_word(&l->merging, w.count));
        for (size_t k = 0; k < w.n;) {
            uint32_t code;
            int32_t id;
            const bool begins = k == 0;
            k += tg_uc_next(text + k, w.n - k, &code);
            TG_TRY(id_of(l, code, begins, &id));
            TG_TRY(tg_merging_id(&l->merging, id));
        }
    }
    return TG_OK;
}

static tg_status go_on(tg_learning *l, const char *name, double deadline_ms) {
    if (!l->begun) TG_TRY(take_apart(l));
    l->begun = true;
    if (l->merging.n_merges == 0 && l->merging.n_tokens > l->n_tokens)
        return tg_fail(l->ctx, TG_E_RANGE,
                       "%s: want a token for each of its characters, %zu with those for marks and "
                       "within words, have room for %zu",
                       name, l->merging.n_tokens, l->n_tokens);
    TG_TRY(tg_merging_go_on(&l->merging, deadline_ms));
    return tg_learn_want(l, name, l->merging.n_tokens);
}

static tg_status describe(tg_learning *l, tg_arena *arena, tg_tok_desc *d) {
    TG_TRY(tg_learn_describe_merging(l, arena, NULL, d));
    uint8_t *types = tg_arena_array(arena, d->n_tokens, 1);
    if (!types) return tg_fail_memory(l->ctx, "vocabulary", d->n_tokens);
    memset(types, TG_TOK_NORMAL, d->n_tokens);
    memset(types, TG_TOK_CONTROL, N_SPECIALS);
    types[UNK] = TG_TOK_UNKNOWN;
    d->model = TG_TOK_WORDPIECE;
    d->normal = NORMAL;
    d->types = types;
    d->n_merges = 0;
    d->unknown = UNK;
    d->pad = 0;
    d->bos = d->cls = CLS;
    d->eos = d->sep = SEP;
    d->add_bos = d->add_eos = true;
    return TG_OK;
}

const tg_learn_kind tg_learn_wordpiece = { .name = "wordpiece",
                                           .fewest = N_SPECIALS + 2,
                                           .make = make,
                                           .take = take,
                                           .go_on = go_on,
                                           .describe = describe };
