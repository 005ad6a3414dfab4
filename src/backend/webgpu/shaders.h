/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shaders.h - from an op's table of shaders to pipelines, words and dispatches.
 */
#ifndef TG_BACKEND_WEBGPU_SHADERS_H
#define TG_BACKEND_WEBGPU_SHADERS_H

#include "backend/webgpu/device/gpu.h"
#include "ir/op.h"

/* Words of a step, and bytes of the scalars of a call as the shaders see them. */
enum { TG_STEP_WORDS = 64, TG_CALL_BYTES = 64 };

/* Pipelines, each made when it is first asked for: one for a pass of a shader, whatever shapes it
 * is run on. Zero-initialised but for gpu, ctx and levers, which decide on the text and may change
 * from one pipeline to the next. */
typedef struct tg_shader_cache {
    tg_gpu *gpu;
    tg_ctx *ctx;
    uint32_t levers;
    struct tg_shader_entry *entries;
    size_t n, room;
} tg_shader_cache;

tg_status tg_shader_pipeline(tg_shader_cache *c, const tg_shader *shader,
                             const tg_shader_pass *pass, uint32_t *pipeline);
/* The levers that change the text of a pass. */
uint32_t tg_shader_pass_levers(const tg_shader_pass *p);
/* The pipelines are the GPU's own, and end with it. */
void tg_shader_cache_deinit(tg_shader_cache *c);

/* Copies a piece, or lines that end in NULL, to text + at, or only counts where text is NULL: where
 * it ends. */
size_t tg_shader_put(char *text, size_t at, const char *piece);
size_t tg_shader_put_lines(char *text, size_t at, const char *const *lines);

/* The text of functions.wgsl. */
const char *const *tg_shader_functions(void);

unsigned tg_shader_passes(const tg_shader *s);
unsigned tg_shader_bindings(const tg_shader_pass *p);

/* The words of a step: struct Step of prelude.wgsl. acc says which outputs add in a call that
 * accumulates; bit k of dynamic_in and dynamic_out, which shapes have the call's rows. */
void tg_shader_words(const tg_shader *s, const tg_args *a, uint8_t acc, uint8_t dynamic_in,
                     uint8_t dynamic_out, uint32_t words[TG_STEP_WORDS]);

/* n workgroups in the two directions that no limit stops: group_of() of the prelude counts them. */
void tg_shader_fold(size_t n, tg_gpu_dispatch *d);

#endif
