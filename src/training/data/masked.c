/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masked.c - which tokens an encoder has to find, and what it is shown in their place. See
 * masked.h.
 */
#include "training/data/masked.h"

#include "base/rng.h"

tg_status tg_masking_of(tg_ctx *err, const char *name, const tg_tok *tok, size_t V,
                        tg_masking *out) {
    static const char *const spelt[] = { "[MASK]", "<mask>" };
    *out = (tg_masking) { .begins = tg_tok_adds_bos(tok) ? tg_tok_bos(tok) : -1,
                          .ends = tg_tok_adds_eos(tok) ? tg_tok_eos(tok) : -1,
                          .mask = -1,
                          .vocab = V };
    for (size_t i = 0; i < sizeof spelt / sizeof spelt[0] && out->mask < 0; i++)
        out->mask = tg_tok_find(tok, spelt[i], strlen(spelt[i]));
    if (out->mask >= 0) return TG_OK;
    return tg_fail(err, TG_E_UNSUPPORTED,
                   "%s: training an encoder wants a vocabulary with [MASK] or <mask>, have one "
                   "without",
                   name);
}

size_t tg_masking_room(const tg_masking *m, size_t T) {
    const size_t around = (size_t)(m->begins >= 0) + (size_t)(m->ends >= 0);
    return T > around ? T - around : 0;
}

/* One of the chosen ones. */
static void hide(const tg_masking *m, const uint32_t x[4], int32_t *input, int32_t *target) {
    const double u = tg_rng_uniform(x[1]);
    const uint32_t other[4] = { x[2], x[3] };
    *target = *input;
    if (u < 0.8)
        *input = m->mask;
    else if (u < 0.9)
        *input = (int32_t)tg_rng_below(tg_rng_draw64(other), m->vocab);
}

/* The stream is the place in the row. The one behind the last place is asked where none was chosen;
 * what that token is shown as then comes from its own draw, as always. */
void tg_masking_row(const tg_masking *m, uint64_t seed, uint64_t index, size_t T, int32_t *inputs,
                    int32_t *targets) {
    const size_t n = tg_masking_room(m, T), first = m->begins >= 0;
    size_t chosen = 0;
    uint32_t x[4];
    memmove(inputs + first, inputs, n * sizeof *inputs);
    if (first) inputs[0] = m->begins;
    if (m->ends >= 0) inputs[first + n] = m->ends;
    for (size_t i = 0; i < T; i++) targets[i] = TG_NO_TARGET;
    for (size_t i = first; i < first + n; i++) {
        tg_philox(seed, index, TG_RNG_MASK, (uint32_t)i, x);
        if (!(tg_rng_uniform(x[0]) < 0.15)) continue;
        hide(m, x, &inputs[i], &targets[i]);
        chosen++;
    }
    if (chosen > 0) return;
    tg_philox(seed, index, TG_RNG_MASK, (uint32_t)T, x);
    const size_t one = first + (size_t)tg_rng_below(tg_rng_draw64(x), n);
    tg_philox(seed, index, TG_RNG_MASK, (uint32_t)one, x);
    hide(m, x, &inputs[one], &targets[one]);
}
