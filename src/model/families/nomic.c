/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomic.c - the family "nomic-bert": encoders of Nomic (nomic-embed-text 1 and 1.5).
 *
 *   x = norm(E[token] + S[0])
 *   for each layer:  x = norm(x + W_o attention(rope(x W_qkv)))
 *                    x = norm(x + W_down (silu(x W_gate) * (x W_up)))
 *
 * BERT with rotary positions and gates, and without biases but in its layer norms (Nussbaum et al.
 * 2024). Positions stretch behind those of the training alone, so that texts end there. Files have
 * GPT-2's words for sizes, or those of transformers' own class. Facts: Nomic's
 * modeling_hf_nomic_bert, transformers' modeling_nomic_bert.
 */
#include "io/hf/hf.h"
#include "model/net.h"

static tg_value *encode(tg_net *n) {
    tg_value *x = tg_net_embed(n, n->texts->tokens, "token_embd");
    x = tg_add(n->g, x, tg_net_embed(n, n->texts->kinds, "token_types"));
    x = tg_net_norm(n, x, "token_embd_norm");
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_rope(n, tg_net_linear(n, x, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);
        x = tg_net_norm(n, x, "attn_output_norm");

        h = tg_net_linear(n, x, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_norm(n, x, "layer_output_norm");
    }
    return x;
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_types.weight", TG_SIZE_TWO, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "token_embd_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "token_embd_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_qkv.weight", TG_SIZE_QKV, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    { "blk.%d.attn_output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_output_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
    { "blk.%d.layer_output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.layer_output_norm.bias", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
};

static const tg_hf_name top[] = {
    { "embeddings.word_embeddings", "token_embd", 0 },
    { "embeddings.token_type_embeddings", "token_types", 0 },
    { "emb_ln", "token_embd_norm", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
    { "attn.Wqkv", "attn_qkv", 0 },      { "attn.out_proj", "attn_output", 0 },
    { "norm1", "attn_output_norm", 0 },  { "mlp.fc12", "ffn_gate", 0 },
    { "mlp.fc11", "ffn_up", 0 },         { "mlp.fc2", "ffn_down", 0 },
    { "norm2", "layer_output_norm", 0 }, { NULL, NULL, 0 },
};
static const char *const ignored[] = { "embeddings.position_ids", "pooler.dense.weight",
                                       "pooler.dense.bias", NULL };
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "is_decoder",
                                        "add_cross_attention",
                                        "causal",
                                        "prenorm",
                                        "parallel_block",
                                        "qkv_proj_bias",
                                        "mlp_fc1_bias",
                                        "mlp_fc2_bias",
                                        "use_rms_norm",
                                        "rotary_emb_interleaved",
                                        "rotary_emb_scale_base",
                                        NULL };
/* Of the older words what was known is left out here: read_older has it. */
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", -1 },
    { "hidden_size", "embedding_length", -1 },
    { "intermediate_size", "feed_forward_length", -1 },
    { "max_position_embeddings", "context_length", -1 },
    { "num_attention_heads", "attention.head_count", -1 },
    { "head_dim", "attention.key_length", -1 },
    { "head_dim", "attention.value_length", -1 },
    { NULL, NULL, 0 },
};

/* An option that has one value here, where it is there. */
static tg_status want_number(tg_hf_values *m, const char *key, double value) {
    double have = value;
    TG_TRY(tg_hf_get_float(m, m->root, key, &have));
    if (have == value) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: %s: want %g, have %g", m->where, key, value,
                   have);
}

/* Files that Nomic wrote, whose sizes have GPT-2's names. The positions of its training are as far
 * as they turn without being stretched (rotary_scaling_factor). */
static tg_status read_older(tg_hf_values *m) {
    static const char *const known[] = { "n_layer", "block_count",
                                         "n_embd",  "embedding_length",
                                         "n_inner", "feed_forward_length",
                                         "n_head",  "attention.head_count" };
    static const char *const harmless[] = {
        "dense_seq_output",         "fused_bias_fc",        "fused_dropout_add_ln",
        "pad_vocab_size_multiple",  "use_xentropy",         "rotary_scaling_factor",
        "parallel_block_tied_norm", "max_trained_positions"
    };
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        tg_hf_member(m, m->root, harmless[i]);
    if (!tg_hf_member(m, m->root, "n_embd")) return TG_OK;
    int64_t size = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i += 2) {
        TG_TRY(tg_hf_get_int(m, m->root, known[i], &size));
        tg_hf_put_int(m, known[i + 1], size);
    }
    TG_TRY(tg_hf_get_int(m, m->root, "n_positions", &size));
    if (tg_hf_member(m, m->root, "max_trained_positions"))
        TG_TRY(tg_hf_get_int(m, m->root, "max_trained_positions", &size));
    tg_hf_put_int(m, "context_length", size);
    TG_TRY(want_number(m, "layer_norm_epsilon", 1e-12));
    TG_TRY(want_number(m, "rotary_emb_fraction", 1));
    const tg_json *act = tg_hf_member(m, m->root, "activation_function");
    if (!act || tg_json_is(act, "swiglu")) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: activation_function: want swiglu, have %.60s",
                   m->where, TG_JSON_SHOWN(act));
}

static const tg_hf_family hf = {
    .model_type = "nomic_bert",
    .arch = "nomic-bert",
    .class = "NomicBertModel",
    .prefix = "bert.",
    .layers = "encoder.layers.",
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
    .rope = true,
    .rope_base = 1000,
    .base_key = "rotary_emb_base",
    .encoder = true,
    .read = read_older,
};

const tg_family tg_family_nomic = {
    .name = "nomic-bert",
    .doc = "nomic-embed: embeddings",
    .label = "nomic-embed",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .layer_norms = true,
    .config = tg_config_want_encoder,
    .encode = encode,
};
