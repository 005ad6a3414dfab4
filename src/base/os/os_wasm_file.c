/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_wasm_file.c - files in WebAssembly: read from memory or from the host, saved into its hands.
 *
 * There is no file system to call without waiting for a promise, which C cannot do. So the page
 * puts the bytes of a file under a name before it calls what opens it, or keeps them where it can
 * read at once, and takes the bytes of a save as they come. Reading and saving do not know each
 * other: a page that wants to open what was saved puts it under that name.
 *
 *   files -> [ name | bytes | opens ] -> [ ... ] -> NULL        listed, can be opened
 *            [ name | bytes | opens 1 ]                         replaced or removed while open
 *            [ name | host's handle | opens 1 ]                 of the host, never listed
 */
#include "base/os/os.h"
#include "base/os/os_wasm.h"

/* ------------------------------------------------------------------------------ files in memory */

/* An open file is a pointer to it: reads name an offset, so there is no position to keep. */
struct tg_os_file {
    struct tg_os_file *next;
    size_t self_bytes; /* of this struct with the name behind it */
    char *bytes;       /* of a file in memory */
    uint64_t n_bytes;
    int handle; /* of the host's file; -1: in memory */
    unsigned opens;
    bool listed;
    char name[];
};

static tg_os_file *files;

/* NULL if there is no memory; the name is copied, and there is no content yet. */
static tg_os_file *file_new(const char *name) {
    const size_t name_bytes = strlen(name) + 1;
    const size_t self_bytes = sizeof(tg_os_file) + name_bytes;
    tg_os_file *file = tg_wasm_alloc(self_bytes);
    if (!file) return NULL;
    *file = (tg_os_file) { .self_bytes = self_bytes, .handle = -1 };
    memcpy(file->name, name, name_bytes);
    return file;
}

static void free_unless_needed(tg_os_file *file) {
    if (file->listed || file->opens) return;
    if (file->handle >= 0)
        tg_js_file_close(file->handle);
    else
        tg_wasm_free(file->bytes, (size_t)file->n_bytes);
    tg_wasm_free(file, file->self_bytes);
}

/* The link that leads to the file of that name, or the last one, which leads to NULL. */
static tg_os_file **find(const char *name) {
    tg_os_file **link = &files;
    while (*link && strcmp((*link)->name, name) != 0) link = &(*link)->next;
    return link;
}

bool tg_wasm_file_remove(const char *name) {
    tg_os_file **link = find(name), *file = *link;
    if (!file) return false;
    *link = file->next;
    file->listed = false;
    free_unless_needed(file);
    return true;
}

tg_status tg_wasm_file_put(const char *name, void *bytes, size_t n_bytes) {
    tg_os_file *file = file_new(name);
    if (!file) {
        tg_wasm_free(bytes, n_bytes);
        return TG_E_MEMORY;
    }
    tg_wasm_file_remove(name);
    file->next = files;
    file->bytes = bytes;
    file->n_bytes = n_bytes;
    file->listed = true;
    files = file;
    return TG_OK;
}

/* -------------------------------------------------------------------------------- reading files */

static tg_status open_of_host(tg_ctx *ctx, const char *path, tg_os_file **out) {
    const int handle = tg_js_file_open(path);
    if (handle < 0)
        return tg_fail(ctx, TG_E_IO, "%s: want a file put into memory, have none of that name",
                       path);
    *out = file_new(path);
    if (!*out) {
        tg_js_file_close(handle);
        return tg_fail_memory(ctx, path, sizeof(tg_os_file));
    }
    (*out)->handle = handle;
    (*out)->n_bytes = (uint64_t)tg_js_file_size(handle);
    return TG_OK;
}

tg_status tg_os_file_open(tg_ctx *ctx, const char *path, tg_os_file **out) {
    *out = *find(path);
    if (!*out) TG_TRY(open_of_host(ctx, path, out));
    (*out)->opens++;
    return TG_OK;
}

void tg_os_file_close(tg_os_file *file) {
    if (!file) return;
    file->opens--;
    free_unless_needed(file);
}

uint64_t tg_os_file_bytes(const tg_os_file *file) { return file->n_bytes; }

const char *tg_os_file_path(const tg_os_file *file) { return file->name; }

bool tg_os_file_can_be_mapped(const tg_os_file *file) {
    (void)file;
    return false;
}

tg_status tg_os_file_read(tg_ctx *ctx, const tg_os_file *file, uint64_t offset, void *out,
                          size_t n_bytes) {
    if (offset > file->n_bytes || n_bytes > file->n_bytes - offset)
        return tg_fail(ctx, TG_E_IO,
                       "%s: want %zu bytes at offset %" PRIu64 ", have a file of %" PRIu64 " bytes",
                       file->name, n_bytes, offset, file->n_bytes);
    if (file->handle < 0) {
        memcpy(out, file->bytes + offset, n_bytes);
        return TG_OK;
    }
    const size_t have = tg_js_file_read(file->handle, (double)offset, out, n_bytes);
    if (have == n_bytes) return TG_OK;
    return tg_fail(ctx, TG_E_IO, "%s: want %zu bytes at offset %" PRIu64 ", have %zu of the page",
                   file->name, n_bytes, offset, have);
}

bool tg_os_any_thread_reads(void) { return false; }

/* --------------------------------------------------------------------------------------- saving */

/* A call into JavaScript costs what copying some kilobytes does; a header is written in words. */
#define SAVE_BUFFER_BYTES ((size_t)64 << 10)

struct tg_save {
    tg_ctx *ctx;
    tg_mem mem;
    size_t self_bytes;
    int handle;
    tg_status status; /* the first error */
    uint64_t offset;
    size_t waiting; /* bytes in the buffer */
    char *path;     /* behind the buffer */
    char buffer[SAVE_BUFFER_BYTES];
};

static tg_status refused(tg_ctx *ctx, const char *path, const char *what, int error) {
    return tg_fail(ctx, TG_E_IO, "%s: want %s, have a refusal of the page (error %d)", path, what,
                   error);
}

tg_status tg_save_begin(tg_ctx *ctx, const char *path, tg_save **out) {
    *out = NULL;
    const size_t path_bytes = strlen(path) + 1;
    const size_t self_bytes = sizeof(tg_save) + path_bytes;
    tg_save *save = tg_alloc(&ctx->mem, self_bytes);
    if (!save) return tg_fail_memory(ctx, path, self_bytes);
    save->ctx = ctx;
    save->mem = ctx->mem;
    save->self_bytes = self_bytes;
    save->path = (char *)(save + 1);
    memcpy(save->path, path, path_bytes);
    save->handle = tg_js_save_begin(path);
    if (save->handle < 0) {
        const int error = save->handle;
        tg_free(&ctx->mem, save, self_bytes);
        return refused(ctx, path, "to begin a save", error);
    }
    *out = save;
    return TG_OK;
}

static void hand_out(tg_save *save, const void *bytes, size_t n_bytes) {
    if (save->status || n_bytes == 0) return;
    const int error = tg_js_save_write(save->handle, bytes, n_bytes);
    if (error) save->status = refused(save->ctx, save->path, "to write it", error);
}

static void hand_out_buffer(tg_save *save) {
    hand_out(save, save->buffer, save->waiting);
    save->waiting = 0;
}

tg_status tg_save_write(tg_save *save, const void *bytes, size_t n_bytes) {
    if (n_bytes > SAVE_BUFFER_BYTES - save->waiting) hand_out_buffer(save);
    if (n_bytes >= SAVE_BUFFER_BYTES) {
        hand_out(save, bytes, n_bytes);
    } else if (n_bytes) {
        memcpy(save->buffer + save->waiting, bytes, n_bytes);
        save->waiting += n_bytes;
    }
    if (!save->status) save->offset += n_bytes;
    return save->status;
}

uint64_t tg_save_offset(const tg_save *save) { return save->offset; }

tg_status tg_save_commit(tg_save *save, bool keep_previous) {
    hand_out_buffer(save);
    tg_status status = save->status;
    const int error = tg_js_save_end(save->handle, status == TG_OK, keep_previous);
    if (!status && error) status = refused(save->ctx, save->path, "to finish the save", error);
    const tg_mem mem = save->mem;
    tg_free(&mem, save, save->self_bytes);
    return status;
}

void tg_save_abort(tg_save *save) {
    if (!save) return;
    (void)tg_js_save_end(save->handle, 0, 0); /* nothing is left to be told to anybody */
    const tg_mem mem = save->mem;
    tg_free(&mem, save, save->self_bytes);
}

/* Nothing is on record here: a page's files are kept apart by whoever names them. */
void tg_os_seen_begin(tg_ctx *ctx, tg_os_seen *seen) { tg_buf_init(&seen->files, &ctx->mem); }
void tg_os_seen_end(tg_ctx *ctx) { (void)ctx; }
void tg_os_own(tg_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
}
tg_status tg_os_want_unseen(tg_ctx *ctx, const char *path) {
    (void)ctx;
    (void)path;
    return TG_OK;
}

void tg_os_file_stamp(const tg_os_file *file, uint64_t out[TG_OS_STAMP]) {
    (void)file;
    memset(out, 0, TG_OS_STAMP * sizeof *out);
}

tg_status tg_os_map_new(tg_ctx *ctx, const char *path, tg_os_map *out) {
    *out = (tg_os_map) { .data = NULL };
    return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: want to map it, have names alone", path);
}

void tg_os_map_free(tg_os_map *map) { *map = (tg_os_map) { .data = NULL }; }

void tg_os_map_load(const void *at, size_t bytes) {
    (void)at;
    (void)bytes;
}
void tg_os_map_drop(const tg_os_map *map) { (void)map; }

bool tg_os_map_broken(const tg_os_map *map) {
    (void)map;
    return false;
}

/* ------------------------------------------------------------------------------- paths, folders */

tg_os_kind tg_os_kind_of(const char *path) {
    if (*find(path)) return TG_OS_FILE;
    const int handle = tg_js_file_open(path);
    if (handle < 0) return TG_OS_NONE;
    tg_js_file_close(handle);
    return TG_OS_FILE;
}

tg_status tg_os_remove(tg_ctx *ctx, const char *path) {
    if (tg_wasm_file_remove(path)) return TG_OK;
    return tg_fail(ctx, TG_E_IO, "%s: want to remove it, have no file of that name", path);
}

tg_status tg_os_make_folder(tg_ctx *ctx, const char *path) {
    return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: want to make a folder, have names alone", path);
}
