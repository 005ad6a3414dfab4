/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_pages_wasm.c - pages of a cache in WebAssembly, which has one kind.
 */
#include "engine/session.h"

void tg_cache_pages_begin(tg_session *s) { (void)s; }

void tg_cache_pages_go_on(tg_session *s, size_t rows) {
    (void)s;
    (void)rows;
}
