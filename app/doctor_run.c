/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_run.c - what tinygpt doctor finds out by training the smallest preset for a moment.
 *
 * These are the promises that a user relies on without seeing them: a fresh model guesses blindly
 * (loss ln 256), training lowers the loss, threads change no bit, a save survives the disk, and a
 * resumed run is the run.
 */
#define _POSIX_C_SOURCE 200809L /* getpid, unlink */
#include "doctor.h"

#include "bench/bench.h"
#include "print/format.h"
#include "signals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const double blind_loss = 5.545177444479562; /* ln 256 */

/* 60 steps are enough for the smallest preset to lose more than half a nat, with room to spare.
 * Eight steps are enough for a wrong bit to spread into the loss: each step reads all weights. */
enum { LEARN_STEPS = 60, SAME_STEPS = 8, HALF = 4, PATH_BYTES = 4096 };

/* Whatever the presets are: a check should take a moment, not a minute. */
static const tg_preset *smallest(void) {
    const tg_preset *best = tg_preset_at(0), *p;
    for (size_t i = 1; (p = tg_preset_at(i)) != NULL; i++) {
        if (tg_param_count(&p->config) < tg_param_count(&best->config)) best = p;
    }
    return best;
}

/* A wrong initialisation shows in the first loss, a wrong gradient or optimizer in the last. The
 * first step is not part of the mean time: it touches all pages. */
static void check_learning(tg_doctor *d, const tg_preset *p) {
    tg_rig rig;
    tg_context *ctx = d->app->ctx;
    tg_status status = tg_rig_open(&rig, ctx, &p->config, p->batch);
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "a training run");
        return;
    }
    status = tg_rig_steps(&rig, 1, NULL);
    const double first = rig.last.loss, before = tg_app_now_ms();
    if (status == TG_OK) status = tg_rig_steps(&rig, LEARN_STEPS - 1, NULL);
    const double last = rig.last.loss, ms = (tg_app_now_ms() - before) / (LEARN_STEPS - 1);
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "a training run");
    } else {
        const bool blind = fabs(first - blind_loss) < 0.3, learns = last < first - 0.5;
        tg_doctor_find(d, blind ? TG_MARK_OK : TG_MARK_FAIL,
                       "a fresh model guesses blindly: loss %.3f, want ln 256 = %.3f", first,
                       blind_loss);
        tg_doctor_find(d, learns ? TG_MARK_OK : TG_MARK_FAIL,
                       "it learns: loss %.3f after %d steps of preset %s, %.2f ms each", last,
                       LEARN_STEPS, p->name, ms);
    }
    tg_rig_close(&rig);
}

/* The hash of all losses after some steps in a context with this many threads. */
static tg_status hash_with_threads(tg_doctor *d, const tg_preset *p, unsigned threads,
                                   uint64_t *hash) {
    tg_context *ctx;
    tg_rig rig;
    tg_status status = tg_app_context(d->app, threads, "", &ctx);
    if (status == TG_OK) status = tg_rig_open(&rig, ctx, &p->config, p->batch);
    if (status == TG_OK) {
        status = tg_rig_steps(&rig, SAME_STEPS, NULL);
        *hash = rig.last.loss_hash;
        tg_rig_close(&rig);
    }
    /* Before the context is freed: the message is in it. tg_app_context sets ctx on failure,
     * too. */
    if (status != TG_OK) tg_doctor_failed(d, ctx, status, "a run with other threads");
    tg_context_free(ctx);
    return status;
}

/* Three does not divide the work evenly, and is more than many machines have. */
static void check_threads(tg_doctor *d, const tg_preset *p) {
    static const unsigned counts[] = { 1, 2, 3 };
    uint64_t hash[3];
    for (size_t i = 0; i < 3; i++) {
        if (hash_with_threads(d, p, counts[i], &hash[i]) != TG_OK) return;
    }
    const bool same = hash[0] == hash[1] && hash[0] == hash[2];
    tg_doctor_find(d, same ? TG_MARK_OK : TG_MARK_FAIL,
                   "losses with 1, 2 and 3 threads %s, over %d steps",
                   same ? "are the same to the bit" : "differ", SAME_STEPS);
}

/* The rate of bench.h's rig is the library's default, so this is training as a user would meet
 * it. */
void tg_doctor_training(tg_doctor *d) {
    const tg_preset *p = smallest();
    tg_doctor_section(d, "training");
    check_learning(d, p);
    check_threads(d, p);
}

/* ------------------------------------------------------------------------------------------ files
 */

/* One bit in the middle of the file, where the moments lie, turned for good: the file is thrown
 * away afterwards. A file is written in full by fclose, so its answer counts as well. */
static bool flip_bit(const char *path) {
    FILE *f = fopen(path, "r+b");
    if (!f) return false;
    bool ok = fseek(f, (long)(tg_app_file_bytes(path) / 2), SEEK_SET) == 0;
    const int byte = ok ? fgetc(f) : EOF;
    ok = ok && byte != EOF && fseek(f, -1, SEEK_CUR) == 0 && fputc(byte ^ 1, f) != EOF;
    return fclose(f) == 0 && ok;
}

/* Saves after HALF steps, then lets that trainer and one opened from the file go on: same hash? */
static void check_resume(tg_doctor *d, tg_rig *rig, const char *path) {
    tg_context *ctx = d->app->ctx;
    tg_trainer *resumed = NULL;
    tg_step_report report = { 0 };
    tg_status status = tg_rig_steps(rig, HALF, NULL);
    const double before = tg_app_now_ms();
    if (status == TG_OK) status = tg_trainer_save(rig->trainer, path);
    const double ms = tg_app_now_ms() - before;
    if (status == TG_OK) status = tg_file_check(ctx, path);
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "a save");
        return;
    }
    tg_doctor_find(d, TG_MARK_OK, "a save of %s is on the disk after %s, and whole",
                   TG_BYTES(tg_app_file_bytes(path)), TG_TIME(ms / 1000));
    status = tg_trainer_open(ctx, path, rig->text, 0, &resumed);
    for (int i = 0; i < HALF && status == TG_OK; i++) status = tg_trainer_step(resumed, &report);
    if (status == TG_OK) status = tg_rig_steps(rig, HALF, NULL);
    if (status != TG_OK) {
        tg_doctor_failed(d, ctx, status, "a resumed run");
    } else {
        const bool same = report.loss_hash == rig->last.loss_hash;
        tg_doctor_find(d, same ? TG_MARK_OK : TG_MARK_FAIL,
                       "a resumed run %s the run that was never stopped",
                       same ? "is, to the bit," : "is not");
    }
    tg_trainer_free(resumed);
}

/* Whoever reads a checkpoint must not believe a rotten one. */
static void check_damage(tg_doctor *d, const char *path) {
    if (!flip_bit(path)) {
        tg_doctor_find(d, TG_MARK_FAIL, "%s could not be changed: %s", path, strerror(errno));
        return;
    }
    const bool seen = tg_file_check(d->app->ctx, path) != TG_OK;
    tg_doctor_find(d, seen ? TG_MARK_OK : TG_MARK_FAIL, "a flipped bit in a file is %s",
                   seen ? "found" : "not found");
}

/* The name has the process's number, so that two doctors in one folder do not meet, and nobody's
 * file is touched. No .prev is made by a first save; it is removed to be sure. */
void tg_doctor_files(tg_doctor *d, const char *folder) {
    char path[PATH_BYTES], other[PATH_BYTES + 16], why[512];
    const tg_preset *p = smallest();
    tg_rig rig;
    int code;
    tg_doctor_section(d, "files");
    const int length =
        snprintf(path, sizeof path, "%s/tinygpt-doctor-%ld.tinygpt", folder, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof path) {
        tg_doctor_find(d, TG_MARK_FAIL, "the name of the folder is too long");
        return;
    }
    if (!tg_app_can_write(path, why, sizeof why, &code)) {
        tg_doctor_find(d, TG_MARK_FAIL, "%s cannot be written to: %s", folder, why);
        return;
    }
    /* 100 MB is a handful of saves of a middling preset. */
    const uint64_t room = tg_app_disk_free(path);
    if (room != UINT64_MAX) {
        tg_doctor_find(d, room < 100 * 1000 * 1000 ? TG_MARK_WARN : TG_MARK_OK, "%s has %s free",
                       strcmp(folder, ".") ? folder : "this folder", TG_BYTES(room));
    }
    const tg_status status = tg_rig_open(&rig, d->app->ctx, &p->config, p->batch);
    if (status != TG_OK) {
        tg_doctor_failed(d, d->app->ctx, status, "a training run");
        return;
    }
    tg_signals_drop(path);
    check_resume(d, &rig, path);
    check_damage(d, path);
    tg_rig_close(&rig);
    unlink(path);
    tg_signals_drop(NULL);
    snprintf(other, sizeof other, "%s.prev", path);
    unlink(other);
}
