/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.h - which of two readers a path is for: hf.h, for models that describe themselves by
 * metadata, or file.h, for runs.
 */
#ifndef TG_IO_DETECT_H
#define TG_IO_DETECT_H

#include "base/err.h"
#include "base/libc.h"

/* Does tg_gguf_open_any take path: a GGUF file, a folder of safetensors, a zip file of one, a
 * .tinygpt file of packed weights? False where there is no file; an error where there is one that
 * cannot be read. folder: what is to be opened, which is path, but for a model.safetensors the
 * folder that it is in. */
#define TG_GGUF_PATH_BYTES 4096
tg_status tg_gguf_takes(tg_ctx *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                        bool *takes);

#endif
