/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tiles.h - which shader of a product is the fastest on an adapter, as it was measured there.
 *
 * By rule the first shader that prefers a shape takes it (ir/op.h). `tinygpt bench tiles` times all
 * that fit, and keeps the winners in tiles.cache beside webgpu.cache, in the format of that file
 * (gpu_cache.h). The key of an entry is text, a line each for
 *
 *     adapter, driver, library, op, then for each member: attr.i[0], rows and columns of two inputs
 *
 * and the value the shader's name. What is not there, or is no longer a shader that fits, goes by
 * the rule. In a page there is no file, and all goes by the rule.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_TILES_H
#define TG_BACKEND_WEBGPU_GPU_TILES_H

#include "backend/webgpu/device/gpu.h"
#include "ir/op.h"

typedef struct tg_gpu_tiles tg_gpu_tiles;

/* info is borrowed. NULL: there is no place for the file, or no memory. */
tg_gpu_tiles *tg_gpu_tiles_open(const tg_gpu_info *info);
/* Saves what is new. NULL is fine, here and below. */
void tg_gpu_tiles_close(tg_gpu_tiles *t);

/* The name for these members' arguments; NULL: by rule. Valid until the next find. */
const char *tg_gpu_tiles_find(tg_gpu_tiles *t, const tg_op_desc *d, const tg_args *a,
                              unsigned n_members);
/* name "": by rule again. */
void tg_gpu_tiles_put(tg_gpu_tiles *t, const tg_op_desc *d, const tg_args *a, unsigned n_members,
                      const char *name);
/* Whether a measurement was kept for this adapter, which put_tuned says. */
bool tg_gpu_tiles_tuned(tg_gpu_tiles *t);
void tg_gpu_tiles_put_tuned(tg_gpu_tiles *t);

/* The shader with this number among those that can do it, from 0 on; NULL: there are no more. */
const tg_shader *tg_gpu_tiles_candidate(const tg_op_desc *d, const tg_args *a, unsigned n_members,
                                        size_t number);

#endif
