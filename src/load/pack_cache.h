/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_cache.h - packed weights in a file, so that the next start maps them.
 *
 *     OFFSET  SIZE  MEANING (of FOLDER/<first 16 digits of the SHA-256 of the model's path>.tgpack)
 *     0       8     "TGPACK1" and a zero
 *     8       8     u64 B, bytes of the weights
 *     16      32    key: SHA-256 of the layouts, of the table of tensors and of what tells the
 *                   model's files from others (tg_os_file_stamp): all that the weights follow from
 *     48      4     u32 bytes of a chunk: 1 MiB
 *     52      4     u32 CRC-32C of the bytes 0..51 and of the CRCs of the chunks
 *     4096    B     the weights, as they lie in memory
 *     4096+B  4*n   u32 CRC-32C of each chunk
 *
 * Numbers are little-endian, and so are machines that map the file; what is packed does not depend
 * on the instruction set. A file of another key or length, or whose checksums do not agree, is
 * ignored aloud and replaced: a cache is never a reason to fail.
 */
#ifndef TG_LOAD_PACK_CACHE_H
#define TG_LOAD_PACK_CACHE_H

#include "base/os/os.h"
#include "io/detect.h"
#include "load/weights.h"

enum { TG_PACK_CHUNK_BYTES = 1 << 20 };

typedef struct tg_pack_cache {
    char path[TG_GGUF_PATH_BYTES];
    uint8_t key[32];
    tg_os_map map;
    const uint8_t *weights, *crcs; /* in the map */
    size_t bytes, n_chunks;
} tg_pack_cache;

/* False: there is no folder, or a file of the model cannot be told from another. */
bool tg_pack_cache_find(tg_context *ctx, const tg_model *m, tg_pack_cache *out);

/* Maps the file and proves its head. No map: it is missing or, which is logged, stale or
 * broken. The chunks are yet to be checked, each by tg_pack_cache_check. */
void tg_pack_cache_open(tg_context *ctx, tg_pack_cache *c);
bool tg_pack_cache_check(const tg_pack_cache *c, size_t chunk);

/* Writes the model's weights. What goes wrong is logged, and no error. */
void tg_pack_cache_save(tg_context *ctx, const tg_model *m, const tg_pack_cache *c);

#endif
