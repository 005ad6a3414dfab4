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
#include <time.h>

#include "backend/webgpu/device/gpu_native.h"
#include "backend/webgpu/device/self_test/gpu_self_test.h"
#include "base/time.h"

static void sleep_us(long us) {
    const struct timespec t = { .tv_nsec = us * 1000 };
    nanosleep(&t, NULL);
}

/* A sleep of 20 us takes 75, which is much beside a token of a small model: at first whoever waits
 * looks without one, unless the processor that it would keep busy is the GPU's, too. */
enum { AWAKE_MS = 3, BRIEF_SLEEPS_MS = 300 };

void tg_gpu_pump(tg_gpu *g, const answer *a) {
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

/* On the thread that pumps, whichever of the library's own has compiled it. */
static void on_pipeline(WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline made,
                        WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUCreatePipelineAsyncStatus_Success, made, text);
}

static void on_map(WGPUMapAsyncStatus status, WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUMapAsyncStatus_Success, NULL, text);
}

static void on_idle(WGPUQueueWorkDoneStatus status, WGPUStringView text, void *user, void *unused) {
    (void)unused;
    keep(user, status == WGPUQueueWorkDoneStatus_Success, NULL, text);
}

void tg_gpu_on_scope(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView text,
                     void *user, void *unused) {
    answer *a = user;
    (void)unused;
    a->ok = status == WGPUPopErrorScopeStatus_Success && type == WGPUErrorType_NoError;
    if (!a->ok && !a->text[0]) keep_text(a->text, sizeof a->text, text);
    a->done = true;
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
        { .mode = WGPUCallbackMode_AllowProcessEvents,
          .callback = tg_gpu_on_scope,
          .userdata1 = &memory },
        { .mode = WGPUCallbackMode_AllowProcessEvents,
          .callback = tg_gpu_on_scope,
          .userdata1 = &validation },
    };
    g->f.DevicePopErrorScope(g->device, ask[0]);
    tg_gpu_pump(g, &memory);
    if (!g->lost) g->f.DevicePopErrorScope(g->device, ask[1]);
    tg_gpu_pump(g, &validation);
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

uint64_t tg_gpu_memory_bytes = UINT64_MAX, tg_gpu_written_bytes = 0;
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
#ifdef TG_TEST_HOOKS
    if (bytes > tg_gpu_memory_bytes)
        return tg_fail(g->ctx, TG_E_MEMORY, "GPU %s: no memory for buffer %s", g->info.adapter,
                       label);
    tg_gpu_memory_bytes -= tg_gpu_memory_bytes == UINT64_MAX ? 0 : bytes;
#endif
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
        if (p) tg_gpu_pump(g, &p->made);
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
#ifdef TG_TEST_HOOKS
    tg_gpu_written_bytes += n;
#endif
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
    tg_gpu_pump(g, &s->mapped);
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
    tg_gpu_pump(g, &a);
    return check(g);
}

void tg_gpu_close(tg_gpu *g) {
    if (!g) return;
    for (uint32_t i = 1; i <= g->groups.n; i++) tg_gpu_group_free(g, i);
    for (uint32_t i = 1; i <= g->pipelines.n; i++) pipeline_free(g, list_at(&g->pipelines, i));
    for (uint32_t i = 1; i <= g->buffers.n; i++) tg_gpu_buffer_free(g, i);
    for (size_t i = 0; i < READINGS; i++) staging_deinit(g, &g->readings[i]);
    tg_gpu_close_device(g);
    tg_gpu_cache_close(g->cache);
    const tg_mem mem = g->ctx->mem;
    tg_free(&mem, g->buffers.items, g->buffers.room * sizeof(void *));
    tg_free(&mem, g->groups.items, g->groups.room * sizeof(void *));
    tg_free(&mem, g->pipelines.items, g->pipelines.room * sizeof(void *));
    /* The library stays loaded: both keep threads that outlive the instance. */
    tg_free(&mem, g, sizeof *g);
}
