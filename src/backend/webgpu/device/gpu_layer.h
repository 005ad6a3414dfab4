/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_layer.h - the products of a layer on a GPU, forward and back, against the references: what
 * the self-test tries of loads in fours and of shaders that do several steps at once.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_LAYER_H
#define TG_BACKEND_WEBGPU_GPU_LAYER_H

#include "backend/webgpu/device/self_test/check_gpu.h"

/* Begins to make all pipelines that the following runs. */
tg_status tg_gpu_layer_compile(tg_ctx *ctx, tg_gpu_bench *bench);

/* Runs a product as a plan would, if not merged, else a merge of three members and one of four. The
 * first result that is off is described in found, zero-terminated; else it is "".
 * Errors: no memory, or what the GPU says. */
tg_status tg_gpu_layer_try(tg_ctx *ctx, tg_gpu_bench *bench, bool merged, char *found, size_t room);

#endif
