/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_untested.c - gpu_self_test.h, gpu_tiles.h and single.h in a page: nothing is tried, so
 * nothing is on that would have to be, and tiles go by the rule.
 */
#include "backend/webgpu/device/gpu_tiles.h"
#include "backend/webgpu/device/self_test/gpu_self_test.h"
#include "backend/webgpu/single/single.h"

const uint32_t tg_gpu_left_to_cpu = TG_LEVER_BIT(int8_activations);

const char *const *tg_gpu_reduce_subgroups(void) {
    static const char *const none[] = { NULL };
    return none;
}

const char *tg_gpu_fours(bool vec4, bool merged) {
    (void)merged;
    return vec4 ? TG_GPU_FOURS : TG_GPU_ONES;
}

tg_status tg_gpu_self_test(tg_shader_cache *shaders, bool tuned, bool *merges, char *why,
                           size_t room) {
    (void)tuned, (void)why, (void)room;
    shaders->levers &= ~(TG_LEVER_BIT(subgroups) | TG_LEVER_BIT(subgroup_matrices) |
                         TG_LEVER_BIT(f16_storage) | tg_gpu_left_to_cpu);
    *merges = true;
    return TG_OK;
}

tg_gpu_tiles *tg_gpu_tiles_open(const tg_gpu_info *info) {
    (void)info;
    return NULL;
}
void tg_gpu_tiles_close(tg_gpu_tiles *t) { (void)t; }
bool tg_gpu_tiles_tuned(tg_gpu_tiles *t) {
    (void)t;
    return false;
}
const char *tg_gpu_tiles_find(tg_gpu_tiles *t, const tg_op_desc *d, const tg_args *a,
                              unsigned n_members) {
    (void)t, (void)d, (void)a, (void)n_members;
    return NULL;
}

/* A plan is never one dispatch: the other functions are not called. */
tg_single_rules tg_single_rules_of(const tg_gpu_info *info, bool lever, bool subgroups, bool int8) {
    (void)info, (void)lever, (void)subgroups, (void)int8;
    return (tg_single_rules) { .groups = 0 };
}
bool tg_single_fits(tg_single *s, const tg_single_rules *rules, tg_ctx *ctx,
                    const tg_gpu_info *info, const tg_plan *plan) {
    (void)s, (void)rules, (void)ctx, (void)info, (void)plan;
    return false;
}
tg_status tg_single_bind(tg_single *s, tg_single_rules *rules, tg_ctx *ctx, tg_gpu *gpu,
                         const tg_plan *plan, const tg_single_buffers *b, tg_gpu_dispatch *d) {
    (void)s, (void)rules, (void)ctx, (void)gpu, (void)plan, (void)b, (void)d;
    return TG_E_INTERNAL;
}
tg_status tg_single_begin(tg_single *s, const tg_single_rules *rules, tg_gpu *gpu,
                          tg_gpu_dispatch *d) {
    (void)s, (void)rules, (void)gpu, (void)d;
    return TG_E_INTERNAL;
}
tg_gpu_piece tg_single_piece(tg_single *s) {
    (void)s;
    return (tg_gpu_piece) { 0 };
}
bool tg_single_came(const tg_single *s) {
    (void)s;
    return false;
}
tg_status tg_single_try(tg_single *s, tg_single_rules *rules, tg_gpu *gpu, tg_gpu_dispatch *d) {
    (void)s, (void)rules, (void)gpu, (void)d;
    return TG_E_INTERNAL;
}
void tg_single_give_up(const tg_single *s, tg_single_rules *rules, tg_ctx *ctx,
                       const tg_plan *plan) {
    (void)s, (void)rules, (void)ctx, (void)plan;
}
void tg_single_free(tg_single *s, tg_gpu *gpu) { (void)s, (void)gpu; }
