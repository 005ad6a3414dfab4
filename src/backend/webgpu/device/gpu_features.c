/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_features.c - see gpu_features.h.
 */
#include "backend/webgpu/device/gpu_features.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "base/str.h"

/* webgpu.h has numbered features anew; older builds of Dawn have the numbers of before. Matrices of
 * a subgroup are an extension, which has moved, too. */
typedef struct numbers {
    WGPUFeatureName f16, subgroups, timestamps, matrices;
} numbers;
static const numbers of_now = { WGPUFeatureName_ShaderF16, WGPUFeatureName_Subgroups,
                                WGPUFeatureName_TimestampQuery, (WGPUFeatureName)0x00050034 };
static const numbers of_before = { (WGPUFeatureName)0x0A, (WGPUFeatureName)0x11,
                                   (WGPUFeatureName)0x03, (WGPUFeatureName)0x00050037 };
/* wgpu-native offers subgroups by a number of its own only, and matrices in another form. */
#define WGPU_NATIVE_SUBGROUPS ((WGPUFeatureName)0x00030021)

/* What Dawn tells of an adapter's matrices, chained to its info: which sizes it multiplies. */
typedef struct matrix_config {
    uint32_t of, sums, m, n, k;
} matrix_config;
typedef struct matrix_configs {
    WGPUChainedStruct chain;
    size_t n;
    const matrix_config *list;
} matrix_configs;
enum { DAWN_MATRIX_CONFIGS = 0x0005003B };
enum { COMPONENT_F32 = 1, COMPONENT_F16 = 2 };

/* Timestamps in steps of a tenth of a millisecond, so that a page can learn little from them, are
 * no use for a profile. */
static const char *const off[] = { "timestamp_quantization" };
/* The first two open what Dawn counts as experimental: matrices, and f16 on NVIDIA's cards, whose
 * drivers fail a test of f16 that our shaders have no part in; the self-test looks at those.
 *
 * Memory of a workgroup is written before it is read in all our shaders, so that nobody need clear
 * it. Bounds checks are for shaders that one does not know; ours clamp what they index with. They
 * cost up to a tenth of a step on an H100. TG_WEBGPU_CHECKED=1 puts them back; wgpu-native has
 * them. */
static const char *const on[] = { "allow_unsafe_apis", "vulkan_enable_f16_on_nvidia",
                                  "disable_workgroup_init", "disable_robustness" };

dawn_toggles tg_gpu_toggles(tg_gpu_names names) {
    const char *checked = getenv("TG_WEBGPU_CHECKED");
    const size_t n_on = sizeof on / sizeof *on - (checked && checked[0] == '1');
    return (dawn_toggles) { .chain = { .sType = (WGPUSType)DAWN_TOGGLES },
                            .n_on = names.dawn ? n_on : 0,
                            .on = on,
                            .n_off = sizeof off / sizeof *off,
                            .off = off };
}

static size_t load(size_t key_bytes, const uint8_t *key, size_t value_bytes, uint8_t *value,
                   void *cache, void *unused) {
    (void)unused;
    return tg_gpu_cache_load(key, key_bytes, value, value_bytes, cache);
}

static void store(size_t key_bytes, const uint8_t *key, size_t value_bytes, const uint8_t *value,
                  void *cache, void *unused) {
    (void)unused;
    tg_gpu_cache_store(key, key_bytes, value, value_bytes, cache);
}

/* Functions tell how old a library is: one that came after the structure was laid out anew, and one
 * that came before. What lies between may have either. */
WGPUChainedStruct *tg_gpu_chain_cache(void *library, tg_gpu_cache *cache, tg_gpu_cache_room *room) {
    const WGPUStringView none = { "", 0 };
    if (!cache) return NULL;
    if (dlsym(library, "wgpuDeviceCreateResourceTable")) {
        room->now = (dawn_cache_now) { .chain = { .sType = (WGPUSType)DAWN_CACHE },
                                       .isolation_key = none,
                                       .load = { .call = load, .user = cache },
                                       .store = { .call = store, .user = cache } };
        return &room->now.chain;
    }
    if (dlsym(library, "wgpuGetInstanceFeatures")) return NULL;
    room->before = (dawn_cache) { .chain = { .sType = (WGPUSType)DAWN_CACHE },
                                  .isolation_key = none,
                                  .load = tg_gpu_cache_load,
                                  .store = tg_gpu_cache_store,
                                  .user = cache };
    return &room->before.chain;
}

/* For tests: TG_GPU_WITHOUT=f16,subgroups,timestamps,matrices leaves out features. */
static bool is_left_out(const char *feature) {
    const char *names = getenv("TG_GPU_WITHOUT");
    return names && strstr(names, feature);
}

/* Shaders are written for matrices of 16 x 16 floats of 16 bits, sums of 32, and subgroups of 32.
 */
static void read_matrices(const tg_gpu_ask *ask, WGPUAdapter adapter, tg_gpu_info *info) {
    matrix_configs c = { .chain = { .sType = (WGPUSType)DAWN_MATRIX_CONFIGS } };
    WGPUAdapterInfo i = { .nextInChain = &c.chain };
    ask->info(adapter, &i);
    char shapes[sizeof info->matrices] = "";
    bool found = false;
    for (size_t k = 0; k < c.n; k++) {
        const matrix_config *m = &c.list[k];
        if (m->of != COMPONENT_F16 || m->sums != COMPONENT_F32) continue;
        found = found || (m->m == 16 && m->n == 16 && m->k == 16);
        tg_str_append(shapes, sizeof shapes, "%s%ux%ux%u", shapes[0] ? " " : "", m->m, m->n, m->k);
    }
    info->has_matrices = found && i.subgroupMinSize == 32 && i.subgroupMaxSize == 32;
    info->matrices[0] = 0;
    if (info->has_matrices)
        tg_str_append(info->matrices, sizeof info->matrices, "%s", shapes);
    else if (!found)
        tg_str_append(info->matrices, sizeof info->matrices,
                      "want f16 with sums in f32 at 16x16x16, have %s",
                      shapes[0] ? shapes : "none");
    else
        tg_str_append(info->matrices, sizeof info->matrices, "want subgroups of 32, have %u to %u",
                      i.subgroupMinSize, i.subgroupMaxSize);
    ask->free_info(i);
}

static void find_matrices(const tg_gpu_ask *ask, WGPUAdapter adapter, tg_gpu_names names,
                          WGPUFeatureName number, tg_gpu_info *info) {
    const char *why =
        is_left_out("matrices") ? "left out"
        : !names.dawn           ? "wgpu-native has none in this form"
        : !info->f16            ? "without f16 there are none"
        : !ask->has(adapter, number)
            ? (names.before ? "this Dawn is an older one, and has none" : "not offered")
            : NULL;
    info->has_matrices = false;
    if (why)
        snprintf(info->matrices, sizeof info->matrices, "%s", why);
    else
        read_matrices(ask, adapter, info);
}

size_t tg_gpu_features_find(const tg_gpu_ask *ask, WGPUAdapter adapter, tg_gpu_names names,
                            tg_gpu_info *info, WGPUFeatureName out[TG_GPU_FEATURES]) {
    numbers f = names.before ? of_before : of_now;
    if (!names.dawn) f.subgroups = WGPU_NATIVE_SUBGROUPS;
    info->f16 = !is_left_out("f16") && ask->has(adapter, f.f16);
    info->subgroups = !is_left_out("subgroups") && ask->has(adapter, f.subgroups);
    info->timestamps = !is_left_out("timestamps") && ask->has(adapter, f.timestamps);
    find_matrices(ask, adapter, names, f.matrices, info);
    size_t n = 0;
    if (info->f16) out[n++] = f.f16;
    if (info->subgroups) out[n++] = f.subgroups;
    if (info->timestamps) out[n++] = f.timestamps;
    if (info->has_matrices) out[n++] = f.matrices;
    return n;
}

/* What every adapter of WebGPU has, by its specification. The shaders are written for it. */
static const struct {
    uint64_t buffer_bytes, binding_bytes;
    uint32_t group_bytes, group_threads, storage_buffers;
} least = { 268435456, 134217728, 16384, 256, TG_GPU_MAX_STORAGE };

/* Compatibility adapters, on old OpenGL, have less. */
static tg_status want_limits(tg_ctx *ctx, const WGPULimits *have, const char *adapter) {
    if (have->maxStorageBufferBindingSize >= least.binding_bytes &&
        have->maxBufferSize >= least.binding_bytes &&
        have->maxComputeWorkgroupStorageSize >= least.group_bytes &&
        have->maxComputeInvocationsPerWorkgroup >= least.group_threads &&
        have->maxStorageBuffersPerShaderStage >= least.storage_buffers)
        return TG_OK;
    return tg_fail(
        ctx, TG_E_DEVICE,
        "GPU %s: want %u storage buffers of %" PRIu64 " bytes, %u threads and %u bytes a "
        "workgroup, have %u, %" PRIu64 ", %u and %u: a newer driver may give more",
        adapter, least.storage_buffers, least.binding_bytes, least.group_threads, least.group_bytes,
        have->maxStorageBuffersPerShaderStage, have->maxStorageBufferBindingSize,
        have->maxComputeInvocationsPerWorkgroup, have->maxComputeWorkgroupStorageSize);
}

/* For tests: TG_GPU_LIMITS=minimum asks for no limit beyond those that every adapter has, and a
 * number of bytes in its place says what a binding may reach. */
bool tg_gpu_wants_minimum(void) {
    const char *limits = getenv("TG_GPU_LIMITS");
    return limits && strcmp(limits, "minimum") == 0;
}

tg_status tg_gpu_read_limits(tg_ctx *ctx, const WGPULimits *have, tg_gpu_info *i) {
    const bool minimum = tg_gpu_wants_minimum();
    TG_TRY(want_limits(ctx, have, i->adapter));
    i->max_buffer_bytes = minimum ? least.buffer_bytes : have->maxBufferSize;
    i->max_binding_bytes = minimum ? least.binding_bytes : have->maxStorageBufferBindingSize;
    const char *binding = getenv("TG_GPU_LIMITS");
    const uint64_t bytes = binding ? strtoull(binding, NULL, 10) : 0;
    if (bytes && bytes < i->max_binding_bytes) i->max_binding_bytes = bytes;
    i->max_group_bytes = minimum ? least.group_bytes : have->maxComputeWorkgroupStorageSize;
    i->max_group_threads = minimum ? least.group_threads : have->maxComputeInvocationsPerWorkgroup;
    return TG_OK;
}
