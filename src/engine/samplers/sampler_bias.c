/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_bias.c - what callers add to the logits of tokens.
 */
#include "engine/samplers/sampler.h"

tg_status tg_logits_check_bias(tg_ctx *ctx, const tg_logit_bias *bias, size_t n, size_t V) {
    for (size_t i = 0; i < n; i++) {
        if (bias[i].id < 0 || (size_t)bias[i].id >= V) {
            return tg_fail(ctx, TG_E_RANGE, "logit bias: want an id in [0,%zu), have %ld", V,
                           (long)bias[i].id);
        }
        /* So put that a NaN is refused, too. -inf is a ban; +inf would make all others impossible.
         */
        if (!(bias[i].bias <= (double)FLT_MAX)) {
            return tg_fail(ctx, TG_E_ARG, "logit bias of %ld: want a number or -inf, have %g",
                           (long)bias[i].id, bias[i].bias);
        }
    }
    return TG_OK;
}

void tg_logits_bias(float *logits, const tg_logit_bias *bias, size_t n) {
    for (size_t i = 0; i < n; i++) {
        logits[bias[i].id] = tg_candidate_of(tg_logit_value(logits[bias[i].id]) + bias[i].bias);
    }
}

tg_status tg_session_keep_bias(tg_session *s, const tg_logit_bias *bias, size_t n) {
    const tg_mem *mem = &s->ctx->err.mem;
    TG_TRY(tg_logits_check_bias(&s->ctx->err, bias, n, (size_t)s->model->layout.config.vocab));
    tg_logit_bias *copy = n > 0 ? tg_alloc(mem, n * sizeof *copy) : NULL;
    if (n > 0 && !copy) return tg_fail_memory(&s->ctx->err, "logit bias", n * sizeof *copy);
    if (n > 0) memcpy(copy, bias, n * sizeof *copy);
    tg_free(mem, s->bias, s->n_bias * sizeof *s->bias);
    s->bias = copy;
    s->n_bias = n;
    return TG_OK;
}

static bool wanted(const tg_session *s, const tg_sample_options *o) {
    (void)o;
    return s->n_bias > 0;
}

static void apply(const tg_drawing *d) { tg_logits_bias(d->logits, d->s->bias, d->s->n_bias); }

const tg_sampler tg_sampler_bias = { .wanted = wanted, .apply = apply };
