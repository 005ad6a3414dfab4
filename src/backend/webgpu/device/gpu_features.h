/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_features.h - what gpu_native.c asks of an adapter beyond WebGPU's core: f16, subgroups,
 * timestamps, matrices of a subgroup; its limits; and the toggles without which Dawn keeps some of
 * it back.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_FEATURES_H
#define TG_BACKEND_WEBGPU_GPU_FEATURES_H

#include "backend/webgpu/device/gpu.h"
#include "backend/webgpu/device/gpu_cache.h"
#include "backend/webgpu/device/gpu_dawn.h"

/* The library, and by which numbers it names features. */
typedef struct tg_gpu_names {
    bool dawn;   /* else wgpu-native */
    bool before; /* the numbers that webgpu.h had before it was made a standard */
} tg_gpu_names;

/* The functions that are called, of the library. */
typedef struct tg_gpu_ask {
    WGPUProcAdapterHasFeature has;
    WGPUProcAdapterGetInfo info;
    WGPUProcAdapterInfoFreeMembers free_info;
} tg_gpu_ask;

/* The features that the adapter has and that nobody leaves out, and their number. Writes what they
 * are into info, and why there are no matrices where there are none. */
enum { TG_GPU_FEATURES = 4 };
size_t tg_gpu_features_find(const tg_gpu_ask *ask, WGPUAdapter adapter, tg_gpu_names names,
                            tg_gpu_info *info, WGPUFeatureName out[TG_GPU_FEATURES]);

/* Of an instance, of the request for an adapter, and of a device: Dawn wants them told to each.
 * With n_on 0 there are none. */
dawn_toggles tg_gpu_toggles(tg_gpu_names names);

/* What a device is told of the cache, in the layout that the library knows; room is for it. NULL:
 * there is no cache, or nobody knows how to tell. */
typedef struct tg_gpu_cache_room {
    dawn_cache before;
    dawn_cache_now now;
} tg_gpu_cache_room;
WGPUChainedStruct *tg_gpu_chain_cache(void *library, tg_gpu_cache *cache, tg_gpu_cache_room *room);

/* Whether no limit is asked for beyond those that every adapter has. */
bool tg_gpu_wants_minimum(void);
/* What the device will have of the adapter's limits, into info. E_DEVICE: less than the shaders are
 * written for. */
tg_status tg_gpu_read_limits(tg_ctx *ctx, const WGPULimits *have, tg_gpu_info *info);

#endif
