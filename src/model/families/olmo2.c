/* SPDX-License-Identifier: Apache-2.0 */
/*
 * olmo2.c - the family "olmo2" (OLMo 2 and 3).
 *
 *   x = E[token]
 *   for each layer:  x = x + norm(W_o attention(rope(x W_qkv)))
 *                    x = x + norm(W_down (silu(x W_gate) * (x W_up)))
 *   logits = norm(x) W, of a matrix of its own or E^T
 *
 * Norms come behind each branch alone, and before the rotation, of all heads of queries together
 * and of all of keys. Three layers of four of OLMo 3 see a window; where positions are stretched,
 * these are not. Facts: transformers' modeling_olmo2, modeling_olmo3.
 */
#include "model/families/llama.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_rope(n, tg_net_linear(n, x, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, tg_windowed(n->config, n->layer) ? n->config->window : 0);
        h = tg_net_linear(n, h, "attn_output", TG_READ_PLAIN);
        x = tg_net_norm_add(n, h, "post_attention_norm", x, TG_SITE_ATTENTION);

        h = tg_net_linear(n, x, "ffn_gate_up", TG_READ_PLAIN);
        h = tg_net_linear(n, h, "ffn_down", TG_READ_SILU);
        x = tg_net_norm_add(n, h, "post_ffw_norm", x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

enum { WINDOW_EVERY = 4 };

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.sliding_window", key), 0, 1 << 24,
                           &c->window));
    if (c->window > 0) c->window_every = WINDOW_EVERY;
    TG_TRY(tg_gguf_get_period(g, tg_config_key(c, "attention.sliding_window_pattern", key),
                              (size_t)c->layers, &c->window_every));
    c->rope_base[1] = c->rope_base[0];
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.freq_base_swa", key), &c->rope_base[1]));
    return tg_config_read_scaling(g, c);
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_QUERIES, 0 },
    { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_KEYS, 0 },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.post_attention_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    { "blk.%d.post_ffw_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    if (c->window > 0 && c->window_every == 0) c->window_every = WINDOW_EVERY;
    if (c->rope_base[0] == 0) c->rope_base[0] = 5e5f;
    if (c->rope_base[1] == 0) c->rope_base[1] = c->rope_base[0];
}

static const tg_hf_name top[] = { TG_LLAMA_TOP(0) };
static const tg_hf_name block[] = {
    TG_LLAMA_LAYER,
    { "post_attention_layernorm", "post_attention_norm", 0 },
    { "post_feedforward_layernorm", "post_ffw_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(-1), { NULL, NULL, 0 } };
static const tg_hf_size sizes3[] = { TG_LLAMA_SIZES(-1),
                                     { "sliding_window", "attention.sliding_window", 4096 },
                                     { NULL, NULL, 0 } };
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "attention_bias", NULL };

#define HF(n, sizes_table, ...)                                                                    \
    static const tg_hf_family hf##n = { .model_type = "olmo" #n,                                   \
                                        .arch = "olmo2",                                           \
                                        .class = "Olmo" #n "ForCausalLM",                          \
                                        TG_LIKE_LLAMA_OF(1e-5),                                    \
                                        .top = top,                                                \
                                        .block = block,                                            \
                                        .sizes = sizes_table,                                      \
                                        .act_key = "hidden_act",                                   \
                                        .acts = acts,                                              \
                                        .switches = switches,                                      \
                                        __VA_ARGS__ }
HF(2, sizes, .rope_base = 1e4);
HF(3, sizes3, .rope_base = 5e5, .window_every = WINDOW_EVERY, .local_rope = true,
   .local_base = 5e5);

const tg_family tg_family_olmo2 = {
    .name = "olmo2",
    .doc = "OLMo 2 and 3",
    .label = "OLMo 2",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf2, &hf3 },
    .fresh = true,
    .windows = true,
    .complete = complete,
    .config = config,
    .graph = graph,
};
