/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantize.h - floats to the block types that this program writes: F32 F16 BF16 Q8_0 Q4_0 Q5_0
 * Q5_1 IQ4_NL Q4_K Q5_K Q6_K.
 */
#ifndef TG_DTYPE_QUANTIZE_H
#define TG_DTYPE_QUANTIZE_H

#include "dtype/blocks.h"

/* n weights, whole blocks, to blocks of a type that can be written; they are finite. importance
 * [n]: what an error of each of these columns of a row matters, 0 or more and finite; NULL: all
 * alike. Types of which tg_block_weighs is false do not look at it. */
void tg_block_from_f32_n(tg_dtype type, uint8_t *out, const float *in, size_t n,
                         const float *importance);
bool tg_block_weighs(tg_dtype type);

#endif
