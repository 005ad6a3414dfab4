/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt.c - the families "tinygpt", the byte GPT of the original TinyGPT, and "gpt2", of any
 * vocabulary.
 *
 *   x = E[token] + P[position]
 *   for each layer:  x = x + W_o attention(norm(x) W_qkv + b_qkv) + b_o
 *                    x = x + W_down gelu(norm(x) W_up + b_up) + b_down
 *   logits = norm(x) E^T, or a matrix of its own in E's place
 *
 * Pre-norm, LayerNorm, scale 1/sqrt(D), no dropout (Radford et al. 2019; transformers'
 * modeling_gpt2). The gelu of tinygpt is the exact one, that of gpt2 the one by tanh, unless its
 * file says otherwise. Matrices of tinygpt lie as [in,out] (y = x W), in memory and in files alike.
 */
#include "io/hf/hf.h"
#include "model/metadata_put.h"
#include "model/net.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    const int gelu = n->config->gelu_erf ? TG_ACT_GELU_ERF : TG_ACT_GELU_TANH;
    tg_value *x = tg_net_positions(n, tg_net_embed(n, tokens, "token_embd"), "position_embd");
    x = tg_net_tap(n, TG_SITE_STREAM, x);
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_attention(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN), 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "ffn_norm");
        h = tg_gelu(n->g, tg_net_linear(n, h, "ffn_up", TG_READ_PLAIN), gelu);
        x = tg_net_project(n, h, "ffn_down", TG_READ_PLAIN, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* Queries, keys and values of tinygpt are three tensors in files and one parameter here, as one
 * product then serves the three: its rows are read once, and it is three times as wide, which suits
 * the register tile of small models. A row of "attn.qkv.weight" is
 *
 *     | q_proj row: C | k_proj row: C | v_proj row: C |
 */
#define QKV(x)   "blocks.%d.attn.qkv." x, "attn_qkv." x
#define MATRIX   TG_WANT_IN_OUT
#define LAST     TG_WANT_IN_OUT | TG_WANT_BRANCH
#define OF(role) NULL, role
static const tg_want tinygpt[] = {
    { "token_embedding.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE,
      OF("token_embd.weight") },
    { "position_embedding.weight", TG_SIZE_CTX, TG_SIZE_WIDTH, TG_WANT_FLOATS,
      OF("position_embd.weight") },
    { "ln_final.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("output_norm.weight") },
    { "ln_final.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("output_norm.bias") },
    { "blocks.%d.ln1.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("attn_norm.weight") },
    { "blocks.%d.ln1.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("attn_norm.bias") },
    { "blocks.%d.attn.q_proj.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, MATRIX, QKV("weight") },
    { "blocks.%d.attn.q_proj.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, QKV("bias") },
    { "blocks.%d.attn.k_proj.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, MATRIX, QKV("weight") },
    { "blocks.%d.attn.k_proj.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, QKV("bias") },
    { "blocks.%d.attn.v_proj.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, MATRIX, QKV("weight") },
    { "blocks.%d.attn.v_proj.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, QKV("bias") },
    { "blocks.%d.attn.o_proj.weight", TG_SIZE_WIDTH, TG_SIZE_WIDTH, LAST,
      OF("attn_output.weight") },
    { "blocks.%d.attn.o_proj.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("attn_output.bias") },
    { "blocks.%d.ln2.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("ffn_norm.weight") },
    { "blocks.%d.ln2.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("ffn_norm.bias") },
    { "blocks.%d.mlp.fc_in.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, MATRIX, OF("ffn_up.weight") },
    { "blocks.%d.mlp.fc_in.bias", TG_SIZE_ONE, TG_SIZE_MLP, 0, OF("ffn_up.bias") },
    { "blocks.%d.mlp.fc_out.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, LAST, OF("ffn_down.weight") },
    { "blocks.%d.mlp.fc_out.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, OF("ffn_down.bias") },
};

/* Heads of keys and rotary positions there are none. The second key is ours: nobody else's files
 * have the exact gelu. */
static void put(tg_metadata *m) {
    tg_config_put_float(m, "attention.layer_norm_epsilon", m->c->eps);
    if (m->c->gelu_erf) tg_config_put_text(m, "activation", "gelu_erf");
}

static void complete_tinygpt(tg_model_config *c) { c->tied = c->gelu_erf = 1; }

const tg_family tg_family_tinygpt = {
    .name = "tinygpt",
    .doc = "byte-level GPT-2 with a tied head, the original TinyGPT's model",
    .label = "tinygpt (as GPT-2, bytes)",
    .wants = tinygpt,
    .n_wants = sizeof tinygpt / sizeof tinygpt[0],
    .fresh = true,
    .bytes = true,
    .gguf = "gpt2",
    .put = put,
    .complete = complete_tinygpt,
    .check = tg_gpt_config_check,
    .graph = graph,
};

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    tg_gguf_string activation = { "", 0 };
    TG_TRY(tg_gguf_get_string(g, tg_config_key(c, "activation", key), &activation));
    c->gelu_erf = activation.n_bytes == 8 && memcmp(activation.bytes, "gelu_erf", 8) == 0;
    if (c->gelu_erf || activation.n_bytes == 0) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want gelu_erf or none, have '%.*s'", g->path,
                   key, (int)(activation.n_bytes < 32 ? activation.n_bytes : 32), activation.bytes);
}

static const tg_want gpt2[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "position_embd.weight", TG_SIZE_CTX, TG_SIZE_WIDTH, TG_WANT_FLOATS },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_qkv.weight", TG_SIZE_QKV, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_qkv.bias", TG_SIZE_ONE, TG_SIZE_QKV, 0 },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.attn_output.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_up.bias", TG_SIZE_ONE, TG_SIZE_MLP, 0 },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    { "blk.%d.ffn_down.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
};

static const tg_hf_name top[] = {
    { "wte", "token_embd", 0 },
    { "wpe", "position_embd", 0 },
    { "ln_f", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
    { "ln_1", "attn_norm", 0 },
    { "ln_2", "ffn_norm", 0 },
    { "attn.c_attn", "attn_qkv", TG_HF_TURNED },
    { "attn.c_proj", "attn_output", TG_HF_TURNED },
    { "mlp.c_fc", "ffn_up", TG_HF_TURNED },
    { "mlp.c_proj", "ffn_down", TG_HF_TURNED },
    { NULL, NULL, 0 },
};
static const char *const ignored[] = { ".attn.bias", ".attn.masked_bias", NULL };
static const char *const acts[] = { "gelu_new", "gelu_pytorch_tanh", "gelu", NULL };
static const char *const switches[] = { "scale_attn_by_inverse_layer_idx", "add_cross_attention",
                                        NULL };
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "n_layer", "block_count", 0 },
    { "n_embd", "embedding_length", 0 },
    { "n_inner", "feed_forward_length", -4 },
    { "n_positions", "context_length", 0 },
    { "n_head", "attention.head_count", 0 },
    { NULL, NULL, 0 },
};

static const tg_hf_family hf = {
    .model_type = "gpt2",
    .arch = "gpt2",
    .class = "GPT2LMHeadModel",
    .prefix = "transformer.",
    .layers = "h.",
    .top = top,
    .block = block,
    .ignored = ignored,
    .sizes = sizes,
    .eps_theirs = "layer_norm_epsilon",
    .eps_ours = "attention.layer_norm_epsilon",
    .eps = 1e-5,
    .act_key = "activation_function",
    .acts = acts,
    .gelu_erf = "gelu",
    .switches = switches,
    .tied = true,
    .head = "lm_head",
};

const tg_family tg_family_gpt2 = {
    .name = "gpt2",
    .doc = "GPT-2",
    .label = "GPT-2",
    .wants = gpt2,
    .n_wants = sizeof gpt2 / sizeof gpt2[0],
    .hf = { &hf },
    .fresh = true,
    .config = config,
    .put = put,
    .graph = graph,
};
