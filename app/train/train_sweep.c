/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_sweep.c - see train_sweep.h. The best run is the one with the lowest validation loss at any
 * time, or training loss where there is no validation.
 *
 * cmd_train.c makes a run for each value, of the same seed and text, and calls here:
 *
 *     tg_sweep_parse    once, while options are read: every value is one that its option takes
 *     tg_sweep_begin    the table's head
 *     tg_sweep_set      for each i: value i into the struct of options
 *     tg_sweep_go       for each i: the run to its end, and its row
 *     tg_sweep_end      a chart of those that were run, and the best
 *
 * Nothing is saved: a sweep finds a value, and the run with it is made anew. A run that diverges is
 * an answer and takes its row; any other error ends the sweep, and the table has what there is.
 *
 * The table goes to app->out. With --json rows are lines of JSON on standard output, and
 * cmd_train.c asks for no table.
 */
#include "train/train_sweep.h"

#include "print/format.h"
#include "signals.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A signal is looked for at the end of each slice, so a run is interrupted within about 50 ms. */
enum { SLICE_MS = 50, CHART_COLS = 30 };

static const char *name_of(const tg_sweep *s) { return s->option->name + 2; /* without dashes */ }

/* --------------------------------------------------------------------------------------- parsing
 */

/* One message for all that is no list and no range: the forms say more than the place of the fault.
 */
static int refuse(const tg_args *args, const char *text) {
    return tg_args_refuse(args,
                          "--sweep: want NAME=LOW..HIGH:log:N, NAME=LOW..HIGH:lin:N or "
                          "NAME=A,B,.. with 2 to %d values, have %.60s",
                          TG_SWEEP_MAX, text);
}

/* strtod also takes "inf" and "nan", of which no option has any use. */
static bool number(const char *text, char **end, double *out) {
    *out = strtod(text, end);
    return *end != text && isfinite(*out);
}

/* The n-th root of x > 0, by halving: the program links no libm. n is below TG_SWEEP_MAX, so that a
 * product of n factors is a cheap way to compare. */
static double root(double x, long n) {
    if (x < 1) return 1 / root(1 / x, n);
    double low = 1, high = x;
    for (int i = 0; i < 100; i++) {
        const double middle = low + (high - low) / 2;
        double power = 1;
        for (long k = 0; k < n && power <= x; k++) power *= middle;
        *(power > x ? &high : &low) = middle;
    }
    return low;
}

/* LOW..HIGH:log:N or LOW..HIGH:lin:N. LOW may be the larger one. Ends are the numbers that were
 * given, to the bit: only what lies between is computed. */
static bool parse_range(const char *text, tg_sweep *s) {
    double low, high;
    char *end;
    const char *dots = strstr(text, "..");
    char first[64]; /* on its own, or strtod would take a point of ".." for the number's */
    if (!dots || (size_t)(dots - text) >= sizeof first) return false;
    memcpy(first, text, (size_t)(dots - text));
    first[dots - text] = '\0';
    if (!number(first, &end, &low) || *end || !number(dots + 2, &end, &high)) return false;
    const bool is_log = strncmp(end, ":log:", 5) == 0;
    if (!is_log && strncmp(end, ":lin:", 5) != 0) return false;
    const char *count = end + 5;
    const long n = strtol(count, &end, 10);
    if (end == count || *end || n < 2 || n > TG_SWEEP_MAX || low == high) return false;
    if (is_log && (low <= 0 || high <= 0)) return false;
    const double ratio = is_log ? root(high / low, n - 1) : 1,
                 step = (high - low) / (double)(n - 1);
    s->value[0] = low;
    for (long i = 1; i < n; i++)
        s->value[i] = is_log ? s->value[i - 1] * ratio : low + step * (double)i;
    s->value[n - 1] = high;
    s->n = (size_t)n;
    return true;
}

/* In the order that was given; values that are twice there run twice. One alone is no sweep. */
static bool parse_list(const char *text, tg_sweep *s) {
    char *end;
    for (;; text = end + 1) {
        if (s->n == TG_SWEEP_MAX || !number(text, &end, &s->value[s->n])) return false;
        s->n++;
        if (*end == '\0') return s->n >= 2;
        if (*end != ',') return false;
    }
}

static bool is_number(const tg_option *o) {
    return o->kind == TG_OPTION_REAL || o->kind == TG_OPTION_INT;
}

/* Each value as the option itself would take it; a whole number is rounded, halves away
 * from zero, since a logarithmic range seldom hits one. Bounds belong to the range but for
 * above_low. */
static bool fits(const tg_option *o, double *value) {
    if (o->kind == TG_OPTION_REAL)
        return *value >= o->real_low && *value <= o->real_high &&
               !(o->above_low && *value == o->real_low);
    if (!(*value >= (double)o->low - 1 && *value <= (double)o->high + 1 && fabs(*value) < 0x1p62))
        return false;
    *value = (double)(int64_t)(*value + (*value < 0 ? -0.5 : 0.5));
    return *value >= (double)o->low && *value <= (double)o->high;
}

/* Names are compared as a whole, since one may begin another. All values are checked before the
 * first run, which may take hours. */
int tg_sweep_parse(const tg_args *args, const char *text, const tg_option *options,
                   size_t n_options, tg_sweep *out) {
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    *out = (tg_sweep) { .n = 0 };
    for (size_t i = 0; i < n_options; i++) {
        const char *name = options[i].name + 2;
        if (strlen(name) == length && strncmp(name, text, length) == 0 && is_number(&options[i]))
            out->option = &options[i];
    }
    if (!out->option)
        return tg_args_refuse(args,
                              "--sweep: want the name of an option of training that is a number, "
                              "have %.40s",
                              text);
    if (!equals || !(strstr(equals, "..") ? parse_range : parse_list)(equals + 1, out))
        return refuse(args, text);
    for (size_t i = 0; i < out->n; i++)
        if (!fits(out->option, &out->value[i]))
            return tg_args_refuse(args, "--sweep: %s does not take %g", out->option->name,
                                  out->value[i]);
    return TG_ARGS_GO_ON;
}

/* As the parser of options does: a double or an int64_t at the option's offset. By memcpy, since
 * the struct is bytes here. */
void tg_sweep_set(const tg_sweep *s, size_t i, void *values) {
    char *const to = (char *)values + s->option->offset;
    const int64_t whole = (int64_t)s->value[i];
    if (s->option->kind == TG_OPTION_REAL)
        memcpy(to, &s->value[i], sizeof s->value[i]);
    else
        memcpy(to, &whole, sizeof whole);
}

/* --------------------------------------------------------------------------------------- running
 */

/* What runs are compared by, the less the better; NaN, which compares with nothing: it diverged. */
static double judged(const tg_sweep_row *r) {
    if (r->diverged) return NAN;
    return isnan(r->best_val) ? r->loss : r->best_val;
}

static void put_cell(FILE *f, double x) {
    if (isnan(x))
        fprintf(f, " %9s", "-");
    else
        fprintf(f, " %9.4f", x);
}

static void put_json(const tg_sweep *s, size_t i) {
    const tg_sweep_row *r = &s->row[i];
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_text(&j, "option", name_of(s));
    tg_jout_double(&j, "value", s->value[i]);
    tg_jout_int(&j, "step", r->step);
    tg_jout_double(&j, "loss", r->loss);
    tg_jout_double(&j, "val", r->val);
    tg_jout_double(&j, "best_val", r->best_val);
    tg_jout_int(&j, "best_step", r->best_step);
    tg_jout_bool(&j, "diverged", r->diverged);
    tg_jout_rounded(&j, "seconds", r->seconds, 3);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* As soon as a run has ended, and flushed: the next one may take long. quiet is of the table; JSON
 * lines are asked for by themselves. */
static void put_row(const tg_app *app, const tg_sweep *s, size_t i, bool quiet) {
    const tg_sweep_row *r = &s->row[i];
    FILE *f = app->out.file;
    if (app->globals.json) put_json(s, i);
    if (quiet) return;
    fprintf(f, "  %12.4g", s->value[i]);
    put_cell(f, r->loss);
    put_cell(f, r->val);
    put_cell(f, r->best_val);
    fprintf(f, " %9" PRId64 " %9s%s\n", r->best_step, TG_CLOCK(r->seconds),
            r->diverged ? "  diverged" : "");
    fflush(f);
}

/* val_loss is NaN in a step that no validation followed. best_val begins as NaN, which is why the
 * comparison is negated: the first validation is the best one so far. */
static void take(tg_sweep_row *r, const tg_step_report *report) {
    r->step = report->step;
    r->loss = report->loss;
    if (isnan(report->val_loss)) return;
    r->val = report->val_loss;
    if (!(r->val >= r->best_val)) {
        r->best_val = r->val;
        r->best_step = report->step;
    }
}

/* TG_PENDING is a slice, TG_OK a step, TG_STOPPED the end. TG_E_NUMBER is a step that was refused
 * as its numbers are not finite. An interrupted run has no row: its loss says nothing beside whole
 * ones. */
int tg_sweep_go(tg_app *app, tg_sweep *s, size_t i, tg_trainer *trainer, bool quiet) {
    const double start = tg_app_now_ms();
    tg_sweep_row *r = &s->row[i];
    *r = (tg_sweep_row) { .loss = NAN, .val = NAN, .best_val = NAN };
    for (;;) {
        tg_step_report report = { 0 };
        const tg_status status = tg_trainer_poll(trainer, SLICE_MS, &report);
        if (status == TG_OK) take(r, &report);
        if (status == TG_STOPPED || (status == TG_OK && report.early_stop)) break;
        if (status == TG_E_NUMBER) {
            r->diverged = true;
            break;
        }
        if (status != TG_OK && status != TG_PENDING)
            return tg_app_failed(app, app->ctx, status, TG_WORKING);
        if (tg_signals_caught()) return TG_EXIT_INTERRUPTED;
    }
    r->seconds = (tg_app_now_ms() - start) / 1000;
    put_row(app, s, i, quiet);
    return TG_ARGS_GO_ON;
}

/* ---------------------------------------------------------------------------------------- table
 */

void tg_sweep_begin(const tg_app *app, const tg_sweep *s, bool quiet) {
    if (!quiet)
        fprintf(app->out.file, "  %12s %9s %9s %9s %9s %9s\n", name_of(s), "loss", "val",
                "best val", "at step", "time");
}

/* Where each run lies between the best and the worst of them:
 *
 *                 lr  1.4321                   2.7183
 *             0.0001                                o
 *              0.001  o
 *
 * The losses' range is CHART_COLS + 1 columns. Where all are equal they lie at the left. */
static void put_chart(FILE *f, const tg_sweep *s, size_t n, double low, double high) {
    fprintf(f, "\n  %12s  %-*.4f%9.4f\n", name_of(s), CHART_COLS - 8, low, high);
    for (size_t i = 0; i < n; i++) {
        const double x = judged(&s->row[i]);
        const double share = high > low ? (x - low) / (high - low) : 0;
        fprintf(f, "  %12.4g  ", s->value[i]);
        if (isnan(x))
            fputs("diverged\n", f);
        else
            fprintf(f, "%*s\n", (int)(share * (double)CHART_COLS) + 1, "o");
    }
}

/* Of the first n_done rows, those of whole runs. best == n_done means none so far: all have
 * diverged, or none was made, and there is nothing to tell. Of equal ones the first is the best. */
void tg_sweep_end(const tg_app *app, const tg_sweep *s, size_t n_done, bool quiet) {
    size_t best = n_done;
    double high = -INFINITY;
    for (size_t i = 0; i < n_done; i++) {
        const double x = judged(&s->row[i]);
        if (isnan(x)) continue;
        if (best == n_done || x < judged(&s->row[best])) best = i;
        if (x > high) high = x;
    }
    if (quiet || best == n_done) return;
    FILE *f = app->out.file;
    put_chart(f, s, n_done, judged(&s->row[best]), high);
    fprintf(f, "\nThe best of %zu ", n_done);
    if (n_done < s->n) fprintf(f, "of %zu ", s->n); /* the others were not made any more */
    fprintf(f, "runs has %s %.10g: loss %.4f\n", s->option->name, s->value[best],
            judged(&s->row[best]));
}
