/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_grid.h - the decoders of block types whose weights are points of a grid: one for each
 * TG_GRID of types.def, for the table of blocks.c; and numbers of a block, which lie anywhere.
 */
#ifndef TG_DTYPE_BLOCKS_GRID_H
#define TG_DTYPE_BLOCKS_GRID_H

#include "dtype/blocks.h"

static inline uint16_t tg_block_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline float tg_block_f16(const uint8_t *p) { return tg_f16_to_f32(tg_block_u16(p)); }

#define TG_DTYPE(suffix, name, number, cols, bytes, packing)
#define TG_BLOCK(suffix, name, number, cols, bytes, packing)
#define TG_GRID(suffix, name, number, cols, bytes, packing)                                        \
    void tg_grid_take_##name(const uint8_t *block, tg_block_parts *out);
#include "dtype/types.def"

#endif
