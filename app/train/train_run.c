/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_run.c - the loop of a training run (see train_run.h).
 *
 * How a run can end, and what is on disk then:
 *
 *     finished, early stop        saved                                     exit 0
 *     SIGINT, SIGTERM, SIGHUP,    saved at the last whole step              exit 130
 *     SIGQUIT
 *     nobody reads the output     saved at the last whole step, no word     exit 3
 *     text or device gone         saved at the last whole step              exit 3
 *     a number is not finite      the save before is kept, nothing written  exit 1
 *     the last save fails         the save before is kept                   exit 1
 *
 * A save in the middle that fails is a warning, and the next one is tried when it is due: a full
 * disk may be emptied while the run goes on. --stop-on-save-error makes it an end (exit 1).
 */
#define _POSIX_C_SOURCE 200809L /* access */
#include "train/train_run.h"

#include "last_error.h"
#include "print/curve.h"
#include "print/format.h"
#include "signals.h"
#include "train/train_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double slice_ms = 50, auto_save_ms = 60000;
enum { AUTO_SAVE_STEPS = 500, COMMAND_BYTES = 1024 };

/* ---------------------------------------------------------------------------------------- saving
 */

static bool save_is_due(const tg_trainrun *run) {
    const int64_t done = run->last.step;
    if (!run->out || run->save_every == 0 || done == run->steps) return false;
    if (run->save_every > 0) return done % run->save_every == 0;
    /* A failed save leaves saved_step behind, so the clock alone decides about the next try. */
    const int64_t since = run->saved_step > run->first_step ? run->saved_step : run->first_step;
    return (!run->save_failed && done - since >= AUTO_SAVE_STEPS) ||
           tg_app_now_ms() - run->saved_ms >= auto_save_ms;
}

/* A save that went wrong is told at once, and made up for by the next one. */
static bool saved(const tg_trainrun *run, const char *what, tg_status status) {
    if (status == TG_OK) return true;
    tg_app_warn(run->app,
                "step %" PRId64 " could not be saved (%s): %s; the save before is untouched",
                tg_trainer_steps_done(run->trainer), what, tg_context_error(run->app->ctx));
    return false;
}

/*
 * Saves the best weights, if there are new ones, and the run. False after a warning.
 *
 * The best weights go first: a run that is killed in between resumes from the save before and meets
 * them again, whereas a saved run never comes back to the step of best weights that were not.
 */
static bool save(tg_trainrun *run) {
    bool fine = true;
    if (run->best && run->best_due) {
        fine = saved(run, "the best weights", tg_trainer_save_best(run->trainer, run->best));
        if (fine) run->best_due = false;
    }
    if (saved(run, "the run", tg_trainer_save(run->trainer, run->out)))
        run->saved_step = tg_trainer_steps_done(run->trainer);
    else
        fine = false;
    run->saved_ms = tg_app_now_ms();
    run->save_failed = !fine;
    return fine;
}

/* A second save replaces what the first one has moved to .prev, so of the other run nothing would
 * be left. Forced, these words are a warning, and of best weights without a run: a run that was
 * killed before its first save leaves such. */
int tg_trainrun_over(tg_app *app, const char *out, const char *best, bool force) {
    const bool other = tg_app_file_bytes(out) > 0;
    if (other && !force) {
        tg_app_error(app,
                     "--out: %s exists, and the second save would be the end of it: choose another "
                     "name, go on with that run (--resume), or start over it (--force)",
                     out);
        return TG_EXIT_USAGE;
    }
    const char *path = other ? out : best;
    if (tg_app_file_bytes(path) > 0)
        tg_app_warn(app,
                    "%s exists: the first save moves it to %s.prev, the second one "
                    "replaces it",
                    path, path);
    return TG_ARGS_GO_ON;
}

/* -------------------------------------------------------------------------------------- sampling
 */

/* For JSON the text goes through a buffer, else straight into the block. */
typedef struct sink {
    tg_sampleblock *block;
    tg_app_buffer *buffer;
} sink;

static int to_sink(void *user, const char *bytes, size_t n_bytes) {
    sink *s = user;
    return s->block ? tg_sampleblock_text(s->block, bytes, n_bytes)
                    : tg_app_buffer_add(s->buffer, bytes, n_bytes);
}

/* A session of its own for every sample: the weights have changed since the one before. */
static void sample(tg_trainrun *run, tg_app_buffer *text) {
    tg_session *session;
    tg_sample_options options = tg_sample_options_default();
    tg_sampleblock block;
    sink s = { text ? NULL : &block, text };
    options.seed = run->seed;
    const char *prompt = run->sample_prompt;
    tg_status status = tg_session_new(run->app->ctx, tg_trainer_model(run->trainer), 0, &session);
    if (status == TG_OK) {
        if (!text) {
            tg_sampleblock_begin(&block, &run->show, run->last.step);
            tg_sampleblock_text(&block, prompt, strlen(prompt));
        }
        tg_generation what = tg_generation_default();
        what.prompt = prompt;
        what.prompt_bytes = strlen(prompt);
        what.sample = &options;
        what.n_tokens = (size_t)run->sample_tokens;
        what.write = to_sink;
        what.cancel = tg_signals_cancel;
        what.user = &s;
        status = tg_session_continue(session, &what, NULL);
        if (!text) tg_sampleblock_end(&block);
        tg_session_free(session);
    }
    if (status != TG_OK && status != TG_STOPPED) {
        tg_app_warn(run->app, "no sample: %s", tg_context_error(run->app->ctx));
    }
}

/* ------------------------------------------------------------------------------------ after a step
 */

static void write_log(tg_trainrun *run, const tg_step_report *r, const tg_preferences *pairs) {
    if (!run->log) return;
    tg_trainlog_step(run->log->file, tg_trainlog_form(run->log_path), r, pairs);
    if (ferror(run->log->file)) {
        tg_app_warn(run->app, "%s cannot be written any more (%s); the run goes on without a log",
                    run->log_path, tg_context_error(run->app->ctx));
        tg_outfile_abort(run->log);
        run->log = NULL;
        run->log_failed = true;
    }
}

/* From the mean of all steps of this process, so validations, samples and saves have their share.
 */
static double seconds_left(const tg_trainrun *run) {
    const int64_t done = run->last.step - run->first_step;
    const double seconds = (tg_app_now_ms() - run->started_ms) / 1000;
    return done > 0 ? seconds / (double)done * (double)(run->steps - run->last.step) : NAN;
}

/*
 * The order matters. The log comes before the save: a save must never hold a step that its log
 * lacks, while lines beyond the save are cut off when the run is resumed. The sample comes before
 * the JSON line, which carries it. Returns false if the run is to end because of a failed save.
 */
static bool after_step(tg_trainrun *run, const tg_step_report *r) {
    tg_app_buffer text = { 0 };
    tg_preferences of_step;
    const tg_preferences *pairs = NULL;
    if (tg_trainer_preferences(run->trainer, &of_step) == TG_OK) pairs = &of_step;
    const bool json = run->app->globals.json;
    run->last = *r;
    if (r->val_is_best) {
        run->best_val = r->val_loss;
        run->best_step = r->step;
        run->best_due = true;
    }
    if (!isfinite(r->val_loss)) of_step.val_accuracy = of_step.val_margin = NAN;
    write_log(run, r, pairs);
    tg_trainshow_step(&run->show, r, pairs, seconds_left(run));
    const bool sample_due =
        run->sample_every > 0 && (r->step % run->sample_every == 0 || r->step == run->steps);
    if (sample_due && (json || !run->quiet)) sample(run, json ? &text : NULL);
    if (json) {
        tg_jout j = tg_jout_to(stdout);
        tg_trainlog_open_step(&j, r, pairs);
        if (sample_due) tg_jout_text(&j, "sample", text.bytes ? text.bytes : "");
        tg_jout_close(&j);
        tg_jout_line(&j);
    }
    tg_app_buffer_free(&text);
    return !save_is_due(run) || save(run) || !run->stop_on_save_error;
}

/* ------------------------------------------------------------------------------------- the endings
 */

/* The last JSON line. reason: finished, early_stop, interrupted, stopped, not_finite, failed. */
static void tell_json(const tg_trainrun *run, const char *reason, int code) {
    if (!run->app->globals.json) return;
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_bool(&j, "done", code == TG_EXIT_DONE);
    tg_jout_text(&j, "reason", reason);
    tg_jout_int(&j, "step", tg_trainer_steps_done(run->trainer));
    tg_jout_int(&j, "steps", run->steps);
    tg_jout_double(&j, "loss", run->last.step > run->first_step ? run->last.loss : NAN);
    tg_jout_double(&j, "val", run->show.val);
    tg_jout_double(&j, "best_val", run->best_val);
    tg_jout_rounded(&j, "seconds", (tg_app_now_ms() - run->started_ms) / 1000, 3);
    tg_jout_text(&j, "out", run->saved_step >= 0 ? run->out : NULL);
    if (run->from) tg_app_put_file_read(&j, tg_trainer_model(run->trainer), run->from);
    tg_jout_int(&j, "exit", code);
    if (code != TG_EXIT_DONE) tg_last_error_put(&j, code);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* "build/tinygpt train --data book.txt --resume run.tinygpt", ready to be copied. */
static void print_resume(const tg_trainrun *run, const char *file, int64_t steps) {
    char shown[COMMAND_BYTES];
    FILE *f = run->app->out.file;
    const tg_args_list *const texts[] = { run->data, run->val_data };
    bool standard = false;
    fprintf(f, "    %s train", tg_app_program());
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < texts[i]->n; k++) {
            const char *text = texts[i]->item[k];
            const char *option = i ? "val-data" : run->of_pairs ? "pairs" : "data";
            fprintf(f, " --%s %s", option, tg_fmt_shell(shown, sizeof shown, text));
            standard = standard || strcmp(text, "-") == 0;
        }
    if (run->mix) fprintf(f, " --mix %s", tg_fmt_shell(shown, sizeof shown, run->mix));
    fprintf(f, " --resume %s", tg_fmt_shell(shown, sizeof shown, file));
    if (steps > 0) fprintf(f, " --steps %" PRId64, steps);
    fputs(standard ? "\n    with the same text on standard input again\n" : "\n", f);
}

/* Micro-steps of an unfinished step are dropped by the save; they are replayed after a resume. */
static int end_interrupted(tg_trainrun *run) {
    const int64_t step = tg_trainer_steps_done(run->trainer);
    tg_term *out = &run->app->out;
    tg_term_clear(out);
    if (step == run->first_step) {
        /* The plan has ended with an empty line; on a terminal ^C stands behind it. */
        fprintf(out->file, "%sInterrupted before the first step: nothing was saved.\n",
                out->tty ? "\n" : "");
    } else if (!run->out) {
        fprintf(out->file, "\nInterrupted after step %" PRId64 "; nothing was saved (--no-save).\n",
                step);
    } else if (run->saved_step == step || save(run)) {
        fprintf(out->file, "\nInterrupted: step %" PRId64 " is saved in %s. To go on:\n", step,
                run->out);
        print_resume(run, run->out, 0);
    } else {
        tell_json(run, "interrupted", TG_EXIT_FAILED);
        return TG_EXIT_FAILED;
    }
    tell_json(run, "interrupted", TG_EXIT_INTERRUPTED);
    return TG_EXIT_INTERRUPTED;
}

/* `train | head`: a signal would have ended any other program here. A save that fails still says so
 * on standard error. */
static int end_unread(tg_trainrun *run) {
    const int64_t step = tg_trainer_steps_done(run->trainer);
    if (run->out && step > run->first_step && run->saved_step != step && !save(run))
        return TG_EXIT_FAILED;
    return run->saved_step == step ? TG_EXIT_SAVED : TG_EXIT_FAILED;
}

/* A number is not finite: what is in memory is not to be trusted, the file is. The library's
 * message names the first tensor that held one. */
static int end_not_finite(tg_trainrun *run) {
    tg_app_error(run->app, "%s", tg_context_error(run->app->ctx));
    FILE *f = run->app->out.file;
    if (run->saved_step >= 0) {
        fprintf(f, "%s holds step %" PRId64 ", the last good save.", run->out, run->saved_step);
    } else {
        fputs("Nothing had been saved since the start.", f);
    }
    fputs(" What helps: a smaller --lr, --warmup 100,\n"
          "or --skip-bad-steps to go on with the next batch.\n",
          f);
    tell_json(run, "not_finite", TG_EXIT_FAILED);
    return TG_EXIT_FAILED;
}

/* The text or the device is gone, or memory: the last whole step is in order and is saved. */
static int end_failed(tg_trainrun *run, tg_status status) {
    const int64_t step = tg_trainer_steps_done(run->trainer);
    tg_app *app = run->app;
    if (status == TG_E_NUMBER) return end_not_finite(run);
    int code = tg_app_failed(app, app->ctx, status, TG_WORKING);
    /* After a step has worked, the input was good: what fails now is no mistake of the user's. */
    if (code == TG_EXIT_USAGE && step > run->first_step) code = TG_EXIT_FAILED;
    if (run->out && status != TG_E_INTERNAL && step > run->first_step &&
        (run->saved_step == step || save(run))) {
        code = TG_EXIT_SAVED;
        fprintf(app->out.file, "Stopped: step %" PRId64 " is saved in %s. To go on:\n", step,
                run->out);
        print_resume(run, run->out, 0);
    }
    tell_json(run, code == TG_EXIT_SAVED ? "stopped" : "failed", code);
    return code;
}

/* The curve of the whole run, steps before a resume included. */
static bool make_curve(const tg_trainrun *run, tg_curve *curve) {
    size_t n;
    const tg_history_point *points = tg_trainer_history(run->trainer, &n);
    tg_curve_point *all = n > 0 ? malloc(2 * n * sizeof *all) : NULL;
    *curve = (tg_curve) { 0 };
    if (!all) return false;
    tg_curve_point *val = all + n;
    curve->train = all;
    curve->val = val;
    for (size_t i = 0; i < n; i++) {
        all[curve->n_train++] = (tg_curve_point) { (double)points[i].step, points[i].loss };
        if (!isfinite(points[i].val_loss)) continue;
        val[curve->n_val++] = (tg_curve_point) { (double)points[i].step, points[i].val_loss };
    }
    return true;
}

/* False if the picture was asked for and could not be written. */
static bool write_svg(tg_trainrun *run, const tg_curve *curve) {
    tg_context *ctx = run->app->ctx;
    tg_outfile f;
    tg_status status = tg_outfile_open(ctx, run->svg, &tg_output_picture, &f);
    if (status == TG_OK) {
        tg_curve_svg(f.file, curve);
        status = tg_outfile_commit(&f);
    }
    if (status == TG_OK) return true;
    tg_app_warn(run->app, "%s could not be written: %s", run->svg, tg_context_error(ctx));
    return !run->svg_wanted;
}

/* As a picture and, if it is shown, on the terminal, from one history. */
static bool draw_curves(tg_trainrun *run, bool shown) {
    tg_curve curve;
    bool ok = true;
    if (make_curve(run, &curve)) {
        char title[256];
        snprintf(title, sizeof title, "tinygpt: %s", run->out ? run->out : run->data->item[0]);
        curve.title = title;
        tg_term *out = &run->app->out;
        if (shown && !run->quiet && !run->app->globals.json) {
            const int width = tg_term_width(out) - 1;
            fputc('\n', out->file);
            tg_curve_draw(out, &curve, width < 100 ? width : 100, 12);
        }
        if (run->svg && curve.n_train > 1) ok = write_svg(run, &curve);
    }
    free((void *)curve.train);
    return ok;
}

/* The numbers once more, and what to do next as commands that can be copied. */
static void print_summary(const tg_trainrun *run, bool early) {
    tg_term *out = &run->app->out;
    FILE *f = out->file;
    const char *bold = tg_term_style(out, TG_BOLD), *plain = tg_term_style(out, TG_PLAIN);
    const char *dim = tg_term_style(out, TG_DIM);
    fprintf(f, "\n%s%s after %s steps%s, in %s\n", bold, early ? "Stopped early" : "Done",
            TG_COUNT((uint64_t)run->last.step), plain,
            TG_TIME((tg_app_now_ms() - run->started_ms) / 1000));
    if (early) fputs("  the validation loss has stopped falling (--patience)\n", f);
    fprintf(f, "  loss       %.3f in training", run->last.loss);
    if (isfinite(run->show.val)) fprintf(f, ", %.3f in validation", run->show.val);
    if (run->best_step > 0 && run->best_step < run->last.step) {
        fprintf(f, " (best %.3f at step %" PRId64 ")", run->best_val, run->best_step);
    }
    const bool val = isfinite(run->show.val);
    const double of_tokens = val ? run->show.val_bits_per_byte : run->last.bits_per_byte;
    const double of_bytes = (val ? run->show.val : run->last.loss) / TG_LN2;
    const bool writes = tg_model_can(tg_trainer_model(run->trainer), TG_CAN_WRITE);
    if (run->of_pairs)
        fprintf(f, "\n  that is    %.0f%% of pairs as preferred, a margin of %.3f\n",
                100 * (val ? run->show.pairs.val_accuracy : run->show.pairs.accuracy),
                val ? run->show.pairs.val_margin : run->show.pairs.margin);
    else if (writes)
        fprintf(f, "\n  that is    %.2f bits a byte; a blind guess takes 8\n",
                isfinite(of_tokens) ? of_tokens : of_bytes);
    else
        fputs(", a masked token\n", f);
    if (run->out) {
        fprintf(f, "  saved      %s%s%s%s%s\n", run->out,
                run->best && run->best_step > 0 ? ", " : "",
                run->best && run->best_step > 0 ? run->best : "", run->svg ? ", " : "",
                run->svg ? run->svg : "");
        char model[COMMAND_BYTES];
        tg_fmt_shell(model, sizeof model, run->out);
        if (writes)
            fprintf(f, "\n  %sLet it write%s\n    %s sample %s --tokens 300\n", dim, plain,
                    tg_app_program(), model);
        else
            fprintf(f, "\n  %sEmbed a text%s\n    %s embed %s \"a text\"\n", dim, plain,
                    tg_app_program(), model);
        fprintf(f, "  %sTrain it further%s\n", dim, plain);
        print_resume(run, run->out, 2 * run->steps);
        fprintf(f, "  %sLook into the file%s\n    %s info %s\n", dim, plain, tg_app_program(),
                model);
    }
}

/* Code 0 promises that the run is on the disk, with everything that was asked for by name. */
static int end_finished(tg_trainrun *run) {
    tg_app *app = run->app;
    const int64_t step = tg_trainer_steps_done(run->trainer);
    const bool early = run->last.early_stop;
    tg_term_clear(&app->out);
    if (step == run->first_step) {
        fprintf(app->out.file,
                "This run is finished: it has done its %" PRId64 " steps. "
                "More of them:\n",
                step);
        /* Nothing was written: the run is where it was. */
        if (run->from) print_resume(run, run->from, 2 * step);
        /* But for the picture, where the run was killed behind its last save. */
        const bool lacks = run->svg && access(run->svg, F_OK) != 0;
        const int code = lacks && !draw_curves(run, false) ? TG_EXIT_FAILED : TG_EXIT_DONE;
        tell_json(run, code == TG_EXIT_DONE ? "finished" : "failed", code);
        return code;
    }
    int code = TG_EXIT_DONE;
    if (run->out && run->saved_step != step && !save(run)) code = TG_EXIT_FAILED;
    if (run->save_failed) code = TG_EXIT_FAILED;
    if (!draw_curves(run, true)) code = TG_EXIT_FAILED;
    if (!run->quiet && code == TG_EXIT_DONE) print_summary(run, early);
    tell_json(run, code != TG_EXIT_DONE ? "failed" : early ? "early_stop" : "finished", code);
    return code;
}

/* ------------------------------------------------------------------------------------------ loop
 */

/* The best validation of a resumed run so far. */
static void recall_best(tg_trainrun *run) {
    size_t n;
    const tg_history_point *points = tg_trainer_history(run->trainer, &n);
    run->best_val = NAN;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(points[i].val_loss) || points[i].val_loss >= run->best_val) continue;
        run->best_val = points[i].val_loss;
        run->best_step = points[i].step;
    }
}

/*
 * A step that is done is dealt with before a signal is obeyed, so that log, table and save agree.
 * The signal is asked for after every slice; a second one needs no asking (signals.c).
 */
int tg_trainrun_go(tg_trainrun *run) {
    run->first_step = tg_trainer_steps_done(run->trainer);
    run->started_ms = run->saved_ms = tg_app_now_ms();
    run->last = (tg_step_report) { .step = run->first_step };
    run->saved_step = -1;
    recall_best(run);
    tg_trainshow_init(&run->show, run->app, run->quiet || run->app->globals.json, run->steps,
                      run->eval_every);
    for (;;) {
        tg_step_report report = { 0 };
        const tg_status status = tg_trainer_poll(run->trainer, slice_ms, &report);
        if (status == TG_OK && !after_step(run, &report)) {
            tell_json(run, "failed", TG_EXIT_FAILED);
            return TG_EXIT_FAILED;
        }
        if (status == TG_STOPPED || (status == TG_OK && report.early_stop)) {
            return end_finished(run);
        }
        if (status != TG_OK && status != TG_PENDING) return end_failed(run, status);
        if (tg_signals_caught()) return end_interrupted(run);
        if ((!run->quiet || run->app->globals.json) && tg_app_reader_gone()) return end_unread(run);
    }
}
