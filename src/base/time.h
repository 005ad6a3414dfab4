/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.h - two clocks. The first one measures, the second one dates; neither feeds a computation.
 */
#ifndef TG_BASE_TIME_H
#define TG_BASE_TIME_H

#include "base/libc.h"

/* Milliseconds since some fixed moment; never runs backwards; finer than a microsecond. */
double tg_time_ms(void);

/* Is it time to stop? Deadlines are on the clock above; 0 is none, and costs nothing. */
static inline bool tg_time_over(double deadline_ms) {
    return deadline_ms > 0 && tg_time_ms() >= deadline_ms;
}

/* Seconds since 1970-01-01 00:00 UTC, as the machine believes. */
int64_t tg_time_unix(void);

#endif
