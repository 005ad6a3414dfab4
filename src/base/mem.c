/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c - allocation, big blocks and arenas on top of one tg_alloc_fn.
 *
 * Invariant: whatever leaves this file is zeroed and has at least one byte behind it, so that a
 * NULL always means "no memory". A size of 0 is turned into 1 in the same way by allocate, resize
 * and free, so that the allocator is told matching sizes.
 *
 * Zeroing costs little beside the first use of the memory, and it makes every struct start in a
 * state that can be freed: error paths need not know how far the building of an object had come.
 */
#include "base/mem.h"

#include "base/err.h"
#include "base/os/os.h"
#include "base/time.h"

/* ------------------------------------------------------------------------------- small pieces */

/* The allocator's protocol gives 0 bytes a meaning of its own: "free". */
static size_t at_least_one(size_t bytes) { return bytes ? bytes : 1; }

tg_mem tg_mem_default(void) { return (tg_mem) { .fn = tg_os_heap, .user = NULL }; }

void *tg_alloc(const tg_mem *mem, size_t bytes) {
    void *ptr = mem->fn(mem->user, NULL, 0, at_least_one(bytes));
    if (ptr) memset(ptr, 0, at_least_one(bytes));
    return ptr;
}

/* What the allocator answers for a shrinking piece may be NULL, too; the piece is unharmed then. */
void *tg_realloc(const tg_mem *mem, void *ptr, size_t old_bytes, size_t new_bytes) {
    if (!ptr) return tg_alloc(mem, new_bytes);
    char *moved = mem->fn(mem->user, ptr, at_least_one(old_bytes), at_least_one(new_bytes));
    if (moved && new_bytes > old_bytes) memset(moved + old_bytes, 0, new_bytes - old_bytes);
    return moved;
}

void tg_free(const tg_mem *mem, void *ptr, size_t bytes) {
    if (ptr) mem->fn(mem->user, ptr, at_least_one(bytes), 0);
}

/* ----------------------------------------------------------------------------------- big blocks */

/* From here on a block is worth its own pages: the size of a huge page on x86 and ARM. */
#define PAGES_FROM_BYTES ((size_t)2 << 20)

/*
 * Pages that come zeroed from the system are touched by nobody here, so that each worker's first
 * write decides where they lie. Memory of a custom allocator may hold anything.
 */
tg_status tg_block_take(tg_ctx *ctx, size_t bytes, tg_block *out) {
    *out = (tg_block) { .bytes = bytes, .mem = ctx->mem };
    if (ctx->mem.fn == tg_os_heap && bytes >= PAGES_FROM_BYTES) {
        out->base = tg_os_pages_new(bytes, !ctx->small_pages, &out->dirty_bytes);
        out->base_bytes = bytes;
        out->data = out->base;
        out->pages = true;
    } else if (tg_add_size(bytes, TG_BLOCK_ALIGN, &out->base_bytes)) {
        out->base = ctx->mem.fn(ctx->mem.user, NULL, 0, out->base_bytes);
        out->dirty_bytes = out->base_bytes;
        if (out->base) {
            const uintptr_t gap = (uintptr_t)out->base % TG_BLOCK_ALIGN;
            out->data = (char *)out->base + (gap ? TG_BLOCK_ALIGN - gap : 0);
        }
    }
    if (!out->base) {
        *out = (tg_block) { 0 };
        return tg_fail_memory(ctx, "block", bytes ? bytes : TG_BLOCK_ALIGN);
    }
    return TG_OK;
}

/* From the end to the start, so that one number tells what is left. */
tg_status tg_block_clear(tg_block *block, double deadline_ms) {
    enum { PIECE_BYTES = 4 << 20 };
    while (block->dirty_bytes > 0) {
        const size_t n = block->dirty_bytes < PIECE_BYTES ? block->dirty_bytes : PIECE_BYTES;
        block->dirty_bytes -= n;
        memset((char *)block->base + block->dirty_bytes, 0, n);
        if (block->dirty_bytes > 0 && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

tg_status tg_block_new(tg_ctx *ctx, size_t bytes, tg_block *out) {
    TG_TRY(tg_block_take(ctx, bytes, out));
    return tg_block_clear(out, 0);
}

/* The block knows where it came from, so that it may outlive the context that made it. */
void tg_block_free(tg_block *block) {
    if (block->pages)
        tg_os_pages_free(block->base, block->base_bytes);
    else if (block->base)
        tg_free(&block->mem, block->base, block->base_bytes);
    *block = (tg_block) { 0 };
}

/* --------------------------------------------------------------------------------------- arenas */

/* 32 bytes on a 64-bit system, so that the first piece is aligned as its chunk is. */
typedef struct tg_arena_chunk {
    struct tg_arena_chunk *next;
    size_t bytes; /* of the whole chunk, this head included */
    size_t padding[2];
} tg_arena_chunk;

#define ARENA_ALIGN     ((size_t)16)
#define CHUNK_MIN_BYTES ((size_t)4 << 10)
#define CHUNK_MAX_BYTES ((size_t)1 << 20)

_Static_assert(sizeof(tg_arena_chunk) % 16 == 0, "the first piece of a chunk must be aligned");

void tg_arena_init(tg_arena *arena, const tg_mem *mem) { *arena = (tg_arena) { .mem = *mem }; }

void tg_arena_deinit(tg_arena *arena) {
    tg_arena_chunk *chunk = arena->chunks;
    while (chunk) {
        tg_arena_chunk *next = chunk->next;
        tg_free(&arena->mem, chunk, chunk->bytes);
        chunk = next;
    }
    const tg_mem mem = arena->mem; /* a copy: init clears the struct that it would point into */
    tg_arena_init(arena, &mem);
}

/*
 * Puts a chunk with room for piece_bytes in front. Chunks double, so that n pieces cost O(log n)
 * allocations; what does not fit into the largest regular chunk gets exactly its own size.
 */
static bool add_chunk(tg_arena *arena, size_t piece_bytes) {
    size_t bytes = arena->chunks ? arena->chunks->bytes * 2 : CHUNK_MIN_BYTES;
    if (bytes > CHUNK_MAX_BYTES) bytes = CHUNK_MAX_BYTES;
    size_t wanted;
    if (!tg_add_size(piece_bytes, sizeof(tg_arena_chunk), &wanted)) return false;
    if (bytes < wanted) bytes = wanted;

    tg_arena_chunk *chunk = tg_alloc(&arena->mem, bytes);
    if (!chunk) return false;
    chunk->next = arena->chunks;
    chunk->bytes = bytes;
    arena->chunks = chunk;
    arena->used = sizeof(tg_arena_chunk);
    arena->total_bytes += bytes;
    return true;
}

/*
 * What is left of the newest chunk when a piece does not fit is given up, even for later small
 * pieces: one place to look is faster, and less than half of the memory is lost.
 */
void *tg_arena_alloc(tg_arena *arena, size_t bytes) {
    size_t padded;
    if (!tg_add_size(at_least_one(bytes), ARENA_ALIGN - 1, &padded)) return NULL;
    padded &= ~(ARENA_ALIGN - 1);
    if (!arena->chunks || arena->chunks->bytes - arena->used < padded) {
        if (!add_chunk(arena, padded)) return NULL;
    }
    void *piece = (char *)arena->chunks + arena->used;
    arena->used += padded;
    return piece;
}

void *tg_arena_array(tg_arena *arena, size_t n_elems, size_t elem_bytes) {
    size_t bytes;
    return tg_mul_size(n_elems, elem_bytes, &bytes) ? tg_arena_alloc(arena, bytes) : NULL;
}

char *tg_arena_strndup(tg_arena *arena, const char *bytes, size_t n_bytes) {
    char *copy = n_bytes < SIZE_MAX ? tg_arena_alloc(arena, n_bytes + 1) : NULL;
    if (copy && n_bytes) memcpy(copy, bytes, n_bytes);
    return copy;
}

char *tg_arena_strdup(tg_arena *arena, const char *text) {
    return tg_arena_strndup(arena, text, strlen(text));
}

/* Measures, then writes: each pass needs its own start of the arguments. */
char *tg_arena_sprintf(tg_arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length >= 0 ? tg_arena_alloc(arena, (size_t)length + 1) : NULL;
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}
