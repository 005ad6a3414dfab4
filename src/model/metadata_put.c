/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_put.c - see metadata_put.h. Keys are in the order of llama.cpp's converter, roughly:
 * what all families have, then what a family puts in the place of the last lines of tg_config_put.
 */
#include "model/metadata_put.h"

/* The next value, under a key of the architecture. */
static tg_gguf_value *next(tg_metadata *m, const char *name, tg_gguf_type type) {
    const char *key = tg_arena_sprintf(m->arena, "%s.%s", m->arch, name);
    m->failed = m->failed || !key;
    TG_ASSERT(m->n < TG_METADATA_MAX);
    tg_gguf_value *v = &m->value[m->n++];
    *v = (tg_gguf_value) { .key = key ? key : name, .type = type };
    return v;
}

void tg_config_put_int(tg_metadata *m, const char *name, int64_t x) {
    tg_gguf_value *v = next(m, name, TG_GGUF_U32);
    v->whole = x;
    v->real = (double)x;
}

void tg_config_put_float(tg_metadata *m, const char *name, float x) {
    next(m, name, TG_GGUF_F32)->real = (double)x;
}

void tg_config_put_bool(tg_metadata *m, const char *name, bool x) {
    next(m, name, TG_GGUF_BOOL)->whole = x;
}

void tg_config_put_text(tg_metadata *m, const char *name, const char *text) {
    next(m, name, TG_GGUF_STRING)->text = (tg_gguf_string) { text, strlen(text) };
}

static uint8_t *put_list(tg_metadata *m, const char *name, size_t n, tg_gguf_type element,
                         size_t bytes) {
    uint8_t *each = tg_arena_array(m->arena, n, bytes);
    m->failed = m->failed || !each;
    if (!each) return NULL;
    tg_gguf_value *v = next(m, name, TG_GGUF_ARRAY);
    v->element = element;
    v->count = n;
    v->elements = each;
    v->elements_bytes = bytes * n;
    return each;
}

uint8_t *tg_config_put_list(tg_metadata *m, const char *name, size_t n) {
    return put_list(m, name, n, TG_GGUF_I32, 4);
}

uint8_t *tg_config_put_bools(tg_metadata *m, const char *name, size_t n) {
    return put_list(m, name, n, TG_GGUF_BOOL, 1);
}

void tg_config_put_kv_heads(tg_metadata *m) {
    static const char name[] = "attention.head_count_kv";
    const tg_model_config *c = m->c;
    if (!c->layer_kind[0]) {
        tg_config_put_int(m, name, c->kv_heads);
        return;
    }
    uint8_t *each = tg_config_put_list(m, name, (size_t)c->layers);
    for (int i = 0; each && i < c->layers; i++)
        tg_put_u32(each + 4 * i,
                   tg_layer_kind_of(c, i) == TG_LAYER_ATTENTION ? (uint32_t)c->kv_heads : 0);
}

void tg_config_put_mlp(tg_metadata *m) {
    static const char name[] = "feed_forward_length";
    const tg_model_config *c = m->c;
    const bool alone = tg_has_mlps_alone(c);
    if (!TG_NATIVE_PARTS || (!alone && c->mlp_shared == 0)) {
        tg_config_put_int(m, name, c->mlp);
        return;
    }
    uint8_t *each = tg_config_put_list(m, name, (size_t)c->layers);
    for (int i = 0; each && i < c->layers; i++)
        tg_put_u32(each + 4 * i, alone && tg_layer_kind_of(c, i) != TG_LAYER_MLP
                                     ? 0
                                     : (uint32_t)tg_layer_mlp(c, i));
}

void tg_config_put_states(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_config_put_int(m, "ssm.conv_kernel", c->conv_taps);
    tg_config_put_int(m, "ssm.inner_size", (int64_t)c->ssm_heads * c->ssm_head_size);
    tg_config_put_int(m, "ssm.state_size", c->ssm_state);
    tg_config_put_int(m, "ssm.time_step_rank", c->ssm_heads);
    tg_config_put_int(m, "ssm.group_count", c->ssm_groups);
}

void tg_config_put_scales(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_config_put_float(m, "attention.scale", c->score_scale);
    tg_config_put_float(m, "embedding_scale", c->embed_scale);
    tg_config_put_float(m, "residual_scale", c->residual_scale > 0 ? c->residual_scale : 1);
    tg_config_put_float(m, "logit_scale", c->logit_scale > 0 ? c->logit_scale : 1);
}

/* The rhythm of windows and the base that they turn by, where they are not what the family's reader
 * takes of a file that states none: what it makes of sizes that nobody gave. Gemma 2's reader has a
 * window for such files, too: one as long as the context stands for none. */
static void put_windows(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_model_config usual = *c;
    usual.window_every = 0;
    usual.rope_base[1] = usual.rope_factor = 0;
    if (c->window > 0 || tg_family_of(c)->caps)
        tg_config_put_int(m, "attention.sliding_window", c->window ? c->window : c->ctx);
    if (c->window == 0 || tg_config_complete(NULL, "", &usual) != TG_OK) return;
    if (c->window_every != usual.window_every)
        tg_config_put_int(m, "attention.sliding_window_pattern", c->window_every);
    if (c->window_every > 0 && c->rope_base[1] != usual.rope_base[1])
        tg_config_put_float(m, "rope.freq_base_swa", c->rope_base[1]);
}

void tg_config_put_attention(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_config_put_int(m, "attention.key_length", c->head_size);
    tg_config_put_int(m, "attention.value_length", c->head_size);
    tg_config_put_int(m, "rope.dimension_count", c->rope_size > 0 ? c->rope_size : c->head_size);
    tg_config_put_float(m, "attention.layer_norm_rms_epsilon", c->eps);
    tg_config_put_float(m, "rope.freq_base", c->rope_base[0]);
    put_windows(m);
}

void tg_config_put(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_config_put_int(m, "block_count", c->layers);
    tg_config_put_int(m, "context_length", c->ctx);
    tg_config_put_int(m, "embedding_length", c->width);
    tg_config_put_mlp(m);
    tg_config_put_int(m, "attention.head_count", c->heads);
    if (tg_family_of(c)->put) {
        tg_family_of(c)->put(m);
        return;
    }
    tg_config_put_kv_heads(m);
    tg_config_put_attention(m);
}
