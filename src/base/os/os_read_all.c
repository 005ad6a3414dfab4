/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_read_all.c - a whole file in a buffer, by what each system opens and reads files with.
 */
#include "base/os/os.h"

/* The size is checked before memory is asked for. A zero follows, which is no part of the text. */
static tg_status read_whole(tg_ctx *ctx, const tg_os_file *file, const char *path, size_t max_bytes,
                            tg_buf *out) {
    const uint64_t bytes = tg_os_file_bytes(file);
    if (bytes > max_bytes)
        return tg_fail(ctx, TG_E_FORMAT, "%s: want at most %zu bytes, have %" PRIu64, path,
                       max_bytes, bytes);
    char *to = tg_buf_reserve(out, (size_t)bytes);
    if (!to) return tg_fail_memory(ctx, path, (size_t)bytes);
    TG_TRY(tg_os_file_read(ctx, file, 0, to, (size_t)bytes));
    to[bytes] = 0;
    out->length += (size_t)bytes;
    return TG_OK;
}

tg_status tg_os_read_all(tg_ctx *ctx, const char *path, size_t max_bytes, tg_buf *out) {
    tg_os_file *file;
    TG_TRY(tg_os_file_open(ctx, path, &file));
    const tg_status status = read_whole(ctx, file, path, max_bytes, out);
    tg_os_file_close(file);
    return status;
}
