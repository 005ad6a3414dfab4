/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_generation.c - generation_config.json: how a model's makers would draw tokens.
 *
 *     do_sample                    false: the likeliest one, which is a temperature of 0 here
 *     temperature, top_k, ..       under GGUF's keys: tg_hf_sampling_keys
 *     eos_token_id                 hf.c, as config.json has it, too
 *     all of hf_generation.def     nothing
 *     any other                    a warning by its name
 *
 * All of it is advice about the use of a model that itself is right: so what is not done here is
 * said, and not refused.
 */
#include "io/hf/hf.h"

/* As llama.cpp has them; typical_p is ours. */
const tg_hf_sampling_key tg_hf_sampling_keys[TG_HF_SAMPLING_KEYS] = {
    { "temperature", ".general.sampling.temp", false },
    { "top_k", ".general.sampling.top_k", true },
    { "top_p", ".general.sampling.top_p", false },
    { "min_p", ".general.sampling.min_p", false },
    { "typical_p", ".general.sampling.typical_p", false },
    { "repetition_penalty", ".general.sampling.penalty_repeat", false },
};

static const tg_hf_key harmless[] = {
#define TG_HF_KEY(key, value, why) { key, TG_HF_##value },
#include "io/hf/hf_generation.def"
#undef TG_HF_KEY
};

/* A value that cannot be read is left out without an error; of the likeliest token only the penalty
 * decides. */
static void put(tg_hf_values *m, const tg_hf_sampling_key *key, const tg_json *value) {
    int64_t whole;
    double real;
    if (key->whole && tg_json_int64(NULL, value, &whole) == TG_OK && whole >= 0)
        tg_hf_put_int(m, key->ours, whole);
    if (!key->whole && tg_json_double(NULL, value, &real) == TG_OK)
        tg_hf_put_float(m, key->ours, real);
}

void tg_hf_sampling(tg_hf_values *m, const tg_json *generation) {
    const tg_json *draws = tg_json_get(generation, "do_sample");
    const bool greedy = draws && tg_json_kind(draws) == TG_JSON_FALSE;
    if (greedy) tg_hf_put_float(m, tg_hf_sampling_keys[0].ours, 0);
    for (const tg_json *v = tg_json_first(generation); v; v = tg_json_next(v)) {
        size_t i = 0;
        while (i < TG_HF_SAMPLING_KEYS && strcmp(tg_hf_sampling_keys[i].theirs, v->key) != 0) i++;
        if (i == TG_HF_SAMPLING_KEYS) {
            if (!tg_hf_key_in(harmless, sizeof harmless / sizeof harmless[0], v))
                tg_say(m->g->ctx, TG_LOG_WARNING,
                       "%s/generation_config.json: %.80s: %.60s is not done here, so tokens are "
                       "drawn without it",
                       m->g->path, v->key, TG_JSON_SHOWN(v));
        } else if (!greedy || i + 1 == TG_HF_SAMPLING_KEYS) {
            put(m, &tg_hf_sampling_keys[i], v);
        }
    }
}
