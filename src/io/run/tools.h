/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h - what the commands verify and convert do with runs; the public header
 * describes the calls (tg_file_compare and so on), which forward to these.
 */
#ifndef TG_IO_TOOLS_H
#define TG_IO_TOOLS_H

#include "base/err.h"
#include "base/libc.h"
#include "io/run/file.h"
#include "io/tgpt/tgpt.h"

/*
 * Tensors in the order of the manifest (weights, first moments, second moments) by the bits of
 * their f32 values; then step, training options, text, history and counters of the run. write gets
 * one line, with its end, that names the first difference or says that all is equal. write may be
 * NULL.
 */
tg_status tg_io_compare(tg_ctx *ctx, const char *path_a, const char *path_b, bool *equal,
                        tg_text_fn write, void *user);

/* Reads one file and writes it in another layout, in slices: TG_PENDING until it is done. A
 * zero-initialised struct holds the place; deinit at any time. E_ARG, and nothing is written:
 * path_out is a file that was read, or one of another kind. What was written is read back before it
 * is renamed. */
typedef struct tg_converting {
    tg_file *in;
    tg_saving *saving; /* NULL: not begun */
    bool keep;         /* what is replaced stays as .prev */
} tg_converting;
tg_status tg_converting_go_on(tg_converting *c, tg_ctx *ctx, const char *path_in,
                              const char *path_out, tg_file_kind kind, double deadline_ms);
void tg_converting_deinit(tg_converting *c);
/* All at once. */
tg_status tg_io_convert(tg_ctx *ctx, const char *path_in, const char *path_out, tg_file_kind kind);

/* The text of config.json for a model of these sizes. */
tg_status tg_io_transformers_config(tg_ctx *ctx, const tg_model_config *config, tg_text_fn write,
                                    void *user);

#endif
