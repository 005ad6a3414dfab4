/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_map.c - files as memory, in such a way that one which shrinks is an error and no signal.
 *
 * Reading a mapped page beyond the end of its file raises SIGBUS. The handler below looks whether
 * the address is in one of our mappings: if so, it puts a page of zeros there, remembers that the
 * mapping is broken, and the read goes on; whoever uses the mapping asks tg_os_map_broken() before
 * believing what was computed. Any other SIGBUS goes to the handler that was there before.
 *
 *     slot   start 0: free. start and end are set before the mapping is used, so that the handler,
 *            which may run in any thread, needs no lock
 */
#define _GNU_SOURCE
#include "base/os/os.h"
#include "base/os/os_posix.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { SLOTS = 256 };

static struct slot {
    _Atomic uintptr_t start, end;
    _Atomic bool broken;
} slots[SLOTS];
static struct sigaction before;
static size_t page_bytes;

/* Only calls that a handler may make. */
static void on_sigbus(int signal, siginfo_t *info, void *context) {
    const int error = errno;
    const uintptr_t at = (uintptr_t)info->si_addr;
    for (size_t i = 0; i < SLOTS; i++) {
        if (at < atomic_load(&slots[i].start) || at >= atomic_load(&slots[i].end)) continue;
        char *page = (char *)info->si_addr - at % page_bytes;
        if (mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            break;
        atomic_store(&slots[i].broken, true);
        errno = error;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else { /* the fault comes again, and ends the process as it would have */
        struct sigaction usual = { .sa_handler = SIG_DFL };
        sigaction(SIGBUS, &usual, NULL);
    }
    errno = error;
}

static void install(void) {
    struct sigaction ours = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    page_bytes = tg_os_page_bytes();
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, &before);
}

static struct slot *take_slot(void *start, size_t bytes) {
    for (size_t i = 0; i < SLOTS; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&slots[i].start, &none, (uintptr_t)start)) continue;
        atomic_store(&slots[i].broken, false);
        atomic_store(&slots[i].end, (uintptr_t)start + bytes);
        return &slots[i];
    }
    return NULL;
}

tg_status tg_os_map_file(tg_ctx *ctx, const tg_os_file *file, tg_os_map *out) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *const path = tg_os_file_path(file);
    *out = (tg_os_map) { .bytes = (size_t)tg_os_file_bytes(file) };
    if (out->bytes == 0) return tg_fail(ctx, TG_E_FORMAT, "%s: want some bytes, have none", path);
    pthread_once(&once, install);
    int error = tg_posix_fault("mmap", path);
    void *data = MAP_FAILED;
    if (!error) {
        data = mmap(NULL, out->bytes, PROT_READ, MAP_PRIVATE, tg_posix_file_fd(file), 0);
        error = errno;
    }
    if (data == MAP_FAILED) return tg_posix_fail(ctx, path, "to map it", error);
    out->slot = take_slot(data, out->bytes);
    out->data = data;
    if (out->slot) return TG_OK;
    tg_os_map_free(out);
    return tg_fail(ctx, TG_E_IO, "%s: want at most %d mapped files, have more", path, SLOTS);
}

tg_status tg_os_map_new(tg_ctx *ctx, const char *path, tg_os_map *out) {
    tg_os_file *file;
    *out = (tg_os_map) { .data = NULL };
    TG_TRY(tg_os_file_open(ctx, path, &file));
    const tg_status s = tg_os_map_file(ctx, file, out);
    tg_os_file_close(file); /* the mapping stays */
    return s;
}

void tg_os_map_free(tg_os_map *map) {
    struct slot *slot = map->slot;
    if (map->data) munmap(map->data, map->bytes);
    if (slot) {
        atomic_store(&slot->end, 0);
        atomic_store(&slot->start, 0);
    }
    *map = (tg_os_map) { .data = NULL };
}

bool tg_os_map_broken(const tg_os_map *map) {
    const struct slot *slot = map->slot;
    return slot && atomic_load(&slot->broken);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ                                                                         \
    22 /* of Linux 5.14; an older one refuses it, and pages come a few at a time */
#endif

void tg_os_map_load(const void *at, size_t bytes) {
    const uintptr_t from = (uintptr_t)at, start = from - from % page_bytes;
    (void)madvise((void *)start, from + bytes - start, MADV_POPULATE_READ);
}

void tg_os_map_drop(const tg_os_map *map) { (void)madvise(map->data, map->bytes, MADV_DONTNEED); }

void tg_os_file_stamp(const tg_os_file *file, uint64_t out[TG_OS_STAMP]) {
    struct stat facts;
    memset(out, 0, TG_OS_STAMP * sizeof *out);
    if (tg_posix_file_fd(file) < 0 || fstat(tg_posix_file_fd(file), &facts)) return;
    out[0] = (uint64_t)facts.st_dev;
    out[1] = (uint64_t)facts.st_ino;
    out[2] = (uint64_t)facts.st_size;
    out[3] =
        (uint64_t)facts.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)facts.st_mtim.tv_nsec;
}
