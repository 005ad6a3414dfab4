/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - the one checked reader that every file format of this folder goes through.
 *
 * A reader is a file or a piece of memory, a position, and an end. Nothing is believed: each length
 * is compared with the bytes that are there before anything is allocated or read, so a claim in a
 * file costs no more than the file itself has. Numbers are little-endian.
 *
 * Errors name the file, the byte, the field, what was wanted and what was found:
 *
 *     m.tinygpt: byte 12: header: want 90210 bytes, have 52
 *
 *     tg_reader r;
 *     TG_TRY(tg_reader_open(ctx, path, &r));
 *     TG_TRY(tg_read_u32(&r, "version", &version));
 *     TG_TRY(tg_read_text(&r, &arena, "header", length, &text));
 */
#ifndef TG_IO_READER_H
#define TG_IO_READER_H

#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"
#include "base/os/os.h"

/* Only the functions below change it. A zero-initialised reader is closed. */
typedef struct tg_reader {
    tg_ctx *ctx;
    const char *name;       /* for messages: the path as given */
    tg_os_file *file;       /* one of file */
    const uint8_t *memory;  /* and memory, borrowed */
    uint64_t memory_offset; /* place of memory[0] in the file */
    uint64_t offset;        /* of the next byte, from the beginning of the file */
    uint64_t end;           /* first byte that may not be read: the file's end, or a section's */
} tg_reader;

/* Regular files only. On failure *out is closed. Errors: TG_E_IO, TG_E_MEMORY. */
tg_status tg_reader_open(tg_ctx *ctx, const char *path, tg_reader *out);
/* bytes [n_bytes] and name are borrowed until the reader is closed. */
void tg_reader_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                           tg_reader *out);
void tg_reader_close(tg_reader *r);
/* Of what is left: TG_E_FORMAT if it is what git leaves in the place of a large file that was not
 * fetched, a text of some 130 bytes. Files are asked as they are opened. */
tg_status tg_reader_want_no_pointer(const tg_reader *r);

/* For probes: the first bytes of a file, *n <= most of them. None of what is not there and of what
 * is no regular file, which is for whoever opens it to say; other errors are those of
 * tg_reader_open. */
tg_status tg_reader_first(tg_ctx *ctx, const char *path, uint8_t *out, size_t most, size_t *n);

/* A second reader of the same bytes, confined to [begin, end), which must lie inside r. It is valid
 * as long as r is open, and must not be closed itself. */
tg_reader tg_reader_part(const tg_reader *r, uint64_t begin, uint64_t end);

/* The bytes [begin, end) of r as a reader in memory: one read, then as many fields as one likes.
 * Its offsets are still those of the file. Lives as long as the arena; must not be closed. */
tg_status tg_reader_load(const tg_reader *r, tg_arena *arena, const char *field, uint64_t begin,
                         uint64_t end, tg_reader *out);

static inline uint64_t tg_reader_left(const tg_reader *r) { return r->end - r->offset; }

/* The next number or bytes; field is for messages. TG_E_FORMAT if they are not all there. */
tg_status tg_read_u8(tg_reader *r, const char *field, uint8_t *out);
tg_status tg_read_u16(tg_reader *r, const char *field, uint16_t *out);
tg_status tg_read_u32(tg_reader *r, const char *field, uint32_t *out);
tg_status tg_read_u64(tg_reader *r, const char *field, uint64_t *out);
tg_status tg_read_i32(tg_reader *r, const char *field, int32_t *out);
tg_status tg_read_bytes(tg_reader *r, const char *field, void *out, size_t n_bytes);

/* n_bytes into the arena, with a zero behind them that is not counted. Checks before allocating. */
tg_status tg_read_text(tg_reader *r, tg_arena *arena, const char *field, uint64_t n_bytes,
                       const char **out);

/* Bytes from a place of the caller's, which does not move the position. */
tg_status tg_read_at(const tg_reader *r, uint64_t offset, const char *field, void *out,
                     size_t n_bytes);

/* TG_E_FORMAT unless n_bytes more can be read. */
tg_status tg_reader_need(const tg_reader *r, const char *field, uint64_t n_bytes);

/* TG_E_FORMAT unless the bytes from the position to `offset` (forward) are zero; moves there. */
tg_status tg_read_zeros(tg_reader *r, const char *field, uint64_t offset);

/* Records "name: byte OFFSET: field: ..." */
TG_PRINTF(5, 6)
tg_status tg_reader_fail(const tg_reader *r, tg_status code, uint64_t offset, const char *field,
                         const char *format, ...);

/* Little-endian numbers in memory, for tables that were read as a whole and for writers. */
static inline uint16_t tg_get_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t tg_get_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t tg_get_u64(const uint8_t *p) {
    return (uint64_t)tg_get_u32(p) | (uint64_t)tg_get_u32(p + 4) << 32;
}
static inline void tg_put_u16(uint8_t *p, uint16_t x) {
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}
static inline void tg_put_u32(uint8_t *p, uint32_t x) {
    tg_put_u16(p, (uint16_t)x);
    tg_put_u16(p + 2, (uint16_t)(x >> 16));
}
static inline void tg_put_u64(uint8_t *p, uint64_t x) {
    tg_put_u32(p, (uint32_t)x);
    tg_put_u32(p + 4, (uint32_t)(x >> 32));
}

#endif
