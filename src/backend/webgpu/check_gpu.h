/*
 * check_gpu.h - runs single ops on a GPU, on arrays of the host: what the op test uses.
 */
#ifndef TG_BACKEND_WEBGPU_CHECK_GPU_H
#define TG_BACKEND_WEBGPU_CHECK_GPU_H

#include "backend/webgpu/gpu.h"
#include "ir/op.h"

typedef struct tg_gpu_bench tg_gpu_bench;

/* The GPU is borrowed. */
tg_status tg_gpu_bench_new(tg_ctx *ctx, tg_gpu *gpu, tg_gpu_bench **out);
void tg_gpu_bench_free(tg_gpu_bench *b);

/* A tg_check_executor's run: inputs go to the GPU, outputs with their guards there and back. */
tg_status tg_gpu_bench_run(void *bench, const tg_op_desc *d, const tg_shader *shader,
                           const tg_args *a, size_t guard_bytes);

#endif
