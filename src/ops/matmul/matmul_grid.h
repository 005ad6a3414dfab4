/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_grid.h - products of one row with weights of files as a phase of a kernel that runs a
 * whole plan (tg_grid), for matmul and norm_matmul: matmul_phase.wgsl says how its threads share
 * the work. packed_text and packed_rows are of the file that includes this one.
 */
#ifndef TG_OPS_MATMUL_GRID_H
#define TG_OPS_MATMUL_GRID_H

#include "ops/matmul/packed/matmul_packed_shader.h"

enum { MATMUL_GRID_TURNS = 8 };
#define MATMUL_GRID_NORM (UINT32_C(1) << 31) /* of op.word */

static const char *const grid_blocks[] = {
#include "ops/phase_blocks.wgsl.h"
};
static const char *const grid_once[] = {
#include "ops/matmul/shaders/matmul_phase_once.wgsl.h"
};
static const char *const grid_phase[] = {
#include "ops/matmul/shaders/matmul_phase.wgsl.h"
};

static inline size_t matmul_grid_row(const tg_args *a) {
    return tg_shader_parts(a->in_type[MATMUL_B].dim[1], 32) * 32;
}

/* Whether all that multiplies the row has nibbles of scales that the phase knows; else it unpacks
 * weights, and wants floats. */
static inline bool matmul_grid_rounds(const tg_args *a) {
    bool all = true;
    for (unsigned i = 0; i < MATMUL_PARTS && a->in_type[matmul_b[i]].n_dims; i++) {
        const tg_packing p = a->in_type[matmul_b[i]].layout;
        all = all && (p == TG_PACK_Q4X16 || p == TG_PACK_Q4MX16);
    }
    return all;
}

/* Of as few loads one after the other as there can be, those with the most turns, of which the
 * weights are asked for at once. */
static inline uint32_t matmul_grid_share(const tg_args *a, uint32_t groups, uint32_t threads) {
    const size_t slots = threads / 8, blocks = tg_shader_parts(a->in_type[MATMUL_B].dim[1], 32);
    const size_t units = tg_packed_across(a, TG_PACKED_ONE_ROWS);
    size_t best = SIZE_MAX, side = 0, turns = 0, together = 0;
    for (size_t t = 1; t <= MATMUL_GRID_TURNS || !side; t++) {
        const size_t s = tg_shader_parts(blocks, t), most = slots / s;
        if (s > slots || t > blocks) continue;
        const size_t rounds = tg_shader_parts(units, groups * most);
        if (rounds * t > best) continue;
        best = rounds * t;
        side = s;
        turns = t;
        together = tg_shader_parts(units, groups * rounds);
    }
    return (uint32_t)(side | turns << 16 | together << 24);
}

#define MATMUL_GRID_PHASE(which_are_states)                                                        \
    { .call = "product",                                                                           \
      .wgsl = { packed_text, packed_rows, grid_blocks, grid_once, grid_phase },                    \
      .bind = { TG_BIND_IN(MATMUL_A), TG_BIND_IN(MATMUL_B), TG_BIND_IN(MATMUL_BIAS),               \
                TG_BIND_IN(MATMUL_RESIDUAL), TG_BIND_IN(MATMUL_B1), TG_BIND_IN(MATMUL_B2),         \
                TG_BIND_OUT(0) },                                                                  \
      .states = (which_are_states),                                                                \
      .takes_row = 1,                                                                              \
      .row_floats = matmul_grid_row,                                                               \
      .rounds = matmul_grid_rounds }

#endif
