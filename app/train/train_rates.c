/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_rates.c - see train_rates.h.
 */
#include "train/train_rates.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* STEP=RATE; *end is behind it. */
static bool parse_point(const char *text, char **end, int64_t *step, double *rate) {
    errno = 0;
    *step = strtoll(text, end, 10);
    if (*end == text || **end != '=' || errno != 0 || *step < 0) return false;
    text = *end + 1;
    *rate = strtod(text, end);
    return *end != text && isfinite(*rate) && *rate >= 0 && *rate <= 100;
}

static bool parse(const char *text, tg_rate_table *out) {
    for (char *end;; text = end + 1) {
        const size_t n = out->n;
        if (n == TG_RATES_MAX || !parse_point(text, &end, &out->step[n], &out->rate[n]))
            return false;
        if (n > 0 && out->step[n] <= out->step[n - 1]) return false;
        out->n++;
        if (*end == '\0') return true;
        if (*end != ',') return false;
    }
}

int tg_rates_parse(const tg_args *args, const char *text, tg_rate_table *out) {
    *out = (tg_rate_table) { .text = text };
    if (parse(text, out)) return TG_ARGS_GO_ON;
    return tg_args_refuse(args,
                          "--rates: want STEP=RATE,.. with up to %d rising steps and rates of 0 to "
                          "100, have %.60s",
                          TG_RATES_MAX, text);
}

/* As it is typed. */
static void write_table(const int64_t *step, const double *rate, size_t n, char *out, size_t cap) {
    size_t used = 0;
    for (size_t i = 0; i < n && used < cap; i++)
        used += (size_t)snprintf(out + used, cap - used, "%s%" PRId64 "=%.15g", i ? "," : "",
                                 step[i], rate[i]);
}

int tg_rates_resume(tg_app *app, tg_trainer *trainer, const tg_rate_table *asked, bool quiet) {
    const int64_t *step;
    const double *rate;
    const size_t n = tg_trainer_rates(trainer, &step, &rate);
    char own[TG_RATES_MAX * 48] = "";
    write_table(step, rate, n, own, sizeof own);
    if (!asked && n && !quiet)
        fprintf(stderr, "the run goes on by its learning rates: --rates %s\n", own);
    if (!asked) return TG_ARGS_GO_ON;
    if (!n)
        tg_app_warn(app,
                    "the run's file has no table of rates: from step %" PRId64
                    " on they are those of --rates",
                    tg_trainer_steps_done(trainer) + 1);
    if (!n) return TG_ARGS_GO_ON;
    bool same = n == asked->n;
    for (size_t i = 0; same && i < n; i++)
        same = step[i] == asked->step[i] && rate[i] == asked->rate[i];
    if (same) return TG_ARGS_GO_ON;
    return tg_args_refuse(&app->args,
                          "--rates cannot be changed by --resume: want %s, as the run has it, have "
                          "%s; --from starts a new run on its weights",
                          own, asked->text);
}
