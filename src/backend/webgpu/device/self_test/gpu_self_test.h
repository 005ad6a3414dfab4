/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_self_test.h - which levers a GPU may be trusted with: before anything is computed, small
 * cases of the ops that a lever changes run on it, against the references.
 *
 * A driver may compile a shader wrongly, or hand threads out to subgroups in another order than the
 * text takes for granted. That is seen here, and not in a loss that is a little off: the lever is
 * switched off, and the banner says which case wanted what and what was found.
 *
 * In a page there is no self-test, since opening cannot wait for results; so subgroups stay off.
 * Loads in fours and merges are on: they need no more than WGSL says, and the Machine panel tries
 * them.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_SELF_TEST_H
#define TG_BACKEND_WEBGPU_GPU_SELF_TEST_H

#include "backend/webgpu/shaders.h"

/* The first line of a shader that uses subgroups. Tint wants it; Naga does not know it and takes
 * subgroups without, so that gpu_native.c leaves it out there. */
#define TG_GPU_ENABLE_SUBGROUPS "enable subgroups;\n"

/* The text of ops/reduce_subgroups.wgsl. */
const char *const *tg_gpu_reduce_subgroups(void);

/* Four neighbours in memory: read at once, or one by one. */
#define TG_GPU_FOURS "alias Four = vec4<f32>; fn as_vec4(v: Four) -> vec4<f32> { return v; }\n"
#define TG_GPU_ONES                                                                                \
    "struct Four { x: f32, y: f32, z: f32, w: f32 }\n"                                             \
    "fn as_vec4(v: Four) -> vec4<f32> { return vec4<f32>(v.x, v.y, v.z, v.w); }\n"
const char *tg_gpu_fours(bool vec4, bool merged);

/* Levers that a page turns off for its GPU, as nothing is tried there, while the CPU keeps them. */
extern const uint32_t tg_gpu_left_to_cpu;

/* tuned: there are tiles that were measured, which the rule would not take. The pipelines are the
 * cache's, so that plans find them there.
 * Takes the levers that don't hold on this GPU out of the cache's, says whether steps may be
 * merged, and appends to why, zero-terminated, a clause for each: "lever subgroups off: self-test:
 * ...,
 * ". Errors: a lost device, or no memory. */
tg_status tg_gpu_self_test(tg_shader_cache *shaders, bool tuned, bool *merges, char *why,
                           size_t room);

#endif
