/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - the growing buffer.
 *
 *     data   |<------ length ------>|0|<--- unused --->|
 *            |<---------------- room ----------------->|
 *
 * Invariant: length < room whenever room > 0, and data[length] is 0: one byte is always kept for
 * the end of a C string, so that reading the buffer as text never has to write to it.
 *
 * Every way in goes through tg_buf_reserve, the only place that allocates and that can fail.
 */
#include "base/buf.h"

void tg_buf_init(tg_buf *buf, const tg_mem *mem) { *buf = (tg_buf) { .mem = *mem }; }

/* Keeps mem: after an error the same buffer can be filled again. */
void tg_buf_deinit(tg_buf *buf) {
    tg_free(&buf->mem, buf->data, buf->room);
    buf->data = NULL;
    buf->length = buf->room = 0;
    buf->failed = false;
}

void tg_buf_clear(tg_buf *buf) {
    buf->length = 0;
    buf->failed = false;
    if (buf->data) buf->data[0] = 0;
}

/*
 * A failure sticks. If a later, smaller piece were let in after a larger one found no room, the
 * content would have a hole that nobody could see.
 */
char *tg_buf_reserve(tg_buf *buf, size_t n_bytes) {
    if (buf->failed) return NULL;
    size_t wanted;
    if (!tg_add_size(buf->length, n_bytes, &wanted) || !tg_add_size(wanted, 1, &wanted)) {
        buf->failed = true;
        return NULL;
    }
    if (wanted > buf->room) {
        /* Half as much again keeps appending linear and wastes a third at most. */
        size_t room = buf->room + buf->room / 2;
        if (room < wanted) room = wanted;
        if (room < 64) room = 64;
        char *moved = tg_realloc(&buf->mem, buf->data, buf->room, room);
        if (!moved) {
            buf->failed = true;
            return NULL;
        }
        buf->data = moved;
        buf->room = room;
    }
    return buf->data + buf->length;
}

/* bytes may be NULL with n_bytes 0, which memcpy would not allow. They must not lie in the buffer
 * itself, which moves. */
void tg_buf_append(tg_buf *buf, const void *bytes, size_t n_bytes) {
    char *to = tg_buf_reserve(buf, n_bytes);
    if (!to) return;
    if (n_bytes) memcpy(to, bytes, n_bytes);
    to[n_bytes] = 0;
    buf->length += n_bytes;
}

void tg_buf_puts(tg_buf *buf, const char *text) { tg_buf_append(buf, text, strlen(text)); }

void tg_buf_putc(tg_buf *buf, char c) { tg_buf_append(buf, &c, 1); }

/* Formats twice, to measure and to write: a va_list can be walked once only, hence the copy. */
void tg_buf_vprintf(tg_buf *buf, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    char *to = length >= 0 ? tg_buf_reserve(buf, (size_t)length) : NULL;
    if (to) {
        vsnprintf(to, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
}

void tg_buf_printf(tg_buf *buf, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tg_buf_vprintf(buf, format, args);
    va_end(args);
}

const char *tg_buf_text(const tg_buf *buf) { return buf->data ? buf->data : ""; }

tg_status tg_buf_status(tg_ctx *ctx, const tg_buf *buf, const char *what) {
    return buf->failed ? tg_fail_memory(ctx, what, buf->length) : TG_OK;
}
