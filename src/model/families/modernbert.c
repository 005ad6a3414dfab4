/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modernbert.c - the family "modern-bert": ModernBERT, encoders for longer texts (Warner et al.
 * 2024).
 *
 *   x = norm(E[token])
 *   for each layer:  x = x + W_o attention(rope(norm(x) W_qkv))       the first has no norm here
 *                    x = x + W_down (gelu(gates) * values)            of norm(x) W_up
 *   vectors = norm(x)
 *
 * norm is a layer norm without a shift, nothing has a bias, gelu is the exact one. Of so many
 * layers the first sees all of a text, the others a window that reaches half its length to both
 * sides, and these turn by a base of their own. W_up has gates and values one below the other, as
 * W_qkv has its three: the names in files are the parts' own. Facts: transformers'
 * modeling_modernbert.
 */
#include "io/hf/hf.h"
#include "model/net.h"

static tg_value *encode(tg_net *n) {
    const tg_model_config *c = n->config;
    tg_value *x = tg_net_embed(n, n->texts->tokens, "token_embd");
    x = tg_net_norm(n, x, "token_embd_norm");
    for (n->layer = 0; n->layer < c->layers; n->layer++) {
        tg_value *h = n->layer > 0 ? tg_net_norm(n, x, "attn_norm") : x;
        h = tg_net_rope(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, tg_windowed(c, n->layer) ? c->window : 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);

        h = tg_net_linear(n, tg_net_norm(n, x, "ffn_norm"), "ffn_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_GELU_ERF, x, TG_SITE_MLP);
    }
    return tg_net_head(n, x);
}

/* A window of 1 would be a token alone, of which half is nothing. */
static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    c->window_every = 3;
    TG_TRY(tg_config_want_encoder(g, c));
    TG_TRY(tg_config_want_int(g, c, "attention.sliding_window", 1 << 24, &c->window));
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.sliding_window", key), 2, 1 << 24,
                           &c->window));
    TG_TRY(tg_gguf_get_period(g, tg_config_key(c, "attention.sliding_window_pattern", key),
                              (size_t)c->layers, &c->window_every));
    return tg_gguf_get_float(g, tg_config_key(c, "rope.freq_base_swa", key), &c->rope_base[1]);
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_embd_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, TG_WANT_NOT_FIRST },
    { "blk.%d.attn_qkv.weight", TG_SIZE_QKV, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_SIZE_GATE_UP, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    TG_RANK_WANTS,
};

static const tg_hf_name top[] = {
    { "embeddings.tok_embeddings", "token_embd", 0 },
    { "embeddings.norm", "token_embd_norm", 0 },
    { "final_norm", "output_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
    { "attn_norm", "attn_norm", 0 },
    { "attn.Wqkv", "attn_qkv", 0 },
    { "attn.Wo", "attn_output", 0 },
    { "mlp_norm", "ffn_norm", 0 },
    { "mlp.Wi", "ffn_up", 0 },
    { "mlp.Wo", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name rank[] = {
    { "head.dense", "cls", 0 },
    { "head.norm", "cls.norm", 0 },
    { "classifier", "cls.output", 0 },
    { NULL, NULL, 0 },
};
/* The head that guesses hidden words. */
static const char *const ignored[] = { "head.dense.weight", "head.norm.weight", "decoder.weight",
                                       "decoder.bias", NULL };
static const char *const acts[] = { "gelu", NULL };
static const char *const switches[] = { "norm_bias", "rope_scaling", NULL };
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "intermediate_size", "feed_forward_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { "local_attention", "attention.sliding_window", 128 },
    { NULL, NULL, 0 },
};

static const tg_hf_family hf = {
    .model_type = "modernbert",
    .arch = "modern-bert",
    .class = "ModernBertModel",
    .prefix = "model.",
    .layers = "layers.",
    .top = top,
    .block = block,
    .ignored = ignored,
    .sizes = sizes,
    .eps_theirs = "norm_eps",
    .eps_ours = "attention.layer_norm_epsilon",
    .eps = 1e-5,
    .act_key = "hidden_activation",
    .acts = acts,
    .switches = switches,
    .rope = true,
    .rope_base = 160000,
    .base_key = "global_rope_theta",
    .local_rope = true,
    .local_base = 1e4,
    .local_key = "local_rope_theta",
    .window_every = 3,
    .every_key = "global_attn_every_n_layers",
    .first_sees_all = true,
    .positions = "sans_pos",
    .encoder = true,
    .rank = rank,
    .rank_class = "ModernBertForSequenceClassification",
    .rank_pooling = "classifier_pooling",
};

const tg_family tg_family_modernbert = {
    .name = "modern-bert",
    .doc = "ModernBERT: embeddings",
    .label = "ModernBERT",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .windows = true,
    .first_sees_all = true,
    .rank = TG_RANK_GELU_NORM,
    .layer_norms = true,
    .config = config,
    .encode = encode,
};
