/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_shader.h - the GPU tables of attention that goes through rows one by one: a workgroup for 64
 * keys of a head, then one for a head. Inputs 0, 1, 2 and 3 are qkv, cache, at and pages.
 */
#ifndef TG_OPS_ATTENTION_CACHED_ONE_SHADER_H
#define TG_OPS_ATTENTION_CACHED_ONE_SHADER_H

#include "ops/attention/cache/pages.h"
#include "ops/shader.h"

/* Columns of a head that attention_step takes. */
enum { TG_STEP_SIZE_MAX = 256 };

/* Tiles that a window, which may begin anywhere in one, or else the whole cache can reach into. */
static inline size_t tg_one_tiles(const tg_args *a) {
    const size_t room = a->in_type[3].dim[1] * a->in_type[1].dim[2], w = (size_t)a->attr.i[3];
    return tg_shader_parts(w > 0 && w < room ? w : room, TG_PAGE_TILE) + (w > 0);
}
static inline uint32_t tg_one_word(const tg_args *a) { return (uint32_t)tg_one_tiles(a); }
static inline size_t tg_one_head_groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[0];
}
static inline size_t tg_one_tile_groups(const tg_args *a) {
    return tg_one_head_groups(a) * tg_one_tiles(a);
}
static inline size_t tg_one_bytes(const tg_args *a) {
    return tg_one_tile_groups(a) * ((size_t)a->attr.i[2] + 2) * sizeof(float);
}

static const char *const keys[] = {
#include "ops/attention_cached/attention_keys.wgsl.h"
};
static const char *const one[] = {
#include "ops/attention_cached/attention_one.wgsl.h"
};
static const char *const one_whole[] = {
#include "ops/attention_cached/attention_whole.wgsl.h"
};

#define TG_ONE_WHOLE                                                                               \
    { .entry = "whole",                                                                            \
      .wgsl = { pages, keys, one_whole },                                                          \
      .reduces = true,                                                                             \
      .bind = { TG_BIND_NONE, TG_BIND_NONE, TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0),          \
                TG_BIND_SCRATCH },                                                                 \
      .groups = tg_one_head_groups }

#endif
