/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_gguf.h - a trained model (.tinygpt), or any, as the tables of a GGUF file.
 */
#ifndef TG_CONVERT_OWN_GGUF_H
#define TG_CONVERT_OWN_GGUF_H

#include "io/detect.h"
#include "io/gguf/gguf.h"
#include "io/run/file.h"

/* Tensors lie in *floats, which the caller frees after the tg_gguf; floats NULL: there are none. On
 * failure both are empty. */
tg_status tg_own_gguf(tg_ctx *ctx, const char *path, tg_block *floats, tg_gguf *out);

/* Of any file: as tg_gguf_open_any, or the above where it is a run; floats are then its weights.
 * folder: what was opened, which *out may point to. */
tg_status tg_any_gguf(tg_ctx *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                      tg_block *floats, tg_gguf *out);

#endif
