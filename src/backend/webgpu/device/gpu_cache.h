/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_cache.h - what a WebGPU library compiled, kept in a file for the next process.
 *
 * The library asks with keys of its own, which hold its version, the adapter and the driver, and
 * hands over blobs of its own; here they are bytes. One file, webgpu.cache, for all libraries and
 * adapters (and tiles.cache for gpu_tiles.h):
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     "tgblobs1"
 *     8       ..    blobs, one behind the other, in the machine's byte order:
 *                       4  bytes of the key      4  bytes of the value
 *                       4  CRC-32C of both       .. key, value
 *
 * It is replaced as a whole, so that processes never see half of one; of two that save at once the
 * later one is kept. From the first blob on that is cut or does not have its checksum, a file is
 * not believed.
 *
 * Nothing here fails: what cannot be read is compiled, and what cannot be written is compiled again
 * the next time.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_CACHE_H
#define TG_BACKEND_WEBGPU_GPU_CACHE_H

#include "base/libc.h"

/* A file may have so many bytes; of more, those that this process did not use go first. */
#define TG_GPU_CACHE_BYTES ((size_t)64 << 20)

typedef struct tg_gpu_cache tg_gpu_cache;

/* The file with this name in the folder that TG_GPU_CACHE names, else in tinygpt/ of the user's
 * cache folder (XDG_CACHE_HOME, or .cache at home). NULL: TG_GPU_CACHE is "off", or there is no
 * such place. */
tg_gpu_cache *tg_gpu_cache_open(const char *name);
/* Saves what is new. NULL is fine. */
void tg_gpu_cache_close(tg_gpu_cache *cache);
/* Writes the file if something came that is not in it. NULL is fine. */
void tg_gpu_cache_save(tg_gpu_cache *cache);

/* Called by the library, on any of its threads at any time. load answers the bytes of the value, 0:
 * there is none, and copies it if the room is just as large. */
size_t tg_gpu_cache_load(const void *key, size_t key_bytes, void *value, size_t value_bytes,
                         void *cache);
void tg_gpu_cache_store(const void *key, size_t key_bytes, const void *value, size_t value_bytes,
                        void *cache);

#endif
