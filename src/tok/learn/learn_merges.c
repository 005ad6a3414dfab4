/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_merges.c - byte pair encoding is learnt: the pair of neighbours that occurs most often
 * becomes a token, again and again, until there are as many tokens as were asked for (Sennrich et
 * al. 2016, https://arxiv.org/abs/1508.07909).
 *
 * The order is that of tokenizers' BpeTrainer, so that merges are the same. Of pairs that occur
 * equally often, the one with the smaller ids goes first. A queue holds an entry for each pair,
 * with the words that hold it; where a count has changed since, the entry goes back with the new
 * one:
 *
 *     queue       (e,r) 90   (th,e) 81   ..        counts fall with merges of neighbours; those of
 *     words       1 4 7      2 3                   pairs that arise by a merge come in as new
 * entries
 *
 * Two ways to spell a token lead to one id. The pairs of such a token may come into the queue
 * twice, with other words; then they are merged twice, and the later rank counts, as it does there.
 *
 * Time: a pass over the words' ids, then for each merge the words that hold its pair.
 */
#include "base/codec/crc.h"
#include "base/time.h"
#include "tok/learn/learn_inside.h"

/* Work between two looks at the clock. */
enum { WORDS_A_LOOK = 256, FIRST = 1 << 10 };

void tg_merging_init(tg_merging *m, tg_ctx *ctx, size_t n_wanted, const char *prefix) {
    *m = (tg_merging) { .ctx = ctx, .n_wanted = n_wanted, .prefix = prefix };
    tg_buf_init(&m->spelled, &ctx->mem);
}

void tg_merging_deinit(tg_merging *m) {
    if (!m->ctx) return;
    const tg_mem *mem = &m->ctx->mem;
    for (size_t i = 0; i < m->n_pairs; i++)
        tg_free(mem, m->pair[i].word, m->pair[i].room * sizeof(uint32_t));
    for (size_t i = 0; i < m->n_heap; i++)
        tg_free(mem, m->heap[i].word, m->heap[i].room * sizeof(uint32_t));
    tg_buf_deinit(&m->spelled);
    tg_free(mem, m->token, m->token_room * sizeof *m->token);
    tg_free(mem, m->by_spelling, m->by_spelling ? (m->spelling_mask + 1u) * sizeof(uint32_t) : 0);
    tg_free(mem, m->id, m->id_room * sizeof *m->id);
    tg_free(mem, m->word, m->word_room * sizeof *m->word);
    tg_free(mem, m->pair, m->pair_room * sizeof *m->pair);
    tg_free(mem, m->by_pair, m->by_pair ? (m->pair_mask + 1u) * sizeof(uint32_t) : 0);
    tg_free(mem, m->heap, m->heap_room * sizeof *m->heap);
    tg_free(mem, m->touched, m->touched_room * sizeof *m->touched);
    tg_free(mem, m->merge, m->merge_room * sizeof *m->merge);
    *m = (tg_merging) { .n_wanted = 0 };
}

/* Room for one more of `each` bytes in *array [*room]. */
static tg_status grow(tg_ctx *ctx, void **array, size_t n, size_t *room, size_t each) {
    if (n < *room) return TG_OK;
    const size_t more = *room ? 2 * *room : FIRST;
    void *grown = tg_realloc(&ctx->mem, *array, *room * each, more * each);
    if (!grown) return tg_fail_memory(ctx, "vocabulary", more * each);
    *array = grown;
    *room = more;
    return TG_OK;
}
#define GROW(m, array, n, room)                                                                    \
    grow((m)->ctx, (void **)&(m)->array, (m)->n, &(m)->room, sizeof *(m)->array)

/* An empty hash table of twice the slots, or of `first` where there was none. */
static tg_status double_slots(tg_ctx *ctx, uint32_t **slots, uint32_t *mask, size_t first,
                              const char *what) {
    const size_t old = *slots ? (size_t)*mask + 1 : 0, n = old ? 2 * old : first;
    uint32_t *made = tg_alloc(&ctx->mem, n * sizeof *made);
    if (!made) return tg_fail_memory(ctx, what, n * sizeof *made);
    tg_free(&ctx->mem, *slots, old * sizeof *made);
    *slots = made;
    *mask = (uint32_t)(n - 1);
    return TG_OK;
}

/* ---------------------------------------------------------------------------------- tokens */

static uint32_t *token_slot(tg_merging *m, const char *bytes, size_t n) {
    uint32_t at = tg_crc32c(0, bytes, n) & m->spelling_mask;
    for (; m->by_spelling[at]; at = (at + 1) & m->spelling_mask) {
        const tg_merge_token *t = &m->token[m->by_spelling[at] - 1];
        if (t->n == n && memcmp(m->spelled.data + t->at, bytes, n) == 0) break;
    }
    return &m->by_spelling[at];
}

static tg_status grow_spellings(tg_merging *m) {
    TG_TRY(double_slots(m->ctx, &m->by_spelling, &m->spelling_mask, 4 * FIRST, "vocabulary"));
    for (size_t i = 0; i < m->n_tokens; i++)
        *token_slot(m, m->spelled.data + m->token[i].at, m->token[i].n) = (uint32_t)i + 1;
    return TG_OK;
}

tg_status tg_merging_token(tg_merging *m, const char *bytes, size_t n, int32_t *id) {
    if (!m->by_spelling || m->n_tokens > m->spelling_mask / 2) TG_TRY(grow_spellings(m));
    uint32_t *slot = token_slot(m, bytes, n);
    if (*slot == 0) {
        TG_TRY(GROW(m, token, n_tokens, token_room));
        m->token[m->n_tokens++] = (tg_merge_token) { (uint32_t)m->spelled.length, (uint32_t)n };
        *slot = (uint32_t)m->n_tokens;
        tg_buf_append(&m->spelled, bytes, n);
        TG_TRY(tg_buf_status(m->ctx, &m->spelled, "vocabulary"));
    }
    *id = (int32_t)*slot - 1;
    return TG_OK;
}

/* What two tokens make: the right one without the prefix of those that go on in a word. */
static tg_status join(tg_merging *m, const tg_merge_pair *p, int32_t *id) {
    char joined[2 * TG_LEARN_WORD + 16];
    const tg_merge_token left = m->token[p->left], right = m->token[p->right];
    const size_t prefix = strlen(m->prefix);
    const char *tail = m->spelled.data + right.at;
    size_t n = right.n;
    if (prefix && n >= prefix && memcmp(tail, m->prefix, prefix) == 0) tail += prefix, n -= prefix;
    TG_ASSERT(left.n + n <= sizeof joined);
    memcpy(joined, m->spelled.data + left.at, left.n);
    memcpy(joined + left.n, tail, n);
    return tg_merging_token(m, joined, left.n + n, id);
}

/* ----------------------------------------------------------------------------------- words */

tg_status tg_merging_word(tg_merging *m, uint64_t count) {
    TG_TRY(GROW(m, word, n_words, word_room));
    m->word[m->n_words++] = (tg_merge_word) { (uint32_t)m->n_ids, 0, count };
    return TG_OK;
}

tg_status tg_merging_id(tg_merging *m, int32_t id) {
    TG_TRY(GROW(m, id, n_ids, id_room));
    m->id[m->n_ids++] = id;
    m->word[m->n_words - 1].n++;
    return TG_OK;
}

/* ----------------------------------------------------------------------------------- pairs */

/* Products modulo 2^64 stir the bits. */
TG_WRAPS static uint32_t hash_pair(int32_t left, int32_t right) {
    const uint64_t x = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32 ^ x >> 17);
}

static uint32_t *pair_slot(const tg_merging *m, int32_t left, int32_t right) {
    uint32_t at = hash_pair(left, right) & m->pair_mask;
    for (; m->by_pair[at]; at = (at + 1) & m->pair_mask) {
        const tg_merge_pair *p = &m->pair[m->by_pair[at] - 1];
        if (p->left == left && p->right == right) break;
    }
    return &m->by_pair[at];
}

static tg_status grow_pairs(tg_merging *m) {
    TG_TRY(double_slots(m->ctx, &m->by_pair, &m->pair_mask, 8 * FIRST, "pairs of a text"));
    for (size_t i = 0; i < m->n_pairs; i++)
        *pair_slot(m, m->pair[i].left, m->pair[i].right) = (uint32_t)i + 1;
    return TG_OK;
}

/* The pair's count changes by `by`. Where it grows, the word is one of those that hold it; words
 * come one after the other, so that one that was noted already is the last. */
static tg_status change(tg_merging *m, int32_t left, int32_t right, int64_t by, uint32_t word) {
    if (!m->by_pair || m->n_pairs > m->pair_mask / 2) TG_TRY(grow_pairs(m));
    uint32_t *slot = pair_slot(m, left, right);
    if (*slot == 0) {
        TG_TRY(GROW(m, pair, n_pairs, pair_room));
        m->pair[m->n_pairs++] = (tg_merge_pair) { .left = left, .right = right };
        *slot = (uint32_t)m->n_pairs;
    }
    const uint32_t number = *slot - 1;
    tg_merge_pair *p = &m->pair[number];
    p->count += by;
    if (by < 0 || (p->n && p->word[p->n - 1] == word)) return TG_OK;
    if (p->n == 0) {
        TG_TRY(GROW(m, touched, n_touched, touched_room));
        m->touched[m->n_touched++] = number;
    }
    if (p->n == p->room) {
        const uint32_t room = p->room ? 2 * p->room : 4;
        uint32_t *grown =
            tg_realloc(&m->ctx->mem, p->word, p->room * sizeof *grown, room * sizeof *grown);
        if (!grown) return tg_fail_memory(m->ctx, "pairs of a text", room * sizeof *grown);
        p->word = grown;
        p->room = room;
    }
    p->word[p->n++] = word;
    return TG_OK;
}

/* ----------------------------------------------------------------------------------- queue */

static bool sooner(const tg_merging *m, const tg_merge_entry *a, const tg_merge_entry *b) {
    if (a->count != b->count) return a->count > b->count;
    const tg_merge_pair *p = &m->pair[a->pair], *q = &m->pair[b->pair];
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static void sift_up(tg_merging *m, tg_merge_entry e) {
    size_t at = m->n_heap++;
    for (; at > 0 && sooner(m, &e, &m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = e;
}

static tg_merge_entry pop(tg_merging *m) {
    const tg_merge_entry top = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < m->n_heap; at = child) {
        if (child + 1 < m->n_heap && sooner(m, &m->heap[child + 1], &m->heap[child])) child++;
        if (!sooner(m, &m->heap[child], &last)) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = last;
    return top;
}

/* The words of the pairs that were touched go into the queue with them. */
static tg_status queue_touched(tg_merging *m) {
    for (size_t i = 0; i < m->n_touched; i++) {
        tg_merge_pair *p = &m->pair[m->touched[i]];
        if (p->count > 0) {
            TG_TRY(GROW(m, heap, n_heap, heap_room));
            sift_up(m, (tg_merge_entry) { p->count, m->touched[i], p->word, p->n, p->room });
        } else {
            tg_free(&m->ctx->mem, p->word, p->room * sizeof *p->word);
        }
        p->word = NULL;
        p->n = p->room = 0;
    }
    m->n_touched = 0;
    return TG_OK;
}

/* ---------------------------------------------------------------------------------- merges */

/* One word: every occurrence from the left. Counts of the pair itself stay. */
static tg_status merge_word(tg_merging *m, uint32_t word, int32_t left, int32_t right,
                            int32_t made) {
    tg_merge_word *w = &m->word[word];
    int32_t *id = m->id + w->at;
    const int64_t count = (int64_t)w->count;
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (id[i] != left || i + 1 == w->n || id[i + 1] != right) {
            id[n++] = id[i];
            continue;
        }
        if (n > 0) {
            TG_TRY(change(m, id[n - 1], left, -count, word));
            TG_TRY(change(m, id[n - 1], made, count, word));
        }
        id[n++] = made;
        if (++i + 1 < w->n) {
            TG_TRY(change(m, right, id[i + 1], -count, word));
            TG_TRY(change(m, made, id[i + 1], count, word));
        }
    }
    w->n = n;
    return TG_OK;
}

/* Back with another count, done (*done), or merged. */
static tg_status merge_best(tg_merging *m) {
    tg_merge_entry top = pop(m);
    const tg_merge_pair p = m->pair[top.pair];
    if (top.count != p.count && p.count > 0) {
        top.count = p.count;
        sift_up(m, top);
        return TG_OK;
    }
    tg_status s = TG_OK;
    if (p.count > 0) {
        int32_t made;
        s = GROW(m, merge, n_merges, merge_room);
        if (s == TG_OK) m->merge[m->n_merges++] = top.pair;
        if (s == TG_OK) s = join(m, &p, &made);
        for (uint32_t i = 0; s == TG_OK && i < top.n; i++)
            s = merge_word(m, top.word[i], p.left, p.right, made);
        if (s == TG_OK) s = queue_touched(m);
    }
    tg_free(&m->ctx->mem, top.word, top.room * sizeof *top.word);
    return s;
}

static tg_status count_pairs(tg_merging *m, double deadline_ms) {
    while (m->next_word < m->n_words) {
        const tg_merge_word *w = &m->word[m->next_word];
        for (uint32_t i = 0; i + 1 < w->n; i++)
            TG_TRY(change(m, m->id[w->at + i], m->id[w->at + i + 1], (int64_t)w->count,
                          (uint32_t)m->next_word));
        if (++m->next_word % WORDS_A_LOOK == 0 && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    m->counted = true;
    return queue_touched(m);
}

tg_status tg_merging_go_on(tg_merging *m, double deadline_ms) {
    if (!m->counted) TG_TRY(count_pairs(m, deadline_ms));
    while (m->n_tokens < m->n_wanted && m->n_heap > 0) {
        TG_TRY(merge_best(m));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}
