/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - one block of int4 at a time.
 *
 * Writing what was read gives the same bytes: the largest element of a block decodes to 7 * scale
 * exactly (an f16 times 7 fits into an f32), so its seventh is the same scale, and each quotient is
 * a whole number again. That holds for blocks that this file wrote; another program may have left
 * a block without a 7, or used the nibble 0, which decodes to -8 * scale.
 */
#include "io/run/quant.h"

#include "dtype/dtype.h"

void tg_int4_encode(const float *w, size_t n_elems, uint16_t *scale,
                    uint8_t nibbles[TG_INT4_NIBBLE_BYTES]) {
    double largest = 0;
    for (size_t i = 0; i < n_elems; i++) {
        const double magnitude = w[i] < 0 ? -(double)w[i] : (double)w[i];
        largest = magnitude > largest ? magnitude : largest;
    }
    /* In double, as the original computes: in float some quotients would round the other way. */
    const double exact = largest / 7;
    memset(nibbles, 0, TG_INT4_NIBBLE_BYTES);
    *scale = tg_f16_from_f32((float)exact);
    if ((*scale & 0x7fff) == 0) {
        return;
    }
    for (size_t i = 0; i < n_elems; i++) {
        const double magnitude = w[i] < 0 ? -(double)w[i] : (double)w[i];
        const int rounded = (int)(magnitude / exact + 0.5); /* at most 7, by the choice of scale */
        const int q = w[i] < 0 ? -rounded : rounded;
        nibbles[i / 2] |= (uint8_t)((q + 8) << (i % 2 ? 4 : 0));
    }
}

void tg_int4_decode(uint16_t scale, const uint8_t nibbles[TG_INT4_NIBBLE_BYTES], size_t first,
                    size_t n_elems, float *out) {
    const float stored = tg_f16_to_f32(scale);
    for (size_t i = first; i < first + n_elems; i++) {
        const int nibble = nibbles[i / 2] >> (i % 2 ? 4 : 0) & 15;
        *out++ = stored != 0 ? (float)(nibble - 8) * stored : 0.0f; /* never a negative zero */
    }
}
