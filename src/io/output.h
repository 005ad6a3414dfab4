/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - what an output may take the place of: the rule of tinygpt.h, and files that are
 * written by its callers. Not in WebAssembly, but for tg_output_want, which refuses nothing there:
 * a page names its files itself.
 */
#ifndef TG_IO_OUTPUT_H
#define TG_IO_OUTPUT_H

#include "base/os/os.h"

/* TG_OK: it may be written. *keep: there is something of the same kind, or by force of another,
 * which is to stay as path.prev, where nothing else may be then; may be NULL. */
tg_status tg_output_want(tg_ctx *ctx, const char *path, const tg_output_rule *output, bool *keep);

/* The same for an output that is saved more than once: path.prev counts although there is nothing
 * at path yet. */
tg_status tg_output_want_saves(tg_ctx *ctx, const char *path, const tg_output_rule *output);

/* The kinds that are no more than a number. */
tg_status tg_output_want_kind(tg_ctx *ctx, const char *path, tg_output_kind kind, bool *keep);

/* What a folder of a model may hold beside model.safetensors: the names that convert_hf.c writes.
 * NULL behind the last. Folders of it end in a slash. */
extern const char *const tg_output_folder_names[];

/* The same rule for a folder: it may be missing, empty, or have files of tinygpt's making alone. No
 * file of it, of its .prev neither, may be on the context's record of what was read. */
tg_status tg_output_want_folder(tg_ctx *ctx, const char *path);

/* tg_writer_new of tinygpt.h. */
tg_status tg_writer_open(tg_ctx *ctx, const char *path, const tg_output_rule *output,
                         tg_writer **out);

/* How files of sessions of all versions begin. */
#define TG_OUTPUT_SESSION_BEGINS "TGSESS"

/* In the metadata of third-party files that tinygpt wrote: what it knows them by. */
#define TG_OUTPUT_MARK "tinygpt"

#endif
