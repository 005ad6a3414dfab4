/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_util.h - what the tests of training and sampling share: contexts, the text, golden
 * numbers.
 */
#ifndef TG_TEST_ENGINE_UTIL_H
#define TG_TEST_ENGINE_UTIL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tinygpt.h"

/* Fails the test with the context's message. */
#define OK(ctx, call)                                                                              \
    do {                                                                                           \
        const tg_status ok_status = (call);                                                        \
        if (ok_status != TG_OK)                                                                    \
            fail_msg("%s: status %d: %s", #call, ok_status, tg_context_error(ctx));                \
    } while (0)

static inline tg_context *open_context(unsigned threads, const char *isa, const char *levers) {
    tg_context_options o = tg_context_options_default();
    o.threads = threads;
    o.isa = isa;
    o.levers = levers;
    tg_context *ctx;
    if (tg_context_new(&o, &ctx) != TG_OK) fail_msg("context: %s", tg_context_error(ctx));
    return ctx;
}

/* The numbers of a golden file, comments skipped; *n is how many. Freed by the caller. */
static inline double *read_golden(const char *path, size_t *n) {
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s: cannot be opened; run from the top folder", path);
    double *values = malloc(65536 * sizeof *values);
    char line[512];
    for (*n = 0; *n < 65536 && fgets(line, sizeof line, f);)
        if (line[0] != '#') values[(*n)++] = strtod(line, NULL);
    fclose(f);
    return values;
}

static inline bool isa_usable(const char *name) {
    for (size_t i = 0; i < tg_isa_count(); i++)
        if (strcmp(tg_isa_at(i)->name, name) == 0) return tg_isa_at(i)->usable;
    return false;
}

/* So many tokens behind a text, or behind ids, which are borrowed; all else is as by default. */
static inline tg_generation behind_text(const char *text, size_t n_bytes, size_t n_tokens) {
    tg_generation what = tg_generation_default();
    what.prompt = text;
    what.prompt_bytes = n_bytes;
    what.n_tokens = n_tokens;
    return what;
}

static inline tg_generation behind_ids(const int32_t *ids, size_t n_ids, size_t n_tokens) {
    tg_generation what = tg_generation_default();
    what.ids = ids;
    what.n_ids = n_ids;
    what.n_tokens = n_tokens;
    return what;
}

/* A run in progress and all it stands on. */
typedef struct run_of {
    tg_context *ctx;
    tg_text *text;
    tg_model *model; /* NULL when the trainer owns it */
    tg_trainer *trainer;
} run_of;

/* The run owns the text from here on. */
static inline run_of start_run_on(tg_context *ctx, tg_text *text, const tg_model_config *config,
                                  const tg_train_options *o) {
    run_of r = { .ctx = ctx, .text = text };
    OK(ctx, tg_model_new(ctx, config, 42, &r.model));
    OK(ctx, tg_trainer_new(ctx, r.model, r.text, o, &r.trainer));
    return r;
}

static inline run_of start_run(tg_context *ctx, const tg_model_config *config,
                               const tg_train_options *o) {
    tg_text *text;
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    return start_run_on(ctx, text, config, o);
}

static inline void end_run(run_of *r) {
    tg_trainer_free(r->trainer);
    tg_model_free(r->model);
    tg_text_free(r->text);
    tg_context_free(r->ctx);
}

/* Steps to the end or to a number of steps; the last report. */
static inline tg_step_report steps_until(run_of *r, int64_t step) {
    tg_step_report report = { .step = tg_trainer_steps_done(r->trainer) };
    while (report.step < step) OK(r->ctx, tg_trainer_step(r->trainer, &report));
    return report;
}

/* A run beside the losses of a golden file, a step each and validation's at the end: the largest
 * relative difference, NaN if one is none; *last is the report of the last step. */
static inline double off_golden(const run_of *r, const char *path, size_t steps,
                                tg_step_report *last) {
    size_t n;
    double worst = 0, *want = read_golden(path, &n);
    assert_int_equal(n, steps + 1);
    for (size_t i = 0; i <= steps; i++) {
        if (i < steps) OK(r->ctx, tg_trainer_step(r->trainer, last));
        const double off = fabs((i < steps ? last->loss : last->val_loss) / want[i] - 1);
        if (!(off <= worst) && !isnan(worst)) worst = off;
    }
    free(want);
    return worst;
}

#endif
