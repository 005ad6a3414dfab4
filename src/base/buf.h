/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a byte buffer and string builder that grows.
 *
 * Running out of memory is remembered (failed), later appends do nothing, and the caller asks once
 * at the end: text is built in straight lines, without a check behind every piece.
 */
#ifndef TG_BASE_BUF_H
#define TG_BASE_BUF_H

#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"

/* data[0..length) is valid; data[length] is 0 once anything was appended. data moves when it grows.
 */
typedef struct tg_buf {
    tg_mem mem;
    char *data; /* NULL while empty */
    size_t length;
    size_t room;
    bool failed; /* an append had no memory: the content is cut there */
} tg_buf;

void tg_buf_init(tg_buf *buf, const tg_mem *mem); /* allocates nothing */
void tg_buf_deinit(tg_buf *buf);                  /* frees; the buffer is empty and usable again */
void tg_buf_clear(tg_buf *buf);                   /* length 0 and failed reset, memory kept */

void tg_buf_append(tg_buf *buf, const void *bytes, size_t n_bytes);
void tg_buf_puts(tg_buf *buf, const char *text);
void tg_buf_putc(tg_buf *buf, char c);
TG_PRINTF(2, 3) void tg_buf_printf(tg_buf *buf, const char *format, ...);
void tg_buf_vprintf(tg_buf *buf, const char *format, va_list args);

/* Makes room for n_bytes more and returns where they go (then add to length); NULL: no memory. */
char *tg_buf_reserve(tg_buf *buf, size_t n_bytes);

/* The content as a C string, "" if empty; valid until the next change. */
const char *tg_buf_text(const tg_buf *buf);

/* TG_OK, or TG_E_MEMORY if any append failed. */
tg_status tg_buf_status(tg_ctx *ctx, const tg_buf *buf, const char *what);

#endif
