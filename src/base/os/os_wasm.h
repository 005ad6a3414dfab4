/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_wasm.h - the two-way street between a WebAssembly module and the JavaScript around it.
 *
 * The module imports its memory ("env", "memory") and the functions of TG_IMPORT (module "tinygpt",
 * the name without tg_js_), and exports, beside all of tinygpt.h, those of the second half.
 * Pointers and sizes are numbers into that memory, and BigInts in the 64-bit build, as int64_t is
 * everywhere; a pointer of a 32-bit build comes out of a call signed: `p >>> 0` makes it an
 * address. Text is UTF-8 with a zero behind it unless a length is given. A view of the memory is
 * void after any call that may have grown it.
 *
 * Memory
 *     new WebAssembly.Memory({ initial: 256 })                              without threads
 *     new WebAssembly.Memory({ initial: 256, maximum, shared: true })       -mt: maximum <= 65536
 *     new WebAssembly.Memory({ initial: 256n, maximum, shared: true,        -mt-64: a BigInt, at
 *                              address: 'i64' })                            most 262144n (16 GiB)
 *   256 pages of 64 KiB are what the modules ask for. What is granted as maximum is the host's
 *   affair; tg_wasm_machine_set tells the module. All later memory comes from memory.grow; when
 *   that is refused, the call that needed it ends in TG_E_MEMORY.
 *
 * Start of the engine's own instance, in a worker (a page's main thread may not sleep, and the
 * module sleeps while it waits for its threads) or in Node:
 *     instantiate(module, { env: { memory }, tinygpt: imports })
 *     c.tg_wasm_machine_set(maximum in bytes, navigator.hardwareConcurrency)
 *     -mt: threads are made, see below
 *     c.tg_context_new(...)           threads 0 takes all that were made, up to the processors
 *
 * Threads (-mt), for each of the n - 1 that are to help the caller:
 *     engine   const thread = c.tg_wasm_thread_new()        0: no memory
 *              worker.postMessage({ module, memory, thread })
 *     worker   instantiate the same module with the same memory; post "ready";
 *              try { c.tg_wasm_thread_main(thread) } catch (e) { c.tg_wasm_thread_died(thread) }
 *     engine   awaits every "ready" before its next call into C: a nested worker does not start
 *              while its parent sleeps
 *   tg_wasm_thread_main does not return: the thread sleeps in memory.atomic.wait32 until a pool
 *   takes it, works, and sleeps again when that pool is freed. It sees no messages; a thread ends
 *   when its worker is terminated, which is for the end of the whole engine alone. In a thread's
 *   instance, now_ms and assert_failed are the only imports that are ever called: the others may be
 *   any function. Its start function finds the data in place and changes nothing; the stack pointer
 *   and the thread-local storage, which are the instance's own, are set by tg_wasm_thread_main, out
 *   of one piece that tg_wasm_thread_new made:
 *
 *       | stack, grows down <---| thread | thread-local storage |
 *                               ^ what tg_wasm_thread_new answers
 *
 *   A thread that traps leaves its region unfinished. tg_wasm_thread_died makes everybody who waits
 *   trap within a quarter of a second, the engine too, so that its call ends in an exception and
 *   the host can build everything anew.
 *
 * The rule for the heap: it is not guarded, so only the engine's instance allocates, and only
 * outside of regions. A thread that tries traps.
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
 * Files that the host keeps: a text of gigabytes, a model in the browser's storage. Asked for names
 * that tg_wasm_file_put did not bring. open answers a handle >= 0, or a negative number if there is
 * no such file; it may be called several times for one name. The bytes of an open file do not
 * change. read answers how many bytes it copied to `to`; fewer than n is an error of the device.
 * All of them answer at once: nothing can be awaited.
 */
TG_IMPORT("file_open") int tg_js_file_open(const char *name);
TG_IMPORT("file_size") double tg_js_file_size(int handle);
TG_IMPORT("file_read") size_t tg_js_file_read(int handle, double offset, void *to, size_t n_bytes);
TG_IMPORT("file_close") void tg_js_file_close(int handle);

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

/* What the module cannot ask: how far its memory may grow, and how many processors there are. May
 * be left out: then the memory is what an address reaches, and the threads that were made count as
 * processors. */
TG_API void tg_wasm_machine_set(double memory_max_bytes, unsigned cpus);

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

/* The grammar that tg_stories expands: data/stories.txt with a zero behind it, from tg_wasm_alloc,
 * never freed. Without it tg_stories answers E_UNSUPPORTED. */
TG_API void tg_wasm_stories_set(const char *text);

/* The test cases that tg_check_kernels runs, from the file tinygpt-*.cases that was built with this
 * module; bytes are read during the call. E_FORMAT: they are another module's, or cut short.
 * Without them tg_check_kernels answers E_UNSUPPORTED. */
TG_API tg_status tg_wasm_cases_set(const void *bytes, size_t n_bytes);

/* Threads, in the -mt modules alone; how they are used is said above. */
typedef struct tg_wasm_thread tg_wasm_thread;
TG_API tg_wasm_thread *tg_wasm_thread_new(void);
TG_API void tg_wasm_thread_main(tg_wasm_thread *self);
TG_API void tg_wasm_thread_died(tg_wasm_thread *self);

/* ------------------------------------------------------------- between the files of os_wasm*.c */

/* Of the threads made: in the modules without threads there are none. */
unsigned tg_wasm_thread_count(void);
/* Whether the caller is one of them, and so must not allocate. */
bool tg_wasm_in_thread(void);

#endif
