/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_grid.h - the decoders of block types whose weights are points of a grid: one for each
 * TG_GRID of types.def, for the table of blocks.c.
 */
#ifndef TG_DTYPE_BLOCKS_GRID_H
#define TG_DTYPE_BLOCKS_GRID_H

#include "dtype/blocks.h"

#define TG_DTYPE(suffix, name, number, cols, bytes, packing)
#define TG_BLOCK(suffix, name, number, cols, bytes, packing)
#define TG_GRID(suffix, name, number, cols, bytes, packing)                                        \
    void tg_grid_take_##name(const uint8_t *block, tg_block_parts *out);
#include "dtype/types.def"

#endif
