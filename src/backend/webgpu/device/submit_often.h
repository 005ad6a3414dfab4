/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit_often.h - how long a step of a plan takes where the GPU has no clock, or for the time of
 * one step alone.
 */
#ifndef TG_BACKEND_WEBGPU_SUBMIT_OFTEN_H
#define TG_BACKEND_WEBGPU_SUBMIT_OFTEN_H

#include "backend/webgpu/device/gpu.h"

/* Each step of [begin, end) once, and then so often that it takes some milliseconds and what a
 * submit and a wait cost can be taken off; step i has the dispatches [first[i], first[i + 1]), and
 * its time is added to step_ms[i]. What a step adds to, it adds to again; a trainer that was
 * profiled is not the run that it was, on the CPU neither. */
tg_status tg_submit_often(tg_ctx *ctx, tg_gpu *gpu, const tg_gpu_dispatch *dispatches,
                          const size_t *first, size_t begin, size_t end, double *step_ms);

#endif
