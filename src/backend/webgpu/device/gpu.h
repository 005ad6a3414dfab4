/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the little of WebGPU that the backend needs: buffers, pipelines, bind groups, one pass.
 *
 * Two files implement it: gpu_native.c over the standard webgpu.h of a library opened at run time,
 * and gpu_js.c over the page's own WebGPU. Objects are small numbers, which both can hold; 0 is
 * none. Everything is made while a plan is compiled; a step then is one write and one submit:
 *
 *     tg_gpu_write(scalars)   tg_gpu_submit(dispatch list)   tg_gpu_read_begin, _end(loss)
 *
 * Bindings of every pipeline, all in group 0:
 *
 *     0        uniform   the step's shapes and attributes, written when the plan is compiled
 *     1        uniform   the call's run-time scalars, written before each submit
 *     2, 3 ..  storage   read_write, each a range at a multiple of TG_GPU_ALIGN; ranges of one
 *                        dispatch are disjoint
 *
 * All storage is read_write because a buffer may not be bound read-only and writable in one
 * dispatch, however disjoint the ranges.
 *
 * A lost device, an error of validation or of memory is a status, once and for all for the lost
 * one; the message says what the implementation said.
 *
 * C cannot wait in a page. So what a GPU takes its time for answers TG_PENDING there, and is called
 * again, with the same arguments, when the worker has let the browser work: open, settle, read_end
 * and wait. The native implementation waits inside of them, and never says TG_PENDING.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_H
#define TG_BACKEND_WEBGPU_GPU_H

#include "base/err.h"

#define TG_GPU_ALIGN       256u   /* of offsets in a binding: the largest that WebGPU may ask for */
#define TG_GPU_MAX_STORAGE 8u     /* storage bindings of a pipeline: what every adapter has */
#define TG_GPU_MAX_GROUPS  65535u /* of a dispatch, in each direction */

typedef struct tg_gpu tg_gpu;

typedef struct tg_gpu_info {
    char adapter[128]; /* "NVIDIA H100", "llvmpipe (LLVM 15.0.6, 256 bits)" */
    char driver[128];
    char api[16];      /* "Vulkan", "Metal", "D3D12", "page" */
    char library[128]; /* what was opened, or "browser" */
    bool software;     /* runs on the CPU: good for tests, never timed */
    bool f16, subgroups, timestamps;
    bool has_matrices; /* of a subgroup: f16 with sums in f32, 16 x 16 x 16 */
    char matrices[96]; /* the shapes that there are, "16x16x16 16x8x16", or why there are none */
    uint64_t max_buffer_bytes, max_binding_bytes;
    uint32_t max_group_bytes, max_group_threads;
} tg_gpu_info;

/* Opens the best adapter there is. E_DEVICE says what is missing and what to install. TG_PENDING:
 * it is on its way. */
tg_status tg_gpu_open(tg_ctx *ctx, tg_gpu **out);
void tg_gpu_close(tg_gpu *gpu);
const tg_gpu_info *tg_gpu_get_info(const tg_gpu *gpu);
/* Whether the device is gone for good: then every call fails with E_DEVICE, and close is left. */
bool tg_gpu_lost(const tg_gpu *gpu);
/* Whether all that was made so far is good, which a page learns later: TG_PENDING: not known yet;
 * else the first error since the last call. */
tg_status tg_gpu_settle(tg_gpu *gpu);

/* Zeroed storage. E_MEMORY says how much was wanted. */
tg_status tg_gpu_buffer_new(tg_gpu *gpu, const char *label, size_t bytes, bool uniform,
                            uint32_t *out);
void tg_gpu_buffer_free(tg_gpu *gpu, uint32_t buffer);
/* Offsets and sizes are multiples of 4. The bytes are taken over before the call returns. */
tg_status tg_gpu_write(tg_gpu *gpu, uint32_t buffer, size_t offset, const void *bytes, size_t n);

typedef struct tg_gpu_piece {
    uint32_t buffer;
    uint64_t offset, bytes; /* multiples of 4 */
    void *host;
} tg_gpu_piece;
/* Copies pieces as they are when all that was submitted before is done; end waits for that and
 * writes them to the host. Numbers of readings are not 0, and end with TG_OK or an error. One that
 * nobody ends is dropped when TG_GPU_READINGS newer ones have begun. */
#define TG_GPU_READINGS 64u
tg_status tg_gpu_read_begin(tg_gpu *gpu, const tg_gpu_piece *list, size_t n, uint32_t *reading);
tg_status tg_gpu_read_end(tg_gpu *gpu, uint32_t reading, const tg_gpu_piece *list, size_t n);
/* Whether all bytes on the host are 0. */
static inline bool tg_gpu_is_zero(const tg_gpu_piece *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < list[i].bytes / 4; e++)
            if (((const uint32_t *)list[i].host)[e]) return false;
    return true;
}
/* E_DEVICE where zeros alone were read: what a driver leaves that computes nothing and does not say
 * so. */
static inline tg_status tg_gpu_want_something(tg_ctx *ctx, const tg_gpu *gpu,
                                              const tg_gpu_piece *list, size_t n) {
    if (!tg_gpu_is_zero(list, n)) return TG_OK;
    return tg_fail(ctx, TG_E_DEVICE, "GPU %s: want results, have zeros alone: nothing is computed",
                   tg_gpu_get_info(gpu)->adapter);
}

/* wgsl is zero-terminated; label names it in messages. n_storage counts the bindings from 2 on.
 * Pipelines are made side by side, and may be submitted when settle has said TG_OK. */
tg_status tg_gpu_pipeline_new(tg_gpu *gpu, const char *label, const char *wgsl, const char *entry,
                              unsigned n_storage, uint32_t *out);

typedef struct tg_gpu_range {
    uint32_t buffer;
    uint64_t offset, bytes;
} tg_gpu_range;
/* ranges [2 + n_storage of the pipeline], in the order of the bindings. */
tg_status tg_gpu_group_new(tg_gpu *gpu, uint32_t pipeline, const tg_gpu_range *ranges,
                           uint32_t *out);
void tg_gpu_group_free(tg_gpu *gpu, uint32_t group);

typedef struct tg_gpu_dispatch {
    uint32_t pipeline, group;
    uint32_t x, y, z; /* workgroups */
} tg_gpu_dispatch;
/* One encoder, one pass, one submit. A dispatch sees what those before it wrote. */
tg_status tg_gpu_submit(tg_gpu *gpu, const tg_gpu_dispatch *list, size_t n);
/* The same list in n passes, pass i from first[i] to first[i + 1]; adds to ms[i] what it took by
 * the GPU's own clock. Makes objects, and waits for the end: for profiles. E_UNSUPPORTED, without a
 * message, where info has no timestamps, and always in a page. */
tg_status tg_gpu_submit_timed(tg_gpu *gpu, const tg_gpu_dispatch *list, const size_t *first,
                              size_t n, double *ms);
/* Waits until everything submitted is done. */
tg_status tg_gpu_wait(tg_gpu *gpu);
/* Objects made so far: a test's way to see that a step makes none. */
uint64_t tg_gpu_objects_made(const tg_gpu *gpu);
/* In objects of the tests alone (TG_TEST_HOOKS): destroys the device as if the driver had lost it;
 * bytes that all buffers may have together, and that were written to them. */
void tg_gpu_lose(tg_gpu *gpu);
extern uint64_t tg_gpu_memory_bytes, tg_gpu_written_bytes;

#endif
