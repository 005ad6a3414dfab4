/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_typical.c - tokens that are about as surprising as the average.
 */
#include "base/sort.h"
#include "engine/samplers/sampler.h"

/* By distance, and equal ones by id: an order that no sorting algorithm can change. */
static bool nearer(const void *user, uint32_t a, uint32_t b) {
    const double *distance = user;
    return distance[a] < distance[b] || (!(distance[b] < distance[a]) && a < b);
}

/* One pass for entropy and total together, one for distances, and a sort: the softmax itself is
 * never stored. Logits are shifted by the largest, so that no exp overflows. */
void tg_logits_typical(float *logits, size_t V, double mass, double temperature, uint32_t *order,
                       double *distance) {
    const double max = tg_logits_largest(logits, V);
    if (!(mass > 0 && mass < 1) || !(temperature > 0) || !tg_isfinite(max)) return;
    double total = 0, mean = 0; /* of exp(z), and of z under p, where z = (x - max) / T */
    for (size_t i = 0; i < V; i++) {
        const double z = (tg_logit_value(logits[i]) - max) / temperature, w = tg_exp(z);
        if (!(w > 0)) continue;
        total += w;
        mean += w * z;
    }
    mean /= total; /* ln p = z - ln total and H = ln total - mean, so H + ln p = z - mean */
    for (size_t i = 0; i < V; i++) {
        const double z = (tg_logit_value(logits[i]) - max) / temperature;
        order[i] = (uint32_t)i;
        distance[i] = tg_exp(z) > 0 ? tg_fabs(z - mean) : TG_INF;
    }
    tg_sort_numbers(order, V, nearer, distance);
    /* Until the mass is reached, the token that reaches it among them. */
    double sum = 0;
    size_t kept = 0;
    while (kept < V && sum < mass * total) {
        const uint32_t id = order[kept++];
        sum += tg_exp((tg_logit_value(logits[id]) - max) / temperature);
    }
    for (size_t k = kept > 0 ? kept : 1; k < V; k++) logits[order[k]] = (float)-TG_INF;
}

static tg_status check(tg_ctx *err, const tg_sample_options *o) {
    if (o->typical_p >= 0 && o->typical_p <= 1) return TG_OK;
    return tg_fail(err, TG_E_ARG, "sampling: typical_p: want 0..1, have %g", o->typical_p);
}

static bool wanted(const tg_session *s, const tg_sample_options *o) {
    (void)s;
    return o->typical_p > 0 && o->typical_p < 1;
}

static void apply(const tg_drawing *d) {
    tg_logits_typical(d->logits, d->V, d->o->typical_p, d->o->temperature, d->order, d->distance);
}

const tg_sampler tg_sampler_typical = { .check = check, .wanted = wanted, .apply = apply };
