/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_penalties.c - less for tokens that came lately.
 *
 * The repeat penalty alone is the op's (ops/sample): it needs a pass by itself only if another link
 * runs, since all penalties come before what is behind them here.
 */
#include "engine/samplers/sampler.h"

/*
 * Each id once, at its first place in recent [n], by how often it is there: an id that was
 * penalized at each place would pay `repeat` and `presence` several times. n is a window of some
 * tens, so that looking through it for each of its ids costs less than a table of V counts would.
 */
void tg_logits_penalize(float *logits, size_t V, const int32_t *recent, size_t n,
                        const tg_logits_penalties *p) {
    for (size_t i = 0; i < n; i++) {
        const int32_t id = recent[i];
        size_t before = 0, count = 0;
        for (size_t k = 0; k < n; k++) {
            before += k < i && recent[k] == id;
            count += recent[k] == id;
        }
        if (before > 0 || id < 0 || (size_t)id >= V) continue;
        const double less = (double)count * p->frequency + p->presence;
        logits[id] = tg_candidate_penalized(logits[id], p->repeat, less);
    }
}

static tg_status check(tg_ctx *err, const tg_sample_options *o) {
    if (!(o->repeat_penalty > 0 && o->repeat_penalty <= 100))
        return tg_fail(err, TG_E_ARG, "sampling: repeat_penalty: want a number in (0,100], have %g",
                       o->repeat_penalty);
    if (o->repeat_last < 0 || o->repeat_last > TG_RECENT_MAX)
        return tg_fail(err, TG_E_ARG, "sampling: repeat_last: want 0..%d, have %d", TG_RECENT_MAX,
                       (int)o->repeat_last);
    if (!(o->frequency_penalty >= -100 && o->frequency_penalty <= 100))
        return tg_fail(err, TG_E_ARG, "sampling: frequency_penalty: want -100..100, have %g",
                       o->frequency_penalty);
    if (!(o->presence_penalty >= -100 && o->presence_penalty <= 100))
        return tg_fail(err, TG_E_ARG, "sampling: presence_penalty: want -100..100, have %g",
                       o->presence_penalty);
    return TG_OK;
}

static bool wanted(const tg_session *s, const tg_sample_options *o) {
    (void)s;
    return o->frequency_penalty != 0 || o->presence_penalty != 0;
}

static void apply(const tg_drawing *d) {
    const tg_sample_options *o = d->o;
    const tg_logits_penalties p = { o->repeat_penalty, o->frequency_penalty, o->presence_penalty };
    tg_logits_penalize(d->logits, d->V, d->s->fed + d->s->n_tokens - d->recent, (size_t)d->recent,
                       &p);
}

const tg_sampler tg_sampler_penalties = {
    .check = check, .wanted = wanted, .with_any = true, .apply = apply
};
