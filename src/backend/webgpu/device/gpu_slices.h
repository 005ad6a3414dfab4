/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_slices.h - how many steps of a plan are one submit, by what the submits before took.
 *
 * A submit cannot be looked into, ended or overtaken: while it runs, a GPU that also draws the
 * desktop draws nothing, and after some seconds the driver takes the device away. So who has a
 * deadline gets slices of some TG_GPU_SLICE_MS, at most TG_GPU_SUBMIT_MS. The first run of a plan
 * begins with two steps, and takes up to four times as many after each; a plan that is short enough
 * becomes one submit, which costs nothing more than before.
 *
 *     steps    2             8             32 ..         the rest
 *              submit, wait  submit, wait  submit, wait  submit, and read the outputs
 *
 * Between two submits that are waited for another plan may compute, in the same workspace: then the
 * run begins again, unbroken. A plan that cannot begin again is unbroken from the start: a queue of
 * short submits, which lets a desktop in between as well, and the first run of it is one.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_SLICES_H
#define TG_BACKEND_WEBGPU_GPU_SLICES_H

#include "base/time.h"

#define TG_GPU_SLICE_MS  25.0
#define TG_GPU_SUBMIT_MS 50.0

/* Of a plan; zeros: nothing is known of it. */
typedef struct tg_gpu_slices {
    size_t steps;    /* of a submit */
    size_t end;      /* of the one under way */
    double begun_ms; /* when it began */
} tg_gpu_slices;

/* The end of a submit that begins with step `next`. Nobody has measured a plan that was only run
 * without a deadline, and it is one submit; what was measured holds for all. */
static inline size_t tg_gpu_slice_begin(tg_gpu_slices *s, size_t next, size_t all, bool measured) {
    if (measured && s->steps == 0) s->steps = 2;
    s->begun_ms = tg_time_ms();
    s->end = s->steps > 0 && all - next > s->steps ? next + s->steps : all;
    return s->end;
}

/* The submit that began with step `begin` has ended. One that was cut short by the plan's end says
 * little, unless it took too long. Between a slice's time and the most there is room for a busy
 * machine: there the number stays. */
static inline size_t tg_gpu_slice_end(tg_gpu_slices *s, size_t begin) {
    const double ms = tg_time_ms() - s->begun_ms, n = (double)(s->end - begin);
    const double share = ms > TG_GPU_SLICE_MS / 4 ? TG_GPU_SLICE_MS / ms : 4;
    const bool longer = share > 1 && s->end - begin >= s->steps;
    const bool shorter = ms > TG_GPU_SUBMIT_MS * 4 / 5;
    if (s->steps > 0 && (longer || shorter)) s->steps = n * share < 1 ? 1 : (size_t)(n * share);
    return s->end;
}

/* All of a plan has ended whose submits followed each other without a wait. */
static inline void tg_gpu_slices_unbroken(tg_gpu_slices *s, size_t all) {
    const double ms = tg_time_ms() - s->begun_ms, n = (double)all * TG_GPU_SLICE_MS / ms;
    s->steps = ms < TG_GPU_SUBMIT_MS * 4 / 5 ? all : n < 1 ? 1 : (size_t)n;
}

#endif
