/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_os_wasm.c - memory, files and threads of the WebAssembly modules, natively: the same files,
 * over a linear memory that is mapped at low addresses, a host made of arrays, and futexes.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* The library has functions of these names, too. */
#define tg_os_heap               wasm_os_heap
#define tg_os_page_bytes         wasm_os_page_bytes
#define tg_os_pages_new          wasm_os_pages_new
#define tg_os_pages_free         wasm_os_pages_free
#define tg_os_memory_get         wasm_os_memory_get
#define tg_os_peak_rss_bytes     wasm_os_peak_rss_bytes
#define tg_os_sha256             wasm_os_sha256
#define tg_os_crc32c             wasm_os_crc32c
#define tg_time_ms               wasm_time_ms
#define tg_time_unix             wasm_time_unix
#define tg_os_cpus_get           wasm_os_cpus_get
#define tg_os_cpu_name           wasm_os_cpu_name
#define tg_assert_failed         wasm_assert_failed
#define tg_os_file_open          wasm_os_file_open
#define tg_os_file_close         wasm_os_file_close
#define tg_os_file_bytes         wasm_os_file_bytes
#define tg_os_file_path          wasm_os_file_path
#define tg_os_file_read          wasm_os_file_read
#define tg_os_file_can_be_mapped wasm_os_file_can_be_mapped
#define tg_os_file_stamp         wasm_os_file_stamp
#define tg_os_any_thread_reads   wasm_os_any_thread_reads
#define tg_os_read_all           wasm_os_read_all
#define tg_save_begin            wasm_save_begin
#define tg_save_write            wasm_save_write
#define tg_save_offset           wasm_save_offset
#define tg_save_commit           wasm_save_commit
#define tg_save_abort            wasm_save_abort
#define tg_os_seen_begin         wasm_os_seen_begin
#define tg_os_seen_end           wasm_os_seen_end
#define tg_os_own                wasm_os_own
#define tg_os_want_unseen        wasm_os_want_unseen
#define tg_os_map_new            wasm_os_map_new
#define tg_os_map_free           wasm_os_map_free
#define tg_os_map_load           wasm_os_map_load
#define tg_os_map_drop           wasm_os_map_drop
#define tg_os_map_broken         wasm_os_map_broken
#define tg_os_kind_of            wasm_os_kind_of
#define tg_os_remove             wasm_os_remove
#define tg_os_make_folder        wasm_os_make_folder
#define tg_os_thread_start       wasm_os_thread_start
#define tg_os_thread_join        wasm_os_thread_join
#define tg_os_wait               wasm_os_wait
#define tg_os_wake_all           wasm_os_wake_all
#define tg_os_pause              wasm_os_pause

/* ------------------------------------------------------------------------------- the machine below
 */

/* Addresses are numbers into the memory, so it must lie where a module's may. */
enum { BASE_PAGES = 0x2000, FIRST_PAGES = 4, MAX_PAGES = 160, PAGE_BYTES = 65536 };
static size_t n_pages = FIRST_PAGES, grow_until = MAX_PAGES;

/* __heap_base is what the Makefile tells the linker: HEAP_BASE. */
enum { HEAP_BASE = 0x20000028 };

static void map_memory(void) {
    void *const want = (void *)((uintptr_t)BASE_PAGES * PAGE_BYTES);
    void *const have = mmap(want, (size_t)MAX_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (have != want) fail_msg("the memory of the module cannot be mapped: errno %d", errno);
}

static size_t memory_size(int which) {
    (void)which;
    return BASE_PAGES + n_pages;
}
static size_t memory_grow(int which, size_t pages) {
    (void)which;
    const size_t before = memory_size(0);
    if (pages > grow_until - n_pages) return SIZE_MAX;
    n_pages += pages;
    return before;
}
#define __builtin_wasm_memory_size memory_size
#define __builtin_wasm_memory_grow memory_grow

/* A trap ends the call; each thread has its own way out. */
static _Thread_local jmp_buf trap_exit;
static _Noreturn void trap(void) { longjmp(trap_exit, 1); }
#define __builtin_trap trap
#define TRAPS(call)    (setjmp(trap_exit) ? true : ((void)(call), false))

#define __builtin_wasm_tls_align() ((size_t)32)
#define __builtin_wasm_tls_size()  ((size_t)48)
static int wait32(int *word, int expected, int64_t ns) {
    const struct timespec nap = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = ns % 1000000000 };
    return (int)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, ns < 0 ? NULL : &nap, NULL,
                        0);
}
static int notify(int *word, unsigned most) {
    return (int)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most > INT32_MAX ? INT32_MAX : most,
                        NULL, NULL, 0);
}
#define __builtin_wasm_memory_atomic_wait32 wait32
#define __builtin_wasm_memory_atomic_notify notify

/* Both files have a static function of this name. The assembler of the modules is another one, and
 * what is written in it is not called here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "base/os/os_wasm.c"
#define hand_out file_hand_out
#include "base/os/os_read_all.c"
#include "base/os/os_wasm_file.c"
#undef hand_out
#define __asm__(text) _Static_assert(1, "not of this machine")
#define naked         noinline
#include "base/os/os_wasm_thread.c"
#undef naked
#undef __asm__
#pragma GCC diagnostic pop

static _Thread_local void *storage_of_thread;
void __wasm_init_tls(void *storage) { storage_of_thread = storage; }

/* ---------------------------------------------------------------------------------------- the host
 */

static double now_ms = 12.5;
double tg_js_now_ms(void) { return now_ms; }
double tg_js_unix_s(void) { return 1700000000.9; }

static char asserted[64];
void tg_js_assert_failed(const char *file, int line, const char *condition) {
    snprintf(asserted, sizeof asserted, "%s:%d %s", file, line, condition);
}

/* One file that the host keeps. A read past short_at gives fewer bytes. */
static struct {
    const char *name, *bytes;
    int opens, closes;
    size_t short_at;
} host = { .name = "host.bin", .bytes = "0123456789", .short_at = 10 };
int tg_js_file_open(const char *name) {
    if (strcmp(name, host.name) != 0) return -2;
    host.opens++;
    return 7;
}
double tg_js_file_size(int handle) {
    assert_int_equal(handle, 7);
    return 10;
}
size_t tg_js_file_read(int handle, double offset, void *to, size_t n_bytes) {
    assert_int_equal(handle, 7);
    const size_t at = (size_t)offset,
                 n = at + n_bytes > host.short_at ? host.short_at - at : n_bytes;
    memcpy(to, host.bytes + at, n);
    return n;
}
void tg_js_file_close(int handle) {
    assert_int_equal(handle, 7);
    host.closes++;
}

static struct {
    char path[64];
    char bytes[300000];
    size_t n, calls;
    int begin_answer, write_answer, end_answer, committed, kept;
} sink;
int tg_js_save_begin(const char *path) {
    snprintf(sink.path, sizeof sink.path, "%s", path);
    sink.n = sink.calls = 0;
    sink.committed = sink.kept = -1;
    return sink.begin_answer;
}
int tg_js_save_write(int handle, const void *bytes, size_t n_bytes) {
    assert_int_equal(handle, sink.begin_answer);
    memcpy(sink.bytes + sink.n, bytes, n_bytes);
    sink.n += n_bytes;
    sink.calls++;
    return sink.write_answer;
}
int tg_js_save_end(int handle, int commit, int keep_previous) {
    assert_int_equal(handle, sink.begin_answer);
    sink.committed = commit;
    sink.kept = keep_previous;
    return sink.end_answer;
}

static tg_ctx ctx;

/* As a module begins: nothing was handed out, and there are no files. */
static void fresh_memory(void) {
    memset((void *)(uintptr_t)HEAP_BASE, 0, n_pages * PAGE_BYTES - HEAP_BASE % PAGE_BYTES);
    memset(&heap, 0, sizeof heap);
    n_pages = FIRST_PAGES;
    files = NULL;
}

static void fresh_context(void) {
    static const tg_mem mem = { wasm_os_heap, NULL };
    tg_ctx_init(&ctx, &mem, NULL, NULL);
}

/* ------------------------------------------------------------------------------------------ memory
 */

/* What is handed out lies in the memory, is aligned, meets nothing else, and keeps what is written.
 */
typedef struct piece {
    unsigned char *at;
    size_t bytes;
    unsigned char mark;
} piece;

static void check_piece(const piece *p) {
    for (size_t i = 0; i < p->bytes; i++)
        if (p->at[i] != p->mark) fail_msg("a piece of %zu bytes was written over", p->bytes);
}

static void take_piece(piece *p, size_t bytes, unsigned char mark) {
    p->at = p->at ? wasm_os_heap(NULL, p->at, p->bytes, bytes) : wasm_os_heap(NULL, NULL, 0, bytes);
    if (bytes == 0) assert_null(p->at);
    if (!p->at) {
        p->bytes = 0;
        return;
    }
    assert_int_equal((uintptr_t)p->at % 16, 0);
    assert_true((uintptr_t)p->at >= HEAP_BASE &&
                (uintptr_t)p->at + bytes <= memory_size(0) * PAGE_BYTES);
    for (size_t i = 0; i < (bytes < p->bytes ? bytes : p->bytes); i++)
        assert_int_equal(p->at[i], p->mark);
    *p = (piece) { p->at, bytes, mark };
    memset(p->at, mark, bytes);
}

static void heap_keeps_what_it_gave(void **state) {
    (void)state;
    fresh_memory();
    piece pieces[64] = { { NULL, 0, 0 } };
    uint64_t x = 88172645463325252u;
    for (int turn = 0; turn < 6000; turn++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        piece *p = &pieces[x % 64];
        const size_t most = x >> 8 & 7 ? 1100 : 70000, bytes = (x >> 12) % most;
        check_piece(p);
        take_piece(p, x >> 40 & 3 ? bytes : 0, (unsigned char)turn);
    }
    for (size_t i = 0; i < 64; i++) {
        check_piece(&pieces[i]);
        take_piece(&pieces[i], 0, 0);
    }
    assert_int_equal(heap.used_bytes, 0);
}

/* Freed neighbours become one range again: the memory does not grow for what it has. */
static void ranges_are_joined(void **state) {
    (void)state;
    fresh_memory();
    void *three[3];
    for (int i = 0; i < 3; i++) three[i] = tg_wasm_alloc(100000);
    const size_t before = n_pages;
    tg_wasm_free(three[0], 100000);
    tg_wasm_free(three[2], 100000);
    tg_wasm_free(three[1], 100000);
    void *one = tg_wasm_alloc(300000);
    assert_ptr_equal(one, three[0]);
    assert_int_equal(n_pages, before);
    /* In place, and the rest is free again at once. */
    assert_ptr_equal(wasm_os_heap(NULL, one, 300000, 150000), one);
    void *rest = tg_wasm_alloc(140000);
    assert_int_equal((char *)rest - (char *)one, 150000);
    tg_wasm_free(rest, 140000);
    tg_wasm_free(one, 150000);
    assert_int_equal(heap.used_bytes, 0);
}

/* A small piece that was freed is the next of its size; runs are used up to their ends. */
static void small_pieces_come_back(void **state) {
    (void)state;
    fresh_memory();
    void *a = tg_wasm_alloc(40), *b = tg_wasm_alloc(33);
    assert_ptr_not_equal(a, b);
    tg_wasm_free(a, 40);
    assert_ptr_equal(tg_wasm_alloc(48), a);
    tg_wasm_free(a, 48);
    tg_wasm_free(b, 33);
    void *none = tg_wasm_alloc(0);
    assert_non_null(none);
    tg_wasm_free(none, 0);
    const size_t before = n_pages;
    void *many[200];
    for (int i = 0; i < 200; i++) many[i] = tg_wasm_alloc(1000);
    assert_true((n_pages - before) * PAGE_BYTES <= 200 * 1008 + 2 * PAGE_BYTES);
    for (int i = 0; i < 200; i++) tg_wasm_free(many[i], 1000);
    assert_int_equal(heap.used_bytes, 0);
}

/* The page's limit, or the engine's refusal: no memory, and all else as it was. */
static void refused_memory_is_null(void **state) {
    (void)state;
    fresh_memory();
    grow_until = n_pages;
    void *first = tg_wasm_alloc(1000);
    const size_t used = heap.used_bytes;
    assert_null(tg_wasm_alloc((size_t)MAX_PAGES * PAGE_BYTES));
    assert_null(tg_wasm_alloc(SIZE_MAX));
    assert_null(tg_wasm_alloc(SIZE_MAX - 15));
    size_t dirty;
    assert_null(wasm_os_pages_new(SIZE_MAX - 3, false, &dirty));
    assert_int_equal(heap.used_bytes, used);
    grow_until = MAX_PAGES;
    tg_wasm_machine_set((double)(BASE_PAGES + n_pages + 1) * (double)PAGE_BYTES, 0);
    assert_null(tg_wasm_alloc((size_t)2 * PAGE_BYTES + (n_pages - 1) * PAGE_BYTES));
    tg_wasm_machine_set(1e300, 0);
    assert_int_equal(machine.pages_max, 262144);
    tg_wasm_free(first, 1000);
}

/* Pages are aligned; what was never used is zero beyond what is said to be dirty. */
static void pages_are_clean_where_they_say(void **state) {
    (void)state;
    fresh_memory();
    void *low = tg_wasm_alloc(5000);
    for (int turn = 0; turn < 3; turn++) {
        size_t dirty = SIZE_MAX;
        unsigned char *pages = wasm_os_pages_new(3 * PAGE_BYTES - 100, true, &dirty);
        assert_int_equal((uintptr_t)pages % PAGE_BYTES, 0);
        assert_true(dirty <= 3 * PAGE_BYTES);
        for (size_t i = dirty; i < 3 * PAGE_BYTES; i++) assert_int_equal(pages[i], 0);
        if (turn > 0) assert_int_equal(dirty, 3 * PAGE_BYTES);
        memset(pages, 0xee, 3 * PAGE_BYTES - 100);
        wasm_os_pages_free(pages, 3 * PAGE_BYTES - 100);
    }
    /* Far above all that was used: new from the engine, but for the links of a free range. */
    size_t dirty;
    const size_t far = 40 * PAGE_BYTES;
    unsigned char *pages = wasm_os_pages_new(far, false, &dirty);
    assert_true(dirty < far);
    for (size_t i = dirty; i < far; i++) assert_int_equal(pages[i], 0);
    wasm_os_pages_free(pages, far);
    wasm_os_pages_free(NULL, far);
    tg_wasm_free(low, 5000);
    assert_int_equal(heap.used_bytes, 0);
}

/* What was free and never used is zero, also where ranges of it were joined. */
static void links_are_cleared(void **state) {
    (void)state;
    fresh_memory();
    size_t dirty;
    tg_wasm_free(tg_wasm_alloc(100000), 100000);
    unsigned char *pages = wasm_os_pages_new(2 * PAGE_BYTES, false, &dirty);
    assert_true(dirty > 0 && dirty < 2 * PAGE_BYTES);
    for (size_t i = dirty; i < 2 * PAGE_BYTES; i++) assert_int_equal(pages[i], 0);
    wasm_os_pages_free(pages, 2 * PAGE_BYTES);
    assert_int_equal(heap.used_bytes, 0);
}

static void memory_is_counted(void **state) {
    (void)state;
    fresh_memory();
    fresh_context();
    tg_os_memory before, after;
    tg_wasm_machine_set(1e300, 0);
    assert_int_equal(wasm_os_memory_get(&ctx, &before), TG_OK);
    assert_int_equal(before.total_bytes, UINT64_C(262144) * PAGE_BYTES);
    void *p = tg_wasm_alloc(70001);
    assert_int_equal(wasm_os_memory_get(&ctx, &after), TG_OK);
    assert_int_equal(before.available_bytes - after.available_bytes, 70016);
    assert_int_equal(before.total_bytes - before.available_bytes,
                     HEAP_BASE + heap.used_bytes - 70016);
    tg_wasm_free(p, 70001);
    assert_int_equal(wasm_os_peak_rss_bytes(), memory_size(0) * PAGE_BYTES);
    assert_int_equal(wasm_os_page_bytes(), PAGE_BYTES);
}

static void clocks_and_assertions(void **state) {
    (void)state;
    assert_true(wasm_time_ms() >= 12.5 && wasm_time_ms() <= 12.5);
    assert_int_equal(wasm_time_unix(), 1700000000);
    char name[32];
    wasm_os_cpu_name(name, sizeof name);
    assert_string_equal(name, "WebAssembly");
    assert_true(TRAPS(wasm_assert_failed("file.c", 7, "x > 0")));
    assert_string_equal(asserted, "file.c:7 x > 0");
    assert_false(wasm_os_sha256(NULL, NULL, 0) || wasm_os_crc32c(NULL, NULL, 0));
}

/* ------------------------------------------------------------------------------------------- files
 */

static void put(const char *name, const char *text) {
    char *bytes = tg_wasm_alloc(strlen(text));
    memcpy(bytes, text, strlen(text));
    assert_int_equal(tg_wasm_file_put(name, bytes, strlen(text)), TG_OK);
}

static void expect(const tg_os_file *file, const char *text) {
    char out[64] = { 0 };
    assert_int_equal(wasm_os_file_bytes(file), strlen(text));
    assert_int_equal(wasm_os_file_read(&ctx, file, 0, out, strlen(text)), TG_OK);
    assert_string_equal(out, text);
}

static void files_in_memory(void **state) {
    (void)state;
    fresh_memory();
    fresh_context();
    tg_os_file *old, *new, *other;
    put("model", "first");
    put("text", "another");
    assert_int_equal(wasm_os_file_open(&ctx, "model", &old), TG_OK);
    put("model", "second one");
    assert_int_equal(wasm_os_file_open(&ctx, "model", &new), TG_OK);
    assert_int_equal(wasm_os_file_open(&ctx, "text", &other), TG_OK);
    /* Open while it was replaced: readable until it is closed. */
    expect(old, "first");
    expect(new, "second one");
    expect(other, "another");
    assert_string_equal(wasm_os_file_path(old), "model");
    wasm_os_file_close(old);
    assert_int_equal(wasm_os_kind_of("model"), TG_OS_FILE);
    assert_int_equal(wasm_os_remove(&ctx, "model"), TG_OK);
    assert_int_equal(wasm_os_kind_of("model"), TG_OS_NONE);
    expect(new, "second one");
    char out[16];
    assert_int_equal(wasm_os_file_read(&ctx, new, 6, out, 4), TG_OK);
    assert_memory_equal(out, " one", 4);
    assert_int_equal(wasm_os_file_read(&ctx, new, 7, out, 4), TG_E_IO);
    assert_int_equal(wasm_os_file_read(&ctx, new, 11, out, 0), TG_E_IO);
    assert_int_equal(wasm_os_file_read(&ctx, new, 10, out, 0), TG_OK);
    wasm_os_file_close(new);
    wasm_os_file_close(other);
    assert_false(tg_wasm_file_remove("model"));
    fresh_context();
    assert_int_equal(wasm_os_remove(&ctx, "model"), TG_E_IO);
    assert_true(tg_wasm_file_remove("text"));
    wasm_os_file_close(NULL);
    assert_int_equal(heap.used_bytes, 0);
}

static void files_of_the_host(void **state) {
    (void)state;
    fresh_memory();
    fresh_context();
    tg_os_file *file;
    host.opens = host.closes = 0;
    assert_int_equal(wasm_os_file_open(&ctx, "host.bin", &file), TG_OK);
    expect(file, "0123456789");
    char out[16];
    assert_int_equal(wasm_os_file_read(&ctx, file, 3, out, 4), TG_OK);
    assert_memory_equal(out, "3456", 4);
    host.short_at = 5;
    assert_int_equal(wasm_os_file_read(&ctx, file, 3, out, 4), TG_E_IO);
    assert_non_null(strstr(ctx.message, "have 2 of the page"));
    host.short_at = 10;
    wasm_os_file_close(file);
    assert_int_equal(wasm_os_kind_of("host.bin"), TG_OS_FILE);
    assert_int_equal(host.opens, 2);
    assert_int_equal(host.closes, 2);
    fresh_context();
    assert_int_equal(wasm_os_file_open(&ctx, "nothing", &file), TG_E_IO);
    assert_null(file);
    assert_int_equal(wasm_os_kind_of("nothing"), TG_OS_NONE);
    tg_os_map map;
    fresh_context();
    assert_int_equal(wasm_os_map_new(&ctx, "host.bin", &map), TG_E_UNSUPPORTED);
    assert_null(map.data);
    assert_int_equal(heap.used_bytes, 0);
}

static void whole_files(void **state) {
    (void)state;
    fresh_memory();
    fresh_context();
    put("text", "all of it");
    tg_buf out;
    tg_buf_init(&out, &ctx.mem);
    assert_int_equal(wasm_os_read_all(&ctx, "text", 9, &out), TG_OK);
    assert_int_equal(out.length, 9);
    assert_string_equal(out.data, "all of it");
    assert_int_equal(wasm_os_read_all(&ctx, "text", 8, &out), TG_E_FORMAT);
    tg_buf_deinit(&out);
    assert_true(tg_wasm_file_remove("text"));
    assert_int_equal(heap.used_bytes, 0);
}

/* Bytes come to the page in order and whole, however they were written. */
static void saves_go_to_the_page(void **state) {
    (void)state;
    fresh_memory();
    static char want[300000];
    fresh_context();
    for (size_t i = 0; i < sizeof want; i++) want[i] = (char)(i * 31 % 251);
    for (int keep = 0; keep < 2; keep++) {
        tg_save *save;
        sink.begin_answer = 3;
        assert_int_equal(wasm_save_begin(&ctx, "out.bin", &save), TG_OK);
        assert_string_equal(sink.path, "out.bin");
        const size_t sizes[] = { 1, 0, 65535, 1, 7, 65536, 100000, 3, 65529, 20 };
        size_t at = 0;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; at += sizes[i++]) {
            assert_int_equal(wasm_save_write(save, want + at, sizes[i]), TG_OK);
            assert_int_equal(wasm_save_offset(save), at + sizes[i]);
        }
        assert_int_equal(wasm_save_commit(save, keep), TG_OK);
        assert_int_equal(sink.n, at);
        assert_memory_equal(sink.bytes, want, at);
        assert_true(sink.calls < 8);
        assert_int_equal(sink.committed, 1);
        assert_int_equal(sink.kept, keep);
    }
    assert_int_equal(heap.used_bytes, 0);
}

/* Each refusal of the page is an error, and nothing is committed after one. */
static void refused_saves(void **state) {
    (void)state;
    fresh_memory();
    tg_save *save;
    sink.begin_answer = -5;
    fresh_context();
    assert_int_equal(wasm_save_begin(&ctx, "out.bin", &save), TG_E_IO);
    assert_null(save);
    assert_non_null(strstr(ctx.message, "-5"));
    sink.begin_answer = 3;
    sink.write_answer = 28;
    fresh_context();
    assert_int_equal(wasm_save_begin(&ctx, "out.bin", &save), TG_OK);
    assert_int_equal(wasm_save_write(save, sink.bytes + 200000, 65536), TG_E_IO);
    sink.write_answer = 0;
    assert_int_equal(wasm_save_write(save, "more", 4), TG_E_IO);
    assert_int_equal(wasm_save_offset(save), 0);
    assert_int_equal(wasm_save_commit(save, true), TG_E_IO);
    assert_int_equal(sink.committed, 0);
    fresh_context();
    sink.end_answer = 9;
    assert_int_equal(wasm_save_begin(&ctx, "out.bin", &save), TG_OK);
    assert_int_equal(wasm_save_write(save, "few", 3), TG_OK);
    assert_int_equal(wasm_save_commit(save, false), TG_E_IO);
    sink.end_answer = 0;
    fresh_context();
    assert_int_equal(wasm_save_begin(&ctx, "out.bin", &save), TG_OK);
    wasm_save_abort(save);
    assert_int_equal(sink.committed, 0);
    wasm_save_abort(NULL);
    assert_int_equal(heap.used_bytes, 0);
}

/* ----------------------------------------------------------------------------------------- threads
 */

static void *thread_of_host(void *self) {
    if (setjmp(trap_exit) == 0) tg_wasm_thread_run(self);
    return NULL;
}

/* All of a turn are in it at one time, so that no thread can be lent twice. */
enum { THREADS = 3 };
static _Atomic int begun, calls, traps;
static void *work(void *arg) {
    const int turn = atomic_fetch_add(&begun, 1) / THREADS;
    while (atomic_load(&begun) < THREADS * (turn + 1)) sched_yield();
    *(void **)arg = storage_of_thread;
    /* A thread must not touch the heap. */
    jmp_buf before;
    memcpy(&before, &trap_exit, sizeof before);
    if (setjmp(trap_exit) == 0)
        tg_wasm_alloc(16);
    else
        atomic_fetch_add(&traps, 1);
    memcpy(&trap_exit, &before, sizeof before);
    atomic_fetch_add(&calls, 1);
    return NULL;
}

static void threads_work_and_are_lent_again(void **state) {
    (void)state;
    fresh_memory();
    enum { N = THREADS };
    tg_os_cpus cpus;
    tg_wasm_machine_set(1e300, 8);
    wasm_os_cpus_get(&cpus);
    assert_int_equal(cpus.online, 8);
    assert_int_equal(cpus.usable, 1);
    tg_os_thread thread[N], fourth;
    assert_false(wasm_os_thread_start(&fourth, 0, work, NULL));
    for (int i = 0; i < N; i++) {
        tg_wasm_thread *made = tg_wasm_thread_new();
        assert_non_null(made);
        assert_int_equal((uintptr_t)made % 16, 0);
        assert_true((char *)made->storage >= (char *)(made + 1));
        assert_int_equal((uintptr_t)made->storage % 32, (uintptr_t)made % 32);
        pthread_t host_thread;
        assert_int_equal(pthread_create(&host_thread, NULL, thread_of_host, made), 0);
        pthread_detach(host_thread);
    }
    assert_int_equal(tg_wasm_thread_count(), N);
    wasm_os_cpus_get(&cpus);
    assert_int_equal(cpus.usable, N + 1);
    tg_wasm_machine_set(1e300, 2);
    wasm_os_cpus_get(&cpus);
    assert_int_equal(cpus.usable, 2);
    tg_wasm_machine_set(1e300, 0);
    wasm_os_cpus_get(&cpus);
    assert_int_equal(cpus.online, N + 1);
    void *storage[N];
    for (int turn = 1; turn <= 200; turn++) {
        for (int i = 0; i < N; i++)
            assert_true(wasm_os_thread_start(&thread[i], 0, work, &storage[i]));
        for (int i = 0; i < N; i++) wasm_os_thread_join(thread[i]);
        assert_int_equal(calls, N * turn);
        assert_int_equal(traps, N * turn);
        for (int i = 0; i < N; i++) {
            assert_ptr_equal(storage[i], ((tg_wasm_thread *)thread[i].handle)->storage);
            for (int j = 0; j < i; j++) assert_ptr_not_equal(storage[i], storage[j]);
        }
    }
    assert_false(tg_wasm_in_thread());
}

static _Atomic uint32_t gate;
static void *wait_at_gate(void *arg) {
    (void)arg;
    while (atomic_load(&gate) == 0) wasm_os_wait(&gate, 0);
    return NULL;
}

/* All are lent: there is none, until one is given back. */
static void no_thread_twice(void **state) {
    (void)state;
    tg_os_thread thread[3], fourth = { 0 };
    for (int i = 0; i < 3; i++)
        assert_true(wasm_os_thread_start(&thread[i], 0, wait_at_gate, NULL));
    assert_false(wasm_os_thread_start(&fourth, 0, wait_at_gate, NULL));
    atomic_store(&gate, 1);
    wasm_os_wake_all(&gate);
    for (int i = 0; i < 3; i++) wasm_os_thread_join(thread[i]);
    assert_true(wasm_os_thread_start(&fourth, 0, wait_at_gate, NULL));
    wasm_os_thread_join(fourth);
}

/* Who waits for a thread that has trapped does not wait for ever. Last, since it stays so. */
static void waiting_for_the_dead_traps(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    tg_wasm_thread_died(NULL);
    assert_true(TRAPS(wasm_os_wait(&word, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_keeps_what_it_gave),
        cmocka_unit_test(ranges_are_joined),
        cmocka_unit_test(small_pieces_come_back),
        cmocka_unit_test(refused_memory_is_null),
        cmocka_unit_test(pages_are_clean_where_they_say),
        cmocka_unit_test(links_are_cleared),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(clocks_and_assertions),
        cmocka_unit_test(files_in_memory),
        cmocka_unit_test(files_of_the_host),
        cmocka_unit_test(whole_files),
        cmocka_unit_test(saves_go_to_the_page),
        cmocka_unit_test(refused_saves),
        cmocka_unit_test(threads_work_and_are_lent_again),
        cmocka_unit_test(no_thread_twice),
        cmocka_unit_test(waiting_for_the_dead_traps),
    };
    map_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
