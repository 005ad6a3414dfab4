/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_file.c - a FILE whose bytes go to a tg_writer (see out_file.h).
 */
#define _GNU_SOURCE /* fopencookie */
#include "out_file.h"

#include <errno.h>
#include <string.h>

#define BEGINS(text) .begins = text, .begins_bytes = sizeof text - 1

const tg_output_rule tg_output_picture = {
    .kind = TG_OUTPUT_OTHER,
    .what = "a picture of tinygpt's",
    BEGINS("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")
};
/* As the library begins it; other programs write line ends. */
const tg_output_rule tg_output_vocabulary = {
    .kind = TG_OUTPUT_OTHER,
    .what = "a tokenizer.json of tinygpt",
    BEGINS("{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,")
};
const tg_output_rule tg_output_talk = { .kind = TG_OUTPUT_OTHER,
                                        .what = "a conversation of tinygpt",
                                        BEGINS("tinygpt chat ") };

/* The writer keeps its first error; errno is what stdio tells of it. */
static ssize_t to_writer(void *cookie, const char *bytes, size_t n_bytes) {
    const tg_outfile *f = cookie;
    errno = 0;
    if (tg_writer_write(f->writer, bytes, n_bytes) == TG_OK) return (ssize_t)n_bytes;
    if (errno == 0) errno = EIO;
    return 0; /* how a cookie says that it failed */
}

tg_status tg_outfile_open(tg_context *ctx, const char *path, const tg_output_rule *output,
                          tg_outfile *out) {
    *out = (tg_outfile) { .ctx = ctx };
    const tg_status s = tg_writer_new(ctx, path, output, &out->writer);
    if (s != TG_OK) return s;
    out->file = fopencookie(out, "wb", (cookie_io_functions_t) { .write = to_writer });
    if (out->file) return TG_OK;
    tg_outfile_abort(out);
    return TG_E_MEMORY;
}

/* The first error is the writer's, so flushing need not be asked. */
tg_status tg_outfile_publish(tg_outfile *f) {
    fflush(f->file);
    return tg_writer_publish(f->writer);
}

tg_status tg_outfile_commit(tg_outfile *f) {
    if (f->file) fclose(f->file);
    const tg_status s = tg_writer_commit(f->writer);
    tg_lock_free(f->lock);
    *f = (tg_outfile) { .ctx = f->ctx };
    return s;
}

void tg_outfile_abort(tg_outfile *f) {
    if (f->file) fclose(f->file);
    tg_writer_abort(f->writer);
    tg_lock_free(f->lock);
    *f = (tg_outfile) { .ctx = f->ctx };
}
