/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_native.h - what a GPU is over webgpu.h, for the two files that know: gpu_native_open.c finds
 * a library, an adapter and a device, gpu_native.c makes objects on the device and runs them.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_NATIVE_H
#define TG_BACKEND_WEBGPU_GPU_NATIVE_H

#include <webgpu.h>

#include "backend/webgpu/device/gpu.h"
#include "backend/webgpu/device/gpu_features.h"
#include "base/str.h"

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

/* Copies what fits, and ends it with a zero. */
static inline void keep_text(char *to, size_t room, WGPUStringView text) {
    size_t n = text.length == WGPU_STRLEN ? (text.data ? strlen(text.data) : 0) : text.length;
    if (n >= room) n = room - 1;
    if (n) memcpy(to, text.data, n);
    to[n] = '\0';
}

static inline WGPUStringView view(const char *text) {
    return (WGPUStringView) { text, WGPU_STRLEN };
}

/* The end of every callback: whoever pumps finds the answer. */
static inline void keep(answer *a, bool ok, void *object, WGPUStringView text) {
    a->ok = ok;
    a->object = object;
    keep_text(a->text, sizeof a->text, text);
    a->done = true;
}

/* Until the answer is there. Waits without a limit: a driver that hangs is ended by its watchdog,
 * which loses the device, and that is an answer. */
void tg_gpu_pump(tg_gpu *g, const answer *a);

/* The callback of a popped scope; user is an answer, which is ok if nothing was wrong. */
void tg_gpu_on_scope(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView text,
                     void *user, void *unused);

/* All but the library and the list of objects. A device that is closed on purpose is not lost. */
void tg_gpu_close_device(tg_gpu *g);

#endif
