/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.c - fails the n-th call of one kind in a program that is preloaded with it, or has a signal
 * come just before it.
 *
 *     cc -shared -fPIC -o shim.so shim.c
 *     FAULT_CALL=write FAULT_AT=3 FAULT_ERRNO=28 LD_PRELOAD=./shim.so program ..
 *
 *     FAULT_CALL    open read write short fsync rename link close mmap malloc
 *                   (short: a write that takes half of its bytes)
 *     FAULT_AT      which one, from 1; 0: none, only counted
 *     FAULT_STICKY  set: and all that follow
 *     FAULT_ERRNO   what it fails with
 *     FAULT_SIGNAL  the signal that comes instead, and nothing fails
 *     FAULT_COUNTS  a file for "call n" lines at the end
 *
 * Calls on files count alone: what the loader, the standard streams and the system's own folders
 * take is left in peace, so that a number means the same call in every run of one thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum call { OPEN, READ, WRITE, FSYNC, RENAME, LINK, CLOSE, MMAP, MALLOC, N_CALLS };
static const char *const names[N_CALLS] = { "open", "read",  "write", "fsync", "rename",
                                            "link", "close", "mmap",  "malloc" };

static atomic_long counts[N_CALLS];
static enum call failing = N_CALLS;
static long at;
static int error_number, signal_number, sticky, half, ready;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

__attribute__((constructor)) static void begin(void) {
    const char *call = getenv("FAULT_CALL"), *n = getenv("FAULT_AT"), *e = getenv("FAULT_ERRNO"),
               *s = getenv("FAULT_SIGNAL");
    half = call && strcmp(call, "short") == 0;
    for (int i = 0; call && i < N_CALLS; i++)
        if (strcmp(half ? "write" : call, names[i]) == 0) failing = i;
    at = n ? atol(n) : 0;
    error_number = e ? atoi(e) : EIO;
    signal_number = s ? atoi(s) : 0;
    sticky = getenv("FAULT_STICKY") != NULL;
    unsetenv("LD_PRELOAD");
    ready = 1;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULT_COUNTS");
    ready = 0;
    FILE *f = path ? fopen(path, "w") : NULL;
    for (int i = 0; f && i < N_CALLS; i++) fprintf(f, "%s %ld\n", names[i], counts[i]);
    if (f) fclose(f);
}

/* Counts a call; is it the one? */
static int fails(enum call c) {
    if (!ready) return 0;
    const long n = atomic_fetch_add(&counts[c], 1) + 1;
    if (c != failing || at == 0 || !(n == at || (sticky && n > at))) return 0;
    if (signal_number) return raise(signal_number); /* 0 */
    errno = error_number;
    return 1;
}

static int is_system(const char *path) {
    static const char *const folders[] = { "/proc", "/sys", "/dev", "/etc", "/usr", "/lib" };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0) return 1;
    return 0;
}

static int is_file(int fd) {
    struct stat info;
    const int before = errno;
    const int is =
        fd > 2 && fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
    errno = before;
    return is;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (!is_system(path) && fails(OPEN)) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

FILE *fopen(const char *path, const char *mode) {
    if (!is_system(path) && fails(OPEN)) return NULL;
    return NEXT(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

ssize_t read(int fd, void *to, size_t n) {
    if (is_file(fd) && fails(READ)) return -1;
    return syscall(SYS_read, fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t offset) {
    if (is_file(fd) && fails(READ)) return -1;
    return syscall(SYS_pread64, fd, to, n, offset);
}
ssize_t pread64(int fd, void *to, size_t n, off_t offset) __attribute__((alias("pread")));

ssize_t write(int fd, const void *from, size_t n) {
    if (is_file(fd) && fails(WRITE)) {
        if (!half || n < 2) return half ? syscall(SYS_write, fd, from, n) : -1;
        n /= 2;
    }
    return syscall(SYS_write, fd, from, n);
}

int fsync(int fd) { return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd); }

int rename(const char *from, const char *to) {
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, flags);
}

int link(const char *from, const char *to) {
    return fails(LINK) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* The descriptor is gone even if close says that it failed. */
int close(int fd) {
    const int fault = is_file(fd) && fails(CLOSE), error = errno;
    const int result = (int)syscall(SYS_close, fd);
    if (!fault) return result;
    errno = error;
    return -1;
}

void *mmap(void *at_address, size_t n, int prot, int flags, int fd, off_t offset) {
    if (fails(MMAP)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at_address, n, prot, flags, fd, offset);
}
void *mmap64(void *at_address, size_t n, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

void *malloc(size_t n) { return fails(MALLOC) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t each) { return fails(MALLOC) ? NULL : __libc_calloc(n, each); }
void *realloc(void *p, size_t n) { return n && fails(MALLOC) ? NULL : __libc_realloc(p, n); }

int posix_memalign(void **out, size_t alignment, size_t n) {
    void *p = fails(MALLOC) ? NULL : __libc_memalign(alignment, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t n) {
    return fails(MALLOC) ? NULL : __libc_memalign(alignment, n);
}
