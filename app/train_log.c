/*
 * train_log.c - the log of a run, a line a step (see train_log.h).
 */
#define _POSIX_C_SOURCE 200809L /* fseeko, getline */
#include "train_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Losses are printed to the bit, timings as far as they can be told apart. The hash goes out as a
 * string: 64 bits do not fit into the doubles that most JSON readers have. */
void tg_trainlog_open_step(tg_jout *j, const tg_step_report *r) {
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, r->loss_hash);
    tg_jout_open(j, NULL, '{');
    tg_jout_int(j, "step", r->step);
    tg_jout_double(j, "loss", r->loss);
    tg_jout_double(j, "val", r->val_loss);
    tg_jout_double(j, "lr", r->lr);
    tg_jout_double(j, "grad_norm", r->grad_norm);
    tg_jout_rounded(j, "ms", r->ms, 3);
    tg_jout_rounded(j, "tok_per_s", r->tok_per_s, 1);
    tg_jout_rounded(j, "mfu", r->share_of_peak, 4);
    tg_jout_text(j, "hash", hash);
    if (r->skipped) {
        tg_jout_bool(j, "skipped", true);
        tg_jout_text(j, "bad_tensor", r->bad_tensor);
    }
}

/* Is this a whole line of ours, for a step that the save holds? */
static bool is_kept(const char *line, size_t n_bytes, int64_t steps_done) {
    static const char head[] = "{\"step\":";
    if (n_bytes < sizeof head || memcmp(line, head, sizeof head - 1) != 0) return false;
    if (line[n_bytes - 1] != '}') return false;
    char *end;
    errno = 0;
    const long long step = strtoll(line + sizeof head - 1, &end, 10);
    return errno == 0 && *end == ',' && step >= 1 && step <= steps_done;
}

/* Steps only grow in a log, so what is to be cut is one piece at its end. */
size_t tg_trainlog_keep(const char *text, size_t n_bytes, int64_t steps_done) {
    size_t kept = 0;
    while (kept < n_bytes) {
        const char *line = text + kept;
        const char *end = memchr(line, '\n', n_bytes - kept);
        if (!end || !is_kept(line, (size_t)(end - line), steps_done)) break;
        kept += (size_t)(end - line) + 1;
    }
    return kept;
}

/* The length to cut the log to, read line by line: a log may be longer than memory. A log of a run
 * that crashed can end in half a line; it is cut off with the steps that the save does not have.
 * What is not ours, from the first strange line on, is cut as well. */
static bool kept_bytes(FILE *f, int64_t steps_done, off_t *out) {
    char *line = NULL;
    size_t cap = 0;
    *out = 0;
    for (;;) {
        const ssize_t n = getline(&line, &cap, f);
        if (n < 0 || tg_trainlog_keep(line, (size_t)n, steps_done) != (size_t)n) break;
        *out += n;
    }
    free(line);
    return ferror(f) == 0;
}

/* Copies the first bytes of the log that is there. */
static bool copy(FILE *from, FILE *to, off_t bytes) {
    char block[65536];
    for (off_t left = bytes; left > 0;) {
        const size_t n = left < (off_t)sizeof block ? (size_t)left : sizeof block;
        if (fread(block, 1, n, from) != n || fwrite(block, 1, n, to) != n) return false;
        left -= (off_t)n;
    }
    return true;
}

/* The lines of the steps that the save holds, from the log that is there, if one is. */
static bool take_over(const char *path, int64_t steps_done, FILE *to) {
    struct stat info;
    off_t keep = 0;
    if (steps_done == 0 || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return true;
    FILE *from = fopen(path, "rb");
    const bool right = from && kept_bytes(from, steps_done, &keep) &&
                       fseeko(from, 0, SEEK_SET) == 0 && copy(from, to, keep);
    if (from) fclose(from);
    return right;
}

/* Written anew beside the old one and published when it has what is kept: a log is never half cut.
 */
tg_status tg_trainlog_begin(tg_context *ctx, const char *path, int64_t steps_done,
                            tg_outfile *out) {
    const tg_status s = tg_outfile_open(ctx, path, &tg_output_log, out);
    if (s != TG_OK) return s;
    if (take_over(path, steps_done, out->file)) return tg_outfile_publish(out);
    return TG_E_IO;
}
