/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama.h - what families have of Llama: its graph, and what transformers calls its parts, as rows
 * of a family's tables (io/hf/hf.h).
 */
#ifndef TG_MODEL_LLAMA_H
#define TG_MODEL_LLAMA_H

#include "io/hf/hf.h"
#include "model/net.h"

/* tg_family.graph: see llama.c. */
tg_value *tg_llama_graph(tg_net *n, tg_value *tokens);

/* flags: of the norm */
#define TG_LLAMA_TOP(flags)                                                                        \
    { "embed_tokens", "token_embd", 0 }, { "norm", "output_norm", flags },                         \
        { "lm_head", "output", 0 }, { NULL, NULL, 0 }

#define TG_LLAMA_LAYER                                                                             \
    { "self_attn.q_proj", "attn_q", 0 }, { "self_attn.k_proj", "attn_k", 0 },                      \
        { "self_attn.v_proj", "attn_v", 0 }, { "self_attn.o_proj", "attn_output", 0 },             \
        { "self_attn.q_norm", "attn_q_norm", 0 }, { "self_attn.k_norm", "attn_k_norm", 0 },        \
        { "mlp.gate_proj", "ffn_gate", 0 }, { "mlp.up_proj", "ffn_up", 0 },                        \
        { "mlp.down_proj", "ffn_down", 0 }

/* head: the size of a head where config.json has none; -1: it follows from the width */
#define TG_LLAMA_SIZES(head)                                                                       \
    { "vocab_size", "vocab_size", -1 }, { "num_hidden_layers", "block_count", 0 },                 \
        { "hidden_size", "embedding_length", 0 },                                                  \
        { "intermediate_size", "feed_forward_length", 0 },                                         \
        { "max_position_embeddings", "context_length", 0 },                                        \
        { "num_attention_heads", "attention.head_count", 0 },                                      \
        { "num_key_value_heads", "attention.head_count_kv", -1 },                                  \
        { "head_dim", "attention.key_length", head }, {                                            \
        "head_dim", "attention.value_length", head                                                 \
    }

static const char *const tg_llama_ignored[] = { "rotary_emb.inv_freq", NULL };

#define TG_LIKE_LLAMA TG_LIKE_LLAMA_OF(1e-6)
/* eps: where config.json has none */
#define TG_LIKE_LLAMA_OF(default_eps)                                                              \
    .prefix = "model.", .layers = "layers.", .eps_theirs = "rms_norm_eps",                         \
    .eps_ours = "attention.layer_norm_rms_epsilon", .eps = default_eps, .rope = true,              \
    .head = "lm_head", .ignored = tg_llama_ignored

#endif
