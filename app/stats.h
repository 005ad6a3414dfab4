/*
 * stats.h - medians and what may be said about them, for timings that are never normal.
 */
#ifndef TG_APP_STATS_H
#define TG_APP_STATS_H

#include <stddef.h>

/* Sorts x[n] upwards. No NaN may be among them. */
void tg_stats_sort(double *x, size_t n);

/* Median of sorted x[n], n >= 1: the middle one, or the mean of the middle two. */
double tg_stats_median(const double *x, size_t n);

typedef struct tg_interval {
    double low, high;
    double coverage; /* how surely the true median lies within, at least; 0.95 wanted */
} tg_interval;

/*
 * Interval for the median from order statistics of sorted x[n], n >= 1: the k-th smallest and the
 * k-th largest value, for the largest k with coverage 1 - 2*P(Binomial(n, 1/2) < k) >= 0.95. It
 * assumes nothing about the distribution. With n < 6 even the extremes cover less than 0.95: then
 * they are returned with what they cover.
 */
tg_interval tg_stats_interval(const double *x, size_t n);

#endif
