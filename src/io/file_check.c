/*
 * file_check.c - is a file whole? And which one of a file and its predecessor can be used.
 *
 * Three questions of rising cost. The chunks: does every CRC agree (a few GB a second)? The hash:
 * does SHA-256 agree (some hundred MB a second)? The numbers: are they in range? The first finds
 * whatever a disk does; the second whatever a chunk's CRC does not cover; the third what was wrong
 * before the file was written, or was put there by somebody who fixed the checksums.
 */
#include "base/math.h"
#include "base/sha256.h"
#include "io/file.h"

static uint64_t n_chunks(const tg_file *f) {
    return f->data_bytes / f->chunk_bytes + (f->data_bytes % f->chunk_bytes != 0);
}

/* Through the window of reading, so that the check and the use cannot disagree. */
tg_status tg_file_check_chunks(tg_file *file) {
    if (!file->chunk_crc) {
        return TG_OK;
    }
    for (uint64_t i = 0; i < n_chunks(file); i++) {
        TG_TRY(tg_file_load_chunk(file, &file->window[0], i, NULL));
    }
    return TG_OK;
}

/* Elements read at once while ranges are checked; 64 KiB. */
#define PIECE_ELEMS 16384u

/* A second moment is a mean of squares: below zero, the square root of the next update is no
 * number. */
static tg_status check_tensor(tg_file *f, const tg_file_tensor *t, float *piece) {
    const bool may_be_negative = strncmp(t->name, TG_ADAM_V, strlen(TG_ADAM_V)) != 0;
    for (uint64_t first = 0; first < t->elems;) {
        const uint64_t left = t->elems - first;
        const size_t n = left < PIECE_ELEMS ? (size_t)left : PIECE_ELEMS;
        TG_TRY(tg_file_read_f32(f, t, piece, first, n));
        for (size_t i = 0; i < n; i++) {
            const double x = (double)piece[i];
            if (!tg_isfinite(x) || (x < 0 && !may_be_negative)) {
                return tg_fail(f->ctx, TG_E_NUMBER,
                               "%s: tensor %s: element %" PRIu64 ": want %s, have %g", f->path,
                               t->name, first + i,
                               may_be_negative ? "a finite number" : "a finite number >= 0", x);
            }
        }
        first += n;
    }
    return TG_OK;
}

/* Reads every element, so it also finds whatever the disk has to say. */
static tg_status check_numbers(tg_file *f) {
    float *piece = tg_alloc(&f->ctx->mem, PIECE_ELEMS * sizeof *piece);
    if (!piece) {
        return tg_fail_memory(f->ctx, f->path, PIECE_ELEMS * sizeof *piece);
    }
    tg_status status = TG_OK;
    for (size_t i = 0; i < f->n_tensors && status == TG_OK; i++) {
        status = check_tensor(f, &f->tensor[i], piece);
    }
    tg_free(&f->ctx->mem, piece, PIECE_ELEMS * sizeof *piece);
    return status;
}

static void print_hash(char out[2 * TG_SHA256_BYTES + 1], const uint8_t hash[TG_SHA256_BYTES]) {
    for (size_t i = 0; i < TG_SHA256_BYTES; i++) {
        snprintf(out + 2 * i, 3, "%02x", (unsigned)hash[i]);
    }
}

/* All bytes before the hash, in order. They are read from the file again rather than taken from
 * chunks: the hash covers headers, tables and gaps as well. */
static tg_status check_hash(tg_file *f) {
    const size_t room = PIECE_ELEMS * sizeof(float);
    uint8_t *piece = tg_alloc(&f->ctx->mem, room);
    if (!piece) {
        return tg_fail_memory(f->ctx, f->path, room);
    }
    tg_sha256 sha;
    tg_sha256_init(&sha);
    tg_status status = TG_OK;
    for (uint64_t offset = 0; offset < f->hash_offset && status == TG_OK;) {
        const uint64_t left = f->hash_offset - offset;
        const size_t n = left < room ? (size_t)left : room;
        status = tg_read_at(&f->reader, offset, "file", piece, n);
        tg_sha256_update(&sha, piece, n);
        offset += n;
    }
    tg_free(&f->ctx->mem, piece, room);
    TG_TRY(status);

    uint8_t want[TG_SHA256_BYTES], have[TG_SHA256_BYTES];
    TG_TRY(tg_read_at(&f->reader, f->hash_offset, "SHA-256", want, sizeof want));
    tg_sha256_final(&sha, have);
    if (memcmp(want, have, sizeof want) != 0) {
        char wanted[2 * TG_SHA256_BYTES + 1], found[2 * TG_SHA256_BYTES + 1];
        print_hash(wanted, want);
        print_hash(found, have);
        return tg_reader_fail(&f->reader, TG_E_CHECKSUM, f->hash_offset, "SHA-256",
                              "want %s, have %s", wanted, found);
    }
    return TG_OK;
}

tg_status tg_file_check_all(tg_file *file) {
    /* Chunks first: they can say where the damage is. */
    TG_TRY(tg_file_check_chunks(file));
    if (file->checksummed) {
        TG_TRY(check_hash(file));
    }
    return check_numbers(file);
}

/* ---------------------------------------------------------------------------------- open newest */

/*
 * Opening proves head and tables; the chunks are read here, since whoever fell back to the
 * predecessor after the first damaged tensor would have half a model in memory. Without a hash: it
 * costs several times more, and what it covers beyond the CRCs is itself.
 */
static tg_status open_whole(tg_ctx *ctx, const char *path, bool with_hash, tg_file **out) {
    tg_file *f;
    *out = NULL;
    TG_TRY(tg_file_open(ctx, path, &f));
    tg_status status = tg_file_check_chunks(f);
    if (status == TG_OK && with_hash && f->checksummed) {
        status = check_hash(f);
    }
    if (status != TG_OK) {
        tg_file_close(f);
        return status;
    }
    *out = f;
    return TG_OK;
}

/* Is this the kind of failure after which the predecessor is the right answer? Not if there is no
 * memory, nor if the file is fine but of a later version, nor for a folder or a device. */
static bool is_damage(tg_status status, tg_os_kind kind) {
    return (status == TG_E_IO || status == TG_E_FORMAT || status == TG_E_CHECKSUM) &&
           (kind == TG_OS_FILE || kind == TG_OS_NONE);
}

tg_status tg_file_open_newest(tg_ctx *ctx, const char *path, tg_file **out, bool *used_prev) {
    *used_prev = false;
    const tg_status status = open_whole(ctx, path, false, out);
    if (status == TG_OK || !is_damage(status, tg_os_kind_of(path))) {
        return status;
    }
    tg_buf previous;
    tg_buf_init(&previous, &ctx->mem);
    tg_buf_puts(&previous, path);
    tg_buf_puts(&previous, ".prev");
    if (previous.failed || tg_os_kind_of(tg_buf_text(&previous)) != TG_OS_FILE) {
        tg_buf_deinit(&previous);
        return status; /* there is no predecessor: the first message says it all */
    }

    /* The first failure of a context sticks, so it is put aside while the other file is tried. The
     * predecessor is the last resort and a rare one, so it is checked with all there is. */
    char first[TG_MESSAGE_BYTES], second[TG_MESSAGE_BYTES];
    memcpy(first, ctx->message, sizeof first);
    tg_ctx_clear(ctx);
    if (open_whole(ctx, tg_buf_text(&previous), true, out) == TG_OK) {
        *used_prev = true;
        tg_say(ctx, TG_LOG_WARNING, "%s: using %s instead", first, tg_buf_text(&previous));
    } else {
        memcpy(second, ctx->message, sizeof second);
        tg_ctx_clear(ctx);
        tg_fail(ctx, status, "%s; and %s", first, second);
    }
    tg_buf_deinit(&previous);
    return *used_prev ? TG_OK : status;
}
