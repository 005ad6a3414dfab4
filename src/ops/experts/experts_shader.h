/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_shader.h - what the shaders of experts and experts_x_grad share: one of weights in floats
 * and one of packed weights, which read a weight by the same function each, in front of the op's
 * text.
 */
#ifndef TG_OPS_EXPERTS_SHADER_H
#define TG_OPS_EXPERTS_SHADER_H

#include "ops/experts/experts_rules.h"
#include "ops/shader.h"

static const char *const experts_floats[] = {
#include "ops/experts/experts_floats.wgsl.h"
};
static const char *const experts_files[] = {
#include "ops/experts/experts_packed.wgsl.h"
};
static const char *const experts_packed[] = {
#include "ops/packed.wgsl.h"
};
static const char *const experts_packed_rows[] = {
#include "ops/packed_rows.wgsl.h"
};
static inline bool experts_fits_floats(const tg_args *a) {
    return experts_is_floats(&a->in_type[EXPERTS_W]);
}
static inline bool experts_fits_files(const tg_args *a) { return !experts_fits_floats(a); }
static inline uint32_t experts_word(const tg_args *a) {
    return tg_shader_layout(a, EXPERTS_W, 0) | tg_shader_layout(a, EXPERTS_W1, 1);
}

#define EXPERTS_PASS(groups_, ...)                                                                 \
    {                                                                                              \
        {                                                                                          \
            .entry = "main", .wgsl = { __VA_ARGS__ },                                              \
            .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),                  \
                      TG_BIND_OUT(0) },                                                            \
            .groups = (groups_)                                                                    \
        }                                                                                          \
    }
/* Of an op with this text and so many workgroups. */
#define EXPERTS_SHADERS(text, groups)                                                              \
    { .name = "floats",                                                                            \
      .fits = experts_fits_floats,                                                                 \
      .pass = EXPERTS_PASS(groups, experts_floats, text) },                                        \
    {                                                                                              \
        .name = "packed", .fits = experts_fits_files, .word = experts_word,                        \
        .pass = EXPERTS_PASS(groups, experts_packed, experts_packed_rows, experts_files, text)     \
    }

#endif
