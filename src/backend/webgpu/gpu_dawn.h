/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_dawn.h - what Dawn's own webgpu.h declares beyond the standard one, or otherwise.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_DAWN_H
#define TG_BACKEND_WEBGPU_GPU_DAWN_H

#include <stddef.h>
#include <webgpu.h>

/* Dawn's own extension of a device: switches by name, as its header webgpu.h declares it. */
typedef struct dawn_toggles {
    WGPUChainedStruct chain;
    size_t n_on;
    const char *const *on;
    size_t n_off;
    const char *const *off;
} dawn_toggles;
enum { DAWN_TOGGLES = 0x0005000A };

/* Timestamps in steps of a tenth of a millisecond, so that a page can learn little from them, are
 * no use for a profile.
 *
 * Memory of a workgroup is written before it is read in all our shaders, so that nobody need clear
 * it. Bounds checks are for shaders that one does not know; ours clamp what they index with. They
 * cost up to a tenth of a step on an H100. TG_WEBGPU_CHECKED=1 puts them back; wgpu-native has
 * them. */
static const char *const toggles_off[] = { "timestamp_quantization" };
static const char *const toggles_on[] = { "disable_workgroup_init", "disable_robustness" };

/* Another one: whom to ask before something is compiled, and to tell after. */
typedef struct dawn_cache {
    WGPUChainedStruct chain;
    WGPUStringView isolation_key;
    size_t (*load)(const void *key, size_t key_bytes, void *value, size_t value_bytes, void *user);
    void (*store)(const void *key, size_t key_bytes, const void *value, size_t value_bytes,
                  void *user);
    void *user;
} dawn_cache;
enum { DAWN_CACHE = 0x00050007 };

/* webgpu.h has numbered features anew; some builds of Dawn have the numbers of before. Which ones a
 * library goes by shows on a device only. */
static const struct feature_numbers {
    WGPUFeatureName f16, subgroups, timestamps;
} feature_numbers[] = {
    { WGPUFeatureName_ShaderF16, WGPUFeatureName_Subgroups, WGPUFeatureName_TimestampQuery },
    { (WGPUFeatureName)0x0A, (WGPUFeatureName)0x11, (WGPUFeatureName)0x03 },
};

/* wgpu-native offers subgroups by a number of its own only. */
#define WGPU_NATIVE_SUBGROUPS ((WGPUFeatureName)0x00030021)

#endif
