/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_families.c - what transformers calls the parts of the families, and what GGUF does.
 */
#include "io/hf.h"

/* ------------------------------------------------------------- Llama, Qwen 2, Qwen 3, Gemma 3 */

static const tg_hf_name llama_top[] = {
    { "embed_tokens", "token_embd", 0 },
    { "norm", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
#define LLAMA_LAYER                                                                                \
    { "self_attn.q_proj", "attn_q", 0 }, { "self_attn.k_proj", "attn_k", 0 },                      \
        { "self_attn.v_proj", "attn_v", 0 }, { "self_attn.o_proj", "attn_output", 0 },             \
        { "self_attn.q_norm", "attn_q_norm", 0 }, { "self_attn.k_norm", "attn_k_norm", 0 },        \
        { "mlp.gate_proj", "ffn_gate", 0 }, { "mlp.up_proj", "ffn_up", 0 },                        \
        { "mlp.down_proj", "ffn_down", 0 }
static const tg_hf_name llama_block[] = {
    LLAMA_LAYER,
    { "input_layernorm", "attn_norm", 0 },
    { "post_attention_layernorm", "ffn_norm", 0 },
    { NULL, NULL, 0 },
};
static const char *const llama_ignored[] = { "rotary_emb.inv_freq", NULL };
static const char *const silu[] = { "silu", NULL };
static const char *const llama_switches[] = { "use_sliding_window", "mlp_bias", NULL };

#define LLAMA_SIZES(head)                                                                          \
    { "vocab_size", "vocab_size", -1 }, { "num_hidden_layers", "block_count", 0 },                 \
        { "hidden_size", "embedding_length", 0 },                                                  \
        { "intermediate_size", "feed_forward_length", 0 },                                         \
        { "max_position_embeddings", "context_length", 0 },                                        \
        { "num_attention_heads", "attention.head_count", 0 },                                      \
        { "num_key_value_heads", "attention.head_count_kv", -1 },                                  \
        { "head_dim", "attention.key_length", head }, {                                            \
        "head_dim", "attention.value_length", head                                                 \
    }
static const tg_hf_size llama_sizes[] = { LLAMA_SIZES(-1), { NULL, NULL, 0 } };
static const tg_hf_size qwen3_sizes[] = { LLAMA_SIZES(128), { NULL, NULL, 0 } };
static const tg_hf_size gemma3_sizes[] = { LLAMA_SIZES(256),
                                           { "sliding_window", "attention.sliding_window", 4096 },
                                           { NULL, NULL, 0 } };

static const tg_hf_name gemma3_top[] = {
    { "embed_tokens", "token_embd", 0 },
    { "norm", "output_norm", TG_HF_PLUS_ONE },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name gemma3_block[] = {
    { "self_attn.q_norm", "attn_q_norm", TG_HF_PLUS_ONE },
    { "self_attn.k_norm", "attn_k_norm", TG_HF_PLUS_ONE },
    LLAMA_LAYER,
    { "input_layernorm", "attn_norm", TG_HF_PLUS_ONE },
    { "post_attention_layernorm", "post_attention_norm", TG_HF_PLUS_ONE },
    { "pre_feedforward_layernorm", "ffn_norm", TG_HF_PLUS_ONE },
    { "post_feedforward_layernorm", "post_ffw_norm", TG_HF_PLUS_ONE },
    { NULL, NULL, 0 },
};
static const char *const gelu_tanh[] = { "gelu_pytorch_tanh", NULL };
static const char *const gemma3_switches[] = { "use_bidirectional_attention",
                                               "attn_logit_softcapping", "final_logit_softcapping",
                                               NULL };

/* ---------------------------------------------------------------------------------------- GPT-2 */

static const tg_hf_name gpt2_top[] = {
    { "wte", "token_embd", 0 },
    { "wpe", "position_embd", 0 },
    { "ln_f", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name gpt2_block[] = {
    { "ln_1", "attn_norm", 0 },
    { "ln_2", "ffn_norm", 0 },
    { "attn.c_attn", "attn_qkv", TG_HF_TURNED },
    { "attn.c_proj", "attn_output", TG_HF_TURNED },
    { "mlp.c_fc", "ffn_up", TG_HF_TURNED },
    { "mlp.c_proj", "ffn_down", TG_HF_TURNED },
    { NULL, NULL, 0 },
};
static const char *const gpt2_ignored[] = { ".attn.bias", ".attn.masked_bias", NULL };
static const char *const gpt2_acts[] = { "gelu_new", "gelu_pytorch_tanh", "gelu", NULL };
static const char *const gpt2_switches[] = { "scale_attn_by_inverse_layer_idx",
                                             "add_cross_attention", NULL };
static const tg_hf_size gpt2_sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "n_layer", "block_count", 0 },
    { "n_embd", "embedding_length", 0 },
    { "n_inner", "feed_forward_length", -1 },
    { "n_positions", "context_length", 0 },
    { "n_head", "attention.head_count", 0 },
    { NULL, NULL, 0 },
};

/* ----------------------------------------------------------------------------------------- BERT */

static const tg_hf_name bert_top[] = {
    { "embeddings.word_embeddings", "token_embd", 0 },
    { "embeddings.position_embeddings", "position_embd", 0 },
    { "embeddings.token_type_embeddings", "token_types", 0 },
    { "embeddings.LayerNorm", "token_embd_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name bert_block[] = {
    { "attention.self.query", "attn_q", 0 },
    { "attention.self.key", "attn_k", 0 },
    { "attention.self.value", "attn_v", 0 },
    { "attention.output.dense", "attn_output", 0 },
    { "attention.output.LayerNorm", "attn_output_norm", 0 },
    { "intermediate.dense", "ffn_up", 0 },
    { "output.dense", "ffn_down", 0 },
    { "output.LayerNorm", "layer_output_norm", 0 },
    { NULL, NULL, 0 },
};
static const char *const bert_ignored[] = { "embeddings.position_ids", "pooler.dense.weight",
                                            "pooler.dense.bias", NULL };
static const char *const bert_acts[] = { "gelu", NULL };
static const char *const bert_switches[] = { "is_decoder", "add_cross_attention", NULL };
static const tg_hf_size bert_sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "intermediate_size", "feed_forward_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { NULL, NULL, 0 },
};

#define LIKE_LLAMA                                                                                 \
    .prefix = "model.", .layers = "layers.", .eps_theirs = "rms_norm_eps",                         \
    .eps_ours = "attention.layer_norm_rms_epsilon", .eps = 1e-6, .rope = true, .head = "lm_head",  \
    .ignored = llama_ignored

/* Llama's own layers, too, which Qwen has as well. */
#define LAYERS_OF_LLAMA                                                                            \
    LIKE_LLAMA, .top = llama_top, .block = llama_block, .act_key = "hidden_act", .acts = silu,     \
        .switches = llama_switches

const tg_hf_family tg_hf_families[] = {
    { .model_type = "llama", .arch = "llama", LAYERS_OF_LLAMA, .sizes = llama_sizes },
    { .model_type = "qwen2", .arch = "qwen2", LAYERS_OF_LLAMA, .sizes = llama_sizes },
    { .model_type = "qwen3", .arch = "qwen3", LAYERS_OF_LLAMA, .sizes = qwen3_sizes },
    { .model_type = "gemma3_text",
      .arch = "gemma3",
      LIKE_LLAMA,
      .top = gemma3_top,
      .block = gemma3_block,
      .sizes = gemma3_sizes,
      .act_key = "hidden_activation",
      .acts = gelu_tanh,
      .switches = gemma3_switches,
      .tied = true,
      .windows = true },
    { .model_type = "gpt2",
      .arch = "gpt2",
      .prefix = "transformer.",
      .layers = "h.",
      .top = gpt2_top,
      .block = gpt2_block,
      .ignored = gpt2_ignored,
      .sizes = gpt2_sizes,
      .eps_theirs = "layer_norm_epsilon",
      .eps_ours = "attention.layer_norm_epsilon",
      .eps = 1e-5,
      .act_key = "activation_function",
      .acts = gpt2_acts,
      .switches = gpt2_switches,
      .tied = true,
      .head = "lm_head" },
    { .model_type = "bert",
      .arch = "bert",
      .prefix = "bert.",
      .layers = "encoder.layer.",
      .top = bert_top,
      .block = bert_block,
      .ignored = bert_ignored,
      .sizes = bert_sizes,
      .eps_theirs = "layer_norm_eps",
      .eps_ours = "attention.layer_norm_epsilon",
      .eps = 1e-12,
      .act_key = "hidden_act",
      .acts = bert_acts,
      .switches = bert_switches },
};
const size_t tg_n_hf_families = sizeof tg_hf_families / sizeof tg_hf_families[0];
