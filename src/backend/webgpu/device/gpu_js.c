/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_js.c - gpu.h over the page's WebGPU, by imports from TypeScript (gpu_js.h).
 *
 * Nothing here waits. Objects are handed out before the browser has looked at them, and whether
 * they are good is asked once for all of them: tg_gpu_settle.
 */
#include "backend/webgpu/device/gpu_js.h"

#include <stddef.h>

#include "backend/webgpu/device/gpu.h"

struct tg_gpu {
    tg_ctx *ctx;
    uint32_t number;
    tg_gpu_info info;
    uint64_t made;
    bool lost;
};

_Static_assert(sizeof(tg_gpu_range) == 24 && offsetof(tg_gpu_range, bytes) == 16, "gpu.ts");
_Static_assert(sizeof(tg_gpu_piece) == 32 && offsetof(tg_gpu_piece, host) == 24, "gpu.ts");
_Static_assert(sizeof(tg_gpu_dispatch) == 20 && offsetof(tg_gpu_dispatch, z) == 16, "gpu.ts");

/* Errors of the page's side are E_MEMORY or E_DEVICE, and lost says whether it is for good. */
static tg_status answer(tg_gpu *g, int status) {
    if (status >= 0) return (tg_status)status;
    char text[400] = "";
    tg_js_gpu_message(g->number, text, sizeof text);
    g->lost = tg_js_gpu_number(g->number, "lost") != 0;
    return tg_fail(g->ctx, (tg_status)status, "GPU %s: %s", g->info.adapter, text);
}

static void read_info(tg_gpu *g) {
    tg_gpu_info *i = &g->info;
    const uint32_t n = g->number;
    tg_js_gpu_text(n, "adapter", i->adapter, sizeof i->adapter);
    tg_js_gpu_text(n, "driver", i->driver, sizeof i->driver);
    tg_js_gpu_text(n, "api", i->api, sizeof i->api);
    tg_js_gpu_text(n, "library", i->library, sizeof i->library);
    i->software = tg_js_gpu_number(n, "software") != 0;
    i->f16 = tg_js_gpu_number(n, "f16") != 0;
    i->subgroups = tg_js_gpu_number(n, "subgroups") != 0;
    i->timestamps = tg_js_gpu_number(n, "timestamps") != 0;
    snprintf(i->matrices, sizeof i->matrices, "a page asks for none");
    i->max_buffer_bytes = (uint64_t)tg_js_gpu_number(n, "max_buffer_bytes");
    i->max_binding_bytes = (uint64_t)tg_js_gpu_number(n, "max_binding_bytes");
    i->max_group_bytes = (uint32_t)tg_js_gpu_number(n, "max_group_bytes");
    i->max_group_threads = (uint32_t)tg_js_gpu_number(n, "max_group_threads");
}

tg_status tg_gpu_open(tg_ctx *ctx, tg_gpu **out) {
    uint32_t number = 0;
    *out = NULL;
    const int status = tg_js_gpu_open(&number);
    if (status > 0) return (tg_status)status;
    if (status < 0) {
        char text[400] = "";
        tg_js_gpu_message(0, text, sizeof text);
        return tg_fail(ctx, (tg_status)status, "webgpu: %s", text);
    }
    tg_gpu *g = tg_alloc(&ctx->mem, sizeof *g);
    if (!g) {
        tg_js_gpu_close(number);
        return tg_fail_memory(ctx, "GPU", sizeof *g);
    }
    *g = (tg_gpu) { .ctx = ctx, .number = number };
    read_info(g);
    *out = g;
    return TG_OK;
}

void tg_gpu_close(tg_gpu *g) {
    if (!g) return;
    const tg_mem mem = g->ctx->mem;
    tg_js_gpu_close(g->number);
    tg_free(&mem, g, sizeof *g);
}

const tg_gpu_info *tg_gpu_get_info(const tg_gpu *g) { return &g->info; }
uint64_t tg_gpu_objects_made(const tg_gpu *g) { return g->made; }

bool tg_gpu_lost(const tg_gpu *g) { return g->lost || tg_js_gpu_number(g->number, "lost") != 0; }

tg_status tg_gpu_settle(tg_gpu *g) { return answer(g, tg_js_gpu_settle(g->number)); }
tg_status tg_gpu_wait(tg_gpu *g) { return answer(g, tg_js_gpu_wait(g->number)); }

/* -------------------------------------------------------------------------------------- buffers */

tg_status tg_gpu_buffer_new(tg_gpu *g, const char *label, size_t bytes, bool uniform,
                            uint32_t *out) {
    *out = 0;
    if (bytes > g->info.max_buffer_bytes)
        return tg_fail(g->ctx, TG_E_MEMORY,
                       "GPU %s: buffer %s: want %zu bytes, a buffer has at most %" PRIu64
                       ": lower the batch or take a smaller model",
                       g->info.adapter, label, bytes, g->info.max_buffer_bytes);
    *out = tg_js_gpu_buffer_new(g->number, label, (double)((bytes + 3) / 4 * 4), uniform);
    g->made++;
    return *out ? TG_OK : answer(g, TG_E_DEVICE);
}

void tg_gpu_buffer_free(tg_gpu *g, uint32_t buffer) {
    if (buffer) tg_js_gpu_buffer_free(g->number, buffer);
}

tg_status tg_gpu_write(tg_gpu *g, uint32_t buffer, size_t offset, const void *bytes, size_t n) {
    return answer(g, tg_js_gpu_write(g->number, buffer, (double)offset, bytes, n));
}

tg_status tg_gpu_read_begin(tg_gpu *g, const tg_gpu_piece *pieces, size_t n, uint32_t *reading) {
    *reading = tg_js_gpu_read_begin(g->number, pieces, n);
    return *reading ? TG_OK : answer(g, TG_E_DEVICE);
}

tg_status tg_gpu_read_end(tg_gpu *g, uint32_t reading, const tg_gpu_piece *pieces, size_t n) {
    return answer(g, tg_js_gpu_read_end(g->number, reading, pieces, n));
}

/* ------------------------------------------------------------------------------ pipelines, run */

tg_status tg_gpu_pipeline_new(tg_gpu *g, const char *label, const char *wgsl, const char *entry,
                              unsigned n_storage, uint32_t *out) {
    *out = tg_js_gpu_pipeline_new(g->number, label, wgsl, entry, n_storage);
    g->made++;
    return *out ? TG_OK : answer(g, TG_E_DEVICE);
}

tg_status tg_gpu_group_new(tg_gpu *g, uint32_t pipeline, const tg_gpu_range *ranges,
                           uint32_t *out) {
    *out = tg_js_gpu_group_new(g->number, pipeline, ranges);
    g->made++;
    return *out ? TG_OK : answer(g, TG_E_DEVICE);
}

void tg_gpu_group_free(tg_gpu *g, uint32_t group) {
    if (group) tg_js_gpu_group_free(g->number, group);
}

tg_status tg_gpu_submit(tg_gpu *g, const tg_gpu_dispatch *list, size_t n) {
    return answer(g, tg_js_gpu_submit(g->number, list, n));
}

/* A profile is a program's; the page shows what whole steps take. */
tg_status tg_gpu_submit_timed(tg_gpu *g, const tg_gpu_dispatch *list, const size_t *first, size_t n,
                              double *ms) {
    (void)g, (void)list, (void)first, (void)n, (void)ms;
    return TG_E_UNSUPPORTED;
}
