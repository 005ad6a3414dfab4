/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_bpe.c - byte-level byte pair encoding, over words as GPT-2 cuts them.
 *
 * The same as BpeTrainer(initial_alphabet=ByteLevel.alphabet(), min_frequency=0) behind
 * ByteLevel(add_prefix_space=False) in tokenizers: the first 256 tokens are the bytes, in the order
 * of the characters that they are written as, then come the merges.
 */
#include "tok/learn/learn_inside.h"

/* Whether a word ends here is said by at most two characters behind it (split.h). */
enum { AHEAD_BYTES = 16 };

static tg_status make(tg_learning *l) {
    tg_merging_init(&l->merging, l->ctx, l->n_tokens, "");
    for (uint32_t code = 0, n = 0; n < 256; code++) {
        const int byte = tg_alphabet_byte(code);
        int32_t id;
        if (byte < 0) continue;
        const char c = (char)byte;
        TG_TRY(tg_merging_token(&l->merging, &c, 1, &id));
        n++;
    }
    return TG_OK;
}

static tg_status take(tg_learning *l, const char *text, size_t n, bool last, size_t *used) {
    tg_splitter s = { .rule = TG_TOK_SPLIT_GPT2, .text = text, .n = n };
    *used = 0;
    for (size_t from; tg_split_next(&s, &from); *used = s.at) {
        if (!last && s.at + AHEAD_BYTES > n) return TG_OK;
        TG_TRY(tg_words_add(l->ctx, &l->words, text + from, s.at - from));
    }
    return TG_OK;
}

/* A byte's token is among the first 256, so none is new. */
static tg_status take_apart(tg_learning *l) {
    for (size_t i = 0; i < l->words.n; i++) {
        const tg_word w = l->words.word[i];
        TG_TRY(tg_merging_word(&l->merging, w.count));
        for (uint32_t k = 0; k < w.n; k++) {
            int32_t id;
            TG_TRY(tg_merging_token(&l->merging, l->words.bytes.data + w.at + k, 1, &id));
            TG_TRY(tg_merging_id(&l->merging, id));
        }
    }
    return TG_OK;
}

static tg_status go_on(tg_learning *l, const char *name, double deadline_ms) {
    if (!l->begun) TG_TRY(take_apart(l));
    l->begun = true;
    TG_TRY(tg_merging_go_on(&l->merging, deadline_ms));
    return tg_learn_want(l, name, l->merging.n_tokens);
}

static size_t spell(const char *bytes, size_t n, char *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += tg_uc_put(tg_alphabet_char((uint8_t)bytes[i]), out + used);
    return used;
}

static tg_status describe(tg_learning *l, tg_arena *arena, tg_tok_desc *d) {
    d->model = TG_TOK_BYTE_BPE;
    d->split = TG_TOK_SPLIT_GPT2;
    return tg_learn_describe_merging(l, arena, spell, d);
}

const tg_learn_kind tg_learn_bpe = {
    .name = "bpe", .fewest = 256, .make = make, .take = take, .go_on = go_on, .describe = describe
};
