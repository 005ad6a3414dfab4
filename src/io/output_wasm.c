/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_wasm.c - what output.c says in WebAssembly: every output may be written, and nothing stays
 * of what it replaces.
 */
#include "io/output.h"

tg_status tg_output_want_kind(tg_ctx *ctx, const char *path, tg_output_kind kind, bool *keep) {
    (void)ctx;
    (void)path;
    (void)kind;
    *keep = false;
    return TG_OK;
}
