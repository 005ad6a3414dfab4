/*
 * os_posix.h - what the os_posix*.c files share. Nobody else includes it.
 */
#ifndef TG_BASE_OS_POSIX_H
#define TG_BASE_OS_POSIX_H

#include "base/os.h"

#include <sys/types.h>

/* Asks the fault hook: 0, or the error number that the operation has to fail with. */
int tg_posix_fault(const char *operation, const char *path);

/* The same for transfers, where TG_FAULT_SHORT halves *n_bytes (leaving at least one) instead. */
int tg_posix_fault_transfer(const char *operation, const char *path, size_t *n_bytes);

/* open(2) for this process alone, repeated while interrupted. -1: *error says why. */
int tg_posix_open(const char *path, int flags, int *error);

int tg_posix_file_fd(const tg_os_file *file);

/* "a folder", "a FIFO", ... for the mode of a file that is not a regular one. */
const char *tg_posix_kind_name(mode_t mode);

/* "path: want WHAT, have REASON" with the system's text for an error number. Returns TG_E_IO. */
tg_status tg_posix_fail(tg_ctx *ctx, const char *path, const char *what, int error);

#endif
