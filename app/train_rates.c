/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_rates.c - see train_rates.h.
 */
#include "train_rates.h"

#include <errno.h>
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

static bool parse(const char *text, tg_rates *out) {
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

int tg_rates_parse(const tg_args *args, const char *text, tg_rates *out) {
    *out = (tg_rates) { .n = 0 };
    if (parse(text, out)) return TG_ARGS_GO_ON;
    return tg_args_refuse(args,
                          "--rates: want STEP=RATE,.. with up to %d rising steps and rates of 0 to "
                          "100, have %.60s",
                          TG_RATES_MAX, text);
}

double tg_rates_at(void *user, int64_t step) {
    const tg_rates *r = user;
    size_t i = 0;
    while (i < r->n && r->step[i] < step) i++;
    if (i == 0) return r->rate[0];
    if (i == r->n) return r->rate[i - 1];
    const double part = (double)(step - r->step[i - 1]) / (double)(r->step[i] - r->step[i - 1]);
    return r->rate[i - 1] + (r->rate[i] - r->rate[i - 1]) * part;
}
