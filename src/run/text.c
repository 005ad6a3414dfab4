/*
 * text.c - texts and the windows that batches are made of.
 *
 * A file is read with pread as windows are needed: it may be larger than memory, and if it shrinks
 * while we train, that is an error with an offset, not a signal.
 */
#include "run/text.h"

#include "base/crc.h"
#include "base/rng.h"
#include "base/time.h"

/* Zeroed, so that tg_text_delete can take a text at any point of its making: file NULL means that
 * it lies in memory, and the other way round. The name is copied, since messages about a text come
 * long after the path that it was opened by is gone. */
static tg_status new_text(tg_context *ctx, const char *name, tg_text **out) {
    const tg_mem *mem = &ctx->err.mem;
    const size_t name_bytes = strlen(name) + 1;
    tg_text *t = tg_alloc(mem, sizeof *t);
    if (t) t->name = tg_alloc(mem, name_bytes);
    if (!t || !t->name) {
        tg_free(mem, t, sizeof *t);
        *out = NULL;
        return tg_fail_memory(&ctx->err, "text", sizeof *t + name_bytes);
    }
    memcpy(t->name, name, name_bytes);
    t->ctx = ctx;
    *out = t;
    return TG_OK;
}

tg_status tg_text_new_file(tg_context *ctx, const char *path, tg_text **out) {
    TG_TRY(new_text(ctx, path, out));
    const tg_status s = tg_os_file_open(&ctx->err, path, &(*out)->file);
    if (s != TG_OK) {
        tg_text_delete(*out);
        *out = NULL;
        return s;
    }
    (*out)->n_bytes = tg_os_file_bytes((*out)->file);
    return TG_OK;
}

tg_status tg_text_new_memory(tg_context *ctx, const char *bytes, size_t n_bytes, tg_text **out) {
    TG_TRY(new_text(ctx, "the text", out));
    (*out)->bytes = tg_alloc(&ctx->err.mem, n_bytes);
    if (!(*out)->bytes) {
        tg_text_delete(*out);
        *out = NULL;
        return tg_fail_memory(&ctx->err, "copy of a text", n_bytes);
    }
    if (n_bytes) memcpy((*out)->bytes, bytes, n_bytes);
    (*out)->n_bytes = n_bytes;
    return TG_OK;
}

/* n_bytes is the size of the copy, or that of the file, where bytes is NULL and the size unused. */
void tg_text_delete(tg_text *t) {
    if (!t) return;
    const tg_mem mem = t->ctx->err.mem;
    tg_os_file_close(t->file);
    tg_free(&mem, t->name, strlen(t->name) + 1);
    tg_free(&mem, t->bytes, (size_t)t->n_bytes);
    tg_free(&mem, t->window, t->window_room);
    tg_free(&mem, t, sizeof *t);
}

/* The range is the callers' duty, so a breach is our bug and has its own code; it is still no
 * crash. That a file has shrunk since it was opened is found by the read itself. */
tg_status tg_text_read(tg_text *t, uint64_t offset, void *out, size_t n) {
    if (offset > t->n_bytes || n > t->n_bytes - offset)
        return tg_fail(&t->ctx->err, TG_E_INTERNAL,
                       "text: want %zu bytes at %" PRIu64 ", have %" PRIu64 " in all", n, offset,
                       t->n_bytes);
    if (t->file) return tg_os_file_read(&t->ctx->err, t->file, offset, out, n);
    memcpy(out, t->bytes + offset, n);
    return TG_OK;
}

/* A fingerprint to tell texts apart on resuming: CRC-32C of the size (8 bytes, little-endian) and
 * of 64 pieces of 4 KiB, spread evenly from the start. At most 256 KiB are read, whatever the size,
 * so an edit between two pieces that keeps the length goes unseen. Part of the checkpoint format:
 * another number of pieces would make every saved run refuse its text. */
tg_status tg_text_mark(tg_text *t, uint32_t *mark) {
    enum { PIECES = 64, PIECE_BYTES = 4096 };
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
tg_split tg_text_split(uint64_t n_bytes, double val_fraction) {
    const uint64_t val = (uint64_t)((double)n_bytes * val_fraction);
    return (tg_split) { n_bytes - val, val };
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
 * state, in whatever order. The last start is train_bytes - T - 1: the window's last target is then
 * the last byte of the part, and validation text is never a target of training. */
uint64_t tg_batch_start(uint64_t seed, uint64_t sample, uint64_t train_bytes, size_t T) {
    uint32_t x[4];
    tg_philox(seed, sample, TG_RNG_BATCH, 0, x);
    return tg_rng_below(tg_rng_draw64(x), train_bytes - T);
}

uint64_t tg_eval_windows(const tg_split *s, size_t T, int32_t wanted) {
    const uint64_t all = s->val_bytes > 0 ? (s->val_bytes - 1) / T : 0;
    return wanted > 0 && (uint64_t)wanted < all ? (uint64_t)wanted : all;
}

/* Window i of n, spread evenly over the windows that tile the validation part. The product is i *
 * all, not a fraction of doubles, so it cannot round differently elsewhere. */
uint64_t tg_eval_start(const tg_split *s, size_t T, uint64_t i, uint64_t n) {
    const uint64_t all = (s->val_bytes - 1) / T;
    return s->train_bytes + i * all / n * T;
}
