/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.h - a link of the chain that logits go through before a token is drawn: one file, and its
 * line in samplers.def, which is the order. draw.c walks the chain.
 */
#ifndef TG_ENGINE_SAMPLERS_SAMPLER_H
#define TG_ENGINE_SAMPLERS_SAMPLER_H

#include "base/math.h"
#include "engine/session.h"

/* One draw: the session, whose logits are the candidates by id, and scratch for them all. */
typedef struct tg_drawing {
    tg_session *s;
    const tg_sample_options *o;
    float *logits; /* [V] -inf: no candidate any more */
    size_t V;
    int32_t recent;    /* how many of the newest tokens the penalties look at */
    double *distance;  /* [V] */
    uint32_t *order;   /* [V] */
    float *were;       /* [V] the logits as they were */
    uint32_t *allowed; /* [V / 32] rounded up */
} tg_drawing;

typedef struct tg_sampler {
    /* The ranges of its options; NULL: it has none. Tests are such that NaN fails them. */
    tg_status (*check)(tg_ctx *err, const tg_sample_options *o);
    bool (*wanted)(const tg_session *s, const tg_sample_options *o);
    bool with_any; /* runs wherever another link is wanted */
    void (*apply)(const tg_drawing *d);
} tg_sampler;

#endif
