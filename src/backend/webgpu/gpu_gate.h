/*
 * gpu_gate.h - which levers a GPU may be trusted with: before anything is computed, small cases of
 * the ops that a lever changes run on it, against the references.
 *
 * A driver may compile a shader wrongly, or hand threads out to subgroups in another order than the
 * text takes for granted. That is seen here, and not in a loss that is a little off: the lever is
 * switched off, and the banner says which case wanted what and what was found.
 *
 * In a page there is no gate, since opening cannot wait for results; so what needs one stays off.
 */
#ifndef TG_BACKEND_WEBGPU_GPU_GATE_H
#define TG_BACKEND_WEBGPU_GPU_GATE_H

#include "backend/webgpu/gpu.h"
#include "ir/op.h"

/* The first line of a shader that uses subgroups. Tint wants it; Naga does not know it and takes
 * subgroups without, so that gpu_native.c leaves it out there. */
#define TG_GPU_ENABLE_SUBGROUPS "enable subgroups;\n"

/* The text of ops/reduce_subgroups.wgsl. */
const char *const *tg_gpu_reduce_subgroups(void);

/* tuned: there are tiles that were measured, which the rule would not take.
 * Takes the levers that don't hold on this GPU out of *levers, and appends to why, zero-terminated,
 * a clause for each: "lever subgroups off: gate: ..., ". Errors: a lost device, or no memory. */
tg_status tg_gpu_gate(tg_ctx *ctx, tg_gpu *gpu, bool tuned, uint32_t *levers, char *why,
                      size_t room);

#endif
