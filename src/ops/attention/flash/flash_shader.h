/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flash_shader.h - the shaders by tiles of attention: which of flash.wgsl's texts fits.
 *
 * Sums over a head's columns lie in registers, so that there is a shader for each size of head; and
 * those that load in fours, where rows are whole fours. TG_FLASH_SHADERS(PASSES) are all of them,
 * with PASSES(fours, constants, two more texts or NULL) their members from .pass on. They take caps
 * of scores as they come, unless TG_FLASH_CAPS_APART is defined before.
 */
#ifndef TG_OPS_ATTENTION_FLASH_SHADER_H
#define TG_OPS_ATTENTION_FLASH_SHADER_H

#include "ops/shader.h"

/* Of a cache, input 1, that is not packed. */
static inline bool tg_flash_takes(const tg_args *a, int32_t size) {
#if defined(TG_FLASH_CAPS_APART)
    if (a->attr.f[2] > 0) return false;
#endif
    return a->attr.i[2] <= size && a->in_type[1].dtype == TG_F32;
}
static inline bool tg_flash_fours_any(const tg_args *a) {
    return tg_flash_takes(a, 256) && a->attr.i[2] % 4 == 0;
}
/* A text either drops or does not. */
static inline bool tg_flash_fits(const tg_args *a, int32_t size, bool drops) {
    return tg_flash_takes(a, size) && (a->attr.f[1] > 0) == drops;
}
static inline bool tg_flash_fours(const tg_args *a, int32_t size, bool drops) {
    return tg_flash_fits(a, size, drops) && a->attr.i[2] % 4 == 0;
}
static inline bool tg_flash_256(const tg_args *a) { return tg_flash_fits(a, 256, false); }
static inline bool tg_flash_fours_32(const tg_args *a) { return tg_flash_fours(a, 32, false); }
static inline bool tg_flash_fours_64(const tg_args *a) { return tg_flash_fours(a, 64, false); }
static inline bool tg_flash_fours_128(const tg_args *a) { return tg_flash_fours(a, 128, false); }
static inline bool tg_flash_fours_256(const tg_args *a) { return tg_flash_fours(a, 256, false); }
static inline bool tg_flash_drops_32(const tg_args *a) { return tg_flash_fours(a, 32, true); }
static inline bool tg_flash_drops_64(const tg_args *a) { return tg_flash_fours(a, 64, true); }
static inline bool tg_flash_drops_128(const tg_args *a) { return tg_flash_fours(a, 128, true); }
static inline bool tg_flash_drops_256(const tg_args *a) { return tg_flash_fits(a, 256, true); }

/* Two texts that are pieces of the shaders with dropout; in the others nothing is dropped. */
#define TG_FLASH_MASKS ops_mask, drop
#define TG_FLASH_NONE  NULL, NULL
#define TG_FLASH_KEEPS                                                                             \
    "fn kept_of(p: Place, t: u32, key: u32, of_keys: bool) -> u32 { return 0u; }\n"                \
    "fn dropped(c: Pair, kept: u32, of_keys: bool) -> Pair { return c; }\n"

#define TG_FLASH_FOURS "const FOURS = true; "
#define TG_FLASH_ONES                                                                              \
    "alias Four = f32; fn as_vec4(v: Four) -> vec4<f32> { return vec4<f32>(v); }\n"                \
    "const FOURS = false; "
#define TG_FLASH_32  "const NARROW = true; const PAIRS = 1u;\n"
#define TG_FLASH_64  "const NARROW = false; const PAIRS = 1u;\n"
#define TG_FLASH_128 "const NARROW = false; const PAIRS = 2u;\n"
#define TG_FLASH_256 "const NARROW = false; const PAIRS = 4u;\n"

/* Those of narrow heads go another way: more than their size differs. */
#define TG_FLASH_NAME_32  "narrow 32"
#define TG_FLASH_NAME_64  "64"
#define TG_FLASH_NAME_128 "128"
#define TG_FLASH_NAME_256 "256"
#define TG_FLASH_IN_FOURS(size, passes)                                                            \
    { .name = "flash " TG_FLASH_NAME_##size,                                                       \
      .fits = tg_flash_fours_##size,                                                               \
      passes(true, TG_FLASH_KEEPS TG_FLASH_FOURS TG_FLASH_##size, TG_FLASH_NONE) }
#define TG_FLASH_DROPPING(size, passes)                                                            \
    { .name = "flash " TG_FLASH_NAME_##size ", dropout",                                           \
      .fits = tg_flash_drops_##size,                                                               \
      passes(true, TG_FLASH_FOURS TG_FLASH_##size, TG_FLASH_MASKS) }
#define TG_FLASH_SHADERS(passes)                                                                   \
    TG_FLASH_IN_FOURS(32, passes), TG_FLASH_IN_FOURS(64, passes), TG_FLASH_IN_FOURS(128, passes),  \
        TG_FLASH_IN_FOURS(256, passes), {                                                          \
        .name = "flash, by ones", .fits = tg_flash_256,                                            \
        passes(false, TG_FLASH_KEEPS TG_FLASH_ONES TG_FLASH_256, TG_FLASH_NONE)                    \
    }
/* Asked before those, of ops that are trained. */
#define TG_FLASH_SHADERS_DROPPING(passes)                                                          \
    TG_FLASH_DROPPING(32, passes), TG_FLASH_DROPPING(64, passes), TG_FLASH_DROPPING(128, passes),  \
    {                                                                                              \
        .name = "flash, by ones, dropout", .fits = tg_flash_drops_256,                             \
        passes(false, TG_FLASH_ONES TG_FLASH_256, TG_FLASH_MASKS)                                  \
    }

#endif
