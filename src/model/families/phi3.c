/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phi3.c - the family "phi3" (Phi-3, Phi-3.5 and Phi-4 mini).
 *
 * Its graph is Llama's; queries, keys and values lie in one tensor, as do gate and up; and all
 * layers see a window. Variants with a context of 131,072 divide their frequencies by factors that
 * depend on the length of a text (longrope), and of Phi-4's heads three quarters turn. Facts:
 * transformers' modeling_phi3.
 */
#include "model/families/llama.h"

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.sliding_window", key), 0, 1 << 24,
                           &c->window));
    return tg_config_read_scaling(g, c);
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_qkv.weight", TG_SIZE_QKV, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_SIZE_GATE_UP, TG_SIZE_WIDTH, 0, NULL, "ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
};

static void complete(tg_model_config *c) {
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
}

static const tg_hf_name top[] = { TG_LLAMA_TOP(0) };
static const tg_hf_name block[] = {
    { "self_attn.qkv_proj", "attn_qkv", 0 },
    { "self_attn.o_proj", "attn_output", 0 },
    { "mlp.gate_up_proj", "ffn_up", 0 },
    { "mlp.down_proj", "ffn_down", 0 },
    { "input_layernorm", "attn_norm", 0 },
    { "post_attention_layernorm", "ffn_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(-1),
                                    { "sliding_window", "attention.sliding_window", -1 },
                                    { NULL, NULL, 0 } };
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { NULL };

static const tg_hf_family hf = {
    .model_type = "phi3",
    .arch = "phi3",
    .class = "Phi3ForCausalLM",
    TG_LIKE_LLAMA,
    .top = top,
    .block = block,
    .sizes = sizes,
    .act_key = "hidden_act",
    .acts = acts,
    .switches = switches,
    .longrope = true,
    .part = 1,
};

const tg_family tg_family_phi3 = {
    .name = "phi3",
    .doc = "Phi 3, 3.5 and 4 mini",
    .label = "Phi 3",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .windows = true,
    .partial = true,
    .complete = complete,
    .config = config,
    .graph = tg_llama_graph,
};
