/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_memory.c - files in memory, under names that begin with "memory:". A table of the
 * process, since a model may be opened in one thread's context and its tokenizer in another's.
 *
 *     memory:m/config.json        a file            memory:m        a folder, by its files
 */
#include "base/os/os.h"
#include "base/os/os_posix.h"

#include <pthread.h>

#define SCHEME "memory:"

struct tg_os_memory_file {
    struct tg_os_memory_file *next;
    tg_mem mem;
    size_t self_bytes; /* of this struct with the path behind it */
    const void *bytes;
    size_t n_bytes;
    char path[];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static tg_os_memory_file *files;

bool tg_posix_in_memory(const char *path) { return strncmp(path, SCHEME, sizeof SCHEME - 1) == 0; }

/* Under the mutex. */
static tg_os_memory_file **find(const char *path) {
    tg_os_memory_file **link = &files;
    while (*link && strcmp((*link)->path, path) != 0) link = &(*link)->next;
    return link;
}

tg_status tg_os_memory_file_new(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                                tg_os_memory_file **out) {
    const size_t n = strlen(name), self_bytes = sizeof **out + sizeof SCHEME + n;
    *out = NULL;
    if (n == 0 || n > 1024)
        return tg_fail(ctx, TG_E_ARG, "file in memory: want a name of 1..1024 bytes, have %zu", n);
    tg_os_memory_file *file = tg_alloc(&ctx->mem, self_bytes);
    if (!file) return tg_fail_memory(ctx, name, self_bytes);
    *file = (tg_os_memory_file) {
        .mem = ctx->mem, .self_bytes = self_bytes, .bytes = bytes, .n_bytes = n_bytes
    };
    snprintf(file->path, sizeof SCHEME + n, SCHEME "%s", name);
    pthread_mutex_lock(&mutex);
    tg_os_memory_file **link = find(file->path);
    const bool taken = *link != NULL;
    if (!taken) *link = file;
    pthread_mutex_unlock(&mutex);
    if (!taken) {
        *out = file;
        return TG_OK;
    }
    tg_fail(ctx, TG_E_ARG, "%s: want a name that no other file in memory has", file->path);
    tg_free(&ctx->mem, file, self_bytes);
    return TG_E_ARG;
}

const char *tg_os_memory_file_path(const tg_os_memory_file *file) { return file->path; }

void tg_os_memory_file_free(tg_os_memory_file *file) {
    if (!file) return;
    pthread_mutex_lock(&mutex);
    tg_os_memory_file **link = find(file->path);
    *link = file->next;
    pthread_mutex_unlock(&mutex);
    const tg_mem mem = file->mem;
    tg_free(&mem, file, file->self_bytes);
}

bool tg_posix_memory_find(const char *path, const void **bytes, size_t *n_bytes) {
    pthread_mutex_lock(&mutex);
    const tg_os_memory_file *file = *find(path);
    if (file) {
        *bytes = file->bytes;
        *n_bytes = file->n_bytes;
    }
    pthread_mutex_unlock(&mutex);
    return file != NULL;
}

tg_os_kind tg_posix_memory_kind(const char *path) {
    const size_t n = strlen(path);
    tg_os_kind kind = TG_OS_NONE;
    pthread_mutex_lock(&mutex);
    if (*find(path)) kind = TG_OS_FILE;
    for (const tg_os_memory_file *f = files; f && kind == TG_OS_NONE; f = f->next)
        if (strncmp(f->path, path, n) == 0 && f->path[n] == '/') kind = TG_OS_FOLDER;
    pthread_mutex_unlock(&mutex);
    return kind;
}
