/*
 * buf.c - the growing buffer.
 *
 * Invariant: length < room whenever room > 0, and data[length] is 0: one byte is always kept for
 * the end of a C string.
 */
#include "base/buf.h"

void tg_buf_init(tg_buf *buf, const tg_mem *mem) { *buf = (tg_buf) { .mem = *mem }; }

void tg_buf_deinit(tg_buf *buf) {
    tg_free(&buf->mem, buf->data, buf->room);
    buf->data = NULL;
    buf->length = buf->room = 0;
    buf->failed = false;
}

void tg_buf_clear(tg_buf *buf) {
    buf->length = 0;
    buf->failed = false;
    if (buf->data) {
        buf->data[0] = 0;
    }
}

char *tg_buf_reserve(tg_buf *buf, size_t n_bytes) {
    if (buf->failed) {
        return NULL;
    }
    size_t wanted;
    if (!tg_add_size(buf->length, n_bytes, &wanted) || !tg_add_size(wanted, 1, &wanted)) {
        buf->failed = true;
        return NULL;
    }
    if (wanted > buf->room) {
        /* Half as much again keeps appending linear and wastes a third at most. */
        size_t room = buf->room + buf->room / 2;
        if (room < wanted) {
            room = wanted;
        }
        if (room < 64) {
            room = 64;
        }
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

void tg_buf_append(tg_buf *buf, const void *bytes, size_t n_bytes) {
    char *to = tg_buf_reserve(buf, n_bytes);
    if (!to) {
        return;
    }
    if (n_bytes) {
        memcpy(to, bytes, n_bytes);
    }
    to[n_bytes] = 0;
    buf->length += n_bytes;
}

void tg_buf_puts(tg_buf *buf, const char *text) { tg_buf_append(buf, text, strlen(text)); }

void tg_buf_putc(tg_buf *buf, char c) { tg_buf_append(buf, &c, 1); }

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
