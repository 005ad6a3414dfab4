/*
 * webgpu.h - the backend that runs whole plans on a GPU. See webgpu.c for how memory is mirrored.
 */
#ifndef TG_BACKEND_WEBGPU_WEBGPU_H
#define TG_BACKEND_WEBGPU_WEBGPU_H

#include "backend/backend.h"
#include "backend/webgpu/gpu.h"

/* Opens the best adapter. cpu, borrowed, runs the plans that the GPU cannot. */
tg_status tg_webgpu_new(tg_ctx *ctx, tg_backend *cpu, tg_backend **out);

/* Of a backend made by tg_webgpu_new: for banners, and for tests that lose the device. */
tg_gpu *tg_webgpu_gpu(tg_backend *b);

/* Of a plan that has run on the GPU; 0: it has not. */
size_t tg_webgpu_dispatches(const tg_backend *b, const tg_plan *plan);

#endif
