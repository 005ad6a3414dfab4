/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_pages.c - which pages a session's cache lies in.
 *
 * Each layer has pages of its own for the whole context, so that the first token writes somewhere
 * into every few megabytes. In huge pages much of the cache would have to be zeroed before it, and
 * most of it in vain. So a large cache begins in small pages, and a huge page's worth of it is
 * joined once half of it is in use: long contexts are read as fast as ever. The copying that a join
 * costs is spread over the tokens that are fed.
 *
 * That of a batch stays in small pages: each of its sequences begins anew.
 *
 *     layer 0 |#####............|.................| layer 1 |#####...     # in use, . not touched
 *              ^ 2 MiB           ^
 */
#include "engine/session.h"

/* Caches below begin in huge pages: it takes a few milliseconds. Joins of a run with one row. */
#define SPLIT_BYTES ((size_t)16 << 20)
enum { JOINS = 2, PASS_TOKENS = 32 };

void tg_cache_pages_begin(tg_decoder *d) {
    d->pages =
        (tg_cache_pages) { .split = d->cache.block.pages && d->cache.block.bytes >= SPLIT_BYTES &&
                                    !d->ctx->err.small_pages };
    if (d->pages.split) tg_os_pages_split(d->cache.block.data, d->cache.block.bytes);
}

/* Of bytes [first, first + TG_OS_HUGE_BYTES) of the cache, how many hold the first n positions: of
 * each layer they are in its first pages. */
static size_t used_bytes(const tg_cache *c, size_t first, size_t n) {
    const size_t end = first + TG_OS_HUGE_BYTES;
    size_t used = 0;
    for (int32_t i = 0; i < c->n_layers && c->offsets[i] < end; i++) {
        const tg_layer_state *s = &c->layers[i];
        const size_t room = tg_layer_state_room(s), held = n < room ? n : room;
        const size_t n_pages = (held + s->page_rows - 1) / s->page_rows;
        const size_t from = c->offsets[i], to = from + n_pages * tg_layer_state_page_bytes(s);
        if (to > first) used += (to < end ? to : end) - (from > first ? from : first);
    }
    return used;
}

static bool is_half_used(const tg_decoder *d, size_t first, int32_t n) {
    return used_bytes(&d->cache, first, (size_t)n) >= TG_OS_HUGE_BYTES / 2;
}

/* A pass looks at every page: which were below the half at the end of the last one? */
void tg_cache_pages_go_on(tg_decoder *d, size_t rows, int32_t n_held) {
    tg_cache_pages *p = &d->pages;
    if (!p->split || d->cache.n_sequences > 1) return;
    if (p->at_bytes == 0) {
        if (n_held < p->end_tok + p->end_tok / 8 + PASS_TOKENS) return;
        p->begin_tok = p->end_tok;
        p->end_tok = n_held;
    }
    size_t joins = JOINS * rows;
    for (; p->at_bytes + TG_OS_HUGE_BYTES <= d->cache.block.bytes;
         p->at_bytes += TG_OS_HUGE_BYTES) {
        if (joins == 0) return;
        if (is_half_used(d, p->at_bytes, p->begin_tok) || !is_half_used(d, p->at_bytes, p->end_tok))
            continue;
        tg_os_pages_join((uint8_t *)d->cache.block.data + p->at_bytes, TG_OS_HUGE_BYTES);
        joins--;
    }
    p->at_bytes = 0;
}
