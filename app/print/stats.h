/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - medians and what may be said about them, for timings that are never normal.
 */
#ifndef TG_APP_STATS_H
#define TG_APP_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* Sorts x[n] upwards. No NaN may be among them. */
void tg_stats_sort(double *x, size_t n);

/* Median of sorted x[n], n >= 1: the middle one, or the mean of the middle two. */
double tg_stats_median(const double *x, size_t n);

typedef struct tg_interval {
    double low, high; /* NaN: there is none */
    double coverage;  /* how surely the true median lies within, at least; 0: there is none */
} tg_interval;

/*
 * Interval for the median from order statistics of sorted x[n], n >= 1: the k-th smallest and the
 * k-th largest value, for the largest k with coverage 1 - 2*P(Binomial(n, 1/2) < k) >= 0.95. It
 * assumes nothing about the distribution. With n < 6 even the extremes cover less than 0.95, so
 * there is none.
 */
tg_interval tg_stats_interval(const double *x, size_t n);

/* "1.25 .. 1.31", the ends times scale with so many decimals; "-" where there is none. sign: with
 * a plus, too. Returns out. */
const char *tg_stats_interval_text(const tg_interval *interval, double scale, int decimals,
                                   bool sign, char *out, size_t cap);

#endif
