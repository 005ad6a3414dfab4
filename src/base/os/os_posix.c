/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix.c - memory, files, clocks and threads on a POSIX system with Linux's futex.
 *
 * Every operation that a test may want to fail asks tg_posix_fault first, then calls the system, so
 * an injected error takes the very path that a real one would. Interrupted calls (EINTR) are
 * repeated, and partial transfers continued, here and nowhere else.
 *
 * Saving is in os_posix_save.c, facts about the machine in os_posix_info.c.
 */
#define _GNU_SOURCE /* for what Linux has beyond POSIX */
#include "base/os/os_posix.h"

#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------------- faults */

/* Read without a lock: it is set before threads start, and NULL but in tests. */
tg_os_fault_fn tg_os_fault = NULL;

/* A short transfer means nothing to an operation that transfers nothing. */
int tg_posix_fault(const char *operation, const char *path) {
    const int answer = tg_os_fault ? tg_os_fault(operation, path) : 0;
    return answer == TG_FAULT_SHORT ? 0 : answer;
}

int tg_posix_fault_transfer(const char *operation, const char *path, size_t *n_bytes) {
    const int answer = tg_os_fault ? tg_os_fault(operation, path) : 0;
    if (answer != TG_FAULT_SHORT) return answer;
    *n_bytes -= *n_bytes / 2;
    return 0;
}

/* Other errors are of the path, the permissions or the kind of a file: whoever named it can help.
 */
static bool is_of_machine(int error) {
    static const int codes[] = { EIO,    ENOSPC, EDQUOT, EFBIG,     ENOMEM,
                                 EMFILE, ENFILE, ESTALE, ETIMEDOUT, EAGAIN };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (error == codes[i]) return true;
    return false;
}

/* strerror may be called from several threads in glibc (from 2.32 on) and musl. */
tg_status tg_posix_fail(tg_ctx *ctx, const char *path, const char *what, int error) {
    const bool first = ctx->code == TG_OK;
    const tg_status status = tg_fail(ctx, TG_E_IO, "%s: want %s, have: %s (error %d)", path, what,
                                     strerror(error), error);
    if (first) ctx->by_machine = is_of_machine(error);
    return status;
}

int tg_posix_open(const char *path, int flags, int *error) {
    int fd = -1;
    do {
        *error = tg_posix_fault("open", path);
        if (!*error) {
            fd = open(path, flags | O_CLOEXEC, 0666);
            *error = fd < 0 ? errno : 0;
        }
    } while (*error == EINTR);
    return fd;
}

/* The one place that writes to a stream: there is no caller left who could be told. */
_Noreturn void tg_assert_failed(const char *file, int line, const char *condition) {
    fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
    abort();
}

/* --------------------------------------------------------------------------------------- memory */

#define HUGE_PAGE_BYTES ((size_t)TG_OS_HUGE_BYTES)

/* In huge pages, where there are any: what tg_alloc gets is written from end to end at once, and
 * the small pages of a table of ten megabytes would take longer to come by than to fill. */
static void *large_new(size_t bytes) {
    void *ptr;
    if (posix_memalign(&ptr, HUGE_PAGE_BYTES, bytes)) return NULL;
    (void)madvise(ptr, bytes - bytes % HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    return ptr;
}

/* The sizes that Lua's protocol passes are for allocators that count; malloc knows its own. */
void *tg_os_heap(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(ptr);
        return NULL;
    }
    return !ptr && new_bytes >= HUGE_PAGE_BYTES ? large_new(new_bytes) : realloc(ptr, new_bytes);
}

size_t tg_os_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* The same rounding for mapping and unmapping; false if it does not fit into a size_t. */
static bool whole_pages(size_t bytes, size_t *rounded) {
    const size_t page = tg_os_page_bytes();
    if (!tg_add_size(bytes ? bytes : 1, page - 1, rounded)) return false;
    *rounded -= *rounded % page;
    return true;
}

/*
 * The kernel puts huge pages only where address and length are multiples of their size, and mmap
 * promises 4 KiB: so this maps a huge page more than needed and gives both ends back.
 *
 *   |..head..|<----------- bytes ----------->|....tail....|
 *            ^ multiple of 2 MiB
 */
void *tg_os_pages_new(size_t bytes, bool huge, size_t *dirty_bytes) {
    size_t wanted, mapped;
    *dirty_bytes = 0; /* of mmap */
    if (!whole_pages(bytes, &wanted) || !tg_add_size(wanted, HUGE_PAGE_BYTES, &mapped)) return NULL;
    if (tg_posix_fault("pages", "")) return NULL;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    const size_t gap = (uintptr_t)start % HUGE_PAGE_BYTES;
    const size_t head = gap ? HUGE_PAGE_BYTES - gap : 0;
    const size_t tail = mapped - head - wanted;
    if (head) munmap(start, head);
    if (tail) munmap(start + head + wanted, tail);
    /* Advice only: without huge pages the memory works as well, just slower. */
    (void)madvise(start + head, wanted, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return start + head;
}

void tg_os_pages_free(void *pages, size_t bytes) {
    size_t rounded;
    if (pages && whole_pages(bytes, &rounded)) munmap(pages, rounded);
}

void tg_os_pages_split(void *pages, size_t bytes) {
    size_t rounded;
    if (whole_pages(bytes, &rounded)) (void)madvise(pages, rounded, MADV_NOHUGEPAGE);
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE                                                                              \
    25 /* of Linux 6.1; an older one refuses it, and joins pages in its own time */
#endif

void tg_os_pages_join(void *pages, size_t bytes) {
    const size_t gap = (uintptr_t)pages % HUGE_PAGE_BYTES, skip = gap ? HUGE_PAGE_BYTES - gap : 0;
    if (bytes < skip + HUGE_PAGE_BYTES) return;
    char *const start = (char *)pages + skip;
    const size_t whole = (bytes - skip) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (madvise(start, whole, MADV_HUGEPAGE) == 0) (void)madvise(start, whole, MADV_COLLAPSE);
}

/* -------------------------------------------------------------------------------- reading files */

/* One allocation, with the path behind it: messages may need it long after the caller's is gone. */
struct tg_os_file {
    tg_mem mem;
    size_t self_bytes;  /* of this struct with the path behind it */
    int fd;             /* -1: */
    const char *memory; /* it is here */
    uint64_t bytes;
    char path[];
};

const char *tg_posix_kind_name(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
                            : "something else";
}

/* Reading a FIFO could wait for ever, a device could answer without end: neither is a model. */
static tg_status want_regular(tg_ctx *ctx, const char *path, const struct stat *facts) {
    if (S_ISREG(facts->st_mode)) return TG_OK;
    return tg_fail(ctx, TG_E_IO, "%s: want a regular file, have %s", path,
                   tg_posix_kind_name(facts->st_mode));
}

/*
 * Looks before it opens, since opening a device may have effects (a tape rewinds) and a socket only
 * says "no such device". Looks again at what it opened, since the name may have moved in between.
 */
static tg_status open_regular(tg_ctx *ctx, const char *path, int *fd, struct stat *facts) {
    const char *const what = "to open it for reading";
    if (stat(path, facts)) return tg_posix_fail(ctx, path, what, errno);
    TG_TRY(want_regular(ctx, path, facts));

    int error;
    *fd = tg_posix_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &error);
    if (*fd < 0) return tg_posix_fail(ctx, path, what, error);

    error = tg_posix_fault("fstat", path);
    if (!error && fstat(*fd, facts)) error = errno;
    const tg_status status =
        error ? tg_posix_fail(ctx, path, "its size", error) : want_regular(ctx, path, facts);
    if (status)
        close(*fd);
    else
        tg_posix_seen(ctx, facts, false);
    return status;
}

static tg_status open_on_disk(tg_ctx *ctx, tg_os_file *file) {
    struct stat facts;
    TG_TRY(open_regular(ctx, file->path, &file->fd, &facts));
    file->bytes = (uint64_t)facts.st_size;
    return TG_OK;
}

static tg_status open_in_memory(tg_ctx *ctx, tg_os_file *file) {
    const void *bytes;
    size_t n_bytes;
    if (!tg_posix_memory_find(file->path, &bytes, &n_bytes))
        return tg_fail(ctx, TG_E_IO, "%s: want a file in memory, have none of that name",
                       file->path);
    file->fd = -1;
    file->memory = bytes;
    file->bytes = n_bytes;
    return TG_OK;
}

enum { PATH_LIMIT = 4096 }; /* PATH_MAX of Linux, its zero included */

tg_status tg_os_file_open(tg_ctx *ctx, const char *path, tg_os_file **out) {
    *out = NULL;
    const size_t path_bytes = strlen(path) + 1;
    /* Said without the path, which would push the reason out of the message. */
    if (path_bytes > PATH_LIMIT)
        return tg_fail(ctx, TG_E_IO, "file: the path of %zu bytes is too long: want at most %d",
                       path_bytes - 1, PATH_LIMIT - 1);
    const size_t self_bytes = sizeof(tg_os_file) + path_bytes;
    tg_os_file *file = tg_alloc(&ctx->mem, self_bytes);
    if (!file) return tg_fail_memory(ctx, path, self_bytes);
    file->mem = ctx->mem;
    file->self_bytes = self_bytes;
    memcpy(file->path, path, path_bytes);

    file->memory = NULL;
    const tg_status status =
        tg_posix_in_memory(path) ? open_in_memory(ctx, file) : open_on_disk(ctx, file);
    if (status)
        tg_free(&ctx->mem, file, self_bytes);
    else
        *out = file;
    return status;
}

void tg_os_file_close(tg_os_file *file) {
    if (!file) return;
    if (file->fd >= 0) close(file->fd); /* nothing was written, so there is nothing to lose */
    const tg_mem mem = file->mem;
    tg_free(&mem, file, file->self_bytes);
}

uint64_t tg_os_file_bytes(const tg_os_file *file) { return file->bytes; }

int tg_posix_file_fd(const tg_os_file *file) { return file->fd; }

const char *tg_os_file_path(const tg_os_file *file) { return file->path; }

bool tg_os_file_can_be_mapped(const tg_os_file *file) { return file->fd >= 0; }

#define TRANSFER_MAX_BYTES ((size_t)1 << 30) /* Linux moves less than 2 GiB in one call */

/*
 * The bounds are checked against the size at opening, before the first byte is read: a claim inside
 * a file that points beyond its end fails at once and says both numbers.
 */
bool tg_os_any_thread_reads(void) { return true; }

tg_status tg_os_file_read(tg_ctx *ctx, const tg_os_file *file, uint64_t offset, void *out,
                          size_t n_bytes) {
    if (offset > file->bytes || n_bytes > file->bytes - offset) {
        return tg_fail(ctx, TG_E_IO,
                       "%s: want %zu bytes at offset %" PRIu64 ", have a file of %" PRIu64 " bytes",
                       file->path, n_bytes, offset, file->bytes);
    }
    char *to = out;
    if (file->fd < 0) {
        memcpy(to, file->memory + offset, n_bytes);
        return TG_OK;
    }
    while (n_bytes > 0) {
        size_t n = n_bytes < TRANSFER_MAX_BYTES ? n_bytes : TRANSFER_MAX_BYTES;
        int error = tg_posix_fault_transfer("pread", file->path, &n);
        ssize_t got = 0;
        if (!error) {
            got = pread(file->fd, to, n, (off_t)offset);
            error = got < 0 ? errno : 0;
        }
        if (error == EINTR) continue;
        if (error) return tg_posix_fail(ctx, file->path, "to read it", error);
        if (got == 0) {
            return tg_fail(ctx, TG_E_IO,
                           "%s: want a file of %" PRIu64 " bytes, as it was when opened, have an "
                           "end at offset %" PRIu64,
                           file->path, file->bytes, offset);
        }
        to += got;
        offset += (uint64_t)got;
        n_bytes -= (size_t)got;
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------- paths, folders */

tg_os_kind tg_os_kind_of(const char *path) {
    struct stat facts;
    if (tg_posix_in_memory(path)) return tg_posix_memory_kind(path);
    if (stat(path, &facts)) return TG_OS_NONE;
    return S_ISREG(facts.st_mode)   ? TG_OS_FILE
           : S_ISDIR(facts.st_mode) ? TG_OS_FOLDER
                                    : TG_OS_OTHER;
}

tg_status tg_os_remove(tg_ctx *ctx, const char *path) {
    int error = tg_posix_fault("unlink", path);
    if (!error && unlink(path)) error = errno;
    return error ? tg_posix_fail(ctx, path, "to remove it", error) : TG_OK;
}

/* EEXIST alone is not good news: a file may be in the way. */
tg_status tg_os_make_folder(tg_ctx *ctx, const char *path) {
    int error = tg_posix_fault("mkdir", path);
    if (!error && mkdir(path, 0777)) error = errno;
    if (error == EEXIST && tg_os_kind_of(path) == TG_OS_FOLDER) return TG_OK;
    return error ? tg_posix_fail(ctx, path, "to make a folder", error) : TG_OK;
}

/* --------------------------------------------------------------------------------------- clocks */

/* A double holds nanoseconds exactly for 104 days of uptime and microseconds for centuries. */
double tg_time_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int64_t tg_time_unix(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec;
}

/* -------------------------------------------------------------------------------------- threads */

_Static_assert(sizeof(pthread_t) <= sizeof(uintptr_t), "a thread's handle must fit");

/*
 * The new thread inherits the mask of its creator, so the mask is set around the creation: there is
 * no moment at which a signal could reach the worker. Signals that a fault of the thread itself
 * raises stay open, since they cannot be delivered anywhere else.
 */
bool tg_os_thread_start(tg_os_thread *thread, size_t stack_bytes, void *(*fn)(void *), void *arg) {
    static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own_faults / sizeof own_faults[0]; i++)
        sigdelset(&blocked, own_faults[i]);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return false;
    pthread_t handle;
    bool started = !tg_posix_fault("thread", "") &&
                   !pthread_attr_setstacksize(&attributes, stack_bytes) &&
                   !pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (started) {
        started = !pthread_create(&handle, &attributes, fn, arg);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    if (started) thread->handle = (uintptr_t)handle;
    return started;
}

/* After it, all that the thread wrote is visible to the caller. */
void tg_os_thread_join(tg_os_thread thread) { pthread_join((pthread_t)thread.handle, NULL); }

/*
 * The kernel compares the word once more under its own lock before it lets the thread sleep, so a
 * change between the caller's look and the call is not missed. All results mean the same to the
 * caller: look again. PRIVATE: no other process shares the word, which saves a look-up.
 */
void tg_os_wait(_Atomic uint32_t *word, uint32_t expected) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

void tg_os_wake_all(_Atomic uint32_t *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Besides saving power it leaves the execution units to the sibling hyper-thread. */
void tg_os_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* a wait of some ten cycles; `yield` is a no-op on most cores */
#endif
}
