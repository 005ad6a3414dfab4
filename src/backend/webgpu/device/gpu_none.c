/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_none.c - gpu.h where there is no WebGPU: opening fails, and says what is missing. Nobody gets
 * a tg_gpu to call anything else with.
 */
#include "backend/webgpu/device/gpu.h"

tg_status tg_gpu_open(tg_ctx *ctx, tg_gpu **out) {
    *out = NULL;
    return tg_fail(ctx, TG_E_UNSUPPORTED,
                   "device: this build has no webgpu: a program needs tools/setup.sh before it is "
                   "built, a page a browser with SIMD");
}

void tg_gpu_close(tg_gpu *gpu) { TG_ASSERT(!gpu); }

const tg_gpu_info *tg_gpu_get_info(const tg_gpu *gpu) {
    TG_ASSERT(!gpu);
    return NULL;
}

static tg_status none(const tg_gpu *gpu) {
    TG_ASSERT(!gpu);
    return TG_E_UNSUPPORTED;
}

tg_status tg_gpu_buffer_new(tg_gpu *gpu, const char *label, size_t bytes, bool uniform,
                            uint32_t *out) {
    (void)label, (void)bytes, (void)uniform, (void)out;
    return none(gpu);
}

void tg_gpu_buffer_free(tg_gpu *gpu, uint32_t buffer) {
    (void)buffer;
    none(gpu);
}

tg_status tg_gpu_write(tg_gpu *gpu, uint32_t buffer, size_t offset, const void *bytes, size_t n) {
    (void)buffer, (void)offset, (void)bytes, (void)n;
    return none(gpu);
}

tg_status tg_gpu_read_begin(tg_gpu *gpu, const tg_gpu_piece *list, size_t n, uint32_t *reading) {
    (void)list, (void)n, (void)reading;
    return none(gpu);
}

tg_status tg_gpu_read_end(tg_gpu *gpu, uint32_t reading, const tg_gpu_piece *list, size_t n) {
    (void)reading, (void)list, (void)n;
    return none(gpu);
}

tg_status tg_gpu_pipeline_new(tg_gpu *gpu, const char *label, const char *wgsl, const char *entry,
                              unsigned n_storage, uint32_t *out) {
    (void)label, (void)wgsl, (void)entry, (void)n_storage, (void)out;
    return none(gpu);
}

tg_status tg_gpu_group_new(tg_gpu *gpu, uint32_t pipeline, const tg_gpu_range *ranges,
                           uint32_t *out) {
    (void)pipeline, (void)ranges, (void)out;
    return none(gpu);
}

void tg_gpu_group_free(tg_gpu *gpu, uint32_t group) {
    (void)group;
    none(gpu);
}

tg_status tg_gpu_submit(tg_gpu *gpu, const tg_gpu_dispatch *list, size_t n) {
    (void)list, (void)n;
    return none(gpu);
}

tg_status tg_gpu_submit_timed(tg_gpu *gpu, const tg_gpu_dispatch *list, const size_t *first,
                              size_t n, double *ms) {
    (void)list, (void)first, (void)n, (void)ms;
    return none(gpu);
}

tg_status tg_gpu_wait(tg_gpu *gpu) { return none(gpu); }
tg_status tg_gpu_settle(tg_gpu *gpu) { return none(gpu); }

bool tg_gpu_lost(const tg_gpu *gpu) {
    none(gpu);
    return true;
}

uint64_t tg_gpu_objects_made(const tg_gpu *gpu) {
    none(gpu);
    return 0;
}
