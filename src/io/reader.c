/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - bounds first, bytes second.
 *
 * Invariant: memory_offset <= offset <= end <= size of the file, so "end - offset" never wraps and
 * every check is one comparison: n_bytes <= end - offset. No sum of a claimed length and an offset
 * is ever formed before that comparison.
 */
#include "io/reader.h"

tg_status tg_reader_want_no_pointer(const tg_reader *r) {
    static const char mark[] = "version https://git-lfs.github.com/spec/v1";
    char first[sizeof mark - 1];
    const uint64_t n = tg_reader_left(r);
    if (n < sizeof first || n > 1024) return TG_OK;
    TG_TRY(tg_read_at(r, r->offset, "beginning", first, sizeof first));
    if (memcmp(first, mark, sizeof first) != 0) return TG_OK;
    return tg_fail(r->ctx, TG_E_FORMAT,
                   "%s: want the file itself, have a pointer of git LFS to it: fetch it with "
                   "\"git lfs pull\"",
                   r->name);
}

tg_status tg_reader_open(tg_ctx *ctx, const char *path, tg_reader *out) {
    *out = (tg_reader) { .ctx = ctx, .name = path };
    TG_TRY(tg_os_file_open(ctx, path, &out->file));
    out->end = tg_os_file_bytes(out->file);
    const tg_status s = tg_reader_want_no_pointer(out);
    if (s != TG_OK) tg_reader_close(out);
    return s;
}

void tg_reader_open_memory(tg_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                           tg_reader *out) {
    *out = (tg_reader) { .ctx = ctx, .name = name, .memory = bytes, .end = n_bytes };
}

void tg_reader_close(tg_reader *r) {
    tg_os_file_close(r->file);
    *r = (tg_reader) { 0 };
}

tg_status tg_reader_first(tg_ctx *ctx, const char *path, uint8_t *out, size_t most, size_t *n) {
    tg_reader r;
    *n = 0;
    if (tg_os_kind_of(path) != TG_OS_FILE) return TG_OK;
    TG_TRY(tg_reader_open(ctx, path, &r));
    *n = r.end < most ? (size_t)r.end : most;
    const tg_status s = tg_read_at(&r, 0, "magic", out, *n);
    tg_reader_close(&r);
    return s;
}

/* Both ends come from checks against r, so one outside of it is a bug here, not in a file. */
tg_reader tg_reader_part(const tg_reader *r, uint64_t begin, uint64_t end) {
    TG_ASSERT(begin <= end && end <= r->end);
    tg_reader part = *r;
    part.offset = begin;
    part.end = end;
    return part;
}

/* A table of ten thousand entries is one read, not a hundred thousand. */
tg_status tg_reader_load(const tg_reader *r, tg_arena *arena, const char *field, uint64_t begin,
                         uint64_t end, tg_reader *out) {
    tg_reader part = tg_reader_part(r, begin, end);
    const char *bytes;
    TG_TRY(tg_read_text(&part, arena, field, end - begin, &bytes));
    *out = (tg_reader) { .ctx = r->ctx,
                         .name = r->name,
                         .memory = (const uint8_t *)bytes,
                         .memory_offset = begin,
                         .offset = begin,
                         .end = end };
    return TG_OK;
}

/* The parts are put together here, so that no caller forgets one: name, byte, field, and then what
 * was wanted and found. */
tg_status tg_reader_fail(const tg_reader *r, tg_status code, uint64_t offset, const char *field,
                         const char *format, ...) {
    char what[TG_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return tg_fail(r->ctx, code, "%s: byte %" PRIu64 ": %s: %s", r->name, offset, field, what);
}

/*
 * The only place where bytes enter, and so the only comparison that guards a copy. r->end is the
 * file's length when it was opened: if it became shorter since, tg_os_file_read says so.
 */
tg_status tg_read_at(const tg_reader *r, uint64_t offset, const char *field, void *out,
                     size_t n_bytes) {
    if (offset > r->end || n_bytes > r->end - offset) {
        return tg_reader_fail(r, TG_E_FORMAT, offset, field, "want %zu bytes, have %" PRIu64,
                              n_bytes, offset > r->end ? 0 : r->end - offset);
    }
    if (n_bytes == 0) {
        return TG_OK;
    }
    if (r->memory) {
        memcpy(out, r->memory + (offset - r->memory_offset), n_bytes);
        return TG_OK;
    }
    return tg_os_file_read(r->ctx, r->file, offset, out, n_bytes);
}

/* For lengths that are looked at before the bytes are: the same words as a read that fails. */
tg_status tg_reader_need(const tg_reader *r, const char *field, uint64_t n_bytes) {
    if (n_bytes > tg_reader_left(r)) {
        return tg_reader_fail(r, TG_E_FORMAT, r->offset, field,
                              "want %" PRIu64 " bytes, have %" PRIu64, n_bytes, tg_reader_left(r));
    }
    return TG_OK;
}

/* The position moves only if the bytes came, so an error names the field's first byte. */
tg_status tg_read_bytes(tg_reader *r, const char *field, void *out, size_t n_bytes) {
    TG_TRY(tg_read_at(r, r->offset, field, out, n_bytes));
    r->offset += n_bytes;
    return TG_OK;
}

tg_status tg_read_u8(tg_reader *r, const char *field, uint8_t *out) {
    return tg_read_bytes(r, field, out, 1);
}

/* Numbers are put together from bytes: nothing in a file is aligned by nature. */
tg_status tg_read_u16(tg_reader *r, const char *field, uint16_t *out) {
    uint8_t b[2];
    TG_TRY(tg_read_bytes(r, field, b, sizeof b));
    *out = tg_get_u16(b);
    return TG_OK;
}

tg_status tg_read_u32(tg_reader *r, const char *field, uint32_t *out) {
    uint8_t b[4];
    TG_TRY(tg_read_bytes(r, field, b, sizeof b));
    *out = tg_get_u32(b);
    return TG_OK;
}

tg_status tg_read_u64(tg_reader *r, const char *field, uint64_t *out) {
    uint8_t b[8];
    TG_TRY(tg_read_bytes(r, field, b, sizeof b));
    *out = tg_get_u64(b);
    return TG_OK;
}

tg_status tg_read_i32(tg_reader *r, const char *field, int32_t *out) {
    uint32_t bits;
    TG_TRY(tg_read_u32(r, field, &bits));
    memcpy(out, &bits, sizeof bits); /* two's complement on both sides */
    return TG_OK;
}

/* n_bytes are in the file before they are asked of the arena; the comparison with SIZE_MAX matters
 * where an address has 32 bits and a file more. */
tg_status tg_read_text(tg_reader *r, tg_arena *arena, const char *field, uint64_t n_bytes,
                       const char **out) {
    *out = NULL;
    TG_TRY(tg_reader_need(r, field, n_bytes));
    if (n_bytes >= SIZE_MAX) {
        return tg_reader_fail(
            r, TG_E_UNSUPPORTED, r->offset, field,
            "want what an address of this machine can hold, have %" PRIu64 " bytes", n_bytes);
    }
    char *text = tg_arena_alloc(arena, (size_t)n_bytes + 1); /* zeroed: the end is there already */
    if (!text) {
        return tg_fail_memory(r->ctx, field, (size_t)n_bytes + 1);
    }
    TG_TRY(tg_read_bytes(r, field, text, (size_t)n_bytes));
    *out = text;
    return TG_OK;
}

/* Gaps are short (up to 63 bytes), so a small piece of stack is enough. Anything else than zeros in
 * one could be a second file inside the first. */
tg_status tg_read_zeros(tg_reader *r, const char *field, uint64_t offset) {
    TG_ASSERT(offset >= r->offset);
    TG_TRY(tg_reader_need(r, field, offset - r->offset));
    while (r->offset < offset) {
        uint8_t bytes[64];
        const uint64_t left = offset - r->offset;
        const size_t n = left < sizeof bytes ? (size_t)left : sizeof bytes;
        const uint64_t start = r->offset;
        TG_TRY(tg_read_bytes(r, field, bytes, n));
        for (size_t i = 0; i < n; i++) {
            if (bytes[i]) {
                return tg_reader_fail(r, TG_E_FORMAT, start + i, field, "want 0, have %u",
                                      (unsigned)bytes[i]);
            }
        }
    }
    return TG_OK;
}
