/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_writer.h - writes a GGUF file, version 3 (gguf.h draws it).
 *
 *     TG_TRY(tg_gguf_save_begin(ctx, path, values, n_values, tensors, n_tensors, &save));
 *     for each tensor, in the order of the table: tg_gguf_save_tensor(save, i), then its bytes
 *     by tg_save_write in any pieces; then tg_save_commit
 */
#ifndef TG_IO_GGUF_WRITER_H
#define TG_IO_GGUF_WRITER_H

#include "base/os/os.h"
#include "io/gguf/gguf.h"

/* values and tensors as a reader gives them; offsets of tensors are set. *out has the head. */
tg_status tg_gguf_save_begin(tg_ctx *ctx, const char *path, const tg_gguf_value *values,
                             size_t n_values, tg_gguf_tensor *tensors, size_t n_tensors,
                             tg_save **out);

/* Zeros up to where the bytes of a tensor begin. */
tg_status tg_gguf_save_tensor(tg_save *save, const tg_gguf_tensor *t);

/* What tg_gguf_read_values reads. */
void tg_gguf_put_values(tg_buf *out, const tg_gguf_value *values, size_t n);

/* An array of strings as a value: begin with an empty buffer, add, and set. The buffer is the
 * value's, and stays until it is written. */
void tg_gguf_add_string(tg_buf *array, const char *bytes, size_t n_bytes);

#endif
