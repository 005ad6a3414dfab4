/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - where memory comes from: small pieces, big blocks, arenas, checked sizes.
 *
 * Every byte passes through one tg_alloc_fn (see tinygpt.h), so that a test can fail the n-th
 * request, a limit can be set, and WebAssembly needs one function. Three shapes of use:
 *
 *   tg_alloc    small pieces that are freed one by one; the caller remembers the size
 *   tg_block    weights and workspaces: aligned, zeroed, in huge pages where that is possible
 *   tg_arena    many small pieces with one common end (a graph, a plan, a parsed header)
 *
 * All of them hand out zeroed memory. All of them may return "no memory"; none of them aborts.
 */
#ifndef TG_BASE_MEM_H
#define TG_BASE_MEM_H

#include "base/libc.h"
#include "tinygpt.h"

typedef struct tg_ctx tg_ctx; /* base/err.h */

/* ------------------------------------------------------------------------------- small pieces */

/* An allocator: a function and what it wants to be called with. Copied freely, owns nothing. */
typedef struct tg_mem {
    tg_alloc_fn fn;
    void *user;
} tg_mem;

/* The system's heap. */
tg_mem tg_mem_default(void);

/* Zeroed memory, aligned for any C type; NULL if there is none. 0 bytes are a valid piece, too. */
void *tg_alloc(const tg_mem *mem, size_t bytes);

/* Resizes; bytes beyond old_bytes are zeroed. NULL if there is no memory: ptr stays valid then. */
void *tg_realloc(const tg_mem *mem, void *ptr, size_t old_bytes, size_t new_bytes);

/* bytes is what the piece was allocated or last resized with. NULL is fine. */
void tg_free(const tg_mem *mem, void *ptr, size_t bytes);

/* -------------------------------------------------------------------------------- checked sizes */

/* *out = a * b or a + b; false, with *out = SIZE_MAX, if that does not fit into a size_t. */
static inline bool tg_mul_size(size_t a, size_t b, size_t *out) {
    const bool fits = a == 0 || b <= SIZE_MAX / a;
    *out = fits ? a * b : SIZE_MAX;
    return fits;
}

static inline bool tg_add_size(size_t a, size_t b, size_t *out) {
    const bool fits = b <= SIZE_MAX - a;
    *out = fits ? a + b : SIZE_MAX;
    return fits;
}

/* The same for 64-bit quantities: file offsets and element counts that a file claims. */
static inline bool tg_mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
    const bool fits = a == 0 || b <= UINT64_MAX / a;
    *out = fits ? a * b : UINT64_MAX;
    return fits;
}

static inline bool tg_add_u64(uint64_t a, uint64_t b, uint64_t *out) {
    const bool fits = b <= UINT64_MAX - a;
    *out = fits ? a + b : UINT64_MAX;
    return fits;
}

/* ----------------------------------------------------------------------------------- big blocks */

#define TG_BLOCK_ALIGN 64u /* a cache line, and the widest vector */

/*
 * One big piece of zeroed memory. A zero-initialised tg_block is empty and may be freed.
 *
 *   base                data                        data + bytes
 *   |<- 0..63 bytes --->|<------- for the caller ------->|<- rounding ->|
 *
 * With the system's heap, blocks of 2 MiB and more come as pages, 2 MiB aligned, with a request for
 * huge pages; data equals base then. A custom allocator is always asked, whatever the size.
 */
typedef struct tg_block {
    void *data;   /* TG_BLOCK_ALIGN aligned, zeroed when new */
    size_t bytes; /* as asked for */
    void *base;   /* what goes back to the system */
    size_t base_bytes;
    size_t
        dirty_bytes; /* of base, from its start: to be cleared yet; 0 of a block of tg_block_new */
    tg_mem mem;      /* where it came from */
    bool pages;      /* from tg_os_pages_new rather than from mem */
} tg_block;

/* Errors: TG_E_MEMORY, with the size that was wanted in the message; *out is empty then. */
tg_status tg_block_new(tg_ctx *ctx, size_t bytes, tg_block *out);

/* The same in slices: taking the memory is quick, clearing what was used before is not, and comes
 * from the first tg_block_clear on. TG_PENDING: call again. The deadline is on tg_time_ms's clock,
 * 0: none. */
tg_status tg_block_take(tg_ctx *ctx, size_t bytes, tg_block *out);
tg_status tg_block_clear(tg_block *block, double deadline_ms);

/* Gives the memory back and empties the block. An empty block is fine. */
void tg_block_free(tg_block *block);

/* --------------------------------------------------------------------------------------- arenas */

/*
 * Pieces of any size that all end at once. Grows by chunks that double from 4 KiB to 1 MiB; a
 * larger piece gets a chunk of its own. Pieces never move. Uninitialised is not usable:
 * tg_arena_init.
 *
 *   arena -> [ next | size | piece piece piece ..free.. ] -> [ next | size | piece ... ] -> NULL
 */
typedef struct tg_arena {
    tg_mem mem;
    struct tg_arena_chunk *chunks; /* newest first */
    size_t used;                   /* bytes used in the newest chunk, its head included */
    size_t total_bytes;            /* of all chunks, for reports */
} tg_arena;

void tg_arena_init(tg_arena *arena, const tg_mem *mem);
void tg_arena_deinit(tg_arena *arena); /* frees every piece; the arena is empty and usable again */

/* Zeroed, 16-byte aligned; NULL if there is no memory. 0 bytes are a valid piece, too. */
void *tg_arena_alloc(tg_arena *arena, size_t bytes);
/* The same for n elements; NULL also if the product does not fit. */
void *tg_arena_array(tg_arena *arena, size_t n_elems, size_t elem_bytes);

/* Zero-terminated copies; NULL if there is no memory. */
char *tg_arena_strdup(tg_arena *arena, const char *text);
char *tg_arena_strndup(tg_arena *arena, const char *bytes, size_t n_bytes);

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
char *
tg_arena_sprintf(tg_arena *arena, const char *format, ...);

#endif
