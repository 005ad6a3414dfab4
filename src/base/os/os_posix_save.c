/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_save.c - replacing a file so that no crash can lose both the old and the new one.
 *
 * The protocol is drawn in os.h. What each step guards against:
 *
 *   temporary file beside path   rename is atomic only within one file system
 *   lock on it                   tells a leftover from a save in progress
 *   fsync before rename          else a power cut may keep the name and lose the bytes
 *   link, then rename, for .prev path is never missing, and .prev is never half replaced
 *   fsync of the folder          else a power cut may bring back the old name
 *
 * Invariant: until the rename in commit succeeds, nothing at path has been touched.
 */
#define _GNU_SOURCE /* for what Linux has beyond POSIX */
#include "base/os/os_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAVE_BUFFER_BYTES ((size_t)64 << 10)
#define NAME_TRIES        100u

/* The context is remembered, since every later call may have to record a failure. */
struct tg_save {
    tg_ctx *ctx;
    tg_arena names;   /* the strings below */
    const char *path; /* with symbolic links followed */
    const char *folder;
    const char *temp;
    const char *link; /* path.prev.tmp-<pid> */
    const char *previous;
    bool temp_made; /* temp exists and is ours to remove */
    bool published; /* it has its name, and grows */
    unsigned slot;  /* of temps, + 1; 0: none */
    int fd;         /* for writing; -1 once closed */
    int lock_fd;    /* a duplicate of fd: holds the lock until the end */
    uint64_t offset;
    tg_status status; /* of the first failure */
    size_t buffered;
    char buffer[SAVE_BUFFER_BYTES];
};

/* ------------------------------------------------------------------------------------ leftovers */

/* flock rather than fcntl: its lock belongs to the open file, so a second save of the same process
 * is kept out as well, and closing another descriptor of the file does not drop it. */
tg_posix_lock tg_posix_try_lock(int fd, const char *path, bool shared) {
    int error;
    do {
        error = tg_posix_fault("lock", path);
        if (!error && flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) error = errno;
    } while (error == EINTR);
    return error == 0 ? TG_LOCK_TAKEN : error == EWOULDBLOCK ? TG_LOCK_HELD : TG_LOCK_UNSUPPORTED;
}

/*
 * Does a save still own this temporary file? Asked of the lock, and of the process only where files
 * cannot be locked. What cannot be opened is not ours to judge, so it counts as owned.
 */
static bool temp_is_owned(const char *path, long pid) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return errno != ENOENT;
    const tg_posix_lock answer = tg_posix_try_lock(fd, path, false);
    close(fd);
    if (answer != TG_LOCK_UNSUPPORTED) return answer == TG_LOCK_HELD;
    return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* Reads the <pid> or <pid>-<n> that ends the name of a temporary file; 0 if it is no such name. */
static long suffix_pid(const char *suffix) {
    long pid = 0;
    size_t i = 0;
    for (; suffix[i] >= '0' && suffix[i] <= '9' && i < 9; i++) pid = pid * 10 + (suffix[i] - '0');
    if (suffix[i] == '-') {
        i++;
        while (suffix[i] >= '0' && suffix[i] <= '9') i++;
    }
    return suffix[i] == 0 ? pid : 0;
}

/*
 * Removes what dead saves of the same path left in the folder: base.tmp-<pid> and, with the same
 * owner, base.prev.tmp-<pid>. Failing to remove is no reason to fail the save.
 */
tg_status tg_posix_remove_leftovers(tg_ctx *ctx, const char *path, const char *folder) {
    int error = tg_posix_fault("opendir", folder);
    DIR *dir = error ? NULL : opendir(folder);
    if (!dir) return tg_posix_fail(ctx, folder, "the folder to save into", error ? error : errno);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const size_t base_length = strlen(base);
    tg_arena names;
    tg_arena_init(&names, &ctx->mem);
    tg_status status = TG_OK;
    for (const struct dirent *entry; !status && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, base, base_length) != 0) continue;
        const char *rest = entry->d_name + base_length;
        if (strncmp(rest, ".prev", 5) == 0) rest += 5;
        if (strncmp(rest, ".tmp-", 5) != 0) continue;
        const long pid = suffix_pid(rest + 5);
        if (pid == 0) continue;
        const char *owner = tg_arena_sprintf(&names, "%s.tmp-%s", path, rest + 5);
        const char *found = tg_arena_sprintf(&names, "%s/%s", folder, entry->d_name);
        if (!owner || !found)
            status = tg_fail_memory(ctx, "names of temporary files", 2 * PATH_MAX);
        else if (!temp_is_owned(owner, pid))
            tg_posix_remove_tree(found);
    }
    tg_arena_deinit(&names);
    closedir(dir);
    return status;
}

/* As the system call writes it. */
typedef struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
} entry;

/* What is in a folder of `at`. By the system call, since opendir takes memory, and what has to go
 * is often there because memory has run out. */
static void remove_names(int at, const char *name, int deeper) {
    _Alignas(entry) char block[4096];
    const int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    long n;
    while (folder >= 0 && (n = syscall(SYS_getdents64, folder, block, sizeof block)) > 0)
        for (long i = 0; i < n;) {
            const entry *e = (const entry *)(const void *)(block + i);
            i += e->bytes;
            if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0) continue;
            if (unlinkat(folder, e->name, 0) == 0 || !deeper) continue;
            remove_names(folder, e->name, deeper - 1);
            (void)unlinkat(folder, e->name, AT_REMOVEDIR);
        }
    if (folder >= 0) close(folder);
}

/* A file, or a folder with its files and those of its folders: deeper than that none is written. */
void tg_posix_remove_tree(const char *path) {
    if (unlink(path) == 0) return;
    remove_names(AT_FDCWD, path, 1);
    (void)rmdir(path);
}

/* Names of the temporary files that there are, for a handler that has no other way to them. */
enum { TEMPS_MAX = 16 };
static _Atomic(const char *) temps[TEMPS_MAX];

/* More of them than there is room for are left to the next save of the same name. */
static unsigned note_temp(const char *path) {
    for (unsigned i = 0; i < TEMPS_MAX; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&temps[i], &none, path)) return i + 1;
    }
    return 0;
}

static void forget_temp(tg_save *s) {
    if (s->slot) atomic_store(&temps[s->slot - 1], NULL);
    s->slot = 0;
}

void tg_os_drop_temps(void) {
    for (unsigned i = 0; i < TEMPS_MAX; i++) {
        const char *path = atomic_load(&temps[i]);
        if (path) (void)unlink(path);
    }
}

/* ---------------------------------------------------------------------------------------- begin */

/* The folder that counts is the one of the file, not the one of a link to it: a rename across file
 * systems would fail. */
tg_status tg_posix_resolve(tg_ctx *ctx, tg_arena *arena, const char *path, const char **real,
                           const char **folder) {
    char target[PATH_MAX];
    struct stat facts;
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode)) {
        if (!realpath(path, target))
            return tg_posix_fail(ctx, path, "the file that a symbolic link names", errno);
        path = target;
    }
    size_t n = strlen(path); /* "folder/" is the folder */
    while (n > 1 && path[n - 1] == '/') n--;
    *real = tg_arena_strndup(arena, path, n);
    if (!*real) return tg_fail_memory(ctx, path, n + 1);
    const char *slash = strrchr(*real, '/');
    const size_t folder_length = slash == *real ? 1 : slash ? (size_t)(slash - *real) : 1;
    *folder = tg_arena_strndup(arena, slash ? *real : ".", folder_length);
    return *folder ? TG_OK : tg_fail_memory(ctx, path, folder_length + 1);
}

/* Finds what is to be replaced: follows links, refuses what is no regular file and what was read,
 * notes its mode. */
static tg_status resolve(tg_save *s, const char *path, mode_t *mode) {
    struct stat facts;
    *mode = 0;
    if (!*path || path[strlen(path) - 1] == '/')
        return tg_fail(s->ctx, TG_E_IO, "%s: want the name of a file", path);
    TG_TRY(tg_posix_resolve(s->ctx, &s->names, path, &s->path, &s->folder));
    if (stat(s->path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode)) {
            return tg_fail(s->ctx, TG_E_IO, "%s: want a regular file to replace, have %s", path,
                           tg_posix_kind_name(facts.st_mode));
        }
        TG_TRY(tg_os_want_unseen(s->ctx, s->path));
        *mode = facts.st_mode & 07777;
    }
    s->previous = tg_arena_sprintf(&s->names, "%s.prev", s->path);
    return s->previous ? TG_OK : tg_fail_memory(s->ctx, path, strlen(path) + 1);
}

/*
 * Creates and locks a temporary file under the n-th name. TG_PENDING: the name is in use, or a
 * cleaner removed the file between its creation and the lock; the next name is to be tried.
 */
static tg_status create_temp(tg_save *s, unsigned n) {
    char suffix[48];
    snprintf(suffix, sizeof suffix, n ? ".tmp-%ld-%u" : ".tmp-%ld", (long)getpid(), n);
    s->temp = tg_arena_sprintf(&s->names, "%s%s", s->path, suffix);
    s->link = tg_arena_sprintf(&s->names, "%s%s", s->previous, suffix);
    if (!s->temp || !s->link) return tg_fail_memory(s->ctx, s->path, strlen(s->path));

    int error;
    s->fd = tg_posix_open(s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, &error);
    if (error == EEXIST) return TG_PENDING;
    if (error) return tg_posix_fail(s->ctx, s->temp, "to create it", error);

    struct stat facts;
    if (fstat(s->fd, &facts)) error = errno;
    const bool gone =
        tg_posix_try_lock(s->fd, s->temp, false) == TG_LOCK_HELD || (!error && facts.st_nlink == 0);
    if (gone) {
        close(s->fd);
        s->fd = -1;
        return TG_PENDING;
    }
    s->temp_made = true;
    if (!error) tg_posix_seen(s->ctx, &facts, true);
    s->slot = note_temp(s->temp);
    s->lock_fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (s->lock_fd < 0) return tg_posix_fail(s->ctx, s->temp, "to hold it locked", errno);
    return TG_OK;
}

/* Leftovers go first: they may hold the space that this save needs. */
static tg_status begin(tg_save *s, const char *path) {
    mode_t mode;
    TG_TRY(resolve(s, path, &mode));
    TG_TRY(tg_posix_remove_leftovers(s->ctx, s->path, s->folder));
    tg_status status = TG_PENDING;
    for (unsigned n = 0; status == TG_PENDING && n < NAME_TRIES; n++) status = create_temp(s, n);
    if (status == TG_PENDING) {
        return tg_fail(s->ctx, TG_E_IO, "%s: want a free name for a temporary file, have %u in use",
                       s->path, NAME_TRIES);
    }
    TG_TRY(status);
    /* A file that only its owner may read stays so. Where modes mean nothing this fails,
     * harmlessly. */
    if (mode) (void)fchmod(s->fd, mode);
    return TG_OK;
}

tg_status tg_save_begin(tg_ctx *ctx, const char *path, tg_save **out) {
    *out = NULL;
    tg_save *s = tg_alloc(&ctx->mem, sizeof *s);
    if (!s) return tg_fail_memory(ctx, path, sizeof *s);
    s->ctx = ctx;
    s->fd = s->lock_fd = -1;
    tg_arena_init(&s->names, &ctx->mem);
    const tg_status status = begin(s, path);
    if (status) {
        tg_save_abort(s);
        return status;
    }
    *out = s;
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- write */

/* A write of nothing that reports no error would loop for ever: it is taken as a full disk. */
static tg_status write_out(tg_save *s, const char *bytes, size_t n_bytes) {
    while (n_bytes > 0) {
        if (tg_ctx_cancelled(s->ctx)) return TG_STOPPED;
        size_t n = n_bytes < ((size_t)1 << 30) ? n_bytes : (size_t)1 << 30;
        int error = tg_posix_fault_transfer("write", s->temp, &n);
        ssize_t done = 0;
        if (!error) {
            done = write(s->fd, bytes, n);
            error = done < 0 ? errno : done == 0 ? ENOSPC : 0;
        }
        if (error == EINTR) continue;
        if (error) return tg_posix_fail(s->ctx, s->temp, "to write to it", error);
        bytes += done;
        n_bytes -= (size_t)done;
    }
    return TG_OK;
}

/* The buffer counts as empty even if this fails: nothing is ever written twice. */
static tg_status flush(tg_save *s) {
    const size_t n = s->buffered;
    s->buffered = 0;
    return write_out(s, s->buffer, n);
}

/* Small pieces (a header is full of 4-byte fields) are gathered; what fills a buffer of its own
 * goes straight through. */
tg_status tg_save_write(tg_save *s, const void *bytes, size_t n_bytes) {
    if (s->status || n_bytes == 0) return s->status;
    s->offset += n_bytes;
    if (n_bytes > SAVE_BUFFER_BYTES - s->buffered) {
        s->status = flush(s);
        if (s->status) return s->status;
        if (n_bytes >= SAVE_BUFFER_BYTES) return s->status = write_out(s, bytes, n_bytes);
    }
    memcpy(s->buffer + s->buffered, bytes, n_bytes);
    s->buffered += n_bytes;
    if (s->published) s->status = flush(s);
    return s->status;
}

uint64_t tg_save_offset(const tg_save *s) { return s->offset; }

/* --------------------------------------------------------------------------------------- commit */

/* Interrupted is not failed; but after any other error the kernel may have marked the lost pages as
 * clean, so that a second fsync would report success (Rebello et al., ATC 2020). */
int tg_posix_sync(int fd, const char *path) {
    int error;
    do {
        error = tg_posix_fault("fsync", path);
        if (!error && fsync(fd)) error = errno;
    } while (error == EINTR);
    return error;
}

static tg_status sync_temp(tg_save *s) {
    const int error = tg_posix_sync(s->fd, s->temp);
    return error ? tg_posix_fail(s->ctx, s->temp, "its bytes on the disk (fsync)", error) : TG_OK;
}

/* Closing may report what a network file system found out only now. The lock stays with lock_fd. */
static tg_status close_temp(tg_save *s) {
    const int error = tg_posix_fault("close", s->temp);
    const int result = close(s->fd);
    s->fd = -1;
    if (error || (result && errno != EINTR))
        return tg_posix_fail(s->ctx, s->temp, "to close it", error ? error : errno);
    return TG_OK;
}

int tg_posix_move(const char *from, const char *to) {
    const int error = tg_posix_fault("rename", to);
    return error ? error : rename(from, to) ? errno : 0;
}

static int make_link(const char *from, const char *to) {
    const int error = tg_posix_fault("link", to);
    return error ? error : link(from, to) ? errno : 0;
}

/* FAT, some network and FUSE file systems; EPERM also where the kernel protects links. */
static bool links_unsupported(int error) {
    return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
}

/*
 * Gives the old file its second name. *moved: links are not supported and path itself was renamed,
 * so until the new file comes only path.prev exists.
 */
static tg_status rotate(tg_save *s, bool *moved) {
    *moved = false;
    struct stat facts;
    if (stat(s->path, &facts)) {
        return TG_OK;
    } /* the first save */
    TG_TRY(tg_os_want_unseen(s->ctx, s->previous));
    int error = make_link(s->path, s->link);
    if (error == EEXIST) { /* a leftover of a process with our id */
        (void)unlink(s->link);
        error = make_link(s->path, s->link);
    }
    if (links_unsupported(error)) {
        error = tg_posix_move(s->path, s->previous);
        *moved = error == 0;
    } else if (!error) {
        error = tg_posix_move(s->link, s->previous);
        /* Also after success: renaming onto another name of the same file does nothing at all, and
         * path.prev is such a name if a save died between the two renames. */
        (void)unlink(s->link);
    }
    return error ? tg_posix_fail(s->ctx, s->previous, "to keep the previous file here", error)
                 : TG_OK;
}

int tg_posix_sync_folder(const char *folder) {
    int error;
    const int fd = tg_posix_open(folder, O_RDONLY | O_DIRECTORY, &error);
    if (fd < 0) return error;
    error = tg_posix_sync(fd, folder);
    close(fd);
    return error == EINVAL ? 0 : error;
}

/* The rename itself lives in the folder. It has happened, whatever comes out here: the message must
 * not let anybody believe that the old file is still in place. */
static tg_status sync_folder(tg_save *s) {
    const int error = tg_posix_sync_folder(s->folder);
    if (!error) return TG_OK;
    const tg_status status =
        tg_fail(s->ctx, TG_E_IO,
                "%s: is saved, but want its name on the disk (fsync of the folder), have: %s "
                "(error %d); a power cut now may bring the old file back",
                s->path, strerror(error), error);
    s->ctx->by_machine = true;
    return status;
}

/* The steps in the order that os.h draws. Each TRY leaves path as it was. */
static tg_status commit(tg_save *s, bool keep_previous, bool stay_open) {
    const tg_ctx_files files = s->ctx->files;
    bool moved = false;
    TG_TRY(s->status);
    TG_TRY(flush(s));
    TG_TRY(sync_temp(s));
    if (!stay_open) TG_TRY(close_temp(s));
    if (files.check) TG_TRY(files.check(files.check_user, s->temp));
    if (keep_previous) TG_TRY(rotate(s, &moved));
    const int error = tg_posix_move(s->temp, s->path);
    if (error) {
        if (moved) (void)rename(s->previous, s->path);
        return tg_posix_fail(s->ctx, s->path, "the new file under this name", error);
    }
    s->temp_made = false; /* it has its final name */
    forget_temp(s);
    return sync_folder(s);
}

tg_status tg_save_publish(tg_save *s, bool keep_previous) {
    s->status = commit(s, keep_previous, true);
    s->published = s->status == TG_OK;
    return s->status;
}

/* A file that grew has reached its name before: what its last bytes want is the disk. */
static tg_status end_published(tg_save *s) {
    TG_TRY(s->status);
    TG_TRY(flush(s));
    TG_TRY(sync_temp(s));
    return close_temp(s);
}

tg_status tg_save_commit(tg_save *s, bool keep_previous) {
    const tg_status status = s->published ? end_published(s) : commit(s, keep_previous, false);
    tg_save_abort(s);
    return status;
}

/* Also the end of every commit: if that failed, the temporary file is still there to be removed. */
void tg_save_abort(tg_save *s) {
    if (!s) return;
    if (s->temp_made) (void)unlink(s->temp);
    forget_temp(s);
    if (s->fd >= 0) close(s->fd);
    if (s->lock_fd >= 0) close(s->lock_fd);
    tg_arena_deinit(&s->names);
    const tg_mem mem = s->ctx->mem;
    tg_free(&mem, s, sizeof *s);
}
