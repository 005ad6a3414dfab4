/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_log.h - one record a training step, for programs: --log FILE and --json.
 *
 * The name of the file decides the form: CSV if it ends in .csv, an event file of TensorBoard if it
 * has "tfevents" in it (TensorBoard opens no others), else JSON lines, as --json prints them:
 *

 *   {"step":12,"loss":2.31,"val":null,"lr":0.0003,"grad_norm":0.8,"ms":30.125,"tok_per_s":33990.1,
 *    "mfu":0.41,"hash":"9f3c0a55d2e01b77"}
 * A step whose update was refused has "skipped":true and "bad_tensor" as well, one on pairs
 * "accuracy", "margin", "val_accuracy" and "val_margin". CSV has these names in its first line and
 * empty fields for null; TensorBoard's tags are the same, but for val_loss.
 *
 * A resumed run continues its log: what lies beyond the step of the save (lines written after it,
 * or half a line from a crash) is cut off first, so that the file reads like that of a run which
 * was never broken. Only the timings tell.
 */
#ifndef TG_APP_TRAIN_LOG_H
#define TG_APP_TRAIN_LOG_H

#include "out_file.h"
#include "print/json_out.h"

typedef enum tg_logform { TG_LOG_JSON, TG_LOG_CSV, TG_LOG_EVENTS } tg_logform;
tg_logform tg_trainlog_form(const char *path);

/* Writes a step and flushes it; ferror tells what went wrong. pairs: NULL in a run on texts. */
void tg_trainlog_step(FILE *f, tg_logform form, const tg_step_report *report,
                      const tg_preferences *pairs);

/* Opens the object of a step and prints its fields; the caller may add some and closes it. */
void tg_trainlog_open_step(tg_jout *j, const tg_step_report *report, const tg_preferences *pairs);

/*
 * Opens path for the steps behind steps_done, on pairs or not; 0 starts the file anew. What was
 * there, if it is a log, stays as path.prev, unless it is continued for TensorBoard, which would
 * read both. On failure the message is in the context; abort *out in any case.
 */
tg_status tg_trainlog_begin(tg_context *ctx, const char *path, int64_t steps_done, bool of_pairs,
                            tg_outfile *out);

/* Bytes at the start of a log of lines that belong to steps 1..steps_done. text is zero-terminated.
 */
size_t tg_trainlog_keep(tg_logform form, const char *text, size_t n_bytes, int64_t steps_done);

#endif
