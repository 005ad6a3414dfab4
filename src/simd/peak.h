/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak.h - how fast this machine can multiply and add, and read: the denominators of all shares.
 */
#ifndef TG_SIMD_PEAK_H
#define TG_SIMD_PEAK_H

#include "base/libc.h"

/* Runs about n_flop operations (multiply and add count as two) in registers alone, in as many
 * independent chains as hide the latency. Returns how many it really ran; the sum goes to *sink so
 * that nothing is optimised away. */
typedef double (*tg_peak_fn)(double n_flop, float *sink);
/* Reads n bytes (a multiple of 1024) once and folds them into *sink. */
typedef void (*tg_read_fn)(const float *data, size_t n_bytes, float *sink);

typedef struct tg_peak_kernels {
    tg_peak_fn multiply_add;
    tg_read_fn read;
} tg_peak_kernels;

/* isa: the row of simd/isa.def. */
const tg_peak_kernels *tg_peak_find(size_t isa);

#endif
