/* SPDX-License-Identifier: Apache-2.0 */
/*
 * granite.h - what all families of Granite have in config.json: scales of scores, embeddings, of
 * what is added to the stream, and of logits.
 */
#ifndef TG_MODEL_GRANITE_H
#define TG_MODEL_GRANITE_H

#include "io/hf/hf.h"

/* Theirs and GGUF's, of which 1 is what is not said. */
static const char *const tg_granite_scales[][2] = {
    { "attention_multiplier", "attention.scale" },
    { "embedding_multiplier", "embedding_scale" },
    { "residual_multiplier", "residual_scale" },
    { "logits_scaling", "logit_scale" },
};
enum { TG_GRANITE_SCALES = sizeof tg_granite_scales / sizeof tg_granite_scales[0] };

static inline tg_status tg_granite_read_scales(tg_hf_values *m) {
    for (size_t i = 0; i < TG_GRANITE_SCALES; i++) {
        double scale = 1;
        TG_TRY(tg_hf_get_float(m, m->root, tg_granite_scales[i][0], &scale));
        tg_hf_put_float(m, tg_granite_scales[i][1], scale);
    }
    return TG_OK;
}

static inline void tg_granite_write_scales(tg_json_writer *w, const tg_gguf *g, const char *arch) {
    for (size_t i = 0; i < TG_GRANITE_SCALES; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.%s", arch, tg_granite_scales[i][1]);
        const tg_gguf_value *v = tg_gguf_find(g, key);
        tg_json_key(w, tg_granite_scales[i][0]);
        tg_json_put_float(w, v ? (float)v->real : 1);
    }
}

#endif
