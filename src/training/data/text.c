/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - texts and the windows that batches are made of.
 *
 * A file is read with pread as windows are needed: it may be larger than memory, and if it shrinks
 * while we train, that is an error with an offset, not a signal. Several files are one text, with
 * nothing between them: a window may begin in one and end in the next.
 */
#include "training/data/text.h"

#include "base/codec/crc.h"
#include "base/rng.h"
#include "base/time.h"
#include "io/reader.h"

static char *copy_string(const tg_mem *mem, const char *text) {
    const size_t n = strlen(text) + 1;
    char *copy = tg_alloc(mem, n);
    if (copy) memcpy(copy, text, n);
    return copy;
}

/* Zeroed, so that tg_text_delete can take a text at any point of its making: a part without a path
 * lies in memory. Path and name are copied, since messages about a text come long after the path
 * that it was opened by is gone. */
static tg_status new_text(tg_context *ctx, const char *path, tg_text **out) {
    const tg_mem *mem = &ctx->err.mem;
    tg_text *t = tg_alloc(mem, sizeof *t);
    *out = NULL;
    if (t) {
        t->ctx = ctx;
        t->name = copy_string(mem, path ? path : "the text");
        t->part = tg_alloc(mem, sizeof *t->part);
        t->n_parts = t->part != NULL;
        if (t->part && path) t->part->path = copy_string(mem, path);
    }
    if (!t || !t->name || !t->part || (path && !t->part->path)) {
        tg_text_delete(t);
        return tg_fail_memory(&ctx->err, "text", sizeof *t);
    }
    *out = t;
    return TG_OK;
}

/* Deletes a text whose making failed. */
static tg_status made(tg_text **t, tg_status status) {
    if (status == TG_OK) return TG_OK;
    tg_text_delete(*t);
    *t = NULL;
    return status;
}

static void close_one(tg_text *t) {
    for (;; t->next_to_close++) {
        tg_text_part *p = &t->part[t->next_to_close % t->n_parts];
        if (!p->file) continue;
        tg_os_file_close(p->file);
        p->file = NULL;
        t->n_open--;
        t->next_to_close++;
        return;
    }
}

static tg_status open_part(tg_text *t, tg_text_part *p) {
    if (t->n_open == TG_TEXT_FILES_MAX) close_one(t);
    TG_TRY(tg_os_file_open(&t->ctx->err, p->path, &p->file));
    t->n_open++;
    return TG_OK;
}

tg_status tg_text_new_file(tg_context *ctx, const char *path, tg_text **out) {
    uint8_t first;
    size_t n; /* a pointer of git LFS is no text to train on */
    TG_TRY(tg_reader_first(&ctx->err, path, &first, 1, &n));
    TG_TRY(new_text(ctx, path, out));
    tg_text *t = *out;
    TG_TRY(made(out, open_part(t, t->part)));
    t->n_bytes = t->part->n_bytes = tg_os_file_bytes(t->part->file);
    return TG_OK;
}

static tg_status take_bytes(tg_text *t, const char *bytes, size_t n_bytes) {
    t->part->bytes = tg_alloc(&t->ctx->err.mem, n_bytes);
    if (!t->part->bytes) return tg_fail_memory(&t->ctx->err, "copy of a text", n_bytes);
    if (n_bytes) memcpy(t->part->bytes, bytes, n_bytes);
    t->n_bytes = t->part->n_bytes = n_bytes;
    return TG_OK;
}

tg_status tg_text_new_memory(tg_context *ctx, const char *bytes, size_t n_bytes, tg_text **out) {
    TG_TRY(new_text(ctx, NULL, out));
    return made(out, take_bytes(*out, bytes, n_bytes));
}

static void free_string(const tg_mem *mem, char *text) {
    if (text) tg_free(mem, text, strlen(text) + 1);
}

/* n_bytes is the size of the copy, or that of the file, where bytes is NULL and the size unused. */
void tg_text_delete(tg_text *t) {
    if (!t) return;
    const tg_mem mem = t->ctx->err.mem;
    if (t->rows_free) t->rows_free(t->rows_user);
    for (size_t i = 0; i < t->n_parts; i++) {
        tg_os_file_close(t->part[i].file);
        free_string(&mem, t->part[i].path);
        tg_free(&mem, t->part[i].bytes, (size_t)t->part[i].n_bytes);
    }
    tg_free(&mem, t->part, t->n_parts * sizeof *t->part);
    tg_free(&mem, t->mix, t->n_mix * sizeof *t->mix);
    free_string(&mem, t->name);
    tg_free(&mem, t->window, t->window_room);
    tg_free(&mem, t, sizeof *t);
}

/* Files of both may be open: those above the limit are closed again. */
tg_status tg_text_append(tg_text *t, tg_text *more) {
    const tg_mem *mem = &t->ctx->err.mem;
    const size_t had = t->n_parts, n = had + more->n_parts;
    tg_text_part *all = tg_realloc(mem, t->part, had * sizeof *all, n * sizeof *all);
    if (!all) return tg_fail_memory(&t->ctx->err, "parts of a text", n * sizeof *all);
    memcpy(all + had, more->part, more->n_parts * sizeof *all);
    for (size_t i = had; i < n; i++) all[i].first += t->n_bytes;
    t->part = all;
    t->n_parts = n;
    t->n_bytes += more->n_bytes;
    t->n_open += more->n_open;
    while (t->n_open > TG_TEXT_FILES_MAX) close_one(t);
    tg_free(mem, more->part, more->n_parts * sizeof *all);
    more->part = NULL;
    more->n_parts = 0;
    tg_text_delete(more);
    return TG_OK;
}

/* A file that was closed meanwhile must be as long as it was. */
static tg_status read_part(tg_text *t, tg_text_part *p, uint64_t offset, void *out, size_t n) {
    if (!p->path) {
        memcpy(out, p->bytes + offset, n);
        return TG_OK;
    }
    if (!p->file) {
        TG_TRY(open_part(t, p));
        if (tg_os_file_bytes(p->file) != p->n_bytes)
            return tg_fail(&t->ctx->err, TG_E_IO,
                           "%s: want %" PRIu64 " bytes, as it had before, have %" PRIu64, p->path,
                           p->n_bytes, tg_os_file_bytes(p->file));
    }
    return tg_os_file_read(&t->ctx->err, p->file, offset, out, n);
}

/* The last part that begins at or before an offset; of empty ones among them the last, too. */
static size_t part_at(const tg_text *t, uint64_t offset) {
    size_t low = 0, high = t->n_parts;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (t->part[middle].first <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *tg_text_name_at(const tg_text *t, uint64_t offset) {
    const char *path = t->part[part_at(t, offset)].path;
    return path ? path : t->name;
}

size_t tg_text_train_parts(const tg_text *t) { return t->n_mix ? t->n_mix : 1; }

/* A part that is held back may be shorter now than when the text was mixed, which leaves parts of
 * nothing: whoever wants windows of them says so. */
uint64_t tg_text_part_end(const tg_text *t, size_t k) {
    const uint64_t train = t->held_from ? t->held_from : t->n_bytes;
    if (k >= tg_text_train_parts(t)) return t->n_bytes;
    return k + 1 < t->n_mix && t->mix[k].end < train ? t->mix[k].end : train;
}

/* The range is the callers' duty, so a breach is our bug and has its own code; it is still no
 * crash. That a file has shrunk since it was opened is found by the read itself. */
tg_status tg_text_read(tg_text *t, uint64_t offset, void *out, size_t n) {
    if (offset > t->n_bytes || n > t->n_bytes - offset)
        return tg_fail(&t->ctx->err, TG_E_INTERNAL,
                       "text: want %zu bytes at %" PRIu64 ", have %" PRIu64 " in all", n, offset,
                       t->n_bytes);
    char *to = out;
    for (size_t i = part_at(t, offset); n > 0; i++) {
        tg_text_part *p = &t->part[i];
        const uint64_t from = offset - p->first, left = p->n_bytes - from;
        const size_t now = left < n ? (size_t)left : n;
        TG_TRY(read_part(t, p, from, to, now));
        to += now;
        offset += now;
        n -= now;
    }
    return TG_OK;
}

/* A fingerprint to tell texts apart on resuming: CRC-32C of the size (8 bytes, little-endian) and
 * of 64 pieces of 4 KiB, spread evenly from the start. At most 256 KiB are read, whatever the size,
 * so an edit between two pieces that keeps the length goes unseen. Part of the checkpoint format:
 * another number of pieces would make every saved run refuse its text. */
tg_status tg_text_mark(tg_text *t, uint32_t *mark) {
    enum { PIECES = 64, PIECE_BYTES = 4096 };
    *mark = t->rows_mark;
    if (t->train_row) return TG_OK;
    uint8_t piece[PIECE_BYTES], size[8];
    for (int i = 0; i < 8; i++) size[i] = (uint8_t)(t->n_bytes >> 8 * i);
    uint32_t crc = tg_crc32c(0, size, sizeof size);
    for (uint64_t i = 0; i < PIECES; i++) {
        const uint64_t room = t->n_bytes > PIECE_BYTES ? t->n_bytes - PIECE_BYTES : 0;
        const uint64_t at = room / PIECES * i;
        const size_t n = (size_t)(t->n_bytes - at < PIECE_BYTES ? t->n_bytes - at : PIECE_BYTES);
        TG_TRY(tg_text_read(t, at, piece, n));
        crc = tg_crc32c(crc, piece, n);
        if (room == 0) break;
    }
    *mark = crc;
    return TG_OK;
}

tg_status tg_text_checking_go_on(tg_text_checking *c, tg_text *t, double deadline_ms) {
    uint8_t piece[8192];
    while (c->done < t->n_bytes) {
        const uint64_t left = t->n_bytes - c->done;
        const size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        TG_TRY(tg_text_read(t, c->done, piece, n));
        c->crc = tg_crc32c(c->crc, piece, n);
        c->done += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

/* The piece lies on the stack, which has 1 MiB in WebAssembly. */
tg_status tg_text_hashing_go_on(tg_text_hashing *h, tg_text *t, double deadline_ms,
                                uint8_t digest[TG_SHA256_BYTES]) {
    uint8_t piece[16384];
    if (h->done == 0) tg_sha256_init(&h->sha);
    while (h->done < t->n_bytes) {
        const uint64_t left = t->n_bytes - h->done;
        const size_t n = left < sizeof piece ? (size_t)left : sizeof piece;
        TG_TRY(tg_text_read(t, h->done, piece, n));
        tg_sha256_update(&h->sha, piece, n);
        h->done += n;
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    tg_sha256_final(&h->sha, digest);
    return TG_OK;
}

/* floor, in double: exact for texts below 2^53 bytes, and the same on every machine. */
tg_split tg_split_of(uint64_t n, double val_fraction) {
    const uint64_t val = (uint64_t)((double)n * val_fraction);
    return (tg_split) { n - val, val };
}

tg_split tg_text_split(const tg_text *t, double val_fraction) {
    if (t->held_from) return (tg_split) { t->held_from, t->n_bytes - t->held_from };
    tg_split sum = { 0, 0 };
    for (size_t k = 0; k < tg_text_train_parts(t); k++) {
        const uint64_t first = k ? tg_text_part_end(t, k - 1) : 0;
        const tg_split s = tg_split_of(tg_text_part_end(t, k) - first, val_fraction);
        sum.train += s.train;
        sum.val += s.val;
    }
    return sum;
}

/* One buffer for all windows, grown when a longer context asks. Targets are the inputs shifted by
 * one, so a window of T tokens takes T + 1 bytes. */
tg_status tg_text_window(tg_text *t, uint64_t start, size_t T, int32_t *inputs, int32_t *targets) {
    if (t->window_room < T + 1) {
        tg_free(&t->ctx->err.mem, t->window, t->window_room);
        t->window_room = 0;
        t->window = tg_alloc(&t->ctx->err.mem, T + 1);
        if (!t->window) return tg_fail_memory(&t->ctx->err, "window of a text", T + 1);
        t->window_room = T + 1;
    }
    TG_TRY(tg_text_read(t, start, t->window, T + 1));
    for (size_t i = 0; i < T; i++) {
        inputs[i] = t->window[i];
        targets[i] = t->window[i + 1];
    }
    return TG_OK;
}

/* sample is the global number of the row in the run, so a batch can be drawn again without any
 * state, in whatever order. The last start is train - T - 1: the window's last target is then
 * the last token of the part, and validation text is never a target of training. */
uint64_t tg_batch_start(uint64_t seed, uint64_t sample, uint64_t train, size_t T) {
    uint32_t x[4];
    tg_philox(seed, sample, TG_RNG_BATCH, 0, x);
    return tg_rng_below(tg_rng_draw64(x), train - T);
}
