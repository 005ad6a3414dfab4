/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_mask.c - only tokens that the session's callback allows: grammars, choices.
 */
#include "engine/samplers/sampler.h"

static bool wanted(const tg_session *s, const tg_sample_options *o) {
    (void)o;
    return s->mask != NULL;
}

static void apply(const tg_drawing *d) {
    const tg_session *s = d->s;
    memset(d->allowed, 0xff, (d->V + 31) / 32 * sizeof *d->allowed);
    s->mask(s->mask_user, s->fed, (size_t)s->n_tokens, d->allowed);
    for (size_t id = 0; id < d->V; id++)
        if (!(d->allowed[id / 32] >> id % 32 & 1)) d->logits[id] = (float)-TG_INF;
}

const tg_sampler tg_sampler_mask = { .wanted = wanted, .apply = apply };
