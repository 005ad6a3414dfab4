/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit_often.c - see submit_often.h.
 */
#include "backend/webgpu/device/submit_often.h"

#include "base/time.h"

enum { REPEATS = 24 };

/* n dispatches, `times` times in each of so many submits, until they are done. */
static tg_status time_submits(tg_ctx *ctx, tg_gpu *gpu, const tg_gpu_dispatch *d, size_t n,
                              size_t times, size_t submits, double *ms) {
    tg_status s = TG_OK;
    tg_gpu_dispatch *repeated = tg_alloc(&ctx->mem, n * times * sizeof *d);
    if (!repeated) return tg_fail_memory(ctx, "dispatches of a step", n * times * sizeof *d);
    for (size_t i = 0; i < n * times; i++) repeated[i] = d[i % n];
    const double start = tg_time_ms();
    for (size_t i = 0; i < submits && s == TG_OK; i++) s = tg_gpu_submit(gpu, repeated, n * times);
    if (s == TG_OK) s = tg_gpu_wait(gpu);
    *ms = tg_time_ms() - start;
    tg_free(&ctx->mem, repeated, n * times * sizeof *d);
    return s;
}

tg_status tg_submit_often(tg_ctx *ctx, tg_gpu *gpu, const tg_gpu_dispatch *dispatches,
                          const size_t *first, size_t begin, size_t end, double *step_ms) {
    TG_TRY(tg_gpu_wait(gpu));
    for (size_t s = begin; s < end; s++) {
        const tg_gpu_dispatch *d = dispatches + first[s];
        const size_t n = first[s + 1] - first[s];
        double once = 0, some = 0, many = 0;
        if (n == 0) continue;
        TG_TRY(time_submits(ctx, gpu, d, n, 1, 1, &once));
        const size_t times = once < 1 ? REPEATS : once < 8 ? 4 : 2;
        TG_TRY(time_submits(ctx, gpu, d, n, times, 1, &some));
        const double each = some / (double)times;
        const size_t submits = some < 8 ? (size_t)(8 / (some + 0.1)) + 1 : 1;
        TG_TRY(time_submits(ctx, gpu, d, n, times, submits, &many));
        const double around = once > each ? once - each : 0;
        step_ms[s] += (many - (around < many ? around : 0)) / (double)(times * submits);
    }
    return TG_OK;
}
