/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix.h - what the os_posix*.c files share. Nobody else includes it.
 */
#ifndef TG_BASE_OS_POSIX_H
#define TG_BASE_OS_POSIX_H

#include "base/os/os.h"

#include <sys/stat.h>
#include <sys/types.h>

/* Asks the fault hook: 0, or the error number that the operation has to fail with. */
int tg_posix_fault(const char *operation, const char *path);

/* The same for transfers, where TG_FAULT_SHORT halves *n_bytes (leaving at least one) instead. */
int tg_posix_fault_transfer(const char *operation, const char *path, size_t *n_bytes);

/* open(2) for this process alone, repeated while interrupted. -1: *error says why. */
int tg_posix_open(const char *path, int flags, int *error);

/* -1: it is in memory. */
int tg_posix_file_fd(const tg_os_file *file);

/* os_posix_memory.c: is it such a path? And what is there. */
bool tg_posix_in_memory(const char *path);
bool tg_posix_memory_find(const char *path, const void **bytes, size_t *n_bytes);
tg_os_kind tg_posix_memory_kind(const char *path);

/* "a folder", "a FIFO", ... for the mode of a file that is not a regular one. */
const char *tg_posix_kind_name(mode_t mode);

/* Notes a file that is open for reading, or one that the context writes, if it keeps a record. */
void tg_posix_seen(tg_ctx *ctx, const struct stat *facts, bool own);

typedef enum tg_posix_lock { TG_LOCK_TAKEN, TG_LOCK_HELD, TG_LOCK_UNSUPPORTED } tg_posix_lock;
/* shared: others may have it so, too; all that a file needs that is open for reading, on NFS. */
tg_posix_lock tg_posix_try_lock(int fd, const char *path, bool shared);

/* For a save of path, which lies in folder: what dead saves of it left. */
tg_status tg_posix_remove_leftovers(tg_ctx *ctx, const char *path, const char *folder);
void tg_posix_remove_tree(const char *path);

/* fsync, repeated while interrupted: 0 or an error number. */
int tg_posix_sync(int fd, const char *path);
/* fsync of a folder; where the file system has no such operation, names need none. */
int tg_posix_sync_folder(const char *folder);

/* rename behind the fault hook: 0 or an error number. */
int tg_posix_move(const char *from, const char *to);

/* The path with symbolic links followed and the folder that it lies in, in the arena. A link that
 * leads nowhere is an error. */
tg_status tg_posix_resolve(tg_ctx *ctx, tg_arena *arena, const char *path, const char **real,
                           const char **folder);

/* "path: want WHAT, have REASON" with the system's text for an error number. Returns TG_E_IO. */
tg_status tg_posix_fail(tg_ctx *ctx, const char *path, const char *what, int error);

#endif
