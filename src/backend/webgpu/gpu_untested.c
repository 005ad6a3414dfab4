/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_untested.c - gpu_self_test.h and gpu_tiles.h in a page: nothing is tried, so nothing is on
 * that would have to be, and tiles go by the rule.
 */
#include "backend/webgpu/gpu_self_test.h"
#include "backend/webgpu/gpu_tiles.h"

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
    shaders->levers &=
        ~(TG_LEVER_BIT(subgroups) | TG_LEVER_BIT(subgroup_matrices) | TG_LEVER_BIT(f16_storage));
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
