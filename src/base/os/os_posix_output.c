/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_output.c - what outputs need beside the save of one file (os_posix_save.c): folders that
 * are swapped as a whole, the record of files that were read, and locks for as long as a process
 * works on a file.
 *
 * Invariant of a folder's save: path is the old whole folder or the new one. Where the system can
 * exchange two names there is no instant at which path is missing; elsewhere there is one, in which
 * the old folder is path.prev.
 */
#define _GNU_SOURCE /* renameat2 */
#include "base/os/os_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { NAME_TRIES = 100 };

/* -------------------------------------------------------------------------- files that were read
 */

void tg_os_seen_begin(tg_ctx *ctx, tg_os_seen *seen) {
    tg_buf_init(&seen->files, &ctx->mem);
    seen->outer = ctx->files.seen;
    ctx->files.seen = seen;
}

void tg_os_seen_end(tg_ctx *ctx) {
    tg_os_seen *seen = ctx->files.seen;
    if (!seen) return;
    ctx->files.seen = seen->outer;
    tg_buf_deinit(&seen->files);
}

/* Device and number, which no two files share while one of them is open. A file that the context
 * writes may have the number of one that it read and somebody removed: it is its own then. */
typedef struct file_seen {
    uint64_t device, number, own;
} file_seen;

static file_seen *find(const tg_os_seen *seen, const struct stat *facts) {
    for (size_t at = 0; at < seen->files.length; at += sizeof(file_seen)) {
        file_seen *f = (file_seen *)(void *)(seen->files.data + at);
        if (f->device == (uint64_t)facts->st_dev && f->number == (uint64_t)facts->st_ino) return f;
    }
    return NULL;
}

/* Memory that is not there is told by whoever asks the record. */
void tg_posix_seen(tg_ctx *ctx, const struct stat *facts, bool own) {
    for (tg_os_seen *seen = ctx->files.seen; seen; seen = seen->outer) {
        const file_seen new = { (uint64_t)facts->st_dev, (uint64_t)facts->st_ino, own };
        file_seen *known = find(seen, facts);
        if (!known)
            tg_buf_append(&seen->files, (const char *)&new, sizeof new);
        else if (own)
            known->own = true;
    }
}

void tg_os_own(tg_ctx *ctx, const char *path) {
    char previous[PATH_MAX];
    struct stat facts;
    tg_ctx quiet = *ctx;
    if (!ctx->files.seen) return;
    if (stat(path, &facts) == 0) tg_posix_seen(ctx, &facts, true);
    if (tg_os_previous(&quiet, path, previous, sizeof previous) == TG_OK &&
        stat(previous, &facts) == 0)
        tg_posix_seen(ctx, &facts, true);
}

tg_status tg_os_want_unseen(tg_ctx *ctx, const char *path) {
    struct stat facts;
    for (const tg_os_seen *seen = ctx->files.seen; seen; seen = seen->outer) {
        TG_TRY(tg_buf_status(ctx, &seen->files, path)); /* a record with a gap proves nothing */
        if (stat(path, &facts)) return TG_OK;
        const file_seen *f = find(seen, &facts);
        if (f && !f->own)
            return tg_fail(ctx, TG_E_ARG,
                           "%s: want an output that is not read, have a file of the input: "
                           "write to another place",
                           path);
    }
    return TG_OK;
}

tg_status tg_os_previous(tg_ctx *ctx, const char *path, char *out, size_t out_bytes) {
    const char *real, *folder;
    tg_arena names;
    tg_arena_init(&names, &ctx->mem);
    tg_status s = tg_posix_resolve(ctx, &names, path, &real, &folder);
    if (s == TG_OK && snprintf(out, out_bytes, "%s.prev", real) >= (int)out_bytes)
        s = tg_fail(ctx, TG_E_IO, "%s: the name is too long", path);
    tg_arena_deinit(&names);
    return s;
}

/* ------------------------------------------------------------------------------------------ locks
 */

struct tg_os_lock {
    tg_mem mem;
    size_t self_bytes;
    uint64_t key; /* of what is locked; 0: nothing is */
    int fd;
    char path[];
};

/* Who holds it, as that process has written into it; 0: it has not, yet. */
static long holder(int fd) {
    char text[24] = "";
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

/* The locks that this process holds, by the numbers of their files: a full disk takes no text. */
enum { LOCKS_MAX = 16 };
static _Atomic uint64_t mine[LOCKS_MAX];
static _Atomic bool some_unnoted; /* there have been more than that, once */

static uint64_t key_of(int fd) {
    struct stat facts;
    if (fstat(fd, &facts)) return 0;
    return (uint64_t)facts.st_ino * 0x9e3779b97f4a7c15u ^ (uint64_t)facts.st_dev;
}

static void note_mine(uint64_t key) {
    for (unsigned i = 0; i < LOCKS_MAX; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&mine[i], &none, key)) return;
    }
    atomic_store(&some_unnoted, true);
}

static void forget_mine(uint64_t key) {
    for (unsigned i = 0; i < LOCKS_MAX; i++) {
        uint64_t it = key;
        if (atomic_compare_exchange_strong(&mine[i], &it, 0)) return;
    }
}

/* Of more locks than there is room for, those that could not be noted are known by their text. No
 * others are: a process of another container may have our number. */
static bool is_mine(int fd) {
    const uint64_t key = key_of(fd);
    for (unsigned i = 0; i < LOCKS_MAX; i++)
        if (key != 0 && atomic_load(&mine[i]) == key) return true;
    return atomic_load(&some_unnoted) && holder(fd) == (long)getpid();
}

/* run: what of it the process works on, if path has a name that belongs to that. */
static tg_status held(tg_ctx *ctx, const char *path, const char *run, int fd) {
    const long pid = holder(fd);
    char who[48] = "another process";
    if (pid > 0) snprintf(who, sizeof who, "process %ld", pid);
    return tg_fail(ctx, TG_E_IO,
                   "%s: want it for this process alone, have %s at work on %s: wait for its end, "
                   "stop it, or choose another name",
                   path, who, run);
}

/* Whoever only asks (want_one_unlocked) holds a lock for an instant, which a second try outlasts.
 */
static tg_posix_lock try_twice(int fd, const char *path) {
    const struct timespec instant = { .tv_nsec = 5 * 1000 * 1000 };
    const tg_posix_lock first = tg_posix_try_lock(fd, path, false);
    if (first != TG_LOCK_HELD) return first;
    (void)nanosleep(&instant, NULL);
    return tg_posix_try_lock(fd, path, false);
}

/* TG_PENDING: its last holder removed the file between our opening and our lock. */
static tg_status take_lock(tg_ctx *ctx, const char *path, tg_os_lock *lock) {
    struct stat here, there;
    int error;
    lock->fd = tg_posix_open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, &error);
    if (lock->fd < 0) return tg_posix_fail(ctx, lock->path, "to make the lock of a file", error);
    if (fstat(lock->fd, &here) || !S_ISREG(here.st_mode))
        return tg_fail(ctx, TG_E_IO, "%s: want the lock of a file, have something else",
                       lock->path);
    if (try_twice(lock->fd, lock->path) == TG_LOCK_HELD) return held(ctx, path, "it", lock->fd);
    if (stat(lock->path, &there) || here.st_ino != there.st_ino || here.st_dev != there.st_dev)
        return TG_PENDING;
    lock->key = key_of(lock->fd);
    note_mine(lock->key);
    char text[24];
    const int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    /* Without it the message of a later process lacks a number, and nothing else. */
    if (ftruncate(lock->fd, 0) || pwrite(lock->fd, text, (size_t)n, 0) < n) return TG_OK;
    return TG_OK;
}

static void free_lock(tg_os_lock *lock) {
    if (lock->fd >= 0) close(lock->fd);
    const tg_mem mem = lock->mem;
    tg_free(&mem, lock, lock->self_bytes);
}

tg_status tg_os_lock_new(tg_ctx *ctx, const char *path, tg_os_lock **out) {
    const char *real, *folder;
    tg_arena names;
    *out = NULL;
    tg_arena_init(&names, &ctx->mem);
    tg_status s = tg_posix_resolve(ctx, &names, path, &real, &folder);
    const size_t bytes = s == TG_OK ? sizeof(tg_os_lock) + strlen(real) + sizeof ".lock" : 0;
    tg_os_lock *lock = s == TG_OK ? tg_alloc(&ctx->mem, bytes) : NULL;
    if (s == TG_OK && !lock) s = tg_fail_memory(ctx, path, bytes);
    if (lock) {
        lock->mem = ctx->mem;
        lock->self_bytes = bytes;
        lock->fd = -1;
        lock->key = 0;
        snprintf(lock->path, bytes - sizeof(tg_os_lock), "%s.lock", real);
        s = TG_PENDING;
        for (int i = 0; s == TG_PENDING && i < NAME_TRIES; i++) {
            if (lock->fd >= 0) close(lock->fd);
            s = take_lock(ctx, path, lock);
        }
        if (s == TG_PENDING) s = held(ctx, path, "it", lock->fd);
    }
    tg_arena_deinit(&names);
    if (s != TG_OK && lock) free_lock(lock);
    if (s == TG_OK) *out = lock;
    return s;
}

/* Removed while it is held, so that nobody can have taken it in between. */
void tg_os_lock_free(tg_os_lock *lock) {
    if (!lock) return;
    (void)unlink(lock->path);
    forget_mine(lock->key);
    free_lock(lock);
}

/* Is it locked by another process? The question holds the lock for an instant, of a file that a
 * killed process left: a shared one, which NFS gives of a file that is open for reading. */
static tg_status want_one_unlocked(tg_ctx *ctx, const char *path, const char *run, const char *it) {
    char name[PATH_MAX];
    int error;
    if (snprintf(name, sizeof name, "%s.lock", run) >= (int)sizeof name) return TG_OK;
    const int fd = tg_posix_open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, &error);
    if (fd < 0 && (error == ENOENT || error == ENOTDIR || error == ELOOP)) return TG_OK;
    if (fd < 0) return tg_posix_fail(ctx, name, "to see whose lock it is", error);
    const bool other = tg_posix_try_lock(fd, name, true) == TG_LOCK_HELD && !is_mine(fd);
    const tg_status s = other ? held(ctx, path, it, fd) : TG_OK;
    close(fd);
    return s;
}

tg_status tg_os_want_unlocked(tg_ctx *ctx, const char *path) {
    static const char *const endings[] = { ".prev", ".best", ".svg" };
    char run[PATH_MAX];
    TG_TRY(tg_os_previous(ctx, path, run, sizeof run));
    size_t n = strlen(run) - strlen(".prev");
    run[n] = 0;
    TG_TRY(want_one_unlocked(ctx, path, run, "it"));
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t e = strlen(endings[i]);
        if (n <= e || strcmp(run + n - e, endings[i]) != 0) continue;
        run[n -= e] = 0;
        TG_TRY(want_one_unlocked(ctx, path, run, run));
    }
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- streams
 */

struct tg_os_stream {
    tg_mem mem;
    size_t self_bytes;
    int fd;
    char path[];
};

/* Opened without waiting, which a FIFO without a reader would do for ever; writes may wait then, as
 * the reader is slow. */
static tg_status open_stream(tg_ctx *ctx, tg_os_stream *s) {
    struct stat facts;
    int error;
    s->fd = tg_posix_open(s->path, O_WRONLY | O_NONBLOCK | O_NOCTTY, &error);
    if (s->fd < 0 && error == ENXIO)
        return tg_fail(ctx, TG_E_IO,
                       "%s: want a FIFO that somebody reads, have one without a reader", s->path);
    if (s->fd < 0) return tg_posix_fail(ctx, s->path, "to write to it", error);
    if (fstat(s->fd, &facts) || !(S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode)))
        return tg_fail(ctx, TG_E_IO, "%s: want a FIFO or a character device, have %s", s->path,
                       tg_posix_kind_name(facts.st_mode));
    const int flags = fcntl(s->fd, F_GETFL);
    if (flags < 0 || fcntl(s->fd, F_SETFL, flags & ~O_NONBLOCK))
        return tg_posix_fail(ctx, s->path, "to write to it", errno);
    return TG_OK;
}

tg_status tg_os_stream_new(tg_ctx *ctx, const char *path, tg_os_stream **out) {
    *out = NULL;
    const size_t bytes = sizeof(tg_os_stream) + strlen(path) + 1;
    tg_os_stream *s = tg_alloc(&ctx->mem, bytes);
    if (!s) return tg_fail_memory(ctx, path, bytes);
    s->mem = ctx->mem;
    s->self_bytes = bytes;
    memcpy(s->path, path, strlen(path) + 1);
    const tg_status status = open_stream(ctx, s);
    if (status == TG_OK)
        *out = s;
    else
        tg_os_stream_free(s);
    return status;
}

tg_status tg_os_stream_write(tg_ctx *ctx, tg_os_stream *s, const void *bytes, size_t n_bytes) {
    const char *from = bytes;
    while (n_bytes > 0) {
        size_t n = n_bytes;
        int error = tg_posix_fault_transfer("write", s->path, &n);
        const ssize_t done = error ? -1 : write(s->fd, from, n);
        if (!error && done < 0) error = errno;
        if (error == EINTR) continue;
        if (error) return tg_posix_fail(ctx, s->path, "to write to it", error);
        from += done;
        n_bytes -= (size_t)done;
    }
    return TG_OK;
}

void tg_os_stream_free(tg_os_stream *s) {
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    const tg_mem mem = s->mem;
    tg_free(&mem, s, s->self_bytes);
}

/* ---------------------------------------------------------------------------------------- folders
 */

tg_status tg_os_each_name(tg_ctx *ctx, const char *folder, tg_os_name_fn each, void *user) {
    int error = tg_posix_fault("opendir", folder);
    DIR *dir = error ? NULL : opendir(folder);
    if (!dir) return tg_posix_fail(ctx, folder, "the names in a folder", error ? error : errno);
    bool more = true;
    const struct dirent *e;
    for (errno = 0; more && (e = readdir(dir)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            more = each(user, e->d_name);
    error = more ? errno : 0;
    closedir(dir);
    return error ? tg_posix_fail(ctx, folder, "the names in a folder", error) : TG_OK;
}

struct tg_save_folder {
    tg_ctx *ctx;
    tg_arena names;
    const char *path, *around;          /* links followed; the folder that it lies in */
    const char *temp, *previous, *last; /* last: where the older path.prev waits to be removed */
    int fd;                             /* of temp: holds the lock; -1: temp is not ours */
};

static tg_status make_temp(tg_save_folder *f, unsigned n) {
    char suffix[48];
    snprintf(suffix, sizeof suffix, n ? ".tmp-%ld-%u" : ".tmp-%ld", (long)getpid(), n);
    f->temp = tg_arena_sprintf(&f->names, "%s%s", f->path, suffix);
    f->last = tg_arena_sprintf(&f->names, "%s%s", f->previous, suffix);
    if (!f->temp || !f->last) return tg_fail_memory(f->ctx, f->path, strlen(f->path));
    int error = tg_posix_fault("mkdir", f->temp);
    if (!error && mkdir(f->temp, 0777)) error = errno;
    if (error == EEXIST) return TG_PENDING;
    if (error) return tg_posix_fail(f->ctx, f->temp, "to make a folder", error);
    f->fd = tg_posix_open(f->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, &error);
    if (f->fd < 0) {
        (void)rmdir(f->temp);
        return tg_posix_fail(f->ctx, f->temp, "to open it", error);
    }
    struct stat facts;
    if (tg_posix_try_lock(f->fd, f->temp, false) != TG_LOCK_HELD && fstat(f->fd, &facts) == 0 &&
        facts.st_nlink > 0)
        return TG_OK;
    close(f->fd); /* a cleaner was quicker */
    f->fd = -1;
    return TG_PENDING;
}

static tg_status begin(tg_save_folder *f, const char *path) {
    struct stat facts, here;
    TG_TRY(tg_posix_resolve(f->ctx, &f->names, path, &f->path, &f->around));
    f->previous = tg_arena_sprintf(&f->names, "%s.prev", f->path);
    if (!f->previous) return tg_fail_memory(f->ctx, path, strlen(path) + 6);
    const bool exists = stat(f->path, &facts) == 0;
    if (exists && !S_ISDIR(facts.st_mode))
        return tg_fail(f->ctx, TG_E_ARG, "%s: want a folder or nothing there, have %s", path,
                       S_ISREG(facts.st_mode) ? "a file" : tg_posix_kind_name(facts.st_mode));
    if (exists && stat(".", &here) == 0 && here.st_ino == facts.st_ino &&
        here.st_dev == facts.st_dev)
        return tg_fail(f->ctx, TG_E_ARG,
                       "%s: want another folder than the one that the program was started in, "
                       "since it is replaced as a whole",
                       path);
    TG_TRY(tg_posix_remove_leftovers(f->ctx, f->path, f->around));
    tg_status s = TG_PENDING;
    for (unsigned n = 0; s == TG_PENDING && n < NAME_TRIES; n++) s = make_temp(f, n);
    if (s == TG_PENDING)
        return tg_fail(f->ctx, TG_E_IO, "%s: want a free name for a temporary folder, have none",
                       path);
    if (s == TG_OK && exists) (void)fchmod(f->fd, facts.st_mode & 07777);
    return s;
}

tg_status tg_save_folder_begin(tg_ctx *ctx, const char *path, tg_save_folder **out) {
    *out = NULL;
    tg_save_folder *f = tg_alloc(&ctx->mem, sizeof *f);
    if (!f) return tg_fail_memory(ctx, path, sizeof *f);
    f->ctx = ctx;
    f->fd = -1;
    tg_arena_init(&f->names, &ctx->mem);
    const tg_status s = begin(f, path);
    if (s != TG_OK)
        tg_save_folder_abort(f);
    else
        *out = f;
    return s;
}

const char *tg_save_folder_temp(const tg_save_folder *f) { return f->temp; }

/* Both names change hands at once; ENOSYS and EINVAL where the system or its file system can't. */
static int exchange(const char *a, const char *b) {
    const int error = tg_posix_fault("rename", b);
    if (error) return error;
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) ? errno : 0;
}

/* path goes to .prev and temp to path: for an instant there is only .prev. */
static int move_twice(tg_save_folder *f) {
    int error = tg_posix_move(f->path, f->previous);
    if (error) return error;
    error = tg_posix_move(f->temp, f->path);
    if (error) (void)rename(f->previous, f->path);
    return error;
}

/* path and temp change places, and what was at path goes from there to .prev. *stuck: it can go
 * neither on nor back. */
static int swap(tg_save_folder *f, bool *stuck) {
    int error = exchange(f->temp, f->path);
    if (error == ENOSYS || error == EINVAL || error == EOPNOTSUPP) return move_twice(f);
    if (error) return error;
    error = tg_posix_move(f->temp, f->previous);
    *stuck = error && exchange(f->temp, f->path);
    return error;
}

static tg_status no_name(tg_save_folder *f, int error) {
    return tg_posix_fail(f->ctx, f->path, "the new folder under this name", error);
}

/* The older path.prev steps aside first, and comes back if the swap fails. *done: path is the new
 * folder, whatever comes out. */
static tg_status replace(tg_save_folder *f, bool *done) {
    bool stuck = false;
    *done = true;
    /* One rename does, if there is nothing or an empty folder. */
    int error = tg_posix_move(f->temp, f->path);
    if (!error) return TG_OK;
    *done = false;
    if (error != ENOTEMPTY && error != EEXIST) return no_name(f, error);
    error = tg_posix_move(f->previous, f->last);
    const bool had_older = !error;
    if (error && error != ENOENT)
        return tg_posix_fail(f->ctx, f->previous, "to keep the previous folder here", error);
    error = swap(f, &stuck);
    *done = !error || stuck;
    if (stuck) {
        const tg_status s =
            tg_fail(f->ctx, TG_E_IO,
                    "%s: is saved, but want the folder that was there as %s, have it as %s: %s "
                    "(error %d)",
                    f->path, f->previous, f->temp, strerror(error), error);
        f->ctx->by_machine = true;
        return s;
    }
    if (error && had_older) (void)rename(f->last, f->previous);
    if (error) return no_name(f, error);
    if (had_older) tg_posix_remove_tree(f->last);
    return TG_OK;
}

static tg_status commit(tg_save_folder *f) {
    int error = tg_posix_sync(f->fd, f->temp);
    if (error) return tg_posix_fail(f->ctx, f->temp, "its names on the disk (fsync)", error);
    bool done;
    const tg_status s = replace(f, &done);
    /* From here on what lies at temp, if anything does, is the folder that was replaced: it is not
     * ours to remove. */
    if (done) {
        close(f->fd);
        f->fd = -1;
    }
    TG_TRY(s);
    error = tg_posix_sync_folder(f->around);
    if (!error) return TG_OK;
    const tg_status late =
        tg_fail(f->ctx, TG_E_IO,
                "%s: is saved, but want its name on the disk (fsync of the folder around it), "
                "have: %s (error %d); a power cut now may bring the old one back",
                f->path, strerror(error), error);
    f->ctx->by_machine = true;
    return late;
}

tg_status tg_save_folder_commit(tg_save_folder *f) {
    const tg_status s = commit(f);
    tg_save_folder_abort(f);
    return s;
}

void tg_save_folder_abort(tg_save_folder *f) {
    if (!f) return;
    if (f->fd >= 0) {
        tg_posix_remove_tree(f->temp);
        close(f->fd);
    }
    tg_arena_deinit(&f->names);
    const tg_mem mem = f->ctx->mem;
    tg_free(&mem, f, sizeof *f);
}
