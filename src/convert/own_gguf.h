/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_gguf.h - a trained model (.tinygpt), or any, as the tables of a GGUF file.
 */
#ifndef TG_CONVERT_OWN_GGUF_H
#define TG_CONVERT_OWN_GGUF_H

#include "io/detect.h"
#include "io/gguf/gguf.h"
#include "io/run/file.h"

/* A run that is being read: its file, and the one tensor that is in memory, as floats. It stays
 * where it is until it is closed. All zeros: none, and fine for close. */
typedef struct tg_own_run {
    tg_gguf_maker maker;
    tg_file *file;
    tg_block tensor; /* with room for the largest */
} tg_own_run;
void tg_own_run_close(tg_own_run *run);

/* Tensors are read through *run, which the caller closes with the tg_gguf; run NULL: there are
 * none. On failure both are empty. */
tg_status tg_own_gguf(tg_ctx *ctx, const char *path, tg_own_run *run, tg_gguf *out);

/* Of any file: as tg_gguf_open_any, or the above where it is a run.
 * folder: what was opened, which *out may point to. */
tg_status tg_any_gguf(tg_ctx *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                      tg_own_run *run, tg_gguf *out);

#endif
