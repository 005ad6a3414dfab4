/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_cache_wasm.c - pack_cache.h in WebAssembly, which can map no file: there is never a cache.
 */
#include "load/pack_cache.h"

bool tg_pack_cache_find(tg_context *ctx, const tg_model *m, tg_pack_cache *out) {
    (void)ctx;
    (void)m;
    *out = (tg_pack_cache) { .bytes = 0 };
    return false;
}

/* What follows is never called, as there is no cache that it could be called for. */

void tg_pack_cache_open(tg_context *ctx, tg_pack_cache *c) {
    (void)ctx;
    (void)c;
}

bool tg_pack_cache_check(const tg_pack_cache *c, size_t chunk) {
    (void)c;
    (void)chunk;
    return true;
}

void tg_pack_cache_save(tg_context *ctx, const tg_model *m, const tg_pack_cache *c) {
    (void)ctx;
    (void)m;
    (void)c;
}
