/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c - medians and their intervals (see stats.h).
 */
#include "print/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tg_stats_sort(double *x, size_t n) {
    if (n > 1) qsort(x, n, sizeof *x, by_value);
}

double tg_stats_median(const double *x, size_t n) {
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* k of the normal approximation, for many values: (n - 1.96 * sqrt(n)) / 2, rounded down. */
static size_t far_rank(size_t n) {
    size_t root = 1;
    while (root * root < n) root++;
    return (n - 2 * root) / 2;
}

tg_interval tg_stats_interval(const double *x, size_t n) {
    /* Beyond this 2^-n is no normal double; neighbouring ranks are so close by then that the
     * approximation cannot be told from the sum. */
    enum { EXACT_UP_TO = 1000 };
    if (n > EXACT_UP_TO) {
        const size_t k = far_rank(n);
        return (tg_interval) { x[k - 1], x[n - k], 0.95 };
    }
    double term = 1; /* P(Binomial = 0) */
    for (size_t i = 0; i < n; i++) term /= 2;
    double below = term; /* P(Binomial < k) */
    size_t k = 1;
    while (k < (n + 1) / 2) {
        term *= (double)(n - k + 1) / (double)k; /* P(Binomial = k) */
        if (1 - 2 * (below + term) < 0.95) break;
        below += term;
        k++;
    }
    if (1 - 2 * below < 0.95) return (tg_interval) { NAN, NAN, 0 };
    return (tg_interval) { x[k - 1], x[n - k], 1 - 2 * below };
}

const char *tg_stats_interval_text(const tg_interval *interval, double scale, int decimals,
                                   bool sign, char *out, size_t cap) {
    if (interval->coverage > 0) {
        snprintf(out, cap, sign ? "%+.*f .. %+.*f" : "%.*f .. %.*f", decimals,
                 scale * interval->low, decimals, scale * interval->high);
    } else {
        snprintf(out, cap, "-");
    }
    return out;
}
