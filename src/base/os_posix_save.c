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
#include "base/os_posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAVE_BUFFER_BYTES ((size_t)64 << 10)
#define NAME_TRIES        100u

/* The context is remembered, since every later call may have to record a failure. */
struct tg_save {
    tg_ctx *ctx;
    tg_arena names;   /* the strings below */
    const char *path; /* with symbolic links followed */
    const char *folder;
    const char *base; /* the last part of path */
    const char *temp;
    const char *link; /* path.prev.tmp-<pid> */
    const char *previous;
    bool temp_made; /* temp exists and is ours to remove */
    int fd;         /* for writing; -1 once closed */
    int lock_fd;    /* a duplicate of fd: holds the lock until the end */
    uint64_t offset;
    tg_status status; /* of the first failure */
    size_t buffered;
    char buffer[SAVE_BUFFER_BYTES];
};

/* ------------------------------------------------------------------------------------ leftovers */

typedef enum lock_answer { LOCK_TAKEN, LOCK_HELD_ELSEWHERE, LOCK_UNSUPPORTED } lock_answer;

/* flock rather than fcntl: its lock belongs to the open file, so a second save of the same process
 * is kept out as well, and closing another descriptor of the file does not drop it. */
static lock_answer try_lock(int fd, const char *path) {
    int error;
    do {
        error = tg_posix_fault("lock", path);
        if (!error && flock(fd, LOCK_EX | LOCK_NB)) error = errno;
    } while (error == EINTR);
    return error == 0 ? LOCK_TAKEN : error == EWOULDBLOCK ? LOCK_HELD_ELSEWHERE : LOCK_UNSUPPORTED;
}

/*
 * Does a save still own this temporary file? Asked of the lock, and of the process only where files
 * cannot be locked. What cannot be opened is not ours to judge, so it counts as owned.
 */
static bool temp_is_owned(const char *path, long pid) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return errno != ENOENT;
    const lock_answer answer = try_lock(fd, path);
    close(fd);
    if (answer != LOCK_UNSUPPORTED) return answer == LOCK_HELD_ELSEWHERE;
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
static tg_status remove_leftovers(tg_save *s) {
    int error = tg_posix_fault("opendir", s->folder);
    DIR *dir = error ? NULL : opendir(s->folder);
    if (!dir)
        return tg_posix_fail(s->ctx, s->folder, "the folder to save into", error ? error : errno);
    const size_t base_length = strlen(s->base);
    tg_arena names;
    tg_arena_init(&names, &s->ctx->mem);
    tg_status status = TG_OK;
    for (const struct dirent *entry; !status && (entry = readdir(dir));) {
        if (strncmp(entry->d_name, s->base, base_length) != 0) continue;
        const char *rest = entry->d_name + base_length;
        if (strncmp(rest, ".prev", 5) == 0) rest += 5;
        if (strncmp(rest, ".tmp-", 5) != 0) continue;
        const long pid = suffix_pid(rest + 5);
        if (pid == 0) continue;
        const char *owner = tg_arena_sprintf(&names, "%s.tmp-%s", s->path, rest + 5);
        const char *found = tg_arena_sprintf(&names, "%s/%s", s->folder, entry->d_name);
        if (!owner || !found)
            status = tg_fail_memory(s->ctx, "names of temporary files", 2 * PATH_MAX);
        else if (!temp_is_owned(owner, pid))
            (void)unlink(found);
    }
    tg_arena_deinit(&names);
    closedir(dir);
    return status;
}

/* ---------------------------------------------------------------------------------------- begin */

/*
 * Finds what is to be replaced: follows links, refuses what is no regular file, notes its mode. The
 * folder that counts is the one of the file, not the one of a link to it: a rename across file
 * systems would fail.
 */
static tg_status resolve(tg_save *s, const char *path, mode_t *mode) {
    char target[PATH_MAX];
    struct stat facts;
    *mode = 0;
    s->path = path;
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode)) {
        if (!realpath(path, target))
            return tg_posix_fail(s->ctx, path, "the file that a symbolic link names", errno);
        s->path = target;
    }
    if (stat(s->path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode)) {
            return tg_fail(s->ctx, TG_E_IO, "%s: want a regular file to replace, have %s", path,
                           tg_posix_kind_name(facts.st_mode));
        }
        *mode = facts.st_mode & 07777;
    }
    s->path = tg_arena_strdup(&s->names, s->path);
    if (!s->path) return tg_fail_memory(s->ctx, path, strlen(path) + 1);
    const char *slash = strrchr(s->path, '/');
    s->base = slash ? slash + 1 : s->path;
    if (!*s->base) return tg_fail(s->ctx, TG_E_IO, "%s: want the name of a file", path);
    const size_t folder_length = slash == s->path ? 1 : slash ? (size_t)(slash - s->path) : 1;
    s->folder = tg_arena_strndup(&s->names, slash ? s->path : ".", folder_length);
    s->previous = tg_arena_sprintf(&s->names, "%s.prev", s->path);
    if (!s->folder || !s->previous) return tg_fail_memory(s->ctx, path, strlen(path) + 1);
    return TG_OK;
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
    const bool gone = try_lock(s->fd, s->temp) == LOCK_HELD_ELSEWHERE ||
                      (fstat(s->fd, &facts) == 0 && facts.st_nlink == 0);
    if (gone) {
        close(s->fd);
        s->fd = -1;
        return TG_PENDING;
    }
    s->temp_made = true;
    s->lock_fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (s->lock_fd < 0) return tg_posix_fail(s->ctx, s->temp, "to hold it locked", errno);
    return TG_OK;
}

/* Leftovers go first: they may hold the space that this save needs. */
static tg_status begin(tg_save *s, const char *path) {
    mode_t mode;
    TG_TRY(resolve(s, path, &mode));
    TG_TRY(remove_leftovers(s));
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
    return TG_OK;
}

uint64_t tg_save_offset(const tg_save *s) { return s->offset; }

/* --------------------------------------------------------------------------------------- commit */

/* Interrupted is not failed; but after any other error the kernel may have marked the lost pages as
 * clean, so that a second fsync would report success (Rebello et al., ATC 2020). */
static tg_status sync_fd(tg_save *s, int fd, const char *path) {
    int error;
    do {
        error = tg_posix_fault("fsync", path);
        if (!error && fsync(fd)) error = errno;
    } while (error == EINTR);
    return error ? tg_posix_fail(s->ctx, path, "its bytes on the disk (fsync)", error) : TG_OK;
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

/* rename and link, behind the fault hook: 0 or an error number. */
static int move(const char *from, const char *to) {
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
    int error = make_link(s->path, s->link);
    if (error == EEXIST) { /* a leftover of a process with our id */
        (void)unlink(s->link);
        error = make_link(s->path, s->link);
    }
    if (links_unsupported(error)) {
        error = move(s->path, s->previous);
        *moved = error == 0;
    } else if (!error) {
        error = move(s->link, s->previous);
        /* Also after success: renaming onto another name of the same file does nothing at all, and
         * path.prev is such a name if a save died between the two renames. */
        (void)unlink(s->link);
    }
    return error ? tg_posix_fail(s->ctx, s->previous, "to keep the previous file here", error)
                 : TG_OK;
}

/* The rename itself lives in the folder. It has happened, whatever comes out here: the message must
 * not let anybody believe that the old file is still in place. */
static tg_status sync_folder(tg_save *s) {
    int error;
    const int fd = tg_posix_open(s->folder, O_RDONLY | O_DIRECTORY, &error);
    if (fd >= 0) {
        error = tg_posix_fault("fsync", s->folder);
        /* EINVAL: this file system has no such operation, because names need none. */
        if (!error && fsync(fd) && errno != EINVAL) error = errno;
        close(fd);
    }
    if (!error) return TG_OK;
    return tg_fail(s->ctx, TG_E_IO,
                   "%s: is saved, but want its name on the disk (fsync of the folder), have: %s "
                   "(error %d); a power cut now may bring the old file back",
                   s->path, strerror(error), error);
}

/* The steps in the order that os.h draws. Each TRY leaves path as it was. */
static tg_status commit(tg_save *s, bool keep_previous) {
    bool moved = false;
    TG_TRY(s->status);
    TG_TRY(flush(s));
    TG_TRY(sync_fd(s, s->fd, s->temp));
    TG_TRY(close_temp(s));
    if (keep_previous) TG_TRY(rotate(s, &moved));
    const int error = move(s->temp, s->path);
    if (error) {
        if (moved) (void)rename(s->previous, s->path);
        return tg_posix_fail(s->ctx, s->path, "the new file under this name", error);
    }
    s->temp_made = false; /* it has its final name */
    return sync_folder(s);
}

tg_status tg_save_commit(tg_save *s, bool keep_previous) {
    const tg_status status = commit(s, keep_previous);
    tg_save_abort(s);
    return status;
}

/* Also the end of every commit: if that failed, the temporary file is still there to be removed. */
void tg_save_abort(tg_save *s) {
    if (!s) return;
    if (s->temp && s->lock_fd >= 0) (void)unlink(s->temp);
    if (s->fd >= 0) close(s->fd);
    if (s->lock_fd >= 0) close(s->lock_fd);
    tg_arena_deinit(&s->names);
    const tg_mem mem = s->ctx->mem;
    tg_free(&mem, s, sizeof *s);
}
