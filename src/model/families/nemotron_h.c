/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nemotron_h.c - the family "nemotron_h" (Nemotron-H, Nemotron Nano 2, dense): layers that are each
 * one thing.
 *
 *     x = E[token]
 *     for each layer:  x = x + W_out norm(mamba2(norm(x) W_in)),
 *                      x = x + W_o attention(norm(x) W_qkv), or
 *                      x = x + W_down relu(norm(x) W_up)^2
 *     logits = norm(x) W
 *
 * Attention turns nothing: order is in the states. The norm behind these is of each group of heads
 * on its own, and an MLP remembers nothing (model/state.h).
 *
 * A folder says which layer is what by a list of names (layers_block_type), or by a letter for each
 * (hybrid_override_pattern): M, * and -. GGUF has a list of sizes for each kind but Mamba2, 0 in
 * all other layers. Layers of routed experts are refused by their name. Facts: transformers'
 * modeling_nemotron_h and llama.cpp's converter.
 */
#include "model/families/llama.h"
#include "model/families/mamba2.h"
#include "model/metadata_put.h"

static tg_value *mixer(tg_net *n, tg_value *x, tg_layer_kind kind) {
    tg_value *h = tg_net_norm(n, x, "attn_norm");
    if (kind == TG_LAYER_MLP) {
        h = tg_gelu(n->g, tg_net_linear(n, h, "ffn_up", TG_READ_PLAIN), TG_ACT_RELU2);
        return tg_net_project(n, h, "ffn_down", TG_READ_PLAIN, x, TG_SITE_MLP);
    }
    const bool mamba = kind == TG_LAYER_MAMBA2;
    h = tg_net_linear(n, h, mamba ? "ssm_in" : "attn_qkv", TG_READ_PLAIN);
    if (mamba)
        h = tg_net_group_norm(n, tg_net_mamba2(n, h, "ssm_conv1d", "ssm_heads"), "ssm_norm");
    else
        h = tg_net_attention(n, h, 0);
    return tg_net_project(n, h, mamba ? "ssm_out" : "attn_output", TG_READ_PLAIN, x,
                          TG_SITE_ATTENTION);
}

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        x = mixer(n, x, tg_layer_kind_of(n->config, n->layer));
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    return tg_mamba2_config(g, c, 4096);
}

static void put(tg_metadata *m) {
    tg_config_put_kv_heads(m);
    tg_config_put_states(m);
    tg_config_put_bool(m, "rope.scaling.finetuned", false);
    tg_config_put_attention(m);
}

#define ATTENTION TG_WANT_IN_ATTENTION
#define MAMBA2    TG_WANT_IN_MAMBA2
#define MLP       TG_WANT_IN_MLP
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
    { "blk.%d.ssm_norm.weight", TG_SIZE_ONE, TG_SIZE_SSM_INNER, MAMBA2 | TG_WANT_GROUPS },
    { "blk.%d.ssm_out.weight", TG_SIZE_WIDTH, TG_SIZE_SSM_INNER, MAMBA2 | TG_WANT_BRANCH },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, MLP },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, MLP | TG_WANT_BRANCH },
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    tg_mamba2_complete(c);
}

static const tg_hf_name top[] = {
    { "embeddings", "token_embd", 0 },
    { "norm_f", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
    { "norm", "attn_norm", 0 },
    { "mixer.q_proj", "attn_q", 0 },
    { "mixer.k_proj", "attn_k", 0 },
    { "mixer.v_proj", "attn_v", 0 },
    { "mixer.o_proj", "attn_output", 0 },
    TG_MAMBA2_NAMES("mixer"),
    { "mixer.norm.weight", "ssm_norm.weight", TG_HF_WHOLE },
    { "mixer.up_proj", "ffn_up", 0 },
    { "mixer.down_proj", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "hidden_size", "embedding_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { "head_dim", "attention.key_length", 128 },
    { "head_dim", "attention.value_length", 128 },
    { "conv_kernel", "ssm.conv_kernel", 4 },
    { "ssm_state_size", "ssm.state_size", 128 },
    { "mamba_num_heads", "ssm.time_step_rank", 128 },
    { "n_groups", "ssm.group_count", 8 },
    { NULL, NULL, 0 },
};
static const char *const acts[] = { "relu2", NULL };
static const char *const switches[] = { "use_bias",       "mamba_proj_bias",          "mlp_bias",
                                        "attention_bias", "num_nextn_predict_layers", NULL };
/* Of experts that no layer has, and of how transformers runs and trains the others: asked for, and
 * left. */
static const char *const left[] = { "n_routed_experts",
                                    "n_shared_experts",
                                    "moe_intermediate_size",
                                    "moe_shared_expert_intermediate_size",
                                    "moe_shared_expert_overlap",
                                    "moe_latent_size",
                                    "routed_scaling_factor",
                                    "n_group",
                                    "topk_group",
                                    "norm_topk_prob",
                                    "mtp_layers_block_type",
                                    "chunk_size",
                                    "expand",
                                    "time_step_rank",
                                    "rms_norm_eps",
                                    "rescale_prenorm_residual",
                                    "residual_in_fp32",
                                    "use_mamba_kernels",
                                    "mamba_ssm_cache_dtype" };

/* Names of a kind: since version 5 of transformers, before, and as a letter. */
static const struct {
    const char *now, *before;
    char letter, kind;
} kinds[] = {
    { "linear_attention", "mamba", 'M', TG_LAYER_MAMBA2 },
    { "full_attention", "attention", '*', TG_LAYER_ATTENTION },
    { "mlp", "mlp", '-', TG_LAYER_MLP },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* What the layers are, as letters of tg_layer_kind; *n of them. */
static tg_status read_kinds(tg_hf_values *m, char out[512], int64_t *n) {
    const tg_json *list = tg_hf_member(m, m->root, "layers_block_type");
    const tg_json *text = tg_hf_member(m, m->root, "hybrid_override_pattern");
    const char *key = list ? "layers_block_type" : "hybrid_override_pattern";
    const bool fits =
        list ? tg_json_kind(list) == TG_JSON_ARRAY : text && tg_json_kind(text) == TG_JSON_STRING;
    int64_t said = *n = !fits ? 0 : (int64_t)(list ? list->count : text->length);
    if (tg_hf_member(m, m->root, "num_hidden_layers"))
        TG_TRY(tg_hf_get_int(m, m->root, "num_hidden_layers", &said));
    if (!fits || *n < 1 || *n > 512 || said != *n)
        return tg_fail(m->g->ctx, TG_E_FORMAT,
                       "%s: %s: want a kind for each of num_hidden_layers, 1..512, have %" PRId64,
                       m->where, key, *n);
    const tg_json *v = list ? tg_json_first(list) : NULL;
    for (int64_t i = 0; i < *n; i++, v = v ? tg_json_next(v) : NULL) {
        size_t k = 0;
        while (k < KINDS && !(v ? tg_json_is(v, kinds[k].now) || tg_json_is(v, kinds[k].before)
                                : text->u.text[i] == kinds[k].letter))
            k++;
        if (k == KINDS)
            return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                           "%s: %s: want linear_attention, full_attention or mlp (M, * or -), have "
                           "%.60s as number %" PRId64,
                           m->where, key, TG_JSON_SHOWN(v ? v : text), i + 1);
        out[i] = kinds[k].kind;
    }
    return TG_OK;
}

static void put_sizes(tg_hf_values *m, const char *key, const char *kind, int64_t n, char of,
                      int64_t size) {
    uint8_t *each = tg_hf_put_ints(m, key, (size_t)n);
    for (int64_t i = 0; each && i < n; i++)
        tg_put_u32(each + 4 * i, kind[i] == of ? (uint32_t)size : 0);
}

static tg_status read(tg_hf_values *m) {
    char kind[512];
    int64_t n = 0, heads = 128, head = 64, keys = 0, mlp = 21504;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) tg_hf_member(m, m->root, left[i]);
    TG_TRY(read_kinds(m, kind, &n));
    TG_TRY(tg_mamba2_want_no_limit(m));
    const tg_json *act = tg_hf_member(m, m->root, "mamba_hidden_act");
    if (act && !tg_json_is(act, "silu"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: mamba_hidden_act: want silu, have %.60s",
                       m->where, TG_JSON_SHOWN(act));
    if (tg_hf_member(m, m->root, "use_conv_bias") && !tg_hf_is_on(m->root, "use_conv_bias"))
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: use_conv_bias: want true, have another",
                       m->where);
    if (tg_hf_member(m, m->root, "mamba_num_heads"))
        TG_TRY(tg_hf_get_int(m, m->root, "mamba_num_heads", &heads));
    if (tg_hf_member(m, m->root, "mamba_head_dim"))
        TG_TRY(tg_hf_get_int(m, m->root, "mamba_head_dim", &head));
    if (tg_hf_member(m, m->root, "intermediate_size"))
        TG_TRY(tg_hf_get_int(m, m->root, "intermediate_size", &mlp));
    const bool own = tg_hf_member(m, m->root, "num_key_value_heads");
    TG_TRY(tg_hf_get_int(m, m->root, own ? "num_key_value_heads" : "num_attention_heads", &keys));
    if (heads > 4096 || head > 1024 || keys > 1024 || mlp > 262144)
        return tg_fail(m->g->ctx, TG_E_FORMAT,
                       "%s: mamba_num_heads, mamba_head_dim, num_key_value_heads, "
                       "intermediate_size: want up to 4096, 1024, 1024 and 262144, have more",
                       m->where);
    tg_hf_put_int(m, "block_count", n);
    tg_hf_put_int(m, "ssm.inner_size", heads * head);
    put_sizes(m, "attention.head_count_kv", kind, n, TG_LAYER_ATTENTION, keys);
    put_sizes(m, "feed_forward_length", kind, n, TG_LAYER_MLP, mlp);
    return TG_OK;
}

static const tg_gguf_value *value(const tg_gguf *g, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "nemotron_h.%s", name);
    return tg_gguf_find(g, key);
}

/* Number i of a list, 0 where there is none. */
static uint32_t at(const tg_gguf_value *v, int64_t i) {
    return v && v->type == TG_GGUF_ARRAY && (uint64_t)i < v->count ? tg_get_u32(v->elements + 4 * i)
                                                                   : 0;
}

static void write(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *layers = value(g, "block_count"), *inner = value(g, "ssm.inner_size");
    const tg_gguf_value *heads = value(g, "ssm.time_step_rank");
    const tg_gguf_value *keys = value(g, "attention.head_count_kv");
    const tg_gguf_value *mlp = value(g, "feed_forward_length");
    uint32_t most_keys = 0, most_mlp = 0;
    tg_json_key(w, "layers_block_type");
    tg_json_begin_array(w);
    for (int64_t i = 0; layers && i < layers->whole; i++) {
        if (at(keys, i)) most_keys = at(keys, i);
        if (at(mlp, i)) most_mlp = at(mlp, i);
        tg_json_put_string(w, kinds[at(mlp, i) ? 2 : at(keys, i) ? 1 : 0].before);
    }
    tg_json_end_array(w);
    tg_hf_write_int(w, "num_hidden_layers", layers ? layers->whole : 0);
    tg_hf_write_int(w, "num_key_value_heads", most_keys);
    tg_hf_write_int(w, "intermediate_size", most_mlp);
    if (inner && heads && heads->whole > 0)
        tg_hf_write_int(w, "mamba_head_dim", inner->whole / heads->whole);
}

static const tg_hf_family hf = {
    .model_type = "nemotron_h",
    .arch = "nemotron_h",
    .class = "NemotronHForCausalLM",
    .prefix = "backbone.",
    .layers = "layers.",
    .eps_theirs = "layer_norm_epsilon",
    .eps_ours = "attention.layer_norm_rms_epsilon",
    .eps = 1e-5,
    .head = "lm_head",
    .ignored = tg_llama_ignored,
    .top = top,
    .block = block,
    .sizes = sizes,
    .act_key = "mlp_hidden_act",
    .acts = acts,
    .switches = switches,
    .read = read,
    .write = write,
};

const tg_family tg_family_nemotron_h = {
    .name = "nemotron_h",
    .doc = "Nemotron-H, dense",
    .label = "Nemotron-H",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .other = TG_LAYER_MAMBA2,
    .attention_every = 4,
    .alone = true,
    .still_every = 1,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
