/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu.h - the backend that runs whole plans on a GPU. See webgpu.c for how memory is mirrored.
 */
#ifndef TG_BACKEND_WEBGPU_WEBGPU_H
#define TG_BACKEND_WEBGPU_WEBGPU_H

#include "backend/backend.h"
#include "backend/webgpu/device/gpu.h"
#include "backend/webgpu/device/gpu_tiles.h"
#include "backend/webgpu/single/single.h"

/* Opens the best adapter. cpu, borrowed, runs the plans that the GPU cannot. Of the levers, those
 * that don't hold on the adapter are the backend's levers_off (gpu_self_test.h). */
tg_status tg_webgpu_new(tg_ctx *ctx, tg_backend *cpu, uint32_t levers, tg_backend **out);

/* Of a backend made by tg_webgpu_new: for banners, and for tests that lose the device. */
tg_gpu *tg_webgpu_gpu(tg_backend *b);

/* What was measured of its tiles; NULL: nothing is kept. */
tg_gpu_tiles *tg_webgpu_tiles(tg_backend *b);
/* What a step of a plan that has run became: how many steps are one with it, their arguments, the
 * shader. 0: it is part of an earlier one's, or ran on the CPU. */
unsigned tg_webgpu_unit(const tg_backend *b, const tg_plan *plan, size_t step,
                        tg_args args[TG_MAX_MEMBERS], const tg_shader **shader);

/* What goes for plans that are one dispatch. */
tg_single_rules *tg_webgpu_single(tg_backend *b);

/* Of a plan that has run as one dispatch; NULL: it has not. */
const tg_single *tg_webgpu_single_of(const tg_backend *b, const tg_plan *plan);

/* Of a plan that has run on the GPU; 0: it has not. */
size_t tg_webgpu_dispatches(const tg_backend *b, const tg_plan *plan);

#endif
