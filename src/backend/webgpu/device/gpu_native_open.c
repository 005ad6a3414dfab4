/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_native_open.c - a library, an adapter, and a device with all that the adapter has.
 *
 *     library   what TG_WEBGPU_LIB names, else the newest of the usual names
 *     adapter   the strong one; a library that finds none gives way to the next
 *     device    opened with its limits and features; lost and wrong at any time (on_lost, on_error)
 *
 * Numbers of features changed between Dawns: a device that does not hold what they promise is
 * opened again by the other numbers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/webgpu/device/gpu_native.h"

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView text,
                       void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPURequestAdapterStatus_Success, adapter, text);
}

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView text,
                      void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPURequestDeviceStatus_Success, device, text);
}

/* A device that was closed on purpose reports itself lost, too: then nobody looks. */
static void on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView text,
                    void *user, void *unused) {
    tg_gpu *g = user;
    (void)device;
    (void)reason;
    (void)unused;
    g->lost = true;
    char why[400];
    keep_text(why, sizeof why, text);
    snprintf(g->message, sizeof g->message, "the device was lost: %s", why);
}

/* An error outside of a scope belongs to a submit or a write; the next call reports it. */
static void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView text, void *user,
                     void *unused) {
    tg_gpu *g = user;
    (void)device;
    (void)type;
    (void)unused;
    if (!g->message[0]) keep_text(g->message, sizeof g->message, text);
}

enum { PATH_BYTES = 4096 };

/* The newest first. */
static const char *const usual[] = { "libwebgpu_dawn.so", "libwebgpu_wrapper.so",
                                     "libwgpu_native.so", "libwgpu_native-release.so" };
enum { N_USUAL = sizeof usual / sizeof *usual };

/* This one of the usual names in a folder, which ends with a slash; "" is where the system looks.
 */
static bool open_in(tg_gpu *g, const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.*s%s", PATH_BYTES - 64, folder, usual[g->tried]);
    g->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(g->info.library, sizeof g->info.library, "%.127s", path);
    return g->library != NULL;
}

/* Beside the program, and where tools/setup.sh puts them as seen from build/. */
static bool open_near_program(tg_gpu *g) {
    char folder[PATH_BYTES];
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 32);
    if (n <= 0) return false;
    folder[n] = '\0';
    char *const name = strrchr(folder, '/') + 1;
    *name = '\0';
    if (open_in(g, folder)) return true;
    strcpy(name, "../.cache/webgpu/");
    return open_in(g, folder);
}

/* The next of the usual ones that is there, wherever it lies. */
static bool open_usual(tg_gpu *g) {
    bool found = false;
    for (; !found && g->tried < N_USUAL; g->tried++)
        found = open_near_program(g) || open_in(g, ".cache/webgpu/") || open_in(g, "");
    return found;
}

/* Older libraries have functions of the same names whose structures are laid out otherwise, and end
 * the process when they are called. wgpu-native tells its version, a byte a part; of others, what
 * webgpu.h had before it was made a standard tells. */
static tg_status want_version(tg_gpu *g) {
    enum { WGPU_NATIVE = 29 };
    uint32_t (*version)(void) = NULL;
    void *symbol = dlsym(g->library, "wgpuGetVersion");
    memcpy(&version, &symbol, sizeof symbol);
    g->names.dawn = !version; /* which only wgpu-native has */
    const bool is_old = version && version() >> 24 < WGPU_NATIVE;
    if (!is_old && !dlsym(g->library, "wgpuAdapterEnumerateFeatures")) return TG_OK;
    return tg_fail(g->ctx, TG_E_DEVICE,
                   "%s: want wgpu-native %d or later, or a Dawn of 2025 or later, have one that "
                   "speaks another version of webgpu.h: tools/setup.sh fetches both",
                   g->info.library, WGPU_NATIVE);
}

/* The library that TG_WEBGPU_LIB names, else the first of the usual ones. */
static tg_status open_library(tg_gpu *g, const char *named) {
    if (named) {
        g->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        snprintf(g->info.library, sizeof g->info.library, "%s", named);
        if (!g->library)
            return tg_fail(g->ctx, TG_E_DEVICE, "TG_WEBGPU_LIB: want a WebGPU library, have %s",
                           dlerror());
    } else if (!open_usual(g)) {
        return tg_fail(g->ctx, TG_E_DEVICE,
                       "webgpu: want a WebGPU library (Dawn or wgpu-native), have none beside the "
                       "program, in .cache/webgpu or in the system: run tools/setup.sh, or set "
                       "TG_WEBGPU_LIB to the path of one");
    }
    return TG_OK;
}

static tg_status look_up_functions(tg_gpu *g) {
    TG_TRY(want_version(g));
    void *symbol = NULL;
#define LOOK_UP(name)                                                                              \
    symbol = dlsym(g->library, "wgpu" #name);                                                      \
    if (!symbol)                                                                                   \
        return tg_fail(g->ctx, TG_E_DEVICE,                                                        \
                       "%s: want the function wgpu" #name ", have none: it "                       \
                       "speaks another version of webgpu.h",                                       \
                       g->info.library);                                                           \
    memcpy(&g->f.name, &symbol, sizeof symbol);
    FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return TG_OK;
}

static const char *api_name(WGPUBackendType type) {
    switch (type) {
    case WGPUBackendType_Vulkan: return "Vulkan";
    case WGPUBackendType_Metal: return "Metal";
    case WGPUBackendType_D3D12: return "D3D12";
    case WGPUBackendType_D3D11: return "D3D11";
    case WGPUBackendType_OpenGL: return "OpenGL";
    case WGPUBackendType_OpenGLES: return "OpenGL ES";
    default: return "unknown";
    }
}

/* By its own word, or by name: some drivers of the CPU call themselves a GPU. */
static bool is_software(const WGPUAdapterInfo *info, const char *name) {
    static const char *const known[] = { "llvmpipe", "SwiftShader", "swiftshader", "WARP",
                                         "Basic Render" };
    if (info->adapterType == WGPUAdapterType_CPU) return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(name, known[i])) return true;
    return false;
}

#define NO_ADAPTER                                                                                  \
    "%s: want an adapter, have none (%s): a driver and its loader are needed, on Linux libvulkan1 " \
    "and the driver of the card"

static tg_status open_adapter(tg_gpu *g) {
    answer a = { .gpu = g };
    dawn_toggles toggles = tg_gpu_toggles(g->names);
    WGPUChainedStruct *const chain = toggles.n_on ? &toggles.chain : NULL;
    const WGPUInstanceDescriptor instance = { .nextInChain = chain };
    const WGPURequestAdapterOptions options = { .nextInChain = chain,
                                                .featureLevel = WGPUFeatureLevel_Core,
                                                .powerPreference =
                                                    WGPUPowerPreference_HighPerformance };
    g->instance = g->f.CreateInstance(&instance);
    if (!g->instance)
        return tg_fail(g->ctx, TG_E_DEVICE, "%s: want an instance, have none", g->info.library);
    g->f.InstanceRequestAdapter(
        g->instance, &options,
        (WGPURequestAdapterCallbackInfo) {
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_adapter, .userdata1 = &a });
    tg_gpu_pump(g, &a);
    if (!a.ok) return tg_fail(g->ctx, TG_E_DEVICE, NO_ADAPTER, g->info.library, a.text);
    g->adapter = a.object;
    WGPUAdapterInfo info = { 0 };
    g->f.AdapterGetInfo(g->adapter, &info);
    keep_text(g->info.adapter, sizeof g->info.adapter, info.device);
    keep_text(g->info.driver, sizeof g->info.driver, info.description);
    snprintf(g->info.api, sizeof g->info.api, "%s", api_name(info.backendType));
    g->info.software = is_software(&info, g->info.adapter);
    const bool null = info.backendType == WGPUBackendType_Null;
    g->f.AdapterInfoFreeMembers(info);
    /* Dawn's stand-in where there is no driver takes everything and computes nothing. */
    if (null)
        return tg_fail(g->ctx, TG_E_DEVICE, NO_ADAPTER, g->info.library, "no driver was found");
    const tg_gpu_ask ask = { g->f.AdapterHasFeature, g->f.AdapterGetInfo,
                             g->f.AdapterInfoFreeMembers };
    g->n_features = tg_gpu_features_find(&ask, g->adapter, g->names, &g->info, g->features);
    return TG_OK;
}

/* All that the adapter has: its limits, and the features that some kernel may use. */
static tg_status open_device(tg_gpu *g) {
    const bool minimum = tg_gpu_wants_minimum();
    WGPULimits limits = { 0 };
    g->f.AdapterGetLimits(g->adapter, &limits);
    limits.nextInChain = NULL;
    TG_TRY(tg_gpu_read_limits(g->ctx, &limits, &g->info));
    answer a = { .gpu = g };
    dawn_toggles toggles = tg_gpu_toggles(g->names);
    if (g->names.dawn && !g->cache) g->cache = tg_gpu_cache_open("webgpu.cache");
    tg_gpu_cache_room room;
    toggles.chain.next = tg_gpu_chain_cache(g->library, g->cache, &room);
    const WGPUDeviceDescriptor want = {
        .nextInChain = toggles.n_on ? &toggles.chain : NULL,
        .label = view("tinygpt"),
        .requiredFeatureCount = g->n_features,
        .requiredFeatures = g->features,
        .requiredLimits = minimum ? NULL : &limits,
        .deviceLostCallbackInfo = { .mode = WGPUCallbackMode_AllowProcessEvents,
                                    .callback = on_lost,
                                    .userdata1 = g },
        .uncapturedErrorCallbackInfo = { .callback = on_error, .userdata1 = g },
    };
    g->f.AdapterRequestDevice(
        g->adapter, &want,
        (WGPURequestDeviceCallbackInfo) {
            .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_device, .userdata1 = &a });
    tg_gpu_pump(g, &a);
    if (!a.ok)
        return tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: want a device, have none: %s", g->info.adapter,
                       a.text);
    g->device = a.object;
    g->queue = g->f.DeviceGetQueue(g->device);
    return TG_OK;
}

/* Queries of timestamps need the feature: do they come with the number that was asked for? */
static bool numbers_hold(tg_gpu *g) {
    const WGPUQuerySetDescriptor d = { .type = WGPUQueryType_Timestamp, .count = 2 };
    answer a = { .gpu = g };
    if (!g->info.timestamps) return true;
    g->f.DevicePushErrorScope(g->device, WGPUErrorFilter_Validation);
    WGPUQuerySet set = g->f.DeviceCreateQuerySet(g->device, &d);
    g->f.DevicePopErrorScope(
        g->device, (WGPUPopErrorScopeCallbackInfo) { .mode = WGPUCallbackMode_AllowProcessEvents,
                                                     .callback = tg_gpu_on_scope,
                                                     .userdata1 = &a });
    tg_gpu_pump(g, &a);
    if (set) g->f.QuerySetRelease(set);
    return a.ok;
}

void tg_gpu_close_device(tg_gpu *g) {
    if (g->queue) g->f.QueueRelease(g->queue);
    if (g->device) {
        g->f.DeviceDestroy(g->device);
        g->f.DeviceRelease(g->device);
    }
    if (g->adapter) g->f.AdapterRelease(g->adapter);
    if (g->instance) g->f.InstanceRelease(g->instance);
    g->queue = NULL;
    g->device = NULL;
    g->adapter = NULL;
    g->instance = NULL;
    g->lost = false;
    g->message[0] = '\0';
}

static tg_status open_gpu(tg_gpu *g) {
    TG_TRY(look_up_functions(g));
    /* A function of the standard header tells which numbers are the likely ones. */
    g->names.before = g->names.dawn && !dlsym(g->library, "wgpuGetInstanceFeatures");
    tg_status s = open_adapter(g);
    if (s == TG_OK) s = open_device(g);
    if (s != TG_OK || numbers_hold(g)) return s;
    tg_gpu_close_device(g);
    g->names.before = !g->names.before;
    TG_TRY(open_adapter(g));
    return open_device(g);
}

/* A newer library takes fewer drivers than an older one does: where the first that is there finds
 * no adapter, the next one is asked. */
tg_status tg_gpu_open(tg_ctx *ctx, tg_gpu **out) {
    const char *named = getenv("TG_WEBGPU_LIB");
    const bool any = !named || !named[0];
    tg_gpu *g = tg_alloc(&ctx->mem, sizeof *g);
    *out = NULL;
    if (!g) return tg_fail_memory(ctx, "GPU", sizeof *g);
    *g = (tg_gpu) { .ctx = ctx };
    tg_status s = open_library(g, any ? NULL : named);
    if (s == TG_OK) s = open_gpu(g);
    while (s == TG_E_DEVICE && any && open_usual(g)) {
        tg_say(ctx, TG_LOG_WARNING, "%s; %s is tried instead", ctx->message, g->info.library);
        tg_ctx_clear(ctx);
        tg_gpu_close_device(g);
        s = open_gpu(g);
    }
    if (s == TG_OK)
        *out = g;
    else
        tg_gpu_close(g);
    return s;
}
