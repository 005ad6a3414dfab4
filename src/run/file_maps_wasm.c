/*
 * file_maps_wasm.c - WebAssembly maps no files.
 */
#include "run/lm.h"

bool tg_file_maps_wanted(void) { return false; }

tg_status tg_file_maps_begin(tg_context *ctx, tg_lm_model *m) {
    (void)ctx;
    (void)m;
    return TG_OK;
}

void tg_file_maps_end(tg_context *ctx, tg_lm_model *m) {
    (void)ctx;
    (void)m;
}

bool tg_file_maps_broken(const tg_lm_model *m) {
    (void)m;
    return false;
}
