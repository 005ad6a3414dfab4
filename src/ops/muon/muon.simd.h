/* SPDX-License-Identifier: Apache-2.0 */
/*
 * muon.simd.h - muon_momentum and muon_step, by rows of the block. Bound by memory, and as fast as
 * the compiler makes them: plain floats, since a module for the web has little room.
 */
#include "ops/kernel.h"
#include "ops/muon/block.h"
#include "simd/vec.h"

static size_t unit_rows(const tg_args *a) {
    return tg_unit_rows((size_t)a->attr.i[3], TG_UNIT_ELEMS);
}
static size_t units(const tg_args *a) { return tg_units((size_t)a->attr.i[1], unit_rows(a)); }

static void run_momentum(const tg_args *a, size_t begin, size_t end) {
    const muon_block k = muon_block_of(&a->attr, &a->in_type[0]);
    const float *stats = a->in[2];
    const float b = a->attr.f[0], rest = (float)(1 - (double)b);
    const size_t stop = tg_min_size(end * unit_rows(a), k.rows);
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const size_t at = k.first + r * k.stride;
        const float *grads = (const float *)a->in[0] + at, *m = (const float *)a->in[1] + at;
        float *m_out = (float *)a->out[0] + at, *u = (float *)a->out[1] + r * k.cols;
        for (size_t c = 0; c < k.cols; c++) {
            const float g = rest * (stats[1] * grads[c]), new_m = b * m[c] + g;
            u[c] = b * new_m + g;
            if (stats[2] != 0) m_out[c] = new_m;
        }
    }
}

static const tg_variant momentum[] = { { .name = "rows", .phase = { { units, run_momentum } } } };
TG_KERNELS(muon_momentum, momentum);

static void run_step(const tg_args *a, size_t begin, size_t end) {
    if (((const float *)a->in[2])[2] == 0) return;
    const muon_block k = muon_block_of(&a->attr, &a->in_type[0]);
    const double lr = (double)a->rt->lr;
    const float keep = (float)(1 - lr * (double)a->attr.f[1]);
    const float rate = (float)(lr * (double)a->attr.f[0]);
    const size_t stop = tg_min_size(end * unit_rows(a), k.rows);
    for (size_t r = begin * unit_rows(a); r < stop; r++) {
        const size_t at = k.first + r * k.stride;
        const float *w = (const float *)a->in[0] + at, *x = (const float *)a->in[1] + r * k.cols;
        for (size_t c = 0; c < k.cols; c++)
            ((float *)a->out[0] + at)[c] = keep * w[c] - rate * x[c];
    }
}

static const tg_variant step[] = { { .name = "rows", .phase = { { units, run_step } } } };
TG_KERNELS(muon_step, step);
