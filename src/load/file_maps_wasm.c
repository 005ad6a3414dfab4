/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_maps_wasm.c - WebAssembly maps no files.
 */
#include "load/lm.h"

bool tg_file_maps_wanted(void) { return false; }

tg_status tg_file_maps_begin(tg_context *ctx, tg_lm_model *m) {
    const size_t n = m->lm.n_tensors;
    m->in_file = tg_arena_array(&m->arena, n, sizeof *m->in_file);
    return m->in_file ? TG_OK : tg_fail_memory(&ctx->err, "table of maps", n * sizeof *m->in_file);
}

void tg_file_maps_begin_packing(tg_context *ctx, tg_lm_model *m) {
    (void)ctx;
    (void)m;
}

void tg_file_maps_drop(const tg_lm_model *m) { (void)m; }

void tg_file_maps_end_packing(tg_lm_model *m) { (void)m; }

void tg_file_maps_end(tg_context *ctx, tg_lm_model *m) {
    (void)ctx;
    (void)m;
}

bool tg_file_maps_broken(const tg_lm_model *m) {
    (void)m;
    return false;
}
