/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama.c - the families "llama" (Llama 2 and 3, SmolLM2, Mistral), "smollm3", "qwen2" and "qwen3".
 *
 *   x = E[token]
 *   for each layer:  x = x + W_o attention(rope(norm(x) W_qkv (+ b)))
 *                    x = x + W_down (silu(norm(x) W_gate) * (norm(x) W_up))
 *   logits = norm(x) E^T, or a matrix of its own in E's place
 *
 * norm is the RMS norm, attention is grouped; layers of Mistral see a window. qwen2 has biases on
 * queries, keys and values, as others may have, qwen3 a norm on each head before its rotation, and
 * in each fourth layer of smollm3 nothing turns. Llama's files pair neighbouring rows of queries
 * and keys; Llama 3 stretches its frequencies by factors that are in the file (rope_freqs). Facts:
 * transformers' modeling_llama, modeling_mistral, modeling_smollm3, modeling_qwen2, modeling_qwen3.
 */
#include "model/families/llama.h"

tg_value *tg_llama_graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_rope(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, tg_windowed(n->config, n->layer) ? n->config->window : 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "ffn_norm");
        h = tg_net_linear(n, h, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* A window as long as the context hides nothing; a shorter one does, of Llama's alone. Factors of
 * each frequency (rope_freqs) are read with the weights. */
static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    int32_t window = 0;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.sliding_window", key), 0, INT32_MAX,
                           &window));
    if (window < c->ctx && tg_family_of(c)->windows)
        c->window = window;
    else if (window > 0 && window < c->ctx)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: %s: want 0, or the context of %d at least, have %d", g->path, key,
                       (int)c->ctx, (int)window);
    return tg_config_read_scaling(g, c);
}

#define MATRICES(pairs)                                                                            \
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },                          \
        { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                                   \
        { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                       \
        { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                              \
        { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, pairs,                           \
          "blk.%d.attn_qkv.weight" },                                                              \
        { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, pairs, "blk.%d.attn_qkv.weight" },  \
        { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },      \
        { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },           \
        { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                               \
        { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },  \
        { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" }, {  \
        "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH                       \
    }

#define BIASES(pairs, qkv)                                                                         \
    { "blk.%d.attn_q.bias", TG_SIZE_ONE, TG_SIZE_QUERIES, pairs | (qkv), "blk.%d.attn_qkv.bias" }, \
        { "blk.%d.attn_k.bias", TG_SIZE_ONE, TG_SIZE_KEYS, pairs | (qkv),                          \
          "blk.%d.attn_qkv.bias" },                                                                \
        { "blk.%d.attn_v.bias", TG_SIZE_ONE, TG_SIZE_KEYS, qkv, "blk.%d.attn_qkv.bias" }
#define MORE_BIASES                                                                                \
    { "blk.%d.attn_output.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, TG_WANT_BIAS_OUT },                   \
        { "blk.%d.ffn_gate.bias", TG_SIZE_ONE, TG_SIZE_MLP, TG_WANT_BIAS_MLP,                      \
          "blk.%d.ffn_gate_up.bias" },                                                             \
        { "blk.%d.ffn_up.bias", TG_SIZE_ONE, TG_SIZE_MLP, TG_WANT_BIAS_MLP,                        \
          "blk.%d.ffn_gate_up.bias" },                                                             \
    {                                                                                              \
        "blk.%d.ffn_down.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, TG_WANT_BIAS_MLP                       \
    }

static const tg_want llama[] = { MATRICES(TG_WANT_ROPE_PAIRS),
                                 BIASES(TG_WANT_ROPE_PAIRS, TG_WANT_BIAS_QKV), MORE_BIASES };
static const tg_want qwen2[] = {
    MATRICES(0),
    BIASES(0, 0),
};
static const tg_want qwen3[] = {
    MATRICES(0),
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, 0 },
    { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, 0 },
    BIASES(0, TG_WANT_BIAS_QKV),
    MORE_BIASES,
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
}

/* Qwen has the same layers, with what it has more. */
static const tg_hf_name top[] = { TG_LLAMA_TOP(0) };
static const tg_hf_name block[] = {
    TG_LLAMA_LAYER,
    { "input_layernorm", "attn_norm", 0 },
    { "post_attention_layernorm", "ffn_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(-1), { NULL, NULL, 0 } };
static const tg_hf_size sizes_of_128[] = { TG_LLAMA_SIZES(128), { NULL, NULL, 0 } };
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "use_sliding_window", NULL };
/* Without a key Mistral's layers see a window; null says that they see all. */
static const tg_hf_size sizes_of_mistral[] = {
    TG_LLAMA_SIZES(-1), { "sliding_window", "attention.sliding_window", 4096 }, { NULL, NULL, 0 }
};

#define HF(id, type, class_name, sizes_table, ...)                                                 \
    static const tg_hf_family hf_##type = { .model_type = #type,                                   \
                                            .arch = #id,                                           \
                                            .class = class_name,                                   \
                                            TG_LIKE_LLAMA,                                         \
                                            .top = top,                                            \
                                            .block = block,                                        \
                                            .sizes = sizes_table,                                  \
                                            .act_key = "hidden_act",                               \
                                            .acts = acts,                                          \
                                            .switches = switches,                                  \
                                            __VA_ARGS__ }
#define FAMILY(id, wants_table, short_name, text, ...)                                             \
    const tg_family tg_family_##id = { .name = #id,                                                \
                                       .doc = text,                                                \
                                       .label = short_name,                                        \
                                       .wants = wants_table,                                       \
                                       .n_wants = sizeof wants_table / sizeof wants_table[0],      \
                                       .fresh = true,                                              \
                                       .complete = complete,                                       \
                                       .config = config,                                           \
                                       .graph = tg_llama_graph,                                    \
                                       __VA_ARGS__ }
HF(llama, llama, "LlamaForCausalLM", sizes, .says_biases = true);
HF(llama, mistral, "MistralForCausalLM", sizes_of_mistral, .all_windowed = true);
HF(smollm3, smollm3, "SmolLM3ForCausalLM", sizes, .says_biases = true, .tied = true,
   .still_every = 4, .rope_base = 2e6);
HF(qwen2, qwen2, "Qwen2ForCausalLM", sizes, .always_biases = true);
HF(qwen3, qwen3, "Qwen3ForCausalLM", sizes_of_128, .says_biases = true);
FAMILY(llama, llama, "Llama", "Llama 2 and 3, SmolLM2, Mistral", .hf = { &hf_llama, &hf_mistral },
       .windows = true);
FAMILY(smollm3, llama, "SmolLM 3", "SmolLM3", .hf = { &hf_smollm3 }, .still_every = 4);
FAMILY(qwen2, qwen2, "Qwen 2", "Qwen 2 and 2.5", .hf = { &hf_qwen2 });
FAMILY(qwen3, qwen3, "Qwen 3", "Qwen 3", .hf = { &hf_qwen3 });
