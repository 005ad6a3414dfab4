/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bert.c - the family "bert": encoders, whose vectors become the embedding of a text (MiniLM).
 *
 *   x = norm(E[token] + P[position] + S[0])
 *   for each layer:  x = norm(x + W_o attention(x W_qkv + b) + b_o)
 *                    x = norm(x + W_down gelu(x W_up + b) + b_down)
 *
 * norm is the layer norm, and comes behind each branch; attention sees a whole text, both ways;
 * gelu is the exact one. S tells the two texts of a pair apart, which rerankers read. Facts:
 * transformers' modeling_bert.
 */
#include "io/hf/hf.h"
#include "model/net.h"

static tg_value *layer_of(tg_net *n, tg_value *x) {
    tg_value *h = tg_net_attention(n, tg_net_linear(n, x, "attn_qkv", TG_READ_PLAIN), 0);
    x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);
    x = tg_net_norm(n, x, "attn_output_norm");

    h = tg_gelu(n->g, tg_net_linear(n, x, "ffn_up", TG_READ_PLAIN), TG_ACT_GELU_ERF);
    x = tg_net_project(n, h, "ffn_down", TG_READ_PLAIN, x, TG_SITE_MLP);
    return tg_net_norm(n, x, "layer_output_norm");
}

static tg_value *encode(tg_net *n) {
    const tg_net_texts *in = n->texts;
    tg_value *x = tg_net_embed(n, in->tokens, "token_embd");
    tg_value *p = tg_net_embed(n, in->positions, "position_embd");
    tg_value *kind = tg_net_embed(n, in->kinds, "token_types");
    x = tg_net_norm(n, tg_add(n->g, tg_add(n->g, x, kind), p), "token_embd_norm");
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) x = layer_of(n, x);
    return x;
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "position_embd.weight", TG_SIZE_CTX, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_types.weight", TG_SIZE_TWO, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_embd_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "token_embd_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_q.bias", TG_SIZE_ONE, TG_SIZE_QUERIES, 0, "blk.%d.attn_qkv.bias" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.bias", TG_SIZE_ONE, TG_SIZE_KEYS, 0, "blk.%d.attn_qkv.bias" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.bias", TG_SIZE_ONE, TG_SIZE_KEYS, 0, "blk.%d.attn_qkv.bias" },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.attn_output.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.bias", TG_SIZE_ONE, TG_SIZE_MLP, 0 },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    { "blk.%d.ffn_down.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.layer_output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.layer_output_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    TG_RANK_WANTS,
};

static const tg_hf_name top[] = {
    { "embeddings.word_embeddings", "token_embd", 0 },
    { "embeddings.position_embeddings", "position_embd", 0 },
    { "embeddings.token_type_embeddings", "token_types", 0 },
    { "embeddings.LayerNorm", "token_embd_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
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
static const tg_hf_name rank[] = {
    { "pooler.dense", "cls", TG_HF_WITHIN },
    { "classifier", "cls.output", 0 },
    { NULL, NULL, 0 },
};
static const char *const ignored[] = { "embeddings.position_ids", "pooler.dense.weight",
                                       "pooler.dense.bias", NULL };
static const char *const acts[] = { "gelu", NULL };
static const char *const switches[] = { "is_decoder", "add_cross_attention", NULL };
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "intermediate_size", "feed_forward_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { NULL, NULL, 0 },
};

static const tg_hf_family hf = {
    .model_type = "bert",
    .arch = "bert",
    .class = "BertModel",
    .prefix = "bert.",
    .layers = "encoder.layer.",
    .top = top,
    .block = block,
    .ignored = ignored,
    .sizes = sizes,
    .eps_theirs = "layer_norm_eps",
    .eps_ours = "attention.layer_norm_epsilon",
    .eps = 1e-12,
    .act_key = "hidden_act",
    .acts = acts,
    .switches = switches,
    .encoder = true,
    .rank = rank,
    .rank_class = "BertForSequenceClassification",
};

const tg_family tg_family_bert = {
    .name = "bert",
    .doc = "BERT, MiniLM: embeddings",
    .label = "BERT",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .rank = TG_RANK_TANH,
    .config = tg_config_want_encoder,
    .encode = encode,
};
