/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_wasm.c - memory, clocks and processors in WebAssembly, with and without threads.
 *
 * One linear memory holds everything, and it only grows:
 *
 *     0        stack      data        __heap_base                      memory.size * 64 KiB
 *     |<-----------|----------------->|<------------- heap ------------------->|~~ memory.grow ~~>
 *
 * The stack comes first and grows down: an overflow leaves the memory and traps. The heap is made
 * of ranges of whole granules of 16 bytes. Whoever frees says how much it was (Lua's protocol), so
 * a piece in use has no header, and a free one keeps its links in itself:
 *
 *   small  up to 1 KiB   a stack of free pieces for each size, cut from runs of 64 KiB
 *   large  above         one list of free ranges in order of address; neighbours are joined, the
 *                        first that fits is taken
 *
 * Small pieces are never joined: the core allocates its objects once and works in blocks and
 * arenas, so that the list of large ranges is a few entries long.
 *
 * Nothing of it is guarded: the engine's instance alone allocates, as os_wasm.h says, and a thread
 * that does is stopped by a trap.
 */
#include "base/os/os_wasm.h"

#include "base/os/os.h"
#include "base/time.h"

/* ----------------------------------------------------------------------------------------- heap */

#define GRANULE   ((size_t)16)
#define SMALL_MAX ((size_t)1024)
#define RUN_BYTES ((size_t)64 << 10)
#define PAGE      ((size_t)64 << 10)

/* What the linker writes into the module as the largest memory that may be imported; of 32 bits a
 * page less, so that the end of the memory is a number, too. */
#if __SIZEOF_POINTER__ == 8
#define PAGES_MAX ((size_t)262144)
#else
#define PAGES_MAX ((size_t)65535)
#endif

typedef struct range {
    struct range *next;
    size_t bytes;
} range;

_Static_assert(sizeof(range) <= GRANULE, "a free granule must hold its own links");

extern unsigned char __heap_base; /* the linker's */

static struct {
    size_t pages_max;
    unsigned cpus; /* 0: nobody has said */
} machine = { .pages_max = PAGES_MAX };

void tg_wasm_machine_set(double memory_max_bytes, unsigned cpus) {
    const double pages = memory_max_bytes / (double)PAGE;
    machine.pages_max = pages < (double)PAGES_MAX ? (size_t)pages : PAGES_MAX;
    machine.cpus = cpus;
}

static struct {
    bool started;
    range *large;                      /* by address */
    range *small[SMALL_MAX / GRANULE]; /* [i]: pieces of (i + 1) granules */
    char *run;                         /* where the next new small piece is cut */
    size_t run_bytes;
    size_t used_bytes; /* handed out, granules counted whole */
    char *fresh;       /* from here on nothing was handed out yet: all is zero but for links */
} heap;

/* 0 if it does not fit into a size_t; no piece is empty. */
static size_t whole_granules(size_t bytes) {
    return bytes ? (bytes + GRANULE - 1) & ~(GRANULE - 1) : GRANULE;
}

static size_t memory_bytes(void) { return __builtin_wasm_memory_size(0) * PAGE; }

/* Puts a range into the list and joins it with the neighbours that it touches. Links that come to
 * lie inside of a range are cleared, so that what was never used is zero. */
static void give_range(char *start, size_t bytes) {
    range **link = &heap.large, *before = NULL;
    while (*link && (char *)*link < start) {
        before = *link;
        link = &before->next;
    }
    range *after = *link, *self = (range *)(void *)start;
    *self = (range) { after, bytes };
    *link = self;
    if (after && start + bytes == (char *)after) {
        self->bytes += after->bytes;
        self->next = after->next;
        *after = (range) { NULL, 0 };
    }
    if (before && (char *)before + before->bytes == start) {
        before->bytes += self->bytes;
        before->next = self->next;
        *self = (range) { NULL, 0 };
    }
}

static void hand_out(char *piece, size_t bytes) {
    heap.used_bytes += bytes;
    if (piece + bytes > heap.fresh) heap.fresh = piece + bytes;
}

/* Cuts a piece out of the first free range that holds it; what is left on either side stays free.
 * align is a power of two and at least a granule. */
static void *cut_range(size_t bytes, size_t align) {
    for (range **link = &heap.large; *link; link = &(*link)->next) {
        range *r = *link;
        const size_t gap = (0 - (uintptr_t)r) & (align - 1);
        if (r->bytes < gap || r->bytes - gap < bytes) continue;
        char *piece = (char *)r + gap;
        const size_t behind = r->bytes - gap - bytes;
        range *next = r->next;
        if (behind) {
            range *rest = (range *)(void *)(piece + bytes);
            *rest = (range) { next, behind };
            next = rest;
        }
        if (gap) {
            r->bytes = gap;
            r->next = next;
        } else {
            *link = next;
        }
        return piece;
    }
    return NULL;
}

/* New memory starts at a page, so what was asked for fits there with any alignment up to one. */
static bool grow(size_t bytes) {
    const size_t have = __builtin_wasm_memory_size(0);
    const size_t pages = bytes / PAGE + (bytes % PAGE != 0);
    if (pages > machine.pages_max - have || __builtin_wasm_memory_grow(0, pages) == SIZE_MAX)
        return false;
    give_range((char *)(have * PAGE), pages * PAGE);
    return true;
}

static void *take_range(size_t bytes, size_t align) {
    if (!heap.started) {
        heap.started = true;
        const size_t start = whole_granules((size_t)&__heap_base);
        if (memory_bytes() > start) give_range((char *)start, memory_bytes() - start);
    }
    void *piece = cut_range(bytes, align);
    if (!piece && grow(bytes)) piece = cut_range(bytes, align);
    return piece;
}

/* The end of a run that is too short for the piece at hand is a free piece of its own size. */
static void *take_small(size_t bytes) {
    range **stack = &heap.small[bytes / GRANULE - 1];
    if (*stack) {
        range *piece = *stack;
        *stack = piece->next;
        return piece;
    }
    if (heap.run_bytes < bytes) {
        char *run = take_range(RUN_BYTES, GRANULE);
        if (!run) return NULL;
        if (heap.run_bytes) {
            range **rest = &heap.small[heap.run_bytes / GRANULE - 1];
            range *piece = (range *)(void *)heap.run;
            *piece = (range) { *rest, heap.run_bytes };
            *rest = piece;
        }
        heap.run = run;
        heap.run_bytes = RUN_BYTES;
    }
    void *piece = heap.run;
    heap.run += bytes;
    heap.run_bytes -= bytes;
    return piece;
}

static void refuse_threads(void) {
    if (tg_wasm_in_thread()) __builtin_trap();
}

static void *heap_new(size_t bytes) {
    refuse_threads();
    const size_t whole = whole_granules(bytes);
    if (whole == 0) return NULL;
    void *piece = whole <= SMALL_MAX ? take_small(whole) : take_range(whole, GRANULE);
    if (piece) hand_out(piece, whole);
    return piece;
}

static void heap_free(void *ptr, size_t bytes) {
    refuse_threads();
    const size_t whole = whole_granules(bytes);
    heap.used_bytes -= whole;
    if (whole > SMALL_MAX) {
        give_range(ptr, whole);
        return;
    }
    range **stack = &heap.small[whole / GRANULE - 1], *piece = ptr;
    *piece = (range) { *stack, whole };
    *stack = piece;
}

/* A large piece shrinks where it is; all else moves. */
static void *heap_resize(void *ptr, size_t old_bytes, size_t new_bytes) {
    const size_t before = whole_granules(old_bytes), after = whole_granules(new_bytes);
    if (before == after) return ptr;
    if (after > SMALL_MAX && after < before) {
        give_range((char *)ptr + after, before - after);
        heap.used_bytes -= before - after;
        return ptr;
    }
    void *moved = heap_new(new_bytes);
    if (!moved) return NULL;
    memcpy(moved, ptr, old_bytes < new_bytes ? old_bytes : new_bytes);
    heap_free(ptr, old_bytes);
    return moved;
}

void *tg_os_heap(void *user, void *ptr, size_t old_bytes, size_t new_bytes) {
    (void)user;
    if (new_bytes > 0) return ptr ? heap_resize(ptr, old_bytes, new_bytes) : heap_new(new_bytes);
    if (ptr) heap_free(ptr, old_bytes);
    return NULL;
}

void *tg_wasm_alloc(size_t bytes) { return heap_new(bytes); }

void tg_wasm_free(void *ptr, size_t bytes) {
    if (ptr) heap_free(ptr, bytes);
}

/* ---------------------------------------------------------------------------------------- pages */

size_t tg_os_page_bytes(void) { return PAGE; }

/* The same rounding for both; 0 if it does not fit into a size_t. */
static size_t whole_pages(size_t bytes) { return bytes ? (bytes + PAGE - 1) & ~(PAGE - 1) : PAGE; }

/* Pages of the engine are the only ones there are: they are aligned to 64 KiB, and `huge` means
 * nothing. What was used before is not zero; what was never used needs no clearing, which would
 * take a second for a gigabyte, as the system has to find the memory for it. */
void *tg_os_pages_new(size_t bytes, bool huge, size_t *dirty_bytes) {
    (void)huge;
    refuse_threads();
    const size_t whole = whole_pages(bytes);
    char *pages = whole ? take_range(whole, PAGE) : NULL;
    *dirty_bytes = 0;
    if (!pages) return NULL;
    const size_t used = pages < heap.fresh ? (size_t)(heap.fresh - pages) : sizeof(range);
    *dirty_bytes = used < whole ? used : whole;
    hand_out(pages, whole);
    return pages;
}

void tg_os_pages_free(void *pages, size_t bytes) {
    if (!pages) return;
    refuse_threads();
    heap.used_bytes -= whole_pages(bytes);
    give_range(pages, whole_pages(bytes));
}

/* What an address can reach; the engine may grant less, which only growing tells. */
tg_status tg_os_memory_get(tg_ctx *ctx, tg_os_memory *out) {
    (void)ctx;
    const uint64_t total = (uint64_t)machine.pages_max * PAGE;
    *out = (tg_os_memory) {
        .total_bytes = total,
        .available_bytes = total - (uint64_t)(size_t)&__heap_base - heap.used_bytes,
    };
    return TG_OK;
}

/* The memory never shrinks, so its size is its peak. */
uint64_t tg_os_peak_rss_bytes(void) { return memory_bytes(); }

/* ---------------------------------------------------------------------------------------- hashing
 */

/* WebAssembly has no instructions for these. */
bool tg_os_sha256(uint32_t state[8], const uint8_t *blocks, size_t n_blocks) {
    (void)state;
    (void)blocks;
    (void)n_blocks;
    return false;
}

bool tg_os_crc32c(uint32_t *crc, const void *bytes, size_t n_bytes) {
    (void)crc;
    (void)bytes;
    (void)n_bytes;
    return false;
}

/* ---------------------------------------------------------------------- clocks, processors, end */

double tg_time_ms(void) { return tg_js_now_ms(); }

int64_t tg_time_unix(void) { return (int64_t)tg_js_unix_s(); }

/* A processor that no thread was made for cannot be used; more threads than processors can. */
void tg_os_cpus_get(tg_os_cpus *out) {
    const unsigned threads = 1 + tg_wasm_thread_count();
    const unsigned cpus = machine.cpus ? machine.cpus : threads;
    *out = (tg_os_cpus) { .online = cpus,
                          .affinity = cpus,
                          .usable = cpus < threads ? cpus : threads };
}

void tg_os_cpu_name(char *out, size_t out_bytes) { snprintf(out, out_bytes, "WebAssembly"); }

_Noreturn void tg_assert_failed(const char *file, int line, const char *condition) {
    tg_js_assert_failed(file, line, condition);
    __builtin_trap();
}
