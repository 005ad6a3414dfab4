/* SPDX-License-Identifier: Apache-2.0 */
/*
 * granite.c - the family "granitehybrid" (Granite 4 H, dense).
 *
 *     x = e E[token]
 *     for each layer:  x = x + r W_out norm(mamba2(norm(x) W_in)), or, in layers of attention,
 *                      x = x + r W_o attention(norm(x) W_qkv)
 *                      x = x + r W_down (silu(norm(x) W_gate) * (norm(x) W_up))
 *     logits = norm(x) E^T / l
 *
 * Most layers are Mamba2's (ops/mamba2); those of attention turn nothing: order is in the states.
 * e, r and l are the scales of granite.h. Facts: transformers' modeling_granitemoehybrid and
 * llama.cpp's converter.
 *
 * The family with routed experts in place of the MLP (granitemoehybrid with num_local_experts
 * above 0) is refused by that key. This file has, in this order: the graph, sizes of a file,
 * wants, fresh sizes, transformers' tables.
 */
#include "model/families/granite.h"
#include "model/families/llama.h"
#include "model/families/mamba2.h"
#include "model/metadata_put.h"

/* One loop for both kinds of layers: a kind decides what stands between the two products of the
 * mixer, and which tensors these are. n->layer is what the words of net.h go by. */
static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        const bool mamba = tg_layer_kind_of(n->config, n->layer) == TG_LAYER_MAMBA2;
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_linear(n, h, mamba ? "ssm_in" : "attn_qkv", TG_READ_PLAIN);
        if (mamba)
            h = tg_net_norm(n, tg_net_mamba2(n, h, "ssm_conv1d", "ssm_heads"), "ssm_norm");
        else
            h = tg_net_attention(n, h, 0);
        x = tg_net_project(n, h, mamba ? "ssm_out" : "attn_output", TG_READ_PLAIN, x,
                           TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "ffn_norm");
        h = tg_net_linear(n, h, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* The norm behind the states is over all heads, which is over a group if there is one. Of dense
 * models llama.cpp's converter names the MLP's size once more, as that of a shared expert.
 * llama.cpp turns queries and keys unless the file says that it was not trained so. */
static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    int32_t shared = c->mlp;
    TG_TRY(tg_mamba2_config(g, c, 1));
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "expert_shared_feed_forward_length", key), 0,
                           1 << 24, &shared));
    if (shared != 0 && shared != c->mlp)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want feed_forward_length, %d, have %d",
                       g->path, key, (int)c->mlp, (int)shared);
    TG_TRY(tg_config_read_scales(g, c));
    const tg_gguf_value *turns = tg_gguf_find(g, tg_config_key(c, "rope.scaling.finetuned", key));
    if (turns && turns->type == TG_GGUF_BOOL && turns->whole == 0) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want false: attention without positions",
                   g->path, key);
}

static void put(tg_metadata *m) {
    tg_config_put_kv_heads(m);
    tg_config_put_states(m);
    tg_config_put_bool(m, "rope.scaling.finetuned", false);
    tg_config_put_scales(m);
    tg_config_put_attention(m);
}

#define ATTENTION TG_WANT_IN_ATTENTION
#define MAMBA2    TG_WANT_IN_MAMBA2
/* No want of attention or Mamba2 is optional: kinds of layers say which are there
 * (config.layer_kind). */
static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, ATTENTION | TG_WANT_BRANCH },
    TG_MAMBA2_WANTS(MAMBA2),
    { "blk.%d.ssm_norm.weight", TG_SIZE_ONE, TG_SIZE_SSM_INNER, MAMBA2 },
    { "blk.%d.ssm_out.weight", TG_SIZE_WIDTH, TG_SIZE_SSM_INNER, MAMBA2 | TG_WANT_BRANCH },
    { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    tg_mamba2_complete(c);
}

static const tg_hf_name top[] = { TG_LLAMA_TOP(0) };
/* input_linear has the rows of gate and up one above the other: HALVES, whose two names are in
 * two lines. */
static const tg_hf_name block[] = {
    { "input_layernorm", "attn_norm", 0 },
    { "post_attention_layernorm", "ffn_norm", 0 },
    { "self_attn.q_proj", "attn_q", 0 },
    { "self_attn.k_proj", "attn_k", 0 },
    { "self_attn.v_proj", "attn_v", 0 },
    { "self_attn.o_proj", "attn_output", 0 },
    TG_MAMBA2_NAMES("mamba"),
    { "mamba.norm", "ssm_norm", 0 },
    { "shared_mlp.input_linear", "ffn_gate", TG_HF_HALVES },
    { "shared_mlp.input_linear", "ffn_up", TG_HF_HALVES },
    { "shared_mlp.output_linear", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
/* "shared_intermediate_size" is the dense MLP's: transformers sees it as the expert that every
 * token goes through. */
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "shared_intermediate_size", "feed_forward_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    TG_MAMBA2_SIZES,
    { NULL, NULL, 0 },
};
static const char *const acts[] = { "silu", NULL };
/* Options that are refused unless they are off; experts among them. */
static const char *const switches[] = { "mamba_proj_bias", "attention_bias", "num_local_experts",
                                        NULL };

/* The first four are asked for and left: they say something of experts that are not there and of
 * positions that attention does not use. */
static tg_status read(tg_hf_values *m) {
    int64_t width = 0, expand = 2;
    tg_hf_member(m, m->root, "intermediate_size"); /* of experts */
    tg_hf_member(m, m->root, "rope_parameters");   /* nothing turns */
    tg_hf_member(m, m->root, "rope_theta");
    tg_hf_member(m, m->root, "rope_scaling");
    const tg_json *norm = tg_hf_member(m, m->root, "normalization_function");
    if (norm && !tg_json_is(norm, "rmsnorm"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                       "%s: normalization_function: want rmsnorm, have %.60s", m->where,
                       TG_JSON_SHOWN(norm));
    TG_TRY(tg_hf_get_int(m, m->root, "hidden_size", &width));
    if (tg_hf_member(m, m->root, "mamba_expand"))
        TG_TRY(tg_hf_get_int(m, m->root, "mamba_expand", &expand));
    TG_TRY(tg_mamba2_read(m, expand > 64 ? INT32_MAX : expand * width));
    tg_hf_put_bool(m, "rope.scaling.finetuned", false);
    return tg_granite_read_scales(m);
}

/* What read() took apart is put together again. */
static void write(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *inner = tg_gguf_find(g, "granitehybrid.ssm.inner_size");
    const tg_gguf_value *width = tg_gguf_find(g, "granitehybrid.embedding_length");
    tg_hf_write_int(w, "num_local_experts", 0);
    tg_hf_write_int(w, "num_experts_per_tok", 0);
    if (inner && width && width->whole > 0)
        tg_hf_write_int(w, "mamba_expand", inner->whole / width->whole);
    tg_mamba2_write(w, g, "granitehybrid");
    tg_json_key(w, "position_embedding_type");
    tg_json_put_string(w, "nope");
    tg_granite_write_scales(w, g, "granitehybrid");
}

static const tg_hf_family hf = {
    .model_type = "granitemoehybrid",
    .arch = "granitehybrid",
    .class = "GraniteMoeHybridForCausalLM",
    .prefix = "model.",
    .layers = "layers.",
    .eps_theirs = "rms_norm_eps",
    .eps_ours = "attention.layer_norm_rms_epsilon",
    .eps = 1e-6,
    .head = "lm_head",
    .ignored = tg_llama_ignored,
    .top = top,
    .block = block,
    .sizes = sizes,
    .act_key = "hidden_act",
    .acts = acts,
    .switches = switches,
    .other_layer = "mamba",
    .other_now = "linear_attention",
    .attention_layer = "attention",
    .positions = "nope",
    .read = read,
    .write = write,
};

const tg_family tg_family_granitehybrid = {
    .name = "granitehybrid",
    .doc = "Granite 4 H, dense",
    .label = "Granite 4 H",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .scales = true,
    .other = TG_LAYER_MAMBA2,
    .attention_every = 4,
    .still_every = 1,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
