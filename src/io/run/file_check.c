/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_check.c - is a file whole? And which one of a file and its predecessor can be used.
 *
 * Three questions of rising cost. The chunks: does every CRC agree (a few GB a second)? The hash:
 * does SHA-256 agree (some hundred MB a second)? The numbers: are they in range? The first finds
 * whatever a disk does; the second whatever a chunk's CRC does not cover; the third what was wrong
 * before the file was written, or was put there by somebody who fixed the checksums.
 */
#include "base/math.h"
#include "base/time.h"
#include "io/run/file.h"

/* ------------------------------------------------------------------------------- three questions
 */

/* What is read at once for hash and numbers: 64 KiB. */
#define PIECE_ELEMS 16384u
#define PIECE_BYTES (PIECE_ELEMS * sizeof(float))

static uint64_t n_chunks(const tg_file *f) {
    return f->data_bytes / f->chunk_bytes + (f->data_bytes % f->chunk_bytes != 0);
}

/* Each of the following does one piece of its stage. TG_PENDING: there is more of it; TG_OK: the
 * stage has found nothing wrong.
 *
 * Chunks go through the window of reading, so that the check and the use cannot disagree. */
static tg_status check_chunk(tg_checking *c, tg_file *f) {
    if (!f->chunk_crc || c->next == n_chunks(f)) {
        return TG_OK;
    }
    TG_TRY(tg_file_load_chunk(f, &f->window[0], c->next, NULL));
    c->next++;
    return TG_PENDING;
}

static tg_status compare_hash(tg_checking *c, tg_file *f) {
    uint8_t want[TG_SHA256_BYTES], have[TG_SHA256_BYTES];
    TG_TRY(tg_read_at(&f->reader, f->hash_offset, "SHA-256", want, sizeof want));
    tg_sha256_final(&c->sha, have);
    if (memcmp(want, have, sizeof want) == 0) {
        return TG_OK;
    }
    char wanted[2 * TG_SHA256_BYTES + 1], found[2 * TG_SHA256_BYTES + 1];
    tg_sha256_hex(want, wanted);
    tg_sha256_hex(have, found);
    return tg_reader_fail(&f->reader, TG_E_CHECKSUM, f->hash_offset, "SHA-256", "want %s, have %s",
                          wanted, found);
}

/* All bytes before the hash, in order. They are read from the file again rather than taken from
 * chunks: the hash covers headers, tables and gaps as well. */
static tg_status check_hash(tg_checking *c, tg_file *f) {
    if (!f->checksummed) {
        return TG_OK;
    }
    if (c->next == 0) {
        tg_sha256_init(&c->sha);
    }
    const uint64_t left = f->hash_offset - c->next;
    if (left == 0) {
        return compare_hash(c, f);
    }
    const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    TG_TRY(tg_read_at(&f->reader, c->next, "file", c->piece, n));
    tg_sha256_update(&c->sha, c->piece, n);
    c->next += n;
    return TG_PENDING;
}

/* A second moment is a mean of squares: below zero, the square root of the next update is no
 * number. Every element is read, so it also finds whatever the disk has to say. */
static tg_status check_numbers(tg_checking *c, tg_file *f) {
    if (c->tensor == f->n_tensors) {
        return TG_OK;
    }
    const tg_file_tensor *t = &f->tensor[c->tensor];
    const bool may_be_negative = strncmp(t->name, TG_ADAM_V, strlen(TG_ADAM_V)) != 0;
    const uint64_t left = t->elems - c->next;
    const size_t n = left < PIECE_ELEMS ? (size_t)left : PIECE_ELEMS;
    TG_TRY(tg_file_read_f32(f, t, c->piece, c->next, n));
    for (size_t i = 0; i < n; i++) {
        const double x = (double)c->piece[i];
        if (!tg_isfinite(x) || (x < 0 && !may_be_negative)) {
            return tg_fail(f->ctx, TG_E_NUMBER,
                           "%s: tensor %s: element %" PRIu64 ": want %s, have %g", f->path, t->name,
                           c->next + i,
                           may_be_negative ? "a finite number" : "a finite number >= 0", x);
        }
    }
    c->next = n == left ? 0 : c->next + n;
    c->tensor += n == left;
    return TG_PENDING;
}

/* Chunks first: they can say where the damage is. */
tg_status tg_checking_go_on(tg_checking *c, tg_file *file, int until, double deadline_ms) {
    static tg_status (*const check[])(tg_checking *, tg_file *) = { check_chunk, check_hash,
                                                                    check_numbers };
    if (!c->piece && until > TG_CHECKING_HASH) {
        c->piece = tg_alloc(&file->ctx->mem, PIECE_BYTES);
        if (!c->piece) {
            return tg_fail_memory(file->ctx, file->path, PIECE_BYTES);
        }
    }
    while ((int)c->stage < until) {
        const tg_status status = check[c->stage](c, file);
        if (status == TG_OK) {
            c->stage++;
            c->next = 0;
        } else if (status != TG_PENDING || tg_time_over(deadline_ms)) {
            return status;
        }
    }
    return TG_OK;
}

void tg_checking_deinit(tg_checking *c, tg_file *file) {
    tg_free(&file->ctx->mem, c->piece, PIECE_BYTES);
    c->piece = NULL;
}

static tg_status check_until(tg_file *file, int until) {
    tg_checking c = { .next = 0 };
    const tg_status status = tg_checking_go_on(&c, file, until, 0);
    tg_checking_deinit(&c, file);
    return status;
}

tg_status tg_file_check_chunks(tg_file *file) { return check_until(file, TG_CHECKING_HASH); }
tg_status tg_file_check_all(tg_file *file) { return check_until(file, TG_CHECKING_DONE); }

/* ---------------------------------------------------------------------------------- open newest */

struct tg_opening {
    tg_ctx *ctx;
    const char *path;
    bool is_prev;    /* path was no good: its predecessor is tried */
    tg_buf previous; /* the name of that */
    tg_file *file;   /* open, and being checked */
    tg_checking checking;
    tg_status status; /* of path */
    char why[TG_MESSAGE_BYTES];
    bool by_machine;
};

tg_status tg_opening_new(tg_ctx *ctx, const char *path, tg_opening **out) {
    tg_opening *o = *out = tg_alloc(&ctx->mem, sizeof *o);
    if (!o) {
        return tg_fail_memory(ctx, path, sizeof *o);
    }
    o->ctx = ctx;
    o->path = path;
    tg_buf_init(&o->previous, &ctx->mem);
    return TG_OK;
}

static void close_file(tg_opening *o) {
    if (o->file) {
        tg_checking_deinit(&o->checking, o->file);
    }
    tg_file_close(o->file);
    o->file = NULL;
    o->checking = (tg_checking) { .next = 0 };
}

void tg_opening_free(tg_opening *o) {
    if (!o) {
        return;
    }
    const tg_mem mem = o->ctx->mem;
    close_file(o);
    tg_buf_deinit(&o->previous);
    tg_free(&mem, o, sizeof *o);
}

/*
 * Opening proves head and tables; the chunks are read here, since whoever fell back to the
 * predecessor after the first damaged tensor would have half a model in memory. Without a hash: it
 * costs several times more, and what it covers beyond the CRCs is itself. The predecessor is the
 * last resort and a rare one, so it is checked with the hash, too.
 */
static tg_status open_whole(tg_opening *o, const char *path, double deadline_ms) {
    if (!o->file) {
        TG_TRY(tg_file_open(o->ctx, path, &o->file));
    }
    const int until = o->is_prev ? TG_CHECKING_NUMBERS : TG_CHECKING_HASH;
    return tg_checking_go_on(&o->checking, o->file, until, deadline_ms);
}

/* Is this the kind of failure after which the predecessor is the right answer? Not if there is no
 * memory, nor if the file is fine but of a later version, nor for a folder or a device. */
static bool is_damage(tg_status status, tg_os_kind kind) {
    return (status == TG_E_IO || status == TG_E_FORMAT || status == TG_E_CHECKSUM) &&
           (kind == TG_OS_FILE || kind == TG_OS_NONE);
}

/* The first failure of a context sticks, so it is put aside while the other file is tried. */
static tg_status turn_to_previous(tg_opening *o, tg_status status) {
    close_file(o);
    if (!is_damage(status, tg_os_kind_of(o->path))) {
        return status;
    }
    tg_buf_puts(&o->previous, o->path);
    tg_buf_puts(&o->previous, ".prev");
    if (o->previous.failed || tg_os_kind_of(tg_buf_text(&o->previous)) != TG_OS_FILE) {
        return status; /* there is no predecessor: the first message says it all */
    }
    o->is_prev = true;
    o->status = status;
    memcpy(o->why, o->ctx->message, sizeof o->why);
    o->by_machine = o->ctx->by_machine;
    tg_ctx_clear(o->ctx);
    return TG_OK;
}

static tg_status both_failed(tg_opening *o) {
    char second[TG_MESSAGE_BYTES];
    memcpy(second, o->ctx->message, sizeof second);
    tg_ctx_clear(o->ctx);
    tg_fail(o->ctx, o->status, "%s; and %s", o->why, second);
    o->ctx->by_machine = o->by_machine;
    return o->status;
}

tg_status tg_opening_go_on(tg_opening *o, double deadline_ms, tg_file **out, bool *used_prev) {
    *out = NULL;
    if (!o->is_prev) {
        const tg_status status = open_whole(o, o->path, deadline_ms);
        if (status == TG_PENDING) {
            return status;
        }
        if (status != TG_OK) {
            TG_TRY(turn_to_previous(o, status));
        }
    }
    if (o->is_prev) {
        const char *previous = tg_buf_text(&o->previous);
        const tg_status status = open_whole(o, previous, deadline_ms);
        if (status == TG_PENDING) {
            return status;
        }
        if (status != TG_OK) {
            return both_failed(o);
        }
        tg_say(o->ctx, TG_LOG_WARNING, "%s: using %s instead", o->why, previous);
    }
    tg_checking_deinit(&o->checking, o->file);
    *out = o->file;
    *used_prev = o->is_prev;
    o->file = NULL;
    return TG_OK;
}

tg_status tg_file_open_newest(tg_ctx *ctx, const char *path, tg_file **out, bool *used_prev) {
    tg_opening *o;
    *out = NULL;
    *used_prev = false;
    TG_TRY(tg_opening_new(ctx, path, &o));
    const tg_status status = tg_opening_go_on(o, 0, out, used_prev);
    tg_opening_free(o);
    return status;
}
