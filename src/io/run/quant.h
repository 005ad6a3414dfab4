/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.h - int4 as the original's gallery stores it: blocks of 64 elements with one f16 scale.
 *
 *     scale = max |w| / 7        q = w / scale, rounded, halves away from zero; so -7..7
 *     w' = q * f16(scale)        nibble = q + 8; byte k of a block holds the nibble of element 2k
 *                                in its low half and that of element 2k+1 in its high half
 *
 * If f16(scale) is 0, the block means zeros and its bytes are 0. Nibbles behind the last element of
 * a tensor are 0 and mean nothing.
 */
#ifndef TG_IO_QUANT_H
#define TG_IO_QUANT_H

#include "base/libc.h"

#define TG_INT4_BLOCK        64u /* elements */
#define TG_INT4_NIBBLE_BYTES 32u /* of a block */
#define TG_INT4_SCALE_BYTES  2u  /* of a block */

static inline uint64_t tg_int4_blocks(uint64_t n_elems) {
    return n_elems / TG_INT4_BLOCK + (n_elems % TG_INT4_BLOCK != 0);
}

/* One block: n_elems (1..64) finite weights to the bits of its scale and its nibbles. The scale is
 * infinite if the weights are too large for it. */
void tg_int4_encode(const float *w, size_t n_elems, uint16_t *scale,
                    uint8_t nibbles[TG_INT4_NIBBLE_BYTES]);

/* Elements [first, first + n_elems) of one block, first + n_elems <= 64. */
void tg_int4_decode(uint16_t scale, const uint8_t nibbles[TG_INT4_NIBBLE_BYTES], size_t first,
                    size_t n_elems, float *out);

#endif
