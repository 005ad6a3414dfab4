/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_js.h - what the module imports to reach the page's WebGPU: web/src/lib/gpu.ts implements it.
 *
 * A GPU and its objects are small numbers, 0 none. Answers are a tg_status as a number; the message
 * of an error is asked for with gpu_message. Structs are those of gpu.h, which have one layout for
 * both widths of a pointer but for the pointer itself, the last member of a piece:
 *
 *     tg_gpu_range      0 buffer   8 offset   16 bytes                                  24 bytes
 *     tg_gpu_piece      0 buffer   8 offset   16 bytes   24 host                        32 bytes
 *     tg_gpu_dispatch   0 pipeline   4 group   8 x   12 y   16 z                        20 bytes
 */
#ifndef TG_BACKEND_WEBGPU_GPU_JS_H
#define TG_BACKEND_WEBGPU_GPU_JS_H

#include "base/os/os_wasm.h"

/* TG_PENDING (1) while the browser is asked for an adapter and a device; 0: *gpu is its number. */
TG_IMPORT("gpu_open") int tg_js_gpu_open(uint32_t *gpu);
TG_IMPORT("gpu_close") void tg_js_gpu_close(uint32_t gpu);

/* Facts by name: "adapter", "driver"; "f16", "max_buffer_bytes", .. The names are tg_gpu_info's. */
TG_IMPORT("gpu_text")
void tg_js_gpu_text(uint32_t gpu, const char *name, char *to, size_t room);
TG_IMPORT("gpu_number") double tg_js_gpu_number(uint32_t gpu, const char *name);
/* Of the last error; gpu 0: of opening one. */
TG_IMPORT("gpu_message") void tg_js_gpu_message(uint32_t gpu, char *to, size_t room);

TG_IMPORT("gpu_settle") int tg_js_gpu_settle(uint32_t gpu);
TG_IMPORT("gpu_wait") int tg_js_gpu_wait(uint32_t gpu);

TG_IMPORT("gpu_buffer_new")
uint32_t tg_js_gpu_buffer_new(uint32_t gpu, const char *label, double n_bytes, bool uniform);
TG_IMPORT("gpu_buffer_free") void tg_js_gpu_buffer_free(uint32_t gpu, uint32_t buffer);
TG_IMPORT("gpu_write")
int tg_js_gpu_write(uint32_t gpu, uint32_t buffer, double offset, const void *bytes,
                    size_t n_bytes);
TG_IMPORT("gpu_read_begin")
uint32_t tg_js_gpu_read_begin(uint32_t gpu, const void *pieces, size_t n);
TG_IMPORT("gpu_read_end")
int tg_js_gpu_read_end(uint32_t gpu, uint32_t reading, const void *pieces, size_t n);

TG_IMPORT("gpu_pipeline_new")
uint32_t tg_js_gpu_pipeline_new(uint32_t gpu, const char *label, const char *wgsl,
                                const char *entry, unsigned n_storage);
TG_IMPORT("gpu_group_new")
uint32_t tg_js_gpu_group_new(uint32_t gpu, uint32_t pipeline, const void *ranges);
TG_IMPORT("gpu_group_free") void tg_js_gpu_group_free(uint32_t gpu, uint32_t group);
TG_IMPORT("gpu_submit") int tg_js_gpu_submit(uint32_t gpu, const void *dispatches, size_t n);

#endif
