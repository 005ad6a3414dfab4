/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_show.c - the table of a training run (see train_show.h).
 */
#include "train/train_show.h"

#include "print/curve.h"
#include "print/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The live row changes ten times a second: faster is unreadable, and each costs a write. Half a
 * minute without a row is what somebody who follows a log file takes for a hang. */
static const double live_every_ms = 100, row_every_ms = 30000;
enum { CELL_BYTES = TG_FMT_BYTES };

/* ---------------------------------------------------------------------------------------- table */

/* From left to right: the index of columns[] and of a row's cells. */
enum { STEP, LOSS, BITS, PPL, RIGHT, MARGIN, VAL, SPEED, PEAK, MEMORY, LEFT_, COLUMNS };

/* keep: columns of a low number stay longest when the window is narrow; equal ones go together. A
 * width holds a blank and the widest value that number() and tg_fmt_ make, so columns never
 * touch. */
static const struct {
    const char *name;
    int width, keep;
} columns[COLUMNS] = {
    [STEP] = { "step", 9, 0 },       [LOSS] = { "loss", 8, 0 },
    [BITS] = { "bits/byte", 11, 5 }, [PPL] = { "ppl", 8, 6 },
    [VAL] = { "val", 8, 1 },         [SPEED] = { "tok/s", 9, 3 },
    [PEAK] = { "peak", 7, 7 },       [MEMORY] = { "memory", 10, 8 },
    [LEFT_] = { "left", 9, 2 },      [RIGHT] = { "accuracy", 10, 5 },
    [MARGIN] = { "margin", 9, 6 },
};

static bool is_shown(const tg_trainshow *show, size_t i, int limit) {
    const bool of_texts = i == BITS || i == PPL, of_pairs = i == RIGHT || i == MARGIN;
    return columns[i].keep <= limit && !(show->of_pairs ? of_texts : of_pairs);
}

/* The number of columns' keep up to which they fit into width. */
static int kept_up_to(const tg_trainshow *show, int width) {
    for (int limit = 8; limit > 0; limit--) {
        int sum = 0;
        for (size_t i = 0; i < COLUMNS; i++) sum += is_shown(show, i, limit) ? columns[i].width : 0;
        if (sum <= width) return limit;
    }
    return 0;
}

/* Printed again after every sample, and laid out for the width that the window has now. A column of
 * the window stays free, as in tg_term_live. */
static void print_header(tg_trainshow *show) {
    tg_term *out = &show->app->out;
    const int limit = kept_up_to(show, tg_term_width(out) - 1);
    tg_term_clear(out);
    fputs(tg_term_style(out, TG_DIM), out->file);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (is_shown(show, i, limit)) fprintf(out->file, "%*s", columns[i].width, columns[i].name);
    }
    fprintf(out->file, "%s\n", tg_term_style(out, TG_PLAIN));
    show->header_due = false;
}

/* A number that fits its column: large ones in powers of ten, NaN as a dash. */
static void number(char *cell, double value, int decimals) {
    if (!isfinite(value)) {
        snprintf(cell, CELL_BYTES, "-");
    } else if (fabs(value) >= 99999) {
        snprintf(cell, CELL_BYTES, "%.1e", value);
    } else {
        snprintf(cell, CELL_BYTES, "%.*f", decimals, value);
    }
}

/* In nats a byte, whatever a token is. bits: NaN where tokens are bytes. */
static double loss_per_byte(double loss, double bits) {
    return isfinite(bits) ? bits * TG_LN2 : loss;
}

/* The best validation so far is green; the escape sequences take no column. val is the last one
 * there was, so its cell does not go blank between validations. Memory is the peak of the process,
 * asked anew for each row. */
static void make_row(const tg_trainshow *show, const tg_step_report *r, double seconds_left,
                     char *row, size_t row_bytes) {
    char cells[COLUMNS][CELL_BYTES];
    tg_machine_info machine;
    const double perplexity = tg_fmt_perplexity(r->loss);
    tg_fmt_count(cells[STEP], (uint64_t)r->step);
    number(cells[LOSS], r->loss, 3);
    number(cells[BITS], loss_per_byte(r->loss, r->bits_per_byte) / TG_LN2, 2);
    number(cells[PPL], perplexity, perplexity < 99.95 ? 1 : 0);
    number(cells[MARGIN], show->pairs.margin, 3);
    number(cells[RIGHT], 100 * show->pairs.accuracy, 0);
    if (isfinite(show->pairs.accuracy)) strcat(cells[RIGHT], "%");
    number(cells[VAL], show->val, 3);
    tg_fmt_short(cells[SPEED], r->tok_per_s);
    tg_fmt_percent(cells[PEAK], r->share_of_peak);
    tg_fmt_clock(cells[LEFT_], seconds_left);
    if (tg_machine(show->app->ctx, &machine) == TG_OK) {
        tg_fmt_bytes(cells[MEMORY], machine.process_peak_bytes);
    } else {
        snprintf(cells[MEMORY], CELL_BYTES, "-");
    }
    const tg_term *out = &show->app->out;
    const int limit = kept_up_to(show, tg_term_width(out) - 1);
    size_t used = 0;
    row[0] = '\0';
    for (size_t i = 0; i < COLUMNS && used + 2 * CELL_BYTES < row_bytes; i++) {
        if (!is_shown(show, i, limit)) continue;
        const bool best = i == VAL && r->val_is_best;
        used += (size_t)snprintf(row + used, row_bytes - used, "%s%*s%s",
                                 best ? tg_term_style(out, TG_GREEN) : "", columns[i].width,
                                 cells[i], best ? tg_term_style(out, TG_PLAIN) : "");
    }
}

/* ----------------------------------------------------------------------------------- milestones */

/* What a byte model can do at a loss, as far as English prose goes; the text may differ. */
static const struct {
    double loss;
    const char *text;
} milestones[] = {
    { 3.4, "it knows which letters are common" },
    { 2.6, "it knows which letters follow each other" },
    { 2.1, "it makes things that look like words" },
    { 1.7, "most short words come out right" },
    { 1.4, "phrases begin to hold together" },
    { 1.0, "it comes close to the wording of the text" },
};

/* A line between the rows of the table, indented to the step's column. */
static void remark(tg_trainshow *show, tg_style style, const char *text, int64_t step) {
    tg_term *out = &show->app->out;
    tg_term_clear(out);
    fprintf(out->file, "%s%9s  step %" PRId64 ": %s%s\n", tg_term_style(out, style),
            out->unicode ? "·" : "-", step, text, tg_term_style(out, TG_PLAIN));
}

/* A single loss jumps about with its batch, so milestones go by a mean over some twenty steps. The
 * hint about learning by heart is given once: it would be true of every later validation too. */
static void tell_milestones(tg_trainshow *show, const tg_step_report *r) {
    /* The first step only sets the mean: a resumed run begins at its own loss, and what lies above
     * it counts as reached. */
    enum { N = sizeof milestones / sizeof milestones[0] };
    const bool first = !isfinite(show->smooth);
    const char *reached = NULL;
    const double loss = loss_per_byte(r->loss, r->bits_per_byte);
    show->smooth = first ? loss : 0.95 * show->smooth + 0.05 * loss;
    /* A resumed run has passed some already: they are not news. */
    while (show->milestone < N && show->smooth < milestones[show->milestone].loss) {
        reached = milestones[show->milestone++].text;
    }
    if (reached && !first) remark(show, TG_DIM, reached, r->step);
    const double val = loss_per_byte(r->val_loss, r->val_bits_per_byte);
    if (!show->gap_told && isfinite(val) && val - show->smooth > 0.5) {
        show->gap_told = true;
        remark(show, TG_YELLOW,
               "validation lags behind: the model learns this text by heart (more text, a smaller "
               "model or --patience help)",
               r->step);
    }
}

/* ----------------------------------------------------------------------------------------- steps
 */

void tg_trainshow_init(tg_trainshow *show, tg_app *app, bool silent, int64_t steps,
                       int64_t eval_every) {
    *show = (tg_trainshow) { .app = app,
                             .silent = silent,
                             .header_due = true,
                             .steps = steps,
                             .val = NAN,
                             .smooth = NAN,
                             .row_ms = tg_app_now_ms() };
    const int64_t evals = eval_every > 0 ? steps / eval_every : 0;
    if (evals >= 5) { /* rows where validations are, at most 40 of them */
        show->row_every = eval_every * ((evals + 39) / 40);
    } else {
        show->row_every = steps > 20 ? (int64_t)tg_curve_tick((double)steps, 20) : 1;
    }
}

void tg_trainshow_step(tg_trainshow *show, const tg_step_report *r, const tg_preferences *pairs,
                       double seconds_left) {
    show->of_pairs = pairs != NULL;
    if (pairs) show->pairs = *pairs;
    if (isfinite(r->val_loss)) {
        show->val = r->val_loss;
        show->val_bits_per_byte = r->val_bits_per_byte;
    }
    if (show->silent) return;
    tg_term *out = &show->app->out;
    const double now = tg_app_now_ms();
    /* In a log file a slow run must show signs of life; on a terminal it does anyway. */
    const bool long_silence = !out->tty && now - show->row_ms > row_every_ms;
    const bool stays = show->live_ms == 0 || r->step % show->row_every == 0 ||
                       r->step == show->steps || r->early_stop || long_silence;
    char row[COLUMNS * 2 * CELL_BYTES];
    if (r->skipped) {
        char text[192];
        snprintf(text, sizeof text, "update refused: %s is not finite", r->bad_tensor);
        remark(show, TG_RED, text, r->step);
    } else if (!pairs) {
        tell_milestones(show, r);
    }
    if (!stays && (!out->tty || now - show->live_ms < live_every_ms)) return;
    make_row(show, r, seconds_left, row, sizeof row);
    if (show->header_due) print_header(show);
    if (stays) {
        tg_term_clear(out);
        fprintf(out->file, "%s\n", row);
        fflush(out->file);
        show->row_ms = now;
    } else {
        tg_term_live(out, row);
    }
    show->live_ms = now;
}

/* --------------------------------------------------------------------------------------- samples
 */

/* Indented and with a bar, so that a model's text cannot be taken for a row of the table. */
static void begin_line(tg_sampleblock *b) {
    const tg_term *out = &b->show->app->out;
    fprintf(out->file, "    %s%s%s ", tg_term_style(out, TG_DIM), out->unicode ? "│" : "|",
            tg_term_style(out, TG_PLAIN));
    b->column = 0;
}

/* Eight columns for indentation, bar and a free end; at least 20 remain, however narrow it gets. */
void tg_sampleblock_begin(tg_sampleblock *b, tg_trainshow *show, int64_t step) {
    tg_term *out = &show->app->out;
    *b = (tg_sampleblock) { .show = show, .width = tg_term_width(out) - 8 };
    if (b->width < 20) b->width = 20;
    tg_term_clear(out);
    fprintf(out->file, "\n    %swhat it writes after %s steps%s\n", tg_term_style(out, TG_BOLD),
            TG_COUNT((uint64_t)step), tg_term_style(out, TG_PLAIN));
    begin_line(b);
}

/* The bar at the left runs on at every line end, the text's own and those of the wrapping. */
int tg_sampleblock_text(void *user, const char *bytes, size_t n_bytes) {
    tg_sampleblock *b = user;
    const tg_term *out = &b->show->app->out;
    while (n_bytes > 0) {
        const size_t length = tg_fmt_utf8_length(bytes, n_bytes);
        const size_t used = length ? length : 1;
        const int wide = tg_fmt_columns(bytes, used);
        if (*bytes == '\n' || b->column + wide > b->width) {
            fputc('\n', out->file);
            begin_line(b);
        }
        if (*bytes != '\n') {
            tg_term_text(out, bytes, used);
            b->column += wide;
        }
        bytes += used;
        n_bytes -= used;
    }
    return ferror(out->file) != 0;
}

/* An empty line below as above, and then the names of the columns again. */
void tg_sampleblock_end(tg_sampleblock *b) {
    FILE *f = b->show->app->out.file;
    fputs("\n\n", f);
    fflush(f);
    b->show->header_due = true;
}
