/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_maps_wasm.c - WebAssembly maps no files.
 */
#include "load/packing.h"

bool tg_file_maps_wanted(void) { return false; }

tg_status tg_file_maps_begin(tg_model *m) {
    const size_t n = m->table.n_tensors;
    m->in_file = tg_arena_array(&m->arena, n, sizeof *m->in_file);
    return m->in_file ? TG_OK
                      : tg_fail_memory(&m->ctx->err, "table of maps", n * sizeof *m->in_file);
}

void tg_file_maps_begin_packing(tg_model *m) { (void)m; }

void tg_file_maps_drop(const tg_model *m) { (void)m; }

void tg_file_maps_end_packing(tg_model *m) { (void)m; }

void tg_file_maps_end(tg_model *m) { (void)m; }

bool tg_file_maps_broken(const tg_model *m) {
    (void)m;
    return false;
}
