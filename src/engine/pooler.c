/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooler.c - vectors of a text's tokens become one.
 *
 *     first               max_t x       sum x / n      sum x / sqrt(n)     sum t x / sum t     last
 *
 * t counts from 1. Sums are in double: their order then hardly matters.
 */
#include "engine/pooler.h"

#include "base/math.h"

static size_t block_bytes(size_t width) { return width * (2 * sizeof(double) + 3 * sizeof(float)); }

tg_status tg_pooler_init(tg_ctx *ctx, tg_pooler *p, tg_pooling_ways ways, size_t width) {
    *p = (tg_pooler) { .ways = ways, .width = width, .mem = ctx->mem };
    p->block = tg_alloc(&p->mem, block_bytes(width));
    if (!p->block) return tg_fail_memory(ctx, "pooling", block_bytes(width));
    p->sum = p->block;
    p->weighted = p->sum + width;
    p->max = (float *)(p->weighted + width);
    p->first = p->max + width;
    p->last = p->first + width;
    return TG_OK;
}

void tg_pooler_deinit(tg_pooler *p) {
    if (p->block) tg_free(&p->mem, p->block, block_bytes(p->width));
    p->block = NULL;
}

void tg_pooler_add(tg_pooler *p, const float *rows, size_t n) {
    const size_t width = p->width;
    for (size_t t = 0; t < n; t++) {
        const float *x = rows + t * width;
        const bool begins = p->n++ == 0;
        const double weight = (double)p->n;
        for (size_t c = 0; c < width; c++) {
            p->sum[c] = (begins ? 0 : p->sum[c]) + (double)x[c];
            p->weighted[c] = (begins ? 0 : p->weighted[c]) + weight * (double)x[c];
            if (begins || x[c] > p->max[c]) p->max[c] = x[c];
        }
        if (begins) memcpy(p->first, x, width * sizeof *x);
        memcpy(p->last, x, width * sizeof *x);
    }
}

static double pooled(const tg_pooler *p, int way, size_t c) {
    const double n = (double)p->n;
    switch (way) {
    case TG_POOLING_BY_CLS: return (double)p->first[c];
    case TG_POOLING_BY_MAX: return (double)p->max[c];
    case TG_POOLING_BY_MEAN: return p->sum[c] / n;
    case TG_POOLING_BY_MEAN_SQRT_LEN: return p->sum[c] / tg_sqrt(n);
    case TG_POOLING_BY_WEIGHTED_MEAN: return p->weighted[c] / (n * (n + 1) / 2);
    default: return (double)p->last[c];
    }
}

void tg_pooler_end(tg_pooler *p, bool raw, float *out) {
    double square = 0;
    size_t at = 0;
    for (int32_t i = 0; i < p->ways.n; i++) {
        for (size_t c = 0; c < p->width; c++) {
            const double x = pooled(p, p->ways.way[i], c);
            square += x * x;
            out[at++] = (float)x;
        }
    }
    const double scale = raw || square == 0 ? 1 : 1 / tg_sqrt(square);
    for (size_t c = 0; c < at; c++) out[c] = (float)((double)out[c] * scale);
    p->n = 0;
}

size_t tg_pooler_width(const tg_pooler *p) { return (size_t)p->ways.n * p->width; }
