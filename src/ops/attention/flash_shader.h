/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flash_shader.h - the shaders by tiles of attention: which of flash.wgsl's texts fits.
 *
 * Sums over a head's columns lie in registers, so that there is a shader for each size of head; and
 * those that load in fours, where rows are whole fours. TG_FLASH_SHADERS(PASSES) are all of them,
 * with PASSES(fours, constants) their members from .pass on.
 */
#ifndef TG_OPS_ATTENTION_FLASH_SHADER_H
#define TG_OPS_ATTENTION_FLASH_SHADER_H

#include "ops/shader.h"

/* Of a cache, input 1, that is not packed. */
static inline bool tg_flash_fits(const tg_args *a, int32_t size) {
    return a->attr.i[2] <= size && a->in_type[1].dtype == TG_F32;
}
static inline bool tg_flash_256(const tg_args *a) { return tg_flash_fits(a, 256); }
static inline bool tg_flash_fours(const tg_args *a, int32_t size) {
    return tg_flash_fits(a, size) && a->attr.i[2] % 4 == 0;
}
static inline bool tg_flash_fours_32(const tg_args *a) { return tg_flash_fours(a, 32); }
static inline bool tg_flash_fours_64(const tg_args *a) { return tg_flash_fours(a, 64); }
static inline bool tg_flash_fours_128(const tg_args *a) { return tg_flash_fours(a, 128); }
static inline bool tg_flash_fours_256(const tg_args *a) { return tg_flash_fours(a, 256); }

#define TG_FLASH_IN_FOURS(size, text, passes)                                                      \
    { .name = "flash " #size,                                                                      \
      .fits = tg_flash_fours_##size,                                                               \
      passes(true, "const FOURS = true; " text) }
#define TG_FLASH_IN_ONES(text, passes)                                                             \
    { .name = "flash, by ones",                                                                    \
      .fits = tg_flash_256,                                                                        \
      passes(false,                                                                                \
             "alias Four = f32; fn as_vec4(v: Four) -> vec4<f32> { return vec4<f32>(v); }\n"       \
             "const FOURS = false; " text) }
#define TG_FLASH_SHADERS(passes)                                                                   \
    TG_FLASH_IN_FOURS(32, "const NARROW = true; const PAIRS = 1u;\n", passes),                     \
        TG_FLASH_IN_FOURS(64, "const NARROW = false; const PAIRS = 1u;\n", passes),                \
        TG_FLASH_IN_FOURS(128, "const NARROW = false; const PAIRS = 2u;\n", passes),               \
        TG_FLASH_IN_FOURS(256, "const NARROW = false; const PAIRS = 4u;\n", passes),               \
        TG_FLASH_IN_ONES("const NARROW = false; const PAIRS = 4u;\n", passes)

#endif
