/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os.h - all that the library wants from an operating system, and nothing of how.
 *
 * os_posix*.c implements it and is the only place with system calls; another system gets files of
 * its own, as os_wasm*.c are for WebAssembly. Every function that can fail returns a tg_status, and
 * its message names the path, what was wanted, and the system's reason.
 */
#ifndef TG_BASE_OS_H
#define TG_BASE_OS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/libc.h"

/* --------------------------------------------------------------------------------------- memory */

/* The system's heap as a tg_alloc_fn; user is not used. */
void *tg_os_heap(void *user, void *ptr, size_t old_bytes, size_t new_bytes);

/* Pages that are zero but for the first *dirty_bytes, which may hold anything; with huge pages
 * asked for or declined; NULL if there are none. 2 MiB aligned, and a page in WebAssembly. bytes is
 * rounded up to whole pages by both. */
void *tg_os_pages_new(size_t bytes, bool huge, size_t *dirty_bytes);
void tg_os_pages_free(void *pages, size_t bytes);
size_t tg_os_page_bytes(void);
/* Of memory of tg_os_pages_new that nothing was written to: small pages from now on, which come one
 * by one as they are used. And the other way about, of what may be in use: the huge pages that lie
 * wholly within it become such, as far as the system has some. Not in WebAssembly. */
enum { TG_OS_HUGE_BYTES = 2 << 20 };
void tg_os_pages_split(void *pages, size_t bytes);
void tg_os_pages_join(void *pages, size_t bytes);

typedef struct tg_os_memory {
    uint64_t total_bytes;     /* of the machine, or the control group's limit if that is less */
    uint64_t available_bytes; /* without swapping, and within the limit */
    uint64_t limit_bytes;     /* of the control group; 0: none */
} tg_os_memory;
tg_status tg_os_memory_get(tg_ctx *ctx, tg_os_memory *out);

/* Most memory that this process ever had resident. */
uint64_t tg_os_peak_rss_bytes(void);

/* ----------------------------------------------------------------------------------- processors */

typedef struct tg_os_cpus {
    unsigned online;   /* processors of the machine */
    unsigned affinity; /* those that this process may run on */
    double quota;      /* processors' worth of time that the control group grants; 0: no limit */
    unsigned usable;   /* min(affinity, quota rounded up), at least 1: the default thread count */
} tg_os_cpus;
void tg_os_cpus_get(tg_os_cpus *out);

/* "AMD EPYC ..."; "unknown" if the system does not say. Always terminated. */
void tg_os_cpu_name(char *out, size_t out_bytes);

/* Hashing with instructions that are made for it; false, and nothing done, where there are none.
 * For base/codec/sha256.c, n_blocks of 64 bytes into a state; and for base/codec/crc.c. */
bool tg_os_sha256(uint32_t state[8], const uint8_t *blocks, size_t n_blocks);
bool tg_os_crc32c(uint32_t *crc, const void *bytes, size_t n_bytes);

/* -------------------------------------------------------------------------------- reading files */

/* An open regular file. Reads name an offset and share no position: several threads may read. */
typedef struct tg_os_file tg_os_file;

/*
 * Regular files only: a folder, FIFO, socket or device is refused by name, and opening never blocks
 * (a FIFO without a writer would). TG_E_IO, TG_E_MEMORY; *out is NULL then.
 */
tg_status tg_os_file_open(tg_ctx *ctx, const char *path, tg_os_file **out);
void tg_os_file_close(tg_os_file *file); /* NULL is fine */

uint64_t tg_os_file_bytes(const tg_os_file *file);   /* when it was opened */
const char *tg_os_file_path(const tg_os_file *file); /* as given; lives as long as the file */

/* Exactly n_bytes from offset, or TG_E_IO: a file that became shorter is an error, not a fault. */
tg_status tg_os_file_read(tg_ctx *ctx, const tg_os_file *file, uint64_t offset, void *out,
                          size_t n_bytes);
/* Whether any thread may read a file; if not, only the one that opened it: a page's files belong to
 * one of its workers. */
bool tg_os_any_thread_reads(void);

/* What tells a file from another, and from itself after a change: device, number, length, time of
 * the last change in ns. Zeros where the system does not say. */
enum { TG_OS_STAMP = 4 };
void tg_os_file_stamp(const tg_os_file *file, uint64_t out[TG_OS_STAMP]);

/*
 * A file as memory that may be read and not written. If the file shrinks later, what is missing
 * reads as zeros, and the map is broken: ask before results are believed. TG_E_UNSUPPORTED in
 * WebAssembly.
 */
typedef struct tg_os_map {
    void *data; /* at the start of a page; NULL: no map */
    size_t bytes;
    void *slot;
} tg_os_map;
tg_status tg_os_map_new(tg_ctx *ctx, const char *path, tg_os_map *out);
/* The same of an open file, which may be closed then: the bytes that it had when it was opened. */
tg_status tg_os_map_file(tg_ctx *ctx, const tg_os_file *file, tg_os_map *out);
void tg_os_map_free(tg_os_map *map); /* zeros are fine */
bool tg_os_map_broken(const tg_os_map *map);
/* Advice: bytes of a map are about to be read; what was read need not stay with the process. */
void tg_os_map_load(const void *at, size_t bytes);
void tg_os_map_drop(const tg_os_map *map);

/* Not in WebAssembly, and not where a file is in memory already. */
bool tg_os_file_can_be_mapped(const tg_os_file *file);

/*
 * A file in memory, which has the path "memory:NAME" for whatever reads files in this process; a
 * name may have folders in it. bytes are borrowed. E_ARG: there is one of that name. Nothing that
 * reads it may be open when it is freed. Not in WebAssembly, whose files are such (os_wasm.h).
 */
typedef struct tg_os_memory_file tg_os_memory_file;
tg_status tg_os_memory_file_new(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                                tg_os_memory_file **out);
const char *tg_os_memory_file_path(const tg_os_memory_file *file);
void tg_os_memory_file_free(tg_os_memory_file *file); /* NULL is fine */

/* A whole file of at most max_bytes, appended to a buffer. */
tg_status tg_os_read_all(tg_ctx *ctx, const char *path, size_t max_bytes, tg_buf *out);

/* -------------------------------------------------------------------------------- saving a file */

/*
 * A save is atomic: at every instant, also across a crash or a power cut, `path` is the old whole
 * file or the new whole file.
 *
 *   begin    remove leftovers of dead saves;  create  path.tmp-<pid>  beside path, and lock it
 *   write    buffered; the first error sticks
 *   commit   write the rest, fsync the temporary file, close it
 *            keep_previous:  link path -> path.prev.tmp-<pid>, rename that -> path.prev
 *                            (path exists throughout; where hard links are not supported, path is
 *                            renamed to path.prev, and for an instant only path.prev exists)
 *            rename path.tmp-<pid> -> path, fsync the folder
 *   abort    remove path.tmp-<pid>
 *
 * A leftover is known by its lock being free, since process ids are reused and are not unique
 * across containers; where files cannot be locked, by its process being gone. After an error of
 * fsync nothing in the page cache can be trusted: the temporary file is dropped, never retried.
 * A symbolic link is followed: the file that it names is replaced. Permissions are kept. A file
 * that the context has on record as read (tg_os_seen) is refused, E_ARG, and so is a path.prev
 * that would be replaced.
 */
typedef struct tg_save tg_save;

/* ctx is remembered for the calls that follow. *out is NULL on failure. */
tg_status tg_save_begin(tg_ctx *ctx, const char *path, tg_save **out);

tg_status tg_save_write(tg_save *save, const void *bytes, size_t n_bytes);

/* Bytes written so far. */
uint64_t tg_save_offset(const tg_save *save);

/* For a file that grows, such as a log: it takes its name now, as a commit would do, and stays
 * open. From then on each write goes out at once, and both commit and abort only close it. */
tg_status tg_save_publish(tg_save *save, bool keep_previous);

/*
 * Frees save in any case. On an error, path still holds the old file, with one exception that the
 * message names: if only the last step failed (fsync of the folder), path is the new file, but a
 * power cut may bring the old one back.
 */
tg_status tg_save_commit(tg_save *save, bool keep_previous);
void tg_save_abort(tg_save *save); /* NULL is fine */

/* A FIFO that somebody reads, or a device: written to as it is. E_IO for others, and at once for a
 * FIFO that nobody reads. */
typedef struct tg_os_stream tg_os_stream;
tg_status tg_os_stream_new(tg_ctx *ctx, const char *path, tg_os_stream **out);
tg_status tg_os_stream_write(tg_ctx *ctx, tg_os_stream *stream, const void *bytes, size_t n_bytes);
void tg_os_stream_free(tg_os_stream *stream); /* NULL is fine */

/* Removes the temporary files of saves that are under way. For a signal handler that ends the
 * process at once, and for nothing else. */
void tg_os_drop_temps(void);

/*
 * The same of a folder of files: written beside path, and swapped with it as a whole.
 *
 *   begin    remove leftovers;  make the folder  path.tmp-<pid>  and lock it
 *   ..       files are saved into tg_save_folder_temp(), and folders one level deep
 *   commit   fsync the folder;  path.prev -> path.prev.tmp-<pid>;
 *            exchange path and path.tmp-<pid> (where that can't be: two renames);
 *            the old one -> path.prev, remove path.prev.tmp-<pid>;  fsync the folder around
 *   abort    remove path.tmp-<pid>
 *
 * If nothing, or an empty folder, is at path, it is replaced by one rename, and there is no .prev.
 */
typedef struct tg_save_folder tg_save_folder;
tg_status tg_save_folder_begin(tg_ctx *ctx, const char *path, tg_save_folder **out);
const char *tg_save_folder_temp(const tg_save_folder *folder);
/* Frees folder in any case. On an error path still holds what it held, as far as the message does
 * not say otherwise. */
tg_status tg_save_folder_commit(tg_save_folder *folder);
void tg_save_folder_abort(tg_save_folder *folder); /* NULL is fine */

/* One call for each name in a folder, "." and ".." left out; false ends the walk. */
typedef bool (*tg_os_name_fn)(void *user, const char *name);
tg_status tg_os_each_name(tg_ctx *ctx, const char *folder, tg_os_name_fn each, void *user);

/* -------------------------------------------------- files that are read, and who works on a file
 */

/* Which files a context has opened for reading since it was told to keep this record, and which
 * files it has written meanwhile: those are its own. Records nest, and all of them are kept. */
typedef struct tg_os_seen {
    tg_buf files; /* u64 device, u64 number, u64 own of each */
    struct tg_os_seen *outer;
} tg_os_seen;
void tg_os_seen_begin(tg_ctx *ctx, tg_os_seen *seen);
void tg_os_seen_end(tg_ctx *ctx); /* of the last begin; fine without one */
/* path and path.prev count as written by the context: it goes on with what they hold. */
void tg_os_own(tg_ctx *ctx, const char *path);
/* E_ARG if path was read and is not the context's own, by whatever name or link. */
tg_status tg_os_want_unseen(tg_ctx *ctx, const char *path);

/* The name that a save of path keeps the old file under: links of path are followed. */
tg_status tg_os_previous(tg_ctx *ctx, const char *path, char *out, size_t out_bytes);

/*
 * One process at a time works on an output: PATH.lock holds its number for those that come later,
 * and the kernel drops the lock when the process ends, however it ends. E_IO: another one has it.
 * Where files cannot be locked, nothing is.
 */
typedef struct tg_os_lock tg_os_lock;
tg_status tg_os_lock_new(tg_ctx *ctx, const char *path, tg_os_lock **out);
void tg_os_lock_free(tg_os_lock *lock); /* NULL is fine */
/* E_IO if another process has the lock of path, or of PATH where path is PATH.best, PATH.svg or
 * what is kept of one of them (.prev): all of these belong to a run. */
tg_status tg_os_want_unlocked(tg_ctx *ctx, const char *path);

/* ------------------------------------------------------------------------------- paths, folders */

typedef enum tg_os_kind { TG_OS_NONE, TG_OS_FILE, TG_OS_FOLDER, TG_OS_OTHER } tg_os_kind;
/* What a path names, links followed; TG_OS_NONE also if it cannot be seen. */
tg_os_kind tg_os_kind_of(const char *path);

tg_status tg_os_remove(tg_ctx *ctx, const char *path); /* one file; a missing one is an error */
tg_status tg_os_make_folder(tg_ctx *ctx, const char *path); /* an existing folder is fine */

/* ---------------------------------------------------------------- threads, for base/thread.c only
 */

typedef struct tg_os_thread {
    uintptr_t handle;
} tg_os_thread;

/* All signals are blocked in the new thread. False if the system has no room for one. */
bool tg_os_thread_start(tg_os_thread *thread, size_t stack_bytes, void *(*fn)(void *), void *arg);
void tg_os_thread_join(tg_os_thread thread);

/* Sleeps while *word == expected; may also return for no reason. Wakes every sleeper of a word. */
void tg_os_wait(_Atomic uint32_t *word, uint32_t expected);
void tg_os_wake_all(_Atomic uint32_t *word);

/* One breath inside a spinning loop: tells the processor that this thread waits. */
void tg_os_pause(void);

/* ---------------------------------------------------------------------------- faults, for tests */

/*
 * When set, it is asked before each operation on a file or on pages, with the operation's name and
 * the path ("" for pages), and answers 0 to let it happen, an errno value to fail it with, or
 * TG_FAULT_SHORT to make a read or write transfer half of what was asked. Names: open fstat pread
 * mmap write fsync close link rename unlink mkdir lock opendir pages thread. NULL in normal life. A
 * test sets it before threads start.
 */
#define TG_FAULT_SHORT (-1)
typedef int (*tg_os_fault_fn)(const char *operation, const char *path);
extern tg_os_fault_fn tg_os_fault;

#endif
