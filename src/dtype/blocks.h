/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - the block types of GGUF files: weights in groups that share a scale.
 *
 * All of them say the same thing in different bytes. A block is cut into runs of 16 or 32 weights,
 * and a weight of a run is
 *
 *     w = scale * q + offset      q a small whole number; scale and offset f32, one each a run
 *
 *   type      weights  bytes   run   q            scale                   offset
 *   Q4_0        32      18     32    -8..7        f16
 *   Q4_1        32      20     32     0..15       f16                     f16
 *   Q5_0        32      22     32    -16..15      f16
 *   Q5_1        32      24     32     0..31       f16                     f16
 *   Q8_0        32      34     32    -128..127    f16
 *   IQ4_NL      32      18     32    16 values    f16
 *   MXFP4       32      17     32    16 values    a power of two
 *   Q2_K       256      84     16     0..3        f16 * 4 bits            -f16 * 4 bits
 *   Q3_K       256     110     16    -4..3        f16 * (6 bits - 32)
 *   Q4_K       256     144     32     0..15       f16 * 6 bits            -f16 * 6 bits
 *   Q5_K       256     176     32     0..31       f16 * 6 bits            -f16 * 6 bits
 *   Q6_K       256     210     16    -32..31      f16 * 8 bits
 *   IQ4_XS     256     136     32    16 values    f16 * (6 bits - 32)
 *   TQ2_0      256      66     32    -1..2        f16
 *   TQ1_0      256      54     32    -1..1        f16
 *   Q1_0       128      18     32    -1, 1        f16
 *   Q2_0        64      18     32    -1..2        f16
 *   IQ2_XXS    256      66     32    3 values     f16 * (4 bits + 1/2) / 4
 *   IQ2_XS     256      74     16    3 values     f16 * (4 bits + 1/2) / 4
 *   IQ2_S      256      82     16    3 values     f16 * (4 bits + 1/2) / 4
 *   IQ3_XXS    256      98     32    8 values     f16 * (4 bits + 1/2) / 2
 *   IQ3_S      256     110     32    8 values     f16 * (2 * 4 bits + 1)
 *   IQ1_S      256      50     32    -9..9        f16 * (2 * 3 bits + 1) / 8
 *   IQ1_M      256      56     16    -9..9        f16 * (2 * 3 bits + 1) / 8
 *   MLX4        32      24     32    -8..7        f32                     f32
 *   MLX8        32      40     32    -128..127    f32                     f32
 *
 * The last two are not in GGUF files: it is how MLX's affine weights are read (io/gguf/gguf.h),
 * with their halves of a byte as in Q4_0, and q around 0: sums of q and of offsets then cancel
 * less.
 *
 * Products of scales are rounded once, to f32, as is w: these are the bits that the format's own
 * Python package gives.
 */
#ifndef TG_DTYPE_BLOCKS_H
#define TG_DTYPE_BLOCKS_H

#include "dtype/dtype.h"

/* The weights of a block taken apart. Runs of 32 are given as two runs of 16 that are alike. */
enum { TG_BLOCK_MAX = 256, TG_BLOCK_RUN = 16 };
typedef struct tg_block_parts {
    int8_t q[TG_BLOCK_MAX];
    float scale[TG_BLOCK_MAX / TG_BLOCK_RUN];
    float offset[TG_BLOCK_MAX / TG_BLOCK_RUN];
    bool has_offset;
} tg_block_parts;

/* Whole numbers that lie closer together around zero, as weights do: those of IQ4_NL and IQ4_XS. */
extern const int8_t tg_iq4_values[16];

/* One block of a type other than F32, F16 and BF16. */
void tg_block_take_apart(tg_dtype type, const uint8_t *block, tg_block_parts *out);

/* n weights, whole blocks, as f32. */
void tg_block_to_f32_n(tg_dtype type, float *out, const uint8_t *in, size_t n);

#endif
