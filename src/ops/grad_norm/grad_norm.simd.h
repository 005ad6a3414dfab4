/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_norm.simd.h - sums of squares over fixed chunks, then over the chunks, then the four stats.
 *
 *   phase 0   a unit is a chunk of 4096 gradients; its sum goes to scratch [chunks] doubles
 *   phase 1   one unit: the sums, chunks rising
 *
 * Sixteen double lanes in plain C: products of two floats are exact in a double, so that fused or
 * not they have the same bits, and every ISA gives the same norm.
 */
#include "base/math.h"
#include "ir/op.h"
#include "ops/kernel.h"
#include "simd/vec.h"

#define CHUNK 4096u /* part of the result: another number gives other bits */

static size_t chunks(const tg_args *a) { return tg_units(tg_type_elems(&a->in_type[0]), CHUNK); }
static size_t scratch_bytes(const tg_args *a) { return chunks(a) * sizeof(double); }

static double sum_of_squares(const float *x, size_t n) {
    double lane[16] = { 0 };
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (size_t j = 0; j < 16; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (size_t j = 0; i + j < n; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t half = 8; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

static void run_chunks(const tg_args *a, size_t begin, size_t end) {
    const float *grads = a->in[0];
    double *sum = a->scratch;
    const size_t n = tg_type_elems(&a->in_type[0]);
    for (size_t k = begin; k < end; k++)
        sum[k] = sum_of_squares(grads + k * CHUNK, tg_min_size(CHUNK, n - k * CHUNK));
}

static size_t one_unit(const tg_args *a) {
    (void)a;
    return 1;
}

static void run_stats(const tg_args *a, size_t begin, size_t end) {
    (void)begin;
    (void)end;
    const double *part = a->scratch;
    const float loss = ((const float *)a->in[1])[0];
    float *stats = a->out[0];
    double sum = 0;
    for (size_t k = 0; k < chunks(a); k++) sum += part[k];
    const double clip = (double)a->attr.f[0];
    const double norm = tg_sqrt(sum), coefficient = clip / (norm + 1e-6);
    stats[0] = (float)norm;
    stats[1] = (float)(clip > 0 && coefficient < 1 ? coefficient : 1);
    stats[2] = tg_isfinite((double)stats[0]) && tg_isfinite((double)loss) ? 1 : 0;
    stats[3] = loss;
}

static const tg_variant variants[] = {
    { .name = "chunks",
      .phase = { { chunks, run_chunks }, { one_unit, run_stats } },
      .scratch_bytes = scratch_bytes },
};
TG_KERNELS(grad_norm, variants);
