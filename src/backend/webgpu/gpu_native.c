/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_native.c - gpu.h over the standard webgpu.h of a library that is opened when a GPU is asked
 * for: Dawn, or whatever TG_WEBGPU_LIB names (wgpu-native, say). The program starts without it.
 *
 * Both libraries answer through callbacks, which run inside ProcessEvents only; so every question
 * is asked, and then pumped until it is answered. Objects are made inside error scopes for
 * validation and for memory: a failure is a message of theirs, never a dead handle. Pipelines are
 * compiled side by side, where the library can do that, and waited for in settle. Two callbacks may
 * come at other times: on_error, which webgpu.h has no mode for, and the cache's (gpu_cache.h).
 *
 *     made in scopes     an error is the status of the call that made it
 *     submit and write   no scope: on_error keeps the first, and check() says it in the next call
 *     lost               for good: every call fails, and pump waits no longer
 *
 * wgpu-native ends the process at some errors of submit. Its bounds checks make shaders ten times
 * slower; trusted shaders do without. Ours clamp each index, and the op test keeps the checks on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <webgpu.h>

#include "backend/webgpu/gpu.h"
#include "backend/webgpu/gpu_features.h"
#include "backend/webgpu/gpu_self_test.h"
#include "base/str.h"
#include "base/time.h"

/* Every function that is called, without its prefix. */
#define FUNCTIONS(X)                                                                               \
    X(CreateInstance)                                                                              \
    X(InstanceRequestAdapter)                                                                      \
    X(InstanceProcessEvents)                                                                       \
    X(InstanceRelease)                                                                             \
    X(AdapterGetInfo)                                                                              \
    X(AdapterInfoFreeMembers)                                                                      \
    X(AdapterGetLimits)                                                                            \
    X(AdapterHasFeature)                                                                           \
    X(AdapterRequestDevice)                                                                        \
    X(AdapterRelease)                                                                              \
    X(DeviceGetQueue)                                                                              \
    X(DevicePushErrorScope)                                                                        \
    X(DevicePopErrorScope)                                                                         \
    X(DeviceCreateBuffer)                                                                          \
    X(DeviceCreateShaderModule)                                                                    \
    X(DeviceCreateBindGroupLayout)                                                                 \
    X(DeviceCreatePipelineLayout)                                                                  \
    X(DeviceCreateComputePipeline)                                                                 \
    X(DeviceCreateComputePipelineAsync)                                                            \
    X(DeviceCreateBindGroup)                                                                       \
    X(DeviceCreateCommandEncoder)                                                                  \
    X(DeviceCreateQuerySet)                                                                        \
    X(DeviceDestroy)                                                                               \
    X(DeviceRelease)                                                                               \
    X(QueueSubmit)                                                                                 \
    X(QueueWriteBuffer)                                                                            \
    X(QueueOnSubmittedWorkDone)                                                                    \
    X(QueueRelease)                                                                                \
    X(BufferMapAsync)                                                                              \
    X(BufferGetConstMappedRange)                                                                   \
    X(BufferUnmap)                                                                                 \
    X(BufferDestroy)                                                                               \
    X(BufferRelease)                                                                               \
    X(CommandEncoderBeginComputePass)                                                              \
    X(CommandEncoderCopyBufferToBuffer)                                                            \
    X(CommandEncoderFinish)                                                                        \
    X(CommandEncoderResolveQuerySet)                                                               \
    X(CommandEncoderRelease)                                                                       \
    X(CommandBufferRelease)                                                                        \
    X(ComputePassEncoderSetPipeline)                                                               \
    X(ComputePassEncoderSetBindGroup)                                                              \
    X(ComputePassEncoderDispatchWorkgroups)                                                        \
    X(ComputePassEncoderEnd)                                                                       \
    X(ComputePassEncoderRelease)                                                                   \
    X(ComputePipelineRelease)                                                                      \
    X(BindGroupRelease)                                                                            \
    X(BindGroupLayoutRelease)                                                                      \
    X(PipelineLayoutRelease)                                                                       \
    X(QuerySetRelease)                                                                             \
    X(ShaderModuleRelease)

typedef struct functions {
#define MEMBER(name) WGPUProc##name name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

/* Of one kind of object: numbers are places in a list from 1 on, and a freed one is taken again. So
 * whoever frees an object forgets its number; one that was kept may be another object's. */
typedef struct list {
    void **items;
    size_t n, room;
} list;

/* What a callback leaves for whoever pumps. It must stay where it is until done, or the device
 * gone: on the stack of a pump, or in a pipeline or a reading, which are waited for before they go.
 */
typedef struct answer {
    tg_gpu *gpu;
    bool done, ok;
    void *object;
    char text[512];
} answer;

typedef struct pipeline {
    WGPUBindGroupLayout layout;
    unsigned n_storage;
    answer made; /* its object is the pipeline; where it failed, that stays */
    char label[96];
} pipeline;

/* A reading on its way: what is read goes through a buffer that can be mapped. Buffers stay for the
 * next reading, so that a step makes none.
 *
 *     free, 0  --begin: copy, ask to map-->  number n  --end: pump, copy out, unmap-->  free, 0
 *     one that nobody ends becomes the oldest, and gives its place and its buffer up */
enum { READINGS = TG_GPU_READINGS };
typedef struct staging {
    uint32_t number; /* of the reading; 0: free */
    WGPUBuffer buffer;
    size_t bytes;
    answer mapped;
} staging;

struct tg_gpu {
    tg_ctx *ctx;
    void *library;
    functions f;
    WGPUInstance instance;
    WGPUAdapter adapter;
    WGPUDevice device;
    WGPUQueue queue;
    tg_gpu_info info;
    list buffers, groups, pipelines;
    tg_gpu_cache *cache; /* NULL: none */
    staging readings[READINGS];
    uint32_t last_reading;
    uint64_t made;
    bool lost;
    size_t tried; /* of the usual libraries */
    tg_gpu_names names;
    WGPUFeatureName features[TG_GPU_FEATURES]; /* that the device is opened with */
    size_t n_features;
    char message[512]; /* of a lost device, or of the first error that nobody was asking for */
};

static void keep_text(char *to, size_t room, WGPUStringView text) {
    size_t n = text.length == WGPU_STRLEN ? (text.data ? strlen(text.data) : 0) : text.length;
    if (n >= room) n = room - 1;
    if (n) memcpy(to, text.data, n);
    to[n] = '\0';
}

static WGPUStringView view(const char *text) { return (WGPUStringView) { text, WGPU_STRLEN }; }

static void sleep_us(long us) {
    const struct timespec t = { .tv_nsec = us * 1000 };
    nanosleep(&t, NULL);
}

/* A sleep of 20 us takes 75, which is much beside a token of a small model: at first whoever waits
 * looks without one, unless the processor that it would keep busy is the GPU's, too. */
enum { AWAKE_MS = 3, BRIEF_SLEEPS_MS = 300 };

/* Until the answer is there. Waits without a limit: a driver that hangs is ended by its watchdog,
 * which loses the device, and that is an answer. */
static void pump(tg_gpu *g, const answer *a) {
    const double begun_ms = tg_time_ms();
    for (unsigned looks = 0; !a->done && !g->lost; looks++) {
        g->f.InstanceProcessEvents(g->instance);
        if (looks < 64 || a->done) continue;
        const int64_t ms = (int64_t)(tg_time_ms() - begun_ms);
        if (ms < AWAKE_MS && !g->info.software)
            sched_yield();
        else
            sleep_us(ms < BRIEF_SLEEPS_MS ? 20 : 1000);
    }
}

static tg_status lost(tg_gpu *g) {
    return tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: %s", g->info.adapter,
                   g->message[0] ? g->message : "the device is gone");
}

/* ------------------------------------------------------------------------------------ callbacks */

static void keep(answer *a, bool ok, void *object, WGPUStringView text) {
    a->ok = ok;
    a->object = object;
    keep_text(a->text, sizeof a->text, text);
    a->done = true;
}

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

/* On the thread that pumps, whichever of the library's own has compiled it. */
static void on_pipeline(WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline made,
                        WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUCreatePipelineAsyncStatus_Success, made, text);
}

static void on_scope(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView text,
                     void *user, void *unused) {
    answer *a = user;
    (void)unused;
    a->ok = status == WGPUPopErrorScopeStatus_Success && type == WGPUErrorType_NoError;
    if (!a->ok && !a->text[0]) keep_text(a->text, sizeof a->text, text);
    a->done = true;
}

static void on_map(WGPUMapAsyncStatus status, WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUMapAsyncStatus_Success, NULL, text);
}

static void on_idle(WGPUQueueWorkDoneStatus status, WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUQueueWorkDoneStatus_Success, NULL, text);
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

/* Scopes around the making of an object: the inner one for memory, the outer one for the rest. They
 * are a stack, so end_making pops memory first. After an error the handle is an invalid object, not
 * NULL. */
static void begin_making(tg_gpu *g) {
    g->f.DevicePushErrorScope(g->device, WGPUErrorFilter_Validation);
    g->f.DevicePushErrorScope(g->device, WGPUErrorFilter_OutOfMemory);
}

static tg_status end_making(tg_gpu *g, const char *what, const char *label, size_t bytes) {
    answer memory = { .gpu = g }, validation = { .gpu = g };
    const WGPUPopErrorScopeCallbackInfo ask[] = {
        { .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_scope, .userdata1 = &memory },
        { .mode = WGPUCallbackMode_AllowProcessEvents,
          .callback = on_scope,
          .userdata1 = &validation },
    };
    g->f.DevicePopErrorScope(g->device, ask[0]);
    pump(g, &memory);
    if (!g->lost) g->f.DevicePopErrorScope(g->device, ask[1]);
    pump(g, &validation);
    if (g->lost) return lost(g);
    g->made++;
    /* wgpu-native calls it an error of validation. */
    const bool full = !memory.ok || strstr(validation.text, "Not enough memory");
    if (full)
        return tg_fail(g->ctx, TG_E_MEMORY,
                       "GPU %s: no memory for %s %s of %zu bytes: lower the batch or the "
                       "context, or take a smaller model (%s)",
                       g->info.adapter, what, label, bytes,
                       memory.ok ? "not enough memory left" : memory.text);
    if (!validation.ok)
        return tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: %s %s: %s", g->info.adapter, what, label,
                       validation.text);
    return TG_OK;
}

/* ---------------------------------------------------------------------------------------- lists */

static tg_status list_put(tg_gpu *g, list *l, void *item, uint32_t *number) {
    size_t i = 0;
    while (i < l->n && l->items[i]) i++;
    if (i == l->room) {
        const size_t room = l->room ? 2 * l->room : 64;
        void **items =
            tg_realloc(&g->ctx->mem, l->items, l->room * sizeof *items, room * sizeof *items);
        if (!items) return tg_fail_memory(g->ctx, "list of GPU objects", room * sizeof *items);
        l->items = items;
        l->room = room;
    }
    if (i == l->n) l->n++;
    l->items[i] = item;
    *number = (uint32_t)i + 1;
    return TG_OK;
}

static void *list_at(const list *l, uint32_t number) {
    return number && number <= l->n ? l->items[number - 1] : NULL;
}

/* -------------------------------------------------------------------------------------- opening */

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
    pump(g, &a);
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
    pump(g, &a);
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
                                                     .callback = on_scope,
                                                     .userdata1 = &a });
    pump(g, &a);
    if (set) g->f.QuerySetRelease(set);
    return a.ok;
}

/* All but the library. A device that is closed on purpose is not lost. */
static void close_device(tg_gpu *g) {
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
    close_device(g);
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
        close_device(g);
        s = open_gpu(g);
    }
    if (s == TG_OK)
        *out = g;
    else
        tg_gpu_close(g);
    return s;
}

const tg_gpu_info *tg_gpu_get_info(const tg_gpu *g) { return &g->info; }
uint64_t tg_gpu_objects_made(const tg_gpu *g) { return g->made; }
bool tg_gpu_lost(const tg_gpu *g) { return g->lost; }

#ifdef TG_TEST_HOOKS
/* wgpu-native says nothing of a device that was destroyed, and ends the process at its next use. */
void tg_gpu_lose(tg_gpu *g) {
    g->f.DeviceDestroy(g->device);
    g->f.InstanceProcessEvents(g->instance);
    g->lost = true;
    if (!g->message[0]) snprintf(g->message, sizeof g->message, "the device was lost: destroyed");
}
#endif

/* -------------------------------------------------------------------------------------- buffers */

static tg_status make_buffer(tg_gpu *g, const char *label, size_t bytes, WGPUBufferUsage usage,
                             WGPUBuffer *out) {
    *out = NULL;
    if (g->lost) return lost(g);
    if (bytes > g->info.max_buffer_bytes)
        return tg_fail(g->ctx, TG_E_MEMORY,
                       "GPU %s: buffer %s: want %zu bytes, a buffer has at most %" PRIu64
                       ": lower the batch or take a smaller model",
                       g->info.adapter, label, bytes, g->info.max_buffer_bytes);
    const WGPUBufferDescriptor d = { .label = view(label), .usage = usage, .size = bytes };
    begin_making(g);
    *out = g->f.DeviceCreateBuffer(g->device, &d);
    const tg_status s = end_making(g, "buffer", label, bytes);
    if (s != TG_OK && *out) g->f.BufferRelease(*out);
    if (s != TG_OK) *out = NULL;
    return s;
}

tg_status tg_gpu_buffer_new(tg_gpu *g, const char *label, size_t bytes, bool uniform,
                            uint32_t *out) {
    const WGPUBufferUsage kind = uniform ? WGPUBufferUsage_Uniform : WGPUBufferUsage_Storage;
    WGPUBuffer b = NULL;
    *out = 0;
    TG_TRY(make_buffer(g, label, (bytes + 3) / 4 * 4,
                       kind | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc, &b));
    const tg_status s = list_put(g, &g->buffers, b, out);
    if (s != TG_OK) g->f.BufferRelease(b);
    return s;
}

void tg_gpu_buffer_free(tg_gpu *g, uint32_t buffer) {
    WGPUBuffer b = list_at(&g->buffers, buffer);
    if (!b) return;
    g->f.BufferDestroy(b);
    g->f.BufferRelease(b);
    g->buffers.items[buffer - 1] = NULL;
}

/* An error that came between two calls is said at the next one. */
static tg_status check(tg_gpu *g) {
    if (g->lost) return lost(g);
    if (!g->message[0]) return TG_OK;
    const tg_status s = tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: %s", g->info.adapter, g->message);
    g->message[0] = '\0';
    return s;
}

/* A pipeline that is still being made writes into ours when it is, on a lost device as well. */
static void pipeline_free(tg_gpu *g, pipeline *p) {
    if (!p) return;
    while (!p->made.done) {
        g->f.InstanceProcessEvents(g->instance);
        if (!p->made.done) sleep_us(20);
    }
    if (p->made.object) g->f.ComputePipelineRelease(p->made.object);
    if (p->layout) g->f.BindGroupLayoutRelease(p->layout);
    tg_free(&g->ctx->mem, p, sizeof *p);
}

/* Of the objects, pipelines alone are not looked at when they are made. One that could not be is
 * said once, and is none from then on. */
tg_status tg_gpu_settle(tg_gpu *g) {
    TG_TRY(check(g));
    for (uint32_t i = 1; i <= g->pipelines.n; i++) {
        pipeline *p = list_at(&g->pipelines, i);
        if (p) pump(g, &p->made);
        if (g->lost) return lost(g);
        if (!p || p->made.ok) continue;
        tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: pipeline %s: %s", g->info.adapter, p->label,
                p->made.text);
        pipeline_free(g, p);
        g->pipelines.items[i - 1] = NULL;
        return TG_E_DEVICE;
    }
    tg_gpu_cache_save(g->cache);
    return TG_OK;
}

tg_status tg_gpu_write(tg_gpu *g, uint32_t buffer, size_t offset, const void *bytes, size_t n) {
    TG_TRY(check(g));
    g->f.QueueWriteBuffer(g->queue, list_at(&g->buffers, buffer), offset, bytes, n);
    return TG_OK;
}

/* The buffer with the number of nobody, or of the oldest reading; the newest numbers are the
 * largest. A buffer that is being mapped or was not unmapped is given back as well. */
static staging *free_staging(tg_gpu *g, size_t bytes) {
    staging *best = &g->readings[0];
    for (size_t i = 0; i < READINGS; i++) {
        staging *s = &g->readings[i];
        if (!s->number && s->buffer && s->bytes >= bytes) return s;
        if (s->number < best->number) best = s;
    }
    return best;
}

static void staging_deinit(tg_gpu *g, staging *s) {
    if (!s->buffer) return;
    g->f.BufferDestroy(s->buffer);
    while (s->number && !s->mapped.done && !g->lost) g->f.InstanceProcessEvents(g->instance);
    g->f.BufferRelease(s->buffer);
    *s = (staging) { .number = 0 };
}

static tg_status reserve_staging(tg_gpu *g, size_t bytes, staging **out) {
    staging *s = *out = free_staging(g, bytes);
    if (!s->number && s->buffer && s->bytes >= bytes) return TG_OK;
    staging_deinit(g, s);
    const WGPUBufferUsage usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
    TG_TRY(make_buffer(g, "staging", bytes, usage, &s->buffer));
    s->bytes = bytes;
    return TG_OK;
}

tg_status tg_gpu_read_begin(tg_gpu *g, const tg_gpu_piece *pieces, size_t n, uint32_t *reading) {
    size_t bytes = 0;
    staging *s;
    *reading = 0;
    TG_TRY(check(g));
    for (size_t i = 0; i < n; i++) bytes += (size_t)(pieces[i].bytes + 3) / 4 * 4;
    TG_TRY(reserve_staging(g, bytes, &s));
    WGPUCommandEncoder e = g->f.DeviceCreateCommandEncoder(g->device, NULL);
    for (size_t i = 0, at = 0; i < n; i++) {
        const size_t padded = (size_t)(pieces[i].bytes + 3) / 4 * 4;
        g->f.CommandEncoderCopyBufferToBuffer(e, list_at(&g->buffers, pieces[i].buffer),
                                              pieces[i].offset, s->buffer, at, padded);
        at += padded;
    }
    WGPUCommandBuffer c = g->f.CommandEncoderFinish(e, NULL);
    g->f.QueueSubmit(g->queue, 1, &c);
    g->f.CommandBufferRelease(c);
    g->f.CommandEncoderRelease(e);
    s->mapped = (answer) { .gpu = g };
    s->number = *reading = ++g->last_reading;
    g->f.BufferMapAsync(s->buffer, WGPUMapMode_Read, 0, bytes,
                        (WGPUBufferMapCallbackInfo) { .mode = WGPUCallbackMode_AllowProcessEvents,
                                                      .callback = on_map,
                                                      .userdata1 = &s->mapped });
    return TG_OK;
}

/* An error of what was submitted is known by now, so that a step which failed leaves no result. */
tg_status tg_gpu_read_end(tg_gpu *g, uint32_t reading, const tg_gpu_piece *pieces, size_t n) {
    staging *s = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < READINGS; i++)
        if (g->readings[i].number == reading) s = &g->readings[i];
    if (!s || !reading)
        return tg_fail(g->ctx, TG_E_INTERNAL, "GPU %s: reading %u is not on its way",
                       g->info.adapter, reading);
    pump(g, &s->mapped);
    if (g->lost) return lost(g);
    if (!s->mapped.ok) {
        s->number = 0;
        return tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: reading: %s", g->info.adapter, s->mapped.text);
    }
    for (size_t i = 0; i < n; i++) bytes += (size_t)(pieces[i].bytes + 3) / 4 * 4;
    const char *from = g->f.BufferGetConstMappedRange(s->buffer, 0, bytes);
    for (size_t i = 0; i < n; i++) {
        memcpy(pieces[i].host, from, (size_t)pieces[i].bytes);
        from += (size_t)(pieces[i].bytes + 3) / 4 * 4;
    }
    g->f.BufferUnmap(s->buffer);
    s->number = 0;
    return check(g);
}

/* ---------------------------------------------------------------------------- pipelines, groups */

static tg_status make_layout(tg_gpu *g, const char *label, unsigned n_storage,
                             WGPUBindGroupLayout *out) {
    WGPUBindGroupLayoutEntry entries[2 + TG_GPU_MAX_STORAGE] = { 0 };
    for (uint32_t i = 0; i < 2 + n_storage; i++) {
        entries[i].binding = i;
        entries[i].visibility = WGPUShaderStage_Compute;
        entries[i].buffer.type =
            i < 2 ? WGPUBufferBindingType_Uniform : WGPUBufferBindingType_Storage;
    }
    const WGPUBindGroupLayoutDescriptor d = { .label = view(label),
                                              .entryCount = 2 + n_storage,
                                              .entries = entries };
    begin_making(g);
    *out = g->f.DeviceCreateBindGroupLayout(g->device, &d);
    return end_making(g, "layout of", label, 0);
}

/* wgpu-native has subgroups by a feature of its own, and without the line that WGSL wants for them:
 * Dawn alone gets that. */
static tg_status make_module(tg_gpu *g, const char *label, const char *wgsl,
                             WGPUShaderModule *out) {
    const size_t enable = strlen(TG_GPU_ENABLE_SUBGROUPS);
    if (!g->names.dawn && strncmp(wgsl, TG_GPU_ENABLE_SUBGROUPS, enable) == 0) wgsl += enable;
    WGPUShaderSourceWGSL source = { .chain = { .sType = WGPUSType_ShaderSourceWGSL },
                                    .code = view(wgsl) };
    const WGPUShaderModuleDescriptor d = { .nextInChain = &source.chain, .label = view(label) };
    begin_making(g);
    *out = g->f.DeviceCreateShaderModule(g->device, &d);
    return end_making(g, "shader", label, 0);
}

/* Dawn compiles on threads of its own, as many pipelines at once as there are processors.
 * wgpu-native has the function, and ends the process in it. */
static tg_status begin_pipeline(tg_gpu *g, const char *entry, WGPUShaderModule module,
                                pipeline *p) {
    tg_status s = TG_OK;
    const WGPUPipelineLayoutDescriptor layout = { .label = view(p->label),
                                                  .bindGroupLayoutCount = 1,
                                                  .bindGroupLayouts = &p->layout };
    WGPUPipelineLayout l = g->f.DeviceCreatePipelineLayout(g->device, &layout);
    const WGPUComputePipelineDescriptor d = { .label = view(p->label),
                                              .layout = l,
                                              .compute = { .module = module,
                                                           .entryPoint = view(entry) } };
    if (g->names.dawn) {
        const WGPUCreateComputePipelineAsyncCallbackInfo info = {
            .mode = WGPUCallbackMode_AllowProcessEvents,
            .callback = on_pipeline,
            .userdata1 = &p->made
        };
        p->made.done = false;
        g->f.DeviceCreateComputePipelineAsync(g->device, &d, info);
        g->made++;
    } else {
        begin_making(g);
        p->made.object = g->f.DeviceCreateComputePipeline(g->device, &d);
        s = end_making(g, "pipeline", p->label, 0);
        p->made.ok = s == TG_OK;
    }
    g->f.PipelineLayoutRelease(l);
    return s;
}

tg_status tg_gpu_pipeline_new(tg_gpu *g, const char *label, const char *wgsl, const char *entry,
                              unsigned n_storage, uint32_t *out) {
    *out = 0;
    if (g->lost) return lost(g);
    TG_ASSERT(n_storage <= TG_GPU_MAX_STORAGE);
    pipeline *p = tg_alloc(&g->ctx->mem, sizeof *p);
    if (!p) return tg_fail_memory(g->ctx, "pipeline", sizeof *p);
    *p = (pipeline) { .n_storage = n_storage, .made = { .gpu = g, .done = true } };
    snprintf(p->label, sizeof p->label, "%s", label);
    WGPUShaderModule module = NULL;
    tg_status s = make_layout(g, label, n_storage, &p->layout);
    if (s == TG_OK) s = make_module(g, label, wgsl, &module);
    if (s == TG_OK) s = begin_pipeline(g, entry, module, p);
    if (module) g->f.ShaderModuleRelease(module);
    if (s == TG_OK) s = list_put(g, &g->pipelines, p, out);
    if (s != TG_OK) pipeline_free(g, p);
    return s;
}

tg_status tg_gpu_group_new(tg_gpu *g, uint32_t pipeline_number, const tg_gpu_range *ranges,
                           uint32_t *out) {
    const pipeline *p = list_at(&g->pipelines, pipeline_number);
    WGPUBindGroupEntry entries[2 + TG_GPU_MAX_STORAGE] = { 0 };
    *out = 0;
    if (g->lost) return lost(g);
    if (!p) return tg_fail(g->ctx, TG_E_DEVICE, "GPU %s: a pipeline was not made", g->info.adapter);
    for (uint32_t i = 0; i < 2 + p->n_storage; i++) {
        entries[i].binding = i;
        entries[i].buffer = list_at(&g->buffers, ranges[i].buffer);
        entries[i].offset = ranges[i].offset;
        entries[i].size = (ranges[i].bytes + 3) / 4 * 4;
    }
    const WGPUBindGroupDescriptor d = { .layout = p->layout,
                                        .entryCount = 2 + p->n_storage,
                                        .entries = entries };
    begin_making(g);
    WGPUBindGroup group = g->f.DeviceCreateBindGroup(g->device, &d);
    tg_status s = end_making(g, "bind group", "of a step", 0);
    if (s == TG_OK) s = list_put(g, &g->groups, group, out);
    if (s != TG_OK && group) g->f.BindGroupRelease(group);
    return s;
}

void tg_gpu_group_free(tg_gpu *g, uint32_t group) {
    WGPUBindGroup b = list_at(&g->groups, group);
    if (!b) return;
    g->f.BindGroupRelease(b);
    g->groups.items[group - 1] = NULL;
}

/* ------------------------------------------------------------------------------------------ run */

/* One pass for all, in which a dispatch sees what those before it wrote: WebGPU sets the barriers.
 * Pipelines are good by now, as callers have settled. */
static void encode(tg_gpu *g, WGPUCommandEncoder e, const WGPUPassTimestampWrites *timestamps,
                   const tg_gpu_dispatch *dispatches, size_t n) {
    const WGPUComputePassDescriptor descriptor = { .timestampWrites = timestamps };
    WGPUComputePassEncoder pass = g->f.CommandEncoderBeginComputePass(e, &descriptor);
    uint32_t set = 0;
    for (size_t i = 0; i < n; i++) {
        const tg_gpu_dispatch *d = &dispatches[i];
        if (d->pipeline != set) {
            const pipeline *p = list_at(&g->pipelines, d->pipeline);
            g->f.ComputePassEncoderSetPipeline(pass, p->made.object);
        }
        set = d->pipeline;
        g->f.ComputePassEncoderSetBindGroup(pass, 0, list_at(&g->groups, d->group), 0, NULL);
        g->f.ComputePassEncoderDispatchWorkgroups(pass, d->x, d->y, d->z);
    }
    g->f.ComputePassEncoderEnd(pass);
    g->f.ComputePassEncoderRelease(pass);
}

static tg_status finish_and_submit(tg_gpu *g, WGPUCommandEncoder e) {
    WGPUCommandBuffer c = g->f.CommandEncoderFinish(e, NULL);
    g->f.QueueSubmit(g->queue, 1, &c);
    g->f.CommandBufferRelease(c);
    g->f.CommandEncoderRelease(e);
    g->f.InstanceProcessEvents(g->instance);
    return check(g);
}

tg_status tg_gpu_submit(tg_gpu *g, const tg_gpu_dispatch *dispatches, size_t n) {
    TG_TRY(check(g));
    WGPUCommandEncoder e = g->f.DeviceCreateCommandEncoder(g->device, NULL);
    encode(g, e, NULL, dispatches, n);
    return finish_and_submit(g, e);
}

/* A set of queries has at most 4096 of them, and a pass takes two. */
enum { TIMED_PASSES = 2048 };

/* Ticks are nanoseconds in Dawn; wgpu-native says what they are. */
static double ms_of_tick(const tg_gpu *g) {
    float (*period)(WGPUQueue) = NULL;
    void *symbol = dlsym(g->library, "wgpuQueueGetTimestampPeriod");
    memcpy(&period, &symbol, sizeof symbol);
    return period ? (double)period(g->queue) * 1e-6 : 1e-6;
}

/* n of them; ticks [2 n] gets the begin and the end of each, of an empty pass nothing. */
static tg_status time_passes(tg_gpu *g, WGPUQuerySet set, uint32_t buffer,
                             const tg_gpu_dispatch *dispatches, const size_t *first, size_t n,
                             uint64_t *ticks) {
    WGPUCommandEncoder e = g->f.DeviceCreateCommandEncoder(g->device, NULL);
    for (uint32_t i = 0; i < n; i++) {
        const WGPUPassTimestampWrites t = { .querySet = set,
                                            .beginningOfPassWriteIndex = 2 * i,
                                            .endOfPassWriteIndex = 2 * i + 1 };
        if (first[i + 1] > first[i])
            encode(g, e, &t, dispatches + first[i], first[i + 1] - first[i]);
    }
    g->f.CommandEncoderResolveQuerySet(e, set, 0, 2 * (uint32_t)n, list_at(&g->buffers, buffer), 0);
    TG_TRY(finish_and_submit(g, e));
    const tg_gpu_piece all = { buffer, 0, 2 * n * sizeof *ticks, ticks };
    uint32_t reading;
    TG_TRY(tg_gpu_read_begin(g, &all, 1, &reading));
    return tg_gpu_read_end(g, reading, &all, 1);
}

tg_status tg_gpu_submit_timed(tg_gpu *g, const tg_gpu_dispatch *dispatches, const size_t *first,
                              size_t n, double *ms) {
    if (!g->info.timestamps) return TG_E_UNSUPPORTED;
    TG_TRY(check(g));
    const size_t bytes = 2 * TIMED_PASSES * sizeof(uint64_t);
    const WGPUQuerySetDescriptor d = { .type = WGPUQueryType_Timestamp, .count = 2 * TIMED_PASSES };
    const double tick = ms_of_tick(g);
    uint64_t *ticks = tg_alloc(&g->ctx->mem, bytes);
    if (!ticks) return tg_fail_memory(g->ctx, "timestamps", bytes);
    WGPUBuffer handle = NULL;
    uint32_t buffer = 0;
    begin_making(g);
    WGPUQuerySet set = g->f.DeviceCreateQuerySet(g->device, &d);
    tg_status s = end_making(g, "queries", "of timestamps", 0);
    if (s == TG_OK)
        s = make_buffer(g, "timestamps", bytes,
                        WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, &handle);
    if (s == TG_OK) s = list_put(g, &g->buffers, handle, &buffer);
    for (size_t at = 0; at < n && s == TG_OK; at += TIMED_PASSES) {
        const size_t some = n - at < TIMED_PASSES ? n - at : TIMED_PASSES;
        s = time_passes(g, set, buffer, dispatches, first + at, some, ticks);
        for (size_t i = 0; i < some && s == TG_OK; i++)
            if (first[at + i + 1] > first[at + i] && ticks[2 * i + 1] > ticks[2 * i])
                ms[at + i] += (double)(ticks[2 * i + 1] - ticks[2 * i]) * tick;
    }
    tg_gpu_buffer_free(g, buffer);
    if (set) g->f.QuerySetRelease(set); /* wgpu-native takes no destroy before it */
    tg_free(&g->ctx->mem, ticks, bytes);
    return s;
}

tg_status tg_gpu_wait(tg_gpu *g) {
    TG_TRY(check(g));
    answer a = { .gpu = g };
    g->f.QueueOnSubmittedWorkDone(
        g->queue, (WGPUQueueWorkDoneCallbackInfo) { .mode = WGPUCallbackMode_AllowProcessEvents,
                                                    .callback = on_idle,
                                                    .userdata1 = &a });
    pump(g, &a);
    return check(g);
}

void tg_gpu_close(tg_gpu *g) {
    if (!g) return;
    for (uint32_t i = 1; i <= g->groups.n; i++) tg_gpu_group_free(g, i);
    for (uint32_t i = 1; i <= g->pipelines.n; i++) pipeline_free(g, list_at(&g->pipelines, i));
    for (uint32_t i = 1; i <= g->buffers.n; i++) tg_gpu_buffer_free(g, i);
    for (size_t i = 0; i < READINGS; i++) staging_deinit(g, &g->readings[i]);
    close_device(g);
    tg_gpu_cache_close(g->cache);
    const tg_mem mem = g->ctx->mem;
    tg_free(&mem, g->buffers.items, g->buffers.room * sizeof(void *));
    tg_free(&mem, g->groups.items, g->groups.room * sizeof(void *));
    tg_free(&mem, g->pipelines.items, g->pipelines.room * sizeof(void *));
    /* The library stays loaded: both keep threads that outlive the instance. */
    tg_free(&mem, g, sizeof *g);
}
