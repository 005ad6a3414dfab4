/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_pages.c - which pages a session's cache lies in.
 *
 * Each head of each layer has rows of its own for the whole context, so that the first token writes
 * somewhere into every few megabytes. In huge pages that would be nearly all of the cache to be
 * zeroed before it, and most of it in vain: a third of a second where the context is large. So a
 * large cache begins in small pages, and a huge page's worth of it is joined once half of it is in
 * use: long contexts are read as fast as ever. The copying that a join costs is spread over the
 * tokens that are fed.
 *
 *     head 0 |#####............|#####............|     # in use, . not touched
 *             ^ 2 MiB           ^
 */
#include "engine/session.h"

/* Caches below begin in huge pages: it takes a few milliseconds. Joins of a run with one row. */
#define SPLIT_BYTES ((size_t)16 << 20)
enum { JOINS = 2, PASS_TOKENS = 32 };

void tg_cache_pages_begin(tg_session *s) {
    s->pages = (tg_cache_pages) { .split = s->cache.pages && s->cache.bytes >= SPLIT_BYTES &&
                                           !s->ctx->err.small_pages };
    if (s->pages.split) tg_os_pages_split(s->cache.data, s->cache.bytes);
}

/* Of bytes [first, first + TG_OS_HUGE_BYTES) of the cache, how many hold the first n positions. */
static size_t used_bytes(const tg_session *s, size_t first, size_t n) {
    const size_t end = first + TG_OS_HUGE_BYTES;
    size_t used = 0;
    for (int32_t i = 0; i < s->model->layout.config.layers; i++) {
        const tg_session_layer l = tg_session_layer_at(s, i);
        const size_t at = (size_t)(l.rows - (uint8_t *)s->cache.data);
        const size_t head_bytes = l.room * l.row_bytes;
        if (at >= end) break;
        if (at + l.heads * head_bytes <= first) continue;
        for (size_t h = 0; h < l.heads; h++) {
            const size_t from = at + h * head_bytes;
            const size_t to = from + (n < l.room ? n : l.room) * l.row_bytes;
            if (from < end && to > first)
                used += (to < end ? to : end) - (from > first ? from : first);
        }
    }
    return used;
}

static bool is_half_used(const tg_session *s, size_t first, int32_t n) {
    return used_bytes(s, first, (size_t)n) >= TG_OS_HUGE_BYTES / 2;
}

/* A pass looks at every page: which were below the half at the end of the last one? */
void tg_cache_pages_go_on(tg_session *s, size_t rows) {
    tg_cache_pages *p = &s->pages;
    if (!p->split) return;
    if (p->at_bytes == 0) {
        if (s->n_held < p->end_tok + p->end_tok / 8 + PASS_TOKENS) return;
        p->begin_tok = p->end_tok;
        p->end_tok = s->n_held;
    }
    size_t joins = JOINS * rows;
    for (; p->at_bytes + TG_OS_HUGE_BYTES <= s->cache.bytes; p->at_bytes += TG_OS_HUGE_BYTES) {
        if (joins == 0) return;
        if (is_half_used(s, p->at_bytes, p->begin_tok) || !is_half_used(s, p->at_bytes, p->end_tok))
            continue;
        tg_os_pages_join((uint8_t *)s->cache.data + p->at_bytes, TG_OS_HUGE_BYTES);
        joins--;
    }
    p->at_bytes = 0;
}
