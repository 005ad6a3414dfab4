/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_file.h - a file that the program writes by itself, as a FILE: what the library's tg_writer
 * does, with printf.
 *
 *     tg_outfile f;
 *     if (tg_outfile_open(app, path, &output, &f)) ... fprintf(f.file, ..) ...
 *     status = tg_outfile_commit(&f);        or _publish, for a file that grows
 *
 * The file appears under its name with the commit, whole; before it, nothing at path has changed.
 */
#ifndef TG_APP_OUT_FILE_H
#define TG_APP_OUT_FILE_H

#include "app.h"

typedef struct tg_outfile {
    tg_context *ctx;
    tg_writer *writer;
    FILE *file;    /* NULL: closed */
    tg_lock *lock; /* of a file that grows; NULL: none */
} tg_outfile;

/* What the program's own files begin with, which is how the next run knows them; train_log.c has
 * that of a log. */
extern const tg_output_rule tg_output_picture, tg_output_talk, tg_output_vocabulary;

/* These return the library's status, whose message is in the context. */
tg_status tg_outfile_open(tg_context *ctx, const char *path, const tg_output_rule *output,
                          tg_outfile *out);
tg_status tg_outfile_publish(tg_outfile *f);
tg_status tg_outfile_commit(tg_outfile *f); /* closes in any case; fine if it is closed */
void tg_outfile_abort(tg_outfile *f);

#endif
