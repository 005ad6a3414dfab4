/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing.h - a model whose weights stay in the types of its file (GGUF, safetensors, .tinygpt of
 * such): packed into one block, or used where the file has them.
 */
#ifndef TG_LOAD_PACKING_H
#define TG_LOAD_PACKING_H

#include "load/weights.h"

/* In slices: *out is NULL for the first of them, and the caller's to free whatever comes back.
 * TG_PENDING: there is more to do; never, if deadline_ms (on tg_time_ms's clock) is 0. */
tg_status tg_packing_go_on(tg_context *ctx, const char *path, double deadline_ms, tg_model **out);
/* Frees what it made of a model. */
void tg_packing_free(tg_model *m);

/* file_maps.c: can tensors stay in the file? Not in WebAssembly. */
bool tg_file_maps_wanted(void);
/* Maps the files of tensors that stay. What it took goes with tg_file_maps_end in any case. */
tg_status tg_file_maps_begin(tg_model *m);
void tg_file_maps_end(tg_model *m);
/* Maps, where that can be done, the files of all tensors that are to be packed; drops what has come
 * into memory; and lets them go. */
void tg_file_maps_begin_packing(tg_model *m);
void tg_file_maps_drop(const tg_model *m);
void tg_file_maps_end_packing(tg_model *m);
/* Has one of the files shrunk? */
bool tg_file_maps_broken(const tg_model *m);

#endif
