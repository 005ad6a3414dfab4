/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_cache.c - see gpu_cache.h: a list of blobs in memory, read at once and written at once.
 *
 * A few dozen pipelines make some hundred blobs, so a list is searched from its newest end. Entries
 * stay as they are while the library may hold on to what it was told: a newer value of a key is an
 * entry of its own, and load copies only what has the size that it has told before.
 */
#include "backend/webgpu/device/gpu_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/codec/crc.h"
#include "base/os/os.h"

static const char magic[8] = "tgblobs1";

typedef struct head {
    uint32_t key_bytes, value_bytes, crc;
} head;

typedef struct blob {
    const char *key; /* the value lies behind it */
    uint32_t key_bytes, value_bytes;
    bool used;  /* by this process */
    bool owned; /* else it lies in the file's bytes */
} blob;

struct tg_gpu_cache {
    pthread_mutex_t mutex;
    tg_ctx ctx; /* of its own: its messages are for nobody */
    char path[1024];
    tg_buf file; /* as it was read */
    blob *blobs;
    size_t n, room;
    bool dirty;
};

static size_t blob_bytes(const blob *b) { return (size_t)b->key_bytes + b->value_bytes; }

/* False: there is no memory, and the blob is not kept. */
static bool put(tg_gpu_cache *c, blob b) {
    if (c->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 256;
        blob *blobs = tg_realloc(&c->ctx.mem, c->blobs, c->room * sizeof b, room * sizeof b);
        if (!blobs) return false;
        c->blobs = blobs;
        c->room = room;
    }
    c->blobs[c->n++] = b;
    return true;
}

/* ------------------------------------------------------------------------------------------ file
 */

/* Whether the environment names a folder; makes it. */
static bool find_folder(tg_gpu_cache *c, const char *name) {
    const char *named = getenv("TG_GPU_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    char folder[900] = "";
    if (named && strcmp(named, "off") == 0) return false;
    if (named && named[0]) {
        snprintf(folder, sizeof folder, "%s", named);
    } else if (cache && cache[0] == '/') {
        snprintf(folder, sizeof folder, "%s/tinygpt", cache);
    } else if (home && home[0] == '/') {
        snprintf(folder, sizeof folder, "%s/.cache", home);
        if (tg_os_make_folder(&c->ctx, folder) != TG_OK) return false;
        snprintf(folder, sizeof folder, "%s/.cache/tinygpt", home);
    }
    if (!folder[0] || tg_os_make_folder(&c->ctx, folder) != TG_OK) return false;
    snprintf(c->path, sizeof c->path, "%s/%s", folder, name);
    return true;
}

static void read_file(tg_gpu_cache *c) {
    if (tg_os_kind_of(c->path) != TG_OS_FILE) return;
    if (tg_os_read_all(&c->ctx, c->path, 2 * TG_GPU_CACHE_BYTES, &c->file) != TG_OK) return;
    const char *p = c->file.data, *const end = p + c->file.length;
    if (c->file.length < sizeof magic || memcmp(p, magic, sizeof magic) != 0) return;
    for (p += sizeof magic; (size_t)(end - p) >= sizeof(head);) {
        head h;
        memcpy(&h, p, sizeof h);
        p += sizeof h;
        const blob b = { p, h.key_bytes, h.value_bytes, false, false };
        if ((size_t)(end - p) < blob_bytes(&b) || tg_crc32c(0, p, blob_bytes(&b)) != h.crc) return;
        if (!put(c, b)) return;
        p += blob_bytes(&b);
    }
}

/* The blob with this key that came last before the one with number `before`. */
static blob *find(const tg_gpu_cache *c, size_t before, const void *key, size_t key_bytes) {
    for (size_t i = before; i-- > 0;) {
        blob *b = &c->blobs[i];
        if (b->key_bytes == key_bytes && memcmp(b->key, key, key_bytes) == 0) return b;
    }
    return NULL;
}

/* Those that were used, or those that were not, as long as there is room; of a key the newest. */
static tg_status write_blobs(tg_gpu_cache *c, tg_save *save, bool used) {
    for (size_t i = c->n; i-- > 0;) {
        const blob *b = &c->blobs[i];
        const size_t bytes = blob_bytes(b);
        if (b->used != used || find(c, c->n, b->key, b->key_bytes) != b) continue;
        if (tg_save_offset(save) + sizeof(head) + bytes > TG_GPU_CACHE_BYTES) continue;
        const head h = { b->key_bytes, b->value_bytes, tg_crc32c(0, b->key, bytes) };
        TG_TRY(tg_save_write(save, &h, sizeof h));
        TG_TRY(tg_save_write(save, b->key, bytes));
    }
    return TG_OK;
}

static void write_file(tg_gpu_cache *c) {
    tg_save *save;
    tg_ctx_clear(&c->ctx);
    if (tg_save_begin(&c->ctx, c->path, &save) != TG_OK) return;
    tg_status s = tg_save_write(save, magic, sizeof magic);
    if (s == TG_OK) s = write_blobs(c, save, true);
    if (s == TG_OK) s = write_blobs(c, save, false);
    if (s == TG_OK)
        tg_save_commit(save, false);
    else
        tg_save_abort(save);
}

/* -------------------------------------------------------------------------------------- interface
 */

tg_gpu_cache *tg_gpu_cache_open(const char *name) {
    const tg_mem heap = tg_mem_default();
    tg_gpu_cache *c = tg_alloc(&heap, sizeof *c);
    if (!c) return NULL;
    tg_ctx_init(&c->ctx, &heap, NULL, NULL);
    tg_buf_init(&c->file, &c->ctx.mem);
    if (!find_folder(c, name) || pthread_mutex_init(&c->mutex, NULL) != 0) {
        tg_free(&heap, c, sizeof *c);
        return NULL;
    }
    read_file(c);
    return c;
}

void tg_gpu_cache_save(tg_gpu_cache *c) {
    if (!c) return;
    pthread_mutex_lock(&c->mutex);
    if (c->dirty) write_file(c);
    c->dirty = false;
    pthread_mutex_unlock(&c->mutex);
}

void tg_gpu_cache_close(tg_gpu_cache *c) {
    if (!c) return;
    tg_gpu_cache_save(c);
    const tg_mem heap = c->ctx.mem;
    for (size_t i = 0; i < c->n; i++)
        if (c->blobs[i].owned) tg_free(&heap, (char *)c->blobs[i].key, blob_bytes(&c->blobs[i]));
    tg_free(&heap, c->blobs, c->room * sizeof *c->blobs);
    tg_buf_deinit(&c->file);
    pthread_mutex_destroy(&c->mutex);
    tg_free(&heap, c, sizeof *c);
}

size_t tg_gpu_cache_load(const void *key, size_t key_bytes, void *value, size_t value_bytes,
                         void *cache) {
    tg_gpu_cache *c = cache;
    size_t bytes = 0;
    pthread_mutex_lock(&c->mutex);
    blob *b = find(c, c->n, key, key_bytes);
    while (b && value && b->value_bytes != value_bytes)
        b = find(c, (size_t)(b - c->blobs), key, key_bytes);
    if (b) {
        bytes = b->value_bytes;
        b->used = true;
        if (value) memcpy(value, b->key + b->key_bytes, bytes);
    }
    pthread_mutex_unlock(&c->mutex);
    return bytes;
}

void tg_gpu_cache_store(const void *key, size_t key_bytes, const void *value, size_t value_bytes,
                        void *cache) {
    tg_gpu_cache *c = cache;
    if (key_bytes > TG_GPU_CACHE_BYTES || value_bytes > TG_GPU_CACHE_BYTES) return;
    pthread_mutex_lock(&c->mutex);
    const blob *old = find(c, c->n, key, key_bytes);
    const bool same = old && old->value_bytes == value_bytes &&
                      memcmp(old->key + key_bytes, value, value_bytes) == 0;
    char *bytes = same ? NULL : tg_alloc(&c->ctx.mem, key_bytes + value_bytes);
    if (bytes) {
        memcpy(bytes, key, key_bytes);
        memcpy(bytes + key_bytes, value, value_bytes);
        const blob b = { bytes, (uint32_t)key_bytes, (uint32_t)value_bytes, true, true };
        if (put(c, b))
            c->dirty = true;
        else
            tg_free(&c->ctx.mem, bytes, key_bytes + value_bytes);
    }
    pthread_mutex_unlock(&c->mutex);
}
