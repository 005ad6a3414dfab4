/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_gpu.h - runs single ops on a GPU, on arrays of the host: what the op test uses.
 */
#ifndef TG_BACKEND_WEBGPU_CHECK_GPU_H
#define TG_BACKEND_WEBGPU_CHECK_GPU_H

#include "backend/webgpu/shaders.h"

typedef struct tg_gpu_bench tg_gpu_bench;

/* The GPU is borrowed. The levers decide on the text of the shaders. */
tg_status tg_gpu_bench_new(tg_ctx *ctx, tg_gpu *gpu, uint32_t levers, tg_gpu_bench **out);
/* Pipelines are taken from there, and left there, with the levers of the cache; it is borrowed. */
void tg_gpu_bench_share(tg_gpu_bench *b, tg_shader_cache *shaders);
/* Between two checks: gives back the operands' memory, on both sides; what is compiled stays. */
void tg_gpu_bench_rest(tg_gpu_bench *b);
void tg_gpu_bench_free(tg_gpu_bench *b);
/* Begins to make the pipelines of a shader that will be run. */
tg_status tg_gpu_bench_compile(tg_gpu_bench *b, const tg_shader *s);

/* A tg_check_executor's wants: not the shaders that need levers which are off. */
bool tg_gpu_bench_wants(void *bench, const tg_shader *shader);
/* Its run: inputs go to the GPU, outputs with their guards there and back. */
tg_status tg_gpu_bench_run(void *bench, const tg_op_desc *d, const tg_shader *shader,
                           const tg_args *a, size_t guard_bytes);
/* The same of a merge, a [n_members], whose leader is d. */
tg_status tg_gpu_bench_run_merge(tg_gpu_bench *b, const tg_op_desc *d, const tg_shader *shader,
                                 const tg_args *a, unsigned n_members, size_t guard_bytes);

#endif
