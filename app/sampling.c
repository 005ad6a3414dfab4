/* sampling.c - from the options of a command line to those of the library, and back. */
#include "sampling.h"

tg_sampling tg_sampling_default(void) {
    const tg_sample_options d = tg_sample_options_default();
    return (tg_sampling) { .top_k = d.top_k,
                           .repeat_last = d.repeat_last,
                           .temp = d.temperature,
                           .top_p = d.top_p,
                           .min_p = d.min_p,
                           .typical_p = d.typical_p,
                           .repeat_penalty = d.repeat_penalty,
                           .frequency_penalty = d.frequency_penalty,
                           .presence_penalty = d.presence_penalty };
}

tg_sample_options tg_sampling_options(const tg_sampling *s, uint64_t seed) {
    tg_sample_options o = tg_sample_options_default();
    o.temperature = s->temp;
    o.top_k = (int32_t)s->top_k;
    o.top_p = s->top_p;
    o.min_p = s->min_p;
    o.typical_p = s->typical_p;
    o.repeat_penalty = s->repeat_penalty;
    o.frequency_penalty = s->frequency_penalty;
    o.presence_penalty = s->presence_penalty;
    o.repeat_last = (int32_t)s->repeat_last;
    o.seed = seed;
    return o;
}
