/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v3_gguf.h - .tinygpt v3 files of weights in any type, which metadata
 * describe as in a GGUF file: docs/format-tgpt.md.
 */
#ifndef TG_IO_TGPT_V3_GGUF_H
#define TG_IO_TGPT_V3_GGUF_H

#include "base/codec/sha256.h"
#include "io/gguf/gguf.h"
#include "io/tgpt/tgpt.h"

/* Is it such a file? An error where it is there and cannot be read. */
tg_status tg_tgpt3_is_gguf(tg_ctx *ctx, const char *path, bool *is);

/* As tg_gguf_open: proves header, tables and metadata, and reads no tensor. */
tg_status tg_tgpt3_open_gguf(tg_ctx *ctx, const char *path, tg_gguf *out);

/* How many chunks have a CRC, 0 in files of other formats, and does chunk i agree with its own?
 * buffer [checks.chunk_bytes]; ctx is the calling thread's. */
size_t tg_tgpt3_gguf_chunks(const tg_gguf *g);
tg_status tg_tgpt3_gguf_check_chunk(tg_ctx *ctx, const tg_gguf *g, size_t i, uint8_t *buffer);

/* All of them, and then the SHA-256 of the file, in slices: TG_PENDING, call again.
 * Zero-initialised it has not begun; buffer [checks.chunk_bytes]. */
typedef struct tg_tgpt3_checking {
    size_t chunk;    /* the next one */
    uint64_t hashed; /* bytes */
    tg_sha256 sha;
} tg_tgpt3_checking;
tg_status tg_tgpt3_gguf_check(const tg_gguf *g, tg_tgpt3_checking *c, uint8_t *buffer,
                              double deadline_ms);

/* Then tg_tgpt3_write, the bytes of the tensors one after the other, and tg_tgpt3_commit. values:
 * of tg_gguf_put_values, borrowed until then. */
tg_status tg_tgpt3_begin_gguf(tg_ctx *ctx, const char *path, const char *family,
                              const tg_buf *values, const tg_gguf_tensor *tensors, size_t n,
                              tg_tgpt3_writer **out);

#endif
