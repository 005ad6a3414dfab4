/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_pages_wasm.c - pages of a cache in WebAssembly, which has one kind.
 */
#include "engine/session.h"

void tg_cache_pages_begin(tg_decoder *d) { (void)d; }

void tg_cache_pages_go_on(tg_decoder *d, size_t rows, int32_t n_held) {
    (void)d;
    (void)rows;
    (void)n_held;
}
