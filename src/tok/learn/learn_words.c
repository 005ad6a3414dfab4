/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_words.c - the different words of a text and how often each occurs: a hash table over their
 * bytes, open addressing, at most half full. Words keep the order in which they came, so that
 * nothing depends on the hash.
 */
#include "base/codec/crc.h"
#include "tok/learn/learn_inside.h"

enum {
    MAX_WORDS = 1 << 24,
    MAX_WORD_BYTES = 1 << 29,
    FIRST_SLOTS = 1 << 12,
    FIRST_WORDS = 1 << 10
};

static tg_status crowded(tg_ctx *ctx, const tg_words *w) {
    return tg_fail(ctx, TG_E_MEMORY,
                   "vocabulary: want at most %d different words of %d bytes together, have %zu of "
                   "%zu bytes so far: is this a text?",
                   MAX_WORDS, MAX_WORD_BYTES, w->n, w->bytes.length);
}

static uint32_t hash_of(const char *bytes, size_t n) { return tg_crc32c(0, bytes, n); }

static tg_status grow_slots(tg_ctx *ctx, tg_words *w) {
    const size_t old = w->slot ? (size_t)w->mask + 1 : 0, slots = old ? 2 * old : FIRST_SLOTS;
    uint32_t *slot = tg_alloc(&ctx->mem, slots * sizeof *slot);
    if (!slot) return tg_fail_memory(ctx, "words of a text", slots * sizeof *slot);
    tg_free(&ctx->mem, w->slot, old * sizeof *slot);
    w->slot = slot;
    w->mask = (uint32_t)(slots - 1);
    for (size_t i = 0; i < w->n; i++) {
        uint32_t at = hash_of(w->bytes.data + w->word[i].at, w->word[i].n) & w->mask;
        while (slot[at]) at = (at + 1) & w->mask;
        slot[at] = (uint32_t)i + 1;
    }
    return TG_OK;
}

static tg_status put_new(tg_ctx *ctx, tg_words *w, uint32_t at, const char *bytes, size_t n) {
    if (w->n == MAX_WORDS || w->bytes.length + n > MAX_WORD_BYTES) return crowded(ctx, w);
    if (w->n == w->room) {
        const size_t room = w->room ? 2 * w->room : FIRST_WORDS;
        tg_word *word = tg_realloc(&ctx->mem, w->word, w->room * sizeof *word, room * sizeof *word);
        if (!word) return tg_fail_memory(ctx, "words of a text", room * sizeof *word);
        w->word = word;
        w->room = room;
    }
    w->word[w->n++] = (tg_word) { (uint32_t)w->bytes.length, (uint32_t)n, 1 };
    w->slot[at] = (uint32_t)w->n;
    tg_buf_append(&w->bytes, bytes, n);
    return tg_buf_status(ctx, &w->bytes, "words of a text");
}

static tg_status add_one(tg_ctx *ctx, tg_words *w, const char *bytes, size_t n) {
    if (!w->slot || w->n > w->mask / 2) TG_TRY(grow_slots(ctx, w));
    uint32_t at = hash_of(bytes, n) & w->mask;
    for (; w->slot[at]; at = (at + 1) & w->mask) {
        tg_word *have = &w->word[w->slot[at] - 1];
        if (have->n != n || memcmp(w->bytes.data + have->at, bytes, n) != 0) continue;
        have->count++;
        return TG_OK;
    }
    return put_new(ctx, w, at, bytes, n);
}

tg_status tg_words_add(tg_ctx *ctx, tg_words *w, const char *bytes, size_t n) {
    if (!w->bytes.mem.fn) tg_buf_init(&w->bytes, &ctx->mem);
    while (n > TG_LEARN_WORD) {
        size_t part = TG_LEARN_WORD;
        while (part > TG_LEARN_WORD - 4 && ((uint8_t)bytes[part] & 0xc0) == 0x80) part--;
        TG_TRY(add_one(ctx, w, bytes, part));
        bytes += part;
        n -= part;
    }
    return n ? add_one(ctx, w, bytes, n) : TG_OK;
}

void tg_words_deinit(const tg_mem *mem, tg_words *w) {
    if (w->bytes.mem.fn) tg_buf_deinit(&w->bytes);
    tg_free(mem, w->word, w->room * sizeof *w->word);
    tg_free(mem, w->slot, w->slot ? ((size_t)w->mask + 1) * sizeof *w->slot : 0);
    *w = (tg_words) { .n = 0 };
}
