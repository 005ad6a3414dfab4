/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lfm2.c - the family "lfm2" (LFM2 and LFM2.5).
 *
 *   x = E[token]
 *   for each layer:  x = x + W_out short_conv(norm(x) W_in), or, in layers of attention,
 *                    x = x + W_o attention(rope(norm(x) W_qkv))
 *                    x = x + W_down (silu(norm(x) W_gate) * (norm(x) W_up))
 *   logits = norm(x) E^T
 *
 * Most layers are gated short convolutions (ops/short_conv); the others have Qwen 3's attention.
 * The final norm is named after the embedding. Facts: transformers' modeling_lfm2.
 */
#include "model/families/llama.h"
#include "model/metadata_put.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        const bool conv = tg_layer_kind_of(n->config, n->layer) == TG_LAYER_CONV;
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_linear(n, h, conv ? "shortconv.in_proj" : "attn_qkv", TG_READ_PLAIN);
        h = conv ? tg_net_short_conv(n, h, "shortconv.conv")
                 : tg_net_attention(n, tg_net_rope(n, h), 0);
        x = tg_net_project(n, h, conv ? "shortconv.out_proj" : "attn_output", TG_READ_PLAIN, x,
                           TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "ffn_norm");
        h = tg_net_linear(n, h, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "shortconv.l_cache", key), 2, TG_CONV_TAPS_MAX,
                           &c->conv_taps));
    if (c->conv_taps == 0) return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s is missing", g->path, key);
    return tg_config_read_scaling(g, c);
}

static void put(tg_metadata *m) {
    tg_config_put_kv_heads(m);
    tg_config_put_int(m, "shortconv.l_cache", m->c->conv_taps);
    tg_config_put_attention(m);
}

#define ATTENTION TG_WANT_IN_ATTENTION
#define CONV      TG_WANT_IN_CONV
static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_embd_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, NULL, "output_norm.weight" },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, ATTENTION },
    { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, ATTENTION },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, ATTENTION | TG_WANT_BRANCH },
    { "blk.%d.shortconv.in_proj.weight", TG_SIZE_CONV_IN, TG_SIZE_WIDTH, CONV },
    { "blk.%d.shortconv.conv.weight", TG_SIZE_WIDTH, TG_SIZE_TAPS,
      CONV | TG_WANT_FLOATS | TG_WANT_TAPS },
    { "blk.%d.shortconv.out_proj.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, CONV | TG_WANT_BRANCH },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    if (c->conv_taps == 0) c->conv_taps = 3;
    if (c->rope_base[0] == 0) c->rope_base[0] = 1e6f;
}

static const tg_hf_name top[] = { { "embed_tokens", "token_embd", 0 },
                                  { "embedding_norm", "token_embd_norm", 0 },
                                  { "lm_head", "output", 0 },
                                  { NULL, NULL, 0 } };
static const tg_hf_name block[] = {
    { "operator_norm", "attn_norm", 0 },
    { "self_attn.q_proj", "attn_q", 0 },
    { "self_attn.k_proj", "attn_k", 0 },
    { "self_attn.v_proj", "attn_v", 0 },
    { "self_attn.q_layernorm", "attn_q_norm", 0 },
    { "self_attn.k_layernorm", "attn_k_norm", 0 },
    { "self_attn.out_proj", "attn_output", 0 },
    { "conv.in_proj", "shortconv.in_proj", 0 },
    { "conv.conv", "shortconv.conv", TG_HF_CHANNELS },
    { "conv.out_proj", "shortconv.out_proj", 0 },
    { "ffn_norm", "ffn_norm", 0 },
    { "feed_forward.w1", "ffn_gate", 0 },
    { "feed_forward.w3", "ffn_up", 0 },
    { "feed_forward.w2", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { "conv_L_cache", "shortconv.l_cache", 0 },
    { NULL, NULL, 0 },
};
static const char *const switches[] = { "conv_bias", NULL };

/* The width of the MLP, which a switch has made of the one that is stated. */
static tg_status read_mlp(tg_hf_values *m) {
    const tg_json *old = tg_hf_member(m, m->root, "block_ff_dim");
    const tg_json *adjust = tg_hf_member(m, m->root, "block_auto_adjust_ff_dim");
    int64_t mlp = 0, of = 256;
    double factor = 1;
    TG_TRY(tg_hf_get_int(m, m->root, old ? "block_ff_dim" : "intermediate_size", &mlp));
    tg_hf_member(m, m->root, "intermediate_size");
    TG_TRY(tg_hf_get_float(m, m->root, "block_ffn_dim_multiplier", &factor));
    if (tg_hf_member(m, m->root, "block_multiple_of"))
        TG_TRY(tg_hf_get_int(m, m->root, "block_multiple_of", &of));
    if (!adjust || tg_json_kind(adjust) == TG_JSON_TRUE) {
        const double wide = factor * (double)(2 * mlp / 3);
        mlp = wide < INT32_MAX ? ((int64_t)wide + of - 1) / of * of : INT32_MAX;
    }
    tg_hf_put_int(m, "feed_forward_length", mlp);
    return TG_OK;
}

static void write_mlp(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *mlp = tg_gguf_find(g, "lfm2.feed_forward_length");
    tg_json_key(w, "intermediate_size");
    tg_json_put_int(w, mlp ? mlp->whole : 0);
    tg_json_key(w, "block_auto_adjust_ff_dim");
    tg_json_put_bool(w, false);
}

static const tg_hf_family hf = {
    .model_type = "lfm2",
    .arch = "lfm2",
    .class = "Lfm2ForCausalLM",
    .prefix = "model.",
    .layers = "layers.",
    .top = top,
    .block = block,
    .ignored = tg_llama_ignored,
    .sizes = sizes,
    .eps_theirs = "norm_eps",
    .eps_ours = "attention.layer_norm_rms_epsilon",
    .eps = 1e-5,
    .switches = switches,
    .tied = true,
    .rope = true,
    .head = "lm_head",
    .other_layer = "conv",
    .read = read_mlp,
    .write = write_mlp,
};

const tg_family tg_family_lfm2 = {
    .name = "lfm2",
    .doc = "LFM2 and 2.5",
    .label = "LFM2",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .other = TG_LAYER_CONV,
    .attention_every = 3,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
