/*
 * os_wasm.h - the two-way street between a WebAssembly module and the JavaScript around it.
 *
 * The module imports the functions of TG_IMPORT (module "tinygpt", the name without tg_js_) and
 * exports, beside all of tinygpt.h, those of the second half. Pointers and sizes are numbers into
 * the exported memory, int64_t is a BigInt, text is UTF-8 with a zero behind it unless a length is
 * given. A view of the memory is void after any call that may have grown it.
 *
 * One thread: nothing here, and nothing in os_wasm*.c, is guarded.
 */
#ifndef TG_BASE_OS_WASM_H
#define TG_BASE_OS_WASM_H

#include "base/libc.h"
#include "tinygpt.h"

/* ------------------------------------------------------------------------------------- imported */

#define TG_IMPORT(name) __attribute__((import_module("tinygpt"), import_name(name)))

/* Clocks, as time.h wants them: performance.now() and Date.now() / 1000. */
TG_IMPORT("now_ms") double tg_js_now_ms(void);
TG_IMPORT("unix_s") double tg_js_unix_s(void);

/* Shows a broken invariant; the module traps when it returns. */
TG_IMPORT("assert_failed")
void tg_js_assert_failed(const char *file, int line, const char *condition);

/*
 * Where saved bytes go. begin answers a handle >= 0, the others 0; anything else is an error number
 * for the message. Bytes come in order and are borrowed for the call. end with commit 0 drops them;
 * with commit 1 they become the file, and keep_previous keeps the one before as PATH.prev. What the
 * host makes visible must be the old whole file or the new whole file, as os.h promises.
 */
TG_IMPORT("save_begin") int tg_js_save_begin(const char *path);
TG_IMPORT("save_write") int tg_js_save_write(int handle, const void *bytes, size_t n_bytes);
TG_IMPORT("save_end") int tg_js_save_end(int handle, int commit, int keep_previous);

/* ------------------------------------------------------------------------------------- exported */

/* The heap for JavaScript: 16-byte aligned, not zeroed, 0 if there is no memory. free wants the
 * size that was asked for. */
TG_API void *tg_wasm_alloc(size_t bytes);
TG_API void tg_wasm_free(void *ptr, size_t bytes);

/*
 * Files live in memory, under any name. put takes over bytes (from tg_wasm_alloc, n_bytes long),
 * whether it succeeds or not, and replaces a file of that name; name is copied. A file that is open
 * while it is replaced or removed stays readable until it is closed.
 */
TG_API tg_status tg_wasm_file_put(const char *name, void *bytes, size_t n_bytes);
TG_API bool tg_wasm_file_remove(const char *name); /* false: there is none of that name */

#endif
