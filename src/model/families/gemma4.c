/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemma4.c - the family "gemma4" (Gemma 4 E2B and E4B, of text).
 *
 *   x = sqrt(C) E[token]
 *   p = (norm(x W_p / sqrt(C)) + sqrt(P) E'[token]) / sqrt(2)         of L pieces of P, each normed
 *   for each layer:  q, k, v = norm(x) W; q, k = rope(norm(q)), rope(norm(k)); v = norm(v)
 *                    x = x + norm(W_o attention(q, k, v))
 *                    x = x + norm(W_down (gelu(norm(x) W_gate) * (norm(x) W_up)))
 *                    x = x + norm(W_out (gelu(x W_in) * p[layer]))
 *                    x = s x
 *   logits = c tanh(norm(x) E^T / c)
 *
 * So a second table E' [V,L*P] (per-layer embeddings) gives each layer a row of its own for each
 * token, beside a projection of the first one's. Gains are as they stand, without 1 added; norms of
 * values have none; gelu is the one with tanh; scores are not divided by a root.
 *
 * All but one layer of each `window_every` see a window. Layers that see all have other, larger
 * heads (head_size, and window_head_size of the rest), and only the first pairs of these turn: the
 * others have a frequency of 0 (tg_family.proportional). In GGUF that is a tensor of factors which
 * are 1, or 1e30. The last kv_shared layers have queries alone, and read the keys and values of the
 * last layer of their kind before them, so they remember nothing (model/state.h); files have
 * matrices for them nevertheless, which no program reads. In some models the MLPs of these layers
 * are twice as wide (mlp_shared). s is a number of each layer, which training leaves alone.
 *
 * Left out are images and sounds, whose tensors and settings are passed over, and the larger
 * models, which are refused by their keys: keys that are values, too (attention_k_eq_v), and
 * experts. Facts: transformers' modeling_gemma4, and llama.cpp's converter and its gemma4.
 */
#include "base/math.h"
#include "io/rope_proportional.h"
#include "model/families/llama.h"
#include "model/metadata_put.h"

/* What a layer takes in: its piece of both sources, the projected one normed, behind gates. */
static tg_value *take_in(tg_net *n, tg_value *projected, tg_value *looked_up, tg_value *gates) {
    const size_t P = (size_t)n->config->layer_inputs, at = (size_t)n->layer * P;
    const float root = (float)(1 / tg_sqrt((double)n->config->width));
    const int layer = n->layer;
    tg_value *own = tg_net_columns(n, projected, NULL, at, P, 0, P, root);
    n->layer = -1;
    own = tg_net_norm(n, own, "per_layer_proj_norm");
    n->layer = layer;
    tg_value *both = tg_net_columns(n, looked_up, NULL, at, P, P, 2 * P, 1);
    both = tg_net_columns(n, own, both, 0, P, P, 2 * P, (float)tg_sqrt(0.5));
    return tg_net_columns(n, gates, both, 0, P, 0, 2 * P, 1);
}

static tg_value *attention(tg_net *n, tg_value *x) {
    const bool shares = tg_shares_keys(n->config, n->layer);
    tg_value *h = tg_net_linear(n, tg_net_norm(n, x, "attn_norm"), "attn_qkv", TG_READ_PLAIN);
    h = tg_net_rope(n, shares ? tg_net_queries(n, h) : h);
    if (!shares) h = tg_net_norm_values(n, h);
    return tg_net_attention(n, h, tg_windowed(n->config, n->layer) ? n->config->window : 0);
}

static tg_value *graph(tg_net *n, tg_value *tokens) {
    const double half = 0.5 * (double)n->config->layer_inputs;
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    tg_value *projected = tg_net_linear(n, x, "per_layer_model_proj", TG_READ_PLAIN);
    tg_value *looked_up = tg_net_look_up(n, tokens, "per_layer_token_embd", (float)tg_sqrt(half));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_linear(n, attention(n, x), "attn_output", TG_READ_PLAIN);
        x = tg_net_norm_add(n, h, "post_attention_norm", x, TG_SITE_ATTENTION);

        h = tg_net_linear(n, tg_net_norm(n, x, "ffn_norm"), "ffn_gate_up", TG_READ_PLAIN);
        h = tg_net_linear(n, h, "ffn_down", TG_READ_GELU_TANH);
        x = tg_net_norm_add(n, h, "post_ffw_norm", x, TG_SITE_MLP);

        h = take_in(n, projected, looked_up, tg_net_linear(n, x, "inp_gate", TG_READ_PLAIN));
        h = tg_net_linear(n, h, "proj", TG_READ_GELU_TANH);
        x = tg_net_add(n, x, tg_net_norm(n, h, "post_norm"));
        x = tg_net_tap(n, TG_SITE_STREAM, tg_net_times(n, x, "layer_output_scale"));
    }
    return tg_net_head(n, x);
}

/* ------------------------------------------------------------------------------------------ sizes
 */

#define WINDOW_EVERY 6

/* How many elements turn: without factors the whole head. */
static tg_status read_turned(const tg_gguf *g, tg_model_config *c) {
    const char *name = tg_gguf_factors[TG_FACTORS_LLAMA3];
    const tg_gguf_tensor *t = tg_gguf_tensor_find(g, name);
    if (!t) return TG_OK;
    const size_t half = (size_t)c->head_size / 2;
    float *factors;
    if (t->elems != half || t->bytes > 16 * half * sizeof *factors)
        return tg_fail(g->ctx, TG_E_SHAPE, "%s: tensor %s: want %zu factors, have %" PRIu64,
                       g->path, name, half, t->elems);
    TG_TRY(tg_gguf_new_floats(g, t, &factors));
    const size_t turned = tg_rope_proportional_find(factors, half);
    tg_gguf_free_floats(g, t, factors);
    if (turned == 0)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: tensor %s: want factors of 1, then of 1e30, have others", g->path,
                       name);
    c->rope_size = turned == half ? 0 : (int32_t)(2 * turned);
    return TG_OK;
}

/* The width of the MLPs, or a list of those of all layers, of which the last ones that share keys
 * may have another. */
static tg_status read_widths(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    const tg_gguf_value *v = tg_gguf_find(g, tg_config_key(c, "feed_forward_length", key));
    if (!v || v->type != TG_GGUF_ARRAY) return TG_OK;
    const uint8_t *last = v->elements + 4 * ((size_t)c->layers - 1);
    c->mlp_shared = c->kv_shared > 0 ? (int32_t)tg_get_u32(last) : 0;
    if (c->mlp_shared == c->mlp) c->mlp_shared = 0;
    for (int32_t i = 0; i < c->layers; i++)
        if (tg_get_u32(v->elements + 4 * i) != (uint32_t)tg_layer_mlp(c, i))
            return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                           "%s: %s: want one width, and one of the last %d layers, have another "
                           "at number %d",
                           g->path, key, (int)c->kv_shared, (int)i + 1);
    return TG_OK;
}

/* Heads of layers with a window turn as a whole. */
static tg_status read_heads(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    int32_t values, turned;
    TG_TRY(tg_config_want_int(g, c, "attention.key_length_swa", 1024, &c->window_head_size));
    values = turned = c->window_head_size;
    TG_TRY(
        tg_gguf_get_int(g, tg_config_key(c, "attention.value_length_swa", key), 1, 65536, &values));
    TG_TRY(
        tg_gguf_get_int(g, tg_config_key(c, "rope.dimension_count_swa", key), 1, 65536, &turned));
    if (values != c->window_head_size || turned != values || values % 2 != 0)
        return tg_fail(
            g->ctx, TG_E_UNSUPPORTED,
            "%s: heads of layers with a window: want an even size, alike for keys, values "
            "and what turns, have %d, %d and %d",
            g->path, (int)c->window_head_size, (int)values, (int)turned);
    if (c->window_head_size == c->head_size) c->window_head_size = 0;
    return TG_OK;
}

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    c->embed_scale = (float)tg_sqrt((double)c->width);
    c->score_scale = 1;
    c->rope_base[1] = 1e4F;
    c->window_every = WINDOW_EVERY;
    TG_TRY(tg_config_want_int(g, c, "attention.sliding_window", 1 << 24, &c->window));
    TG_TRY(tg_config_want_int(g, c, "embedding_length_per_layer_input", 4096, &c->layer_inputs));
    TG_TRY(tg_gguf_get_period(g, tg_config_key(c, "attention.sliding_window_pattern", key),
                              (size_t)c->layers, &c->window_every));
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.shared_kv_layers", key), 0, c->layers - 1,
                           &c->kv_shared));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.freq_base_swa", key), &c->rope_base[1]));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "final_logit_softcapping", key), &c->logit_cap));
    if (!(c->logit_cap >= 0 && c->logit_cap < 1e30F))
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want 0 or more, have %g", g->path, key,
                       (double)c->logit_cap);
    TG_TRY(read_heads(g, c));
    TG_TRY(read_widths(g, c));
    TG_TRY(read_turned(g, c));
    return tg_config_check_layers(g->ctx, g->path, c);
}

/* llama.cpp takes a list of the layers with a window, and no period. */
static void put(tg_metadata *m) {
    const tg_model_config *c = m->c;
    const int32_t narrow = c->window_head_size ? c->window_head_size : c->head_size;
    tg_config_put_kv_heads(m);
    tg_config_put_int(m, "attention.shared_kv_layers", c->kv_shared);
    tg_config_put_int(m, "embedding_length_per_layer_input", c->layer_inputs);
    tg_config_put_int(m, "attention.key_length", c->head_size);
    tg_config_put_int(m, "attention.value_length", c->head_size);
    tg_config_put_int(m, "attention.key_length_swa", narrow);
    tg_config_put_int(m, "attention.value_length_swa", narrow);
    tg_config_put_int(m, "rope.dimension_count", c->head_size);
    tg_config_put_int(m, "rope.dimension_count_swa", narrow);
    tg_config_put_float(m, "attention.layer_norm_rms_epsilon", c->eps);
    tg_config_put_float(m, "rope.freq_base", c->rope_base[0]);
    tg_config_put_float(m, "rope.freq_base_swa", c->rope_base[1]);
    tg_config_put_float(m, "final_logit_softcapping", c->logit_cap);
    tg_config_put_int(m, "attention.sliding_window", c->window ? c->window : c->ctx);
    uint8_t *each = tg_config_put_bools(m, "attention.sliding_window_pattern", (size_t)c->layers);
    for (int32_t i = 0; each && i < c->layers; i++) each[i] = tg_windowed(c, i);
}

/* Fresh ones have the rhythm and the bases of the published ones, in which each third layer or so
 * takes its keys from another; heads are alike. */
static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    if (c->window == 0 && c->ctx > 0 && c->ctx <= 1 << 24) c->window = c->ctx;
    if (c->window_every == 0) c->window_every = WINDOW_EVERY;
    if (c->layer_inputs == 0) c->layer_inputs = 32;
    if (c->embed_scale == 0) c->embed_scale = (float)tg_sqrt((double)c->width);
    if (c->score_scale == 0) c->score_scale = 1;
    if (c->rope_base[0] == 0) c->rope_base[0] = 1e6F;
    if (c->eps == 0) c->eps = 1e-6F;
}

/* --------------------------------------------------------------------------------------- tensors
 */

#define OWN TG_WANT_OWN_KEYS
static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "per_layer_token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_ALL_INPUTS,
      TG_WANT_TABLE | TG_WANT_LOOKED_UP },
    { "per_layer_model_proj.weight", TG_SIZE_ALL_INPUTS, TG_SIZE_WIDTH, 0 },
    { "per_layer_proj_norm.weight", TG_SIZE_ONE, TG_SIZE_LAYER_INPUTS, 0 },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, OWN, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, OWN, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, 0 },
    { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, OWN },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.post_attention_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    { "blk.%d.post_ffw_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.inp_gate.weight", TG_SIZE_LAYER_INPUTS, TG_SIZE_WIDTH, 0 },
    { "blk.%d.proj.weight", TG_SIZE_WIDTH, TG_SIZE_LAYER_INPUTS, TG_WANT_BRANCH },
    { "blk.%d.post_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.layer_output_scale.weight", TG_SIZE_ONE, TG_SIZE_ONE, 0 },
};

static const tg_hf_name top[] = {
    { "embed_tokens_per_layer", "per_layer_token_embd", 0 },
    { "per_layer_model_projection", "per_layer_model_proj", 0 },
    { "per_layer_projection_norm", "per_layer_proj_norm", 0 },
    TG_LLAMA_TOP(0),
};
static const tg_hf_name block[] = {
    TG_LLAMA_LAYER,
    { "input_layernorm", "attn_norm", 0 },
    { "post_attention_layernorm", "post_attention_norm", 0 },
    { "pre_feedforward_layernorm", "ffn_norm", 0 },
    { "post_feedforward_layernorm", "post_ffw_norm", 0 },
    { "per_layer_input_gate", "inp_gate", 0 },
    { "per_layer_projection", "proj", 0 },
    { "post_per_layer_input_norm", "post_norm", 0 },
    { "layer_scalar", "layer_output_scale.weight", TG_HF_WHOLE },
    { NULL, NULL, 0 },
};
static const char *const beside[] = { "model.vision_tower.", "model.audio_tower.",
                                      "model.embed_vision.", "model.embed_audio.", NULL };

/* ------------------------------------------------------------------------------------- config.json
 */

/* Heads of layers that see all, and the widths of MLPs, are read and written below. */
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "max_position_embeddings", "context_length", 131072 },
    { "num_attention_heads", "attention.head_count", 0 },
    { "num_key_value_heads", "attention.head_count_kv", 4 },
    { "head_dim", "attention.key_length_swa", 256 },
    { "head_dim", "attention.value_length_swa", 256 },
    { "head_dim", "rope.dimension_count_swa", 256 },
    { "sliding_window", "attention.sliding_window", 512 },
    { "hidden_size_per_layer_input", "embedding_length_per_layer_input", 256 },
    { NULL, NULL, 0 },
};
static const char *const acts[] = { "gelu_pytorch_tanh", NULL };
/* Beside them stand sizes of what they switch on, which mean nothing where they are off. */
static const char *const switches[] = { "attention_bias", "attention_k_eq_v", "enable_moe_block",
                                        NULL };
static const char *const of_switches[] = { "num_global_key_value_heads", "num_experts",
                                           "top_k_experts", "moe_intermediate_size" };

/* A size of one layer, as newer files have it: {"head_dim": 512}. */
static tg_status read_layer(tg_hf_values *m, const tg_json *layer, int64_t *head) {
    const tg_json *v = tg_json_kind(layer) == TG_JSON_OBJECT ? tg_json_first(layer) : NULL;
    int64_t have = 0;
    for (; v; v = tg_json_next(v)) {
        if (strcmp(v->key, "head_dim") != 0 || tg_json_int64(NULL, v, &have) != TG_OK || have < 1 ||
            have > 65536 || (*head > 0 && have != *head))
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: per_layer_config: %.40s: want head_dim alone, alike in all layers "
                           "that see all, have %.40s as %.40s",
                           m->where, layer->key, v->key, TG_JSON_SHOWN(v));
        *head = have;
    }
    return TG_OK;
}

/* Layers that per_layer_config names must be those that see all: it says nothing of others, whose
 * heads are head_dim. */
static tg_status read_head(tg_hf_values *m, int64_t *head) {
    const tg_json *layers = tg_hf_member(m, m->root, "per_layer_config");
    const tg_json *types = tg_hf_member(m, m->root, "layer_types");
    if (tg_hf_member(m, m->root, "global_head_dim"))
        TG_TRY(tg_hf_get_int(m, m->root, "global_head_dim", head));
    if (!layers) {
        if (*head == 0) *head = 512;
        return TG_OK;
    }
    size_t n = 0;
    char number[24];
    const tg_json *t = types ? tg_json_first(types) : NULL;
    for (int i = 0; t; t = tg_json_next(t), i++) {
        snprintf(number, sizeof number, "%d", i);
        const tg_json *layer = tg_json_get(layers, number);
        if (!layer || !tg_json_is(t, "full_attention")) continue;
        TG_TRY(read_layer(m, layer, head));
        n++;
    }
    size_t full = 0;
    for (t = types ? tg_json_first(types) : NULL; t; t = tg_json_next(t))
        full += tg_json_is(t, "full_attention");
    if (*head > 0 && n == full && layers->count == n) return TG_OK;
    return tg_fail(
        m->g->ctx, TG_E_UNSUPPORTED,
        "%s: per_layer_config: want a head_dim for each layer of full_attention, and for "
        "no other, have %.60s",
        m->where, TG_JSON_SHOWN(layers));
}

/* One width, or where layers differ a list. */
static tg_status read_mlp(tg_hf_values *m, int64_t layers) {
    int64_t width = 0, shared = 0;
    const tg_json *v = tg_hf_member(m, m->root, "num_kv_shared_layers");
    TG_TRY(tg_hf_get_int(m, m->root, "intermediate_size", &width));
    if (v && (tg_json_int64(NULL, v, &shared) != TG_OK || shared < 0 || shared >= layers))
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: num_kv_shared_layers: want 0..%d, have %.40s",
                       m->where, (int)layers - 1, TG_JSON_SHOWN(v));
    if (width > 131072)
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: intermediate_size: want up to 131072, have %d",
                       m->where, (int)width);
    tg_hf_put_int(m, "attention.shared_kv_layers", shared);
    tg_hf_member(m, m->root, "use_double_wide_mlp");
    if (shared == 0 || !tg_hf_is_on(m->root, "use_double_wide_mlp")) {
        tg_hf_put_int(m, "feed_forward_length", width);
        return TG_OK;
    }
    uint8_t *each = tg_hf_put_ints(m, "feed_forward_length", (size_t)layers);
    for (int64_t i = 0; each && i < layers; i++)
        tg_put_u32(each + 4 * i, (uint32_t)(i < layers - shared ? width : 2 * width));
    return TG_OK;
}

static tg_status read(tg_hf_values *m) {
    int64_t head = 0, layers = 0, vocab = 262144, second = 262144;
    double cap = 0;
    for (size_t i = 0; i < sizeof of_switches / sizeof of_switches[0]; i++)
        tg_hf_member(m, m->root, of_switches[i]);
    const tg_json *both = tg_hf_member(m, m->root, "use_bidirectional_attention");
    if (both && !tg_json_is(both, "vision") && tg_json_kind(both) != TG_JSON_FALSE)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: use_bidirectional_attention: want vision or none, have %.60s", m->where,
                       TG_JSON_SHOWN(both));
    TG_TRY(tg_hf_get_int(m, m->root, "num_hidden_layers", &layers));
    if (layers > 512)
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: num_hidden_layers: want 1..512, have %d",
                       m->where, (int)layers);
    if (tg_hf_member(m, m->root, "vocab_size"))
        TG_TRY(tg_hf_get_int(m, m->root, "vocab_size", &vocab));
    if (tg_hf_member(m, m->root, "vocab_size_per_layer_input"))
        TG_TRY(tg_hf_get_int(m, m->root, "vocab_size_per_layer_input", &second));
    if (vocab != second)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: vocab_size_per_layer_input: want %d, as vocab_size has, have %d",
                       m->where, (int)vocab, (int)second);
    TG_TRY(read_head(m, &head));
    tg_hf_put_int(m, "attention.key_length", head);
    tg_hf_put_int(m, "attention.value_length", head);
    tg_hf_put_int(m, "rope.dimension_count", head);
    TG_TRY(tg_hf_get_float(m, m->root, "final_logit_softcapping", &cap));
    tg_hf_put_float(m, "final_logit_softcapping", cap);
    return read_mlp(m, layers);
}

static int64_t whole(const tg_gguf *g, const char *key) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (v && v->type == TG_GGUF_ARRAY) return v->count ? (int64_t)tg_get_u32(v->elements) : 0;
    return v ? v->whole : 0;
}

static void write(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *mlp = tg_gguf_find(g, "gemma4.feed_forward_length");
    const tg_gguf_value *cap = tg_gguf_find(g, "gemma4.final_logit_softcapping");
    const tg_gguf_tensor *table = tg_gguf_tensor_find(g, "token_embd.weight");
    const bool list = mlp && mlp->type == TG_GGUF_ARRAY && mlp->count > 0;
    tg_hf_write_int(w, "global_head_dim", whole(g, "gemma4.attention.key_length"));
    tg_hf_write_int(w, "intermediate_size", whole(g, "gemma4.feed_forward_length"));
    tg_hf_write_int(w, "num_kv_shared_layers", whole(g, "gemma4.attention.shared_kv_layers"));
    tg_hf_write_int(w, "vocab_size_per_layer_input", table ? (int64_t)table->dim[1] : 0);
    tg_json_key(w, "use_double_wide_mlp");
    tg_json_put_bool(w, list && tg_get_u32(mlp->elements) !=
                                    tg_get_u32(mlp->elements + 4 * (mlp->count - 1)));
    tg_json_key(w, "final_logit_softcapping");
    if (cap && cap->real > 0)
        tg_json_put_real(w, cap->real);
    else
        tg_json_put_null(w);
}

static const tg_hf_family hf = {
    .model_type = "gemma4_text",
    .arch = "gemma4",
    .class = "Gemma4ForCausalLM",
    TG_LIKE_LLAMA,
    .top = top,
    .block = block,
    .beside = beside,
    .sizes = sizes,
    .act_key = "hidden_activation",
    .acts = acts,
    .switches = switches,
    .tied = true,
    .window_every = WINDOW_EVERY,
    .lists_windows = true,
    .local_rope = true,
    .local_base = 1e4,
    .rope_base = 1e6,
    .proportional = 0.25,
    .read = read,
    .write = write,
};

const tg_family tg_family_gemma4 = {
    .name = "gemma4",
    .doc = "Gemma 4 E2B and E4B, of text",
    .label = "Gemma 4",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .windows = true,
    .caps = true,
    .proportional = true,
    .by_layer = true,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
