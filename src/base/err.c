/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.c - records the first failure and writes log lines.
 *
 * A message quotes what came from outside: paths, keys, tensor names. It is shown on a terminal and
 * written to logs, so two things are taken care of here, once for all: control characters cannot
 * reach the reader's terminal, and a message that has to be cut is cut between characters.
 *
 * Nothing here allocates: the message for "out of memory" must not need any.
 */
#include "base/err.h"

void tg_ctx_init(tg_ctx *ctx, const tg_mem *mem, tg_log_fn log, void *log_user) {
    ctx->mem = mem ? *mem : tg_mem_default();
    ctx->log = log;
    ctx->log_user = log_user;
    ctx->small_pages = false;
    ctx->files = (tg_ctx_files) { .seen = NULL };
    tg_ctx_clear(ctx);
}

void tg_ctx_clear(tg_ctx *ctx) {
    ctx->code = TG_OK;
    ctx->by_machine = false;
    ctx->message[0] = 0;
}

/*
 * A cut message may end inside a UTF-8 character, since paths and tensor names come from outside.
 * Drops the broken rest: continuation bytes are 10xxxxxx, and a character has at most three.
 */
static void trim_cut_character(char *text, size_t length) {
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0) return;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (whole > length - start + 1) text[start - 1] = 0;
}

/*
 * A hostile name must not move the cursor or change colours. The end of a line stays: a message may
 * list several findings. Bytes above 0x7f are parts of UTF-8 characters.
 */
static void disarm(char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\n') || c == 0x7f) *text = '?';
    }
}

/* An invalid format (a negative length) leaves an empty line: this is no place to fail. */
static void format_line(char line[TG_MESSAGE_BYTES], const char *format, va_list args) {
    const int length = vsnprintf(line, TG_MESSAGE_BYTES, format, args);
    if (length < 0)
        line[0] = 0;
    else if (length >= TG_MESSAGE_BYTES)
        trim_cut_character(line, TG_MESSAGE_BYTES - 1);
    disarm(line);
}

tg_status tg_vfail(tg_ctx *ctx, tg_status code, const char *format, va_list args) {
    if (ctx && ctx->code == TG_OK) {
        ctx->code = code;
        ctx->by_machine = code == TG_E_MEMORY;
        format_line(ctx->message, format, args);
    }
    return code;
}

/* Returns the caller's code even where an earlier one stays recorded: what a function returns is
 * what happened in it. */
tg_status tg_fail(tg_ctx *ctx, tg_status code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tg_vfail(ctx, code, format, args);
    va_end(args);
    return code;
}

tg_status tg_fail_memory(tg_ctx *ctx, const char *what, size_t bytes) {
    /* Tenths of a MiB by integers: no size is too small or too large to be shown. */
    const size_t tenths = bytes / 104858;
    if (bytes == 0) return tg_fail(ctx, TG_E_MEMORY, "%s: want memory, have no more", what);
    return tg_fail(ctx, TG_E_MEMORY, "%s: want %zu bytes of memory (%zu.%zu MiB), have no more",
                   what, bytes, tenths / 10, tenths % 10);
}

tg_status tg_fail_named(tg_ctx *ctx, const char *path, tg_status status) {
    char why[TG_MESSAGE_BYTES];
    const bool by_machine = ctx->by_machine;
    /* A path that fills the message would push the reason out of it. */
    if (status >= TG_OK || strlen(path) > TG_MESSAGE_BYTES / 2 || strstr(ctx->message, path))
        return status;
    memcpy(why, ctx->message, sizeof why);
    tg_ctx_clear(ctx);
    tg_fail(ctx, status, "%s: %s", path, why);
    ctx->by_machine = by_machine;
    return status;
}

tg_status tg_fail_as(tg_ctx *ctx, tg_status status, const tg_ctx *other) {
    if (ctx->code != TG_OK) return status;
    tg_fail(ctx, status, "%s", other->message);
    ctx->by_machine = other->by_machine;
    return status;
}

tg_status tg_stopped(tg_ctx *ctx, const char *what) {
    return tg_fail(ctx, TG_STOPPED, "%s: stopped by the receiver of its text", what);
}

void tg_say(const tg_ctx *ctx, int level, const char *format, ...) {
    if (!ctx || !ctx->log) return;
    char line[TG_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    format_line(line, format, args);
    va_end(args);
    ctx->log(ctx->log_user, level, line);
}

/* Without a default, so that the compiler names a status that the list forgot. */
const char *tg_status_text(tg_status status) {
    switch (status) {
#define STATUS_CASE(name, value, sentence)                                                         \
    case TG_##name: return sentence;
        TG_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "an unknown status";
}
