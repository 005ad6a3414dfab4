/* SPDX-License-Identifier: Apache-2.0 */
/*
 * falcon_h1.c - the family "falcon-h1" (Falcon-H1): attention and Mamba2 side by side in each
 * layer.
 *
 *     x = E[token]
 *     for each layer:  h = norm(x)
 *                      x = x + W_out mamba2(h W_in) + W_o attention(rope(h W_qkv))
 *                      x = x + W_down (silu(norm(x) W_gate) * (norm(x) W_up))
 *     logits = norm(x) W, or E in W's place
 *
 * A layer remembers keys and values as well as a state: tg_family.beside. The larger models have a
 * norm behind their states and gates (mamba_rms_norm, ssm_norm), which is over all heads, so of one
 * group; such files are run, and not trained.
 *
 * config.json has numbers with which what enters and leaves the products is multiplied. As each
 * stands beside a matrix, GGUF has them in the weights, and so has all that is read from a folder
 * (times()): the products are rounded to f32 once. Folders that are written state none, since they
 * are 1 by then; and training moves the products, not the factors beside fixed numbers. Where one
 * table is embedding and head, the two uses have numbers of their own, so it is read twice.
 *
 * Facts: transformers' modeling_falcon_h1 and llama.cpp's converter, whose name of the MLP's norm
 * has no ".weight".
 */
#include "model/families/llama.h"
#include "model/families/mamba2.h"
#include "model/metadata_put.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        tg_value *s = tg_net_linear(n, h, "ssm_in", TG_READ_PLAIN);
        s = tg_net_mamba2(n, s, "ssm_conv1d", "ssm_heads");
        if (tg_net_has(n, "ssm_norm")) s = tg_net_norm(n, s, "ssm_norm");
        x = tg_net_add(n, x, tg_net_linear(n, s, "ssm_out", TG_READ_PLAIN));
        h = tg_net_rope(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "ffn_norm");
        h = tg_net_linear(n, h, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* A folder says by ssm.norm, which read() puts, whether it has the norm; GGUF by the tensor. */
static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    bool said = false;
    const bool norm = tg_gguf_tensor_find(g, "blk.0.ssm_norm.weight") != NULL;
    for (int32_t i = 1; i < c->layers; i++) {
        snprintf(key, sizeof key, "blk.%d.ssm_norm.weight", (int)i);
        if ((tg_gguf_tensor_find(g, key) != NULL) != norm)
            return tg_fail(g->ctx, TG_E_FORMAT,
                           "%s: tensor %s: want norms of states in all layers or in none, have %s",
                           g->path, key, norm ? "none here" : "one here");
    }
    TG_TRY(tg_gguf_get_bool(g, tg_config_key(c, "ssm.norm", key), &said));
    if (g->hf && said != norm)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s/config.json: mamba_rms_norm: want true and norms of states, or neither, "
                       "have %s",
                       g->path, said ? "no norms" : "norms alone");
    TG_TRY(tg_mamba2_config(g, c, norm ? 1 : 4096));
    return tg_config_read_scaling(g, c);
}

static void put(tg_metadata *m) {
    tg_config_put_kv_heads(m);
    tg_config_put_states(m);
    tg_config_put_attention(m);
}

static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },
    TG_MAMBA2_WANTS(0),
    { "blk.%d.ssm_norm.weight", TG_SIZE_ONE, TG_SIZE_SSM_INNER, TG_WANT_OPTIONAL },
    { "blk.%d.ssm_out.weight", TG_SIZE_WIDTH, TG_SIZE_SSM_INNER, TG_WANT_BRANCH },
    { "blk.%d.ffn_norm", TG_SIZE_ONE, TG_SIZE_WIDTH, 0, NULL, "ffn_norm.weight" },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
};

static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    tg_mamba2_complete(c);
}

static const tg_hf_name top[] = {
    { "embed_tokens", "token_embd", 0 },
    { "final_layernorm", "output_norm", 0 },
    { "lm_head", "output", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_name block[] = {
    { "input_layernorm", "attn_norm", 0 },
    { "pre_ff_layernorm.weight", "ffn_norm", TG_HF_WHOLE },
    { "self_attn.q_proj", "attn_q", 0 },
    { "self_attn.k_proj", "attn_k", 0 },
    { "self_attn.v_proj", "attn_v", 0 },
    { "self_attn.o_proj", "attn_output", 0 },
    TG_MAMBA2_NAMES("mamba"),
    { "mamba.norm", "ssm_norm", 0 },
    { "feed_forward.gate_proj", "ffn_gate", 0 },
    { "feed_forward.up_proj", "ffn_up", 0 },
    { "feed_forward.down_proj", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(-1), TG_MAMBA2_SIZES, { NULL, NULL, 0 } };
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "mamba_proj_bias", "projectors_bias", "attention_bias",
                                        "mlp_bias", NULL };

/* n numbers above 0, each of which is 1 where there is no list. */
static tg_status get_list(tg_hf_values *m, const char *key, size_t n, double *out) {
    const tg_json *list = tg_hf_member(m, m->root, key);
    const tg_json *v = list && tg_json_kind(list) == TG_JSON_ARRAY ? tg_json_first(list) : NULL;
    bool fits = !list || (v && list->count == n);
    for (size_t i = 0; i < n; i++, v = v ? tg_json_next(v) : NULL) {
        out[i] = 1;
        if (v) fits = fits && tg_json_double(NULL, v, &out[i]) == TG_OK;
        fits = fits && out[i] > 0 && out[i] < 1e30;
    }
    if (fits) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: %s: want %zu numbers above 0, have %.60s", m->where,
                   key, n, TG_JSON_SHOWN(list));
}

static void put_times(tg_hf_values *m, const char *ours, double by) {
    const tg_gguf_times all = { UINT64_MAX, (float)by };
    tg_hf_put_times(m, ours, &all);
}

/* Rows of ssm_in are gates, x, B, C and steps. That keys are multiplied before they are turned, and
 * not behind the product, is the same; so are steps before their bias is added. */
static tg_status times(tg_hf_values *m, int64_t inner) {
    static const char *const keys[] = { "embedding_multiplier",     "lm_head_multiplier",
                                        "attention_in_multiplier",  "key_multiplier",
                                        "attention_out_multiplier", "ssm_in_multiplier",
                                        "ssm_out_multiplier" };
    double by[7] = { 1, 1, 1, 1, 1, 1, 1 }, mlp[2], ssm[5];
    int64_t groups = 0, state = 0;
    for (size_t i = 0; i < 7; i++) TG_TRY(tg_hf_get_float(m, m->root, keys[i], &by[i]));
    TG_TRY(get_list(m, "mlp_multipliers", 2, mlp));
    TG_TRY(get_list(m, "ssm_multipliers", 5, ssm));
    TG_TRY(tg_hf_get_int(m, m->root, "mamba_n_groups", &groups));
    TG_TRY(tg_hf_get_int(m, m->root, "mamba_d_state", &state));
    const uint64_t ends[] = { (uint64_t)inner, (uint64_t)inner, (uint64_t)(groups * state),
                              (uint64_t)(groups * state), 0 };
    tg_gguf_times rows[5];
    uint64_t end = 0;
    for (size_t i = 0; i < 5; i++) {
        end += ends[i];
        rows[i] = (tg_gguf_times) { i < 4 ? end : UINT64_MAX, (float)(by[5] * ssm[i]) };
    }
    put_times(m, "token_embd", by[0]);
    put_times(m, "output", by[1]);
    put_times(m, "attn_q", by[2]);
    put_times(m, "attn_k", by[2] * by[3]);
    put_times(m, "attn_v", by[2]);
    put_times(m, "attn_output", by[4]);
    tg_hf_put_times(m, "ssm_in", rows);
    put_times(m, "ssm_out", by[6]);
    put_times(m, "ffn_gate", mlp[0]);
    put_times(m, "ffn_down", mlp[1]);
    return TG_OK;
}

/* The norm is behind the gates: where config.json does not say so, it is before them. */
static tg_status read_norm(tg_hf_values *m) {
    const tg_json *before = tg_hf_member(m, m->root, "mamba_norm_before_gate");
    tg_hf_member(m, m->root, "mamba_rms_norm");
    if (!tg_hf_is_on(m->root, "mamba_rms_norm")) return TG_OK;
    tg_hf_put_bool(m, "ssm.norm", true);
    if (before && tg_json_kind(before) == TG_JSON_FALSE) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                   "%s: mamba_norm_before_gate: want false beside mamba_rms_norm, have %.60s",
                   m->where, TG_JSON_SHOWN(before));
}

/* The columns of all heads are a number of their own, or so many times the width. */
static tg_status read(tg_hf_values *m) {
    int64_t inner = 0, expand = 2;
    const bool said = tg_hf_member(m, m->root, "mamba_d_ssm");
    if (tg_hf_member(m, m->root, "mamba_expand"))
        TG_TRY(tg_hf_get_int(m, m->root, "mamba_expand", &expand));
    TG_TRY(tg_hf_get_int(m, m->root, said ? "mamba_d_ssm" : "hidden_size", &inner));
    if (!said) inner = expand > 64 ? INT32_MAX : expand * inner;
    TG_TRY(tg_mamba2_read(m, inner));
    TG_TRY(read_norm(m));
    return times(m, inner);
}

static void write(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *inner = tg_gguf_find(g, "falcon-h1.ssm.inner_size");
    tg_json_key(w, "mamba_d_ssm");
    tg_json_put_int(w, inner ? inner->whole : 0);
    tg_mamba2_write(w, g, "falcon-h1");
    tg_json_key(w, "mamba_rms_norm");
    tg_json_put_bool(w, tg_gguf_tensor_find(g, "blk.0.ssm_norm.weight") != NULL);
    tg_json_key(w, "mamba_norm_before_gate");
    tg_json_put_bool(w, false);
}

static const tg_hf_family hf = {
    .model_type = "falcon_h1",
    .arch = "falcon-h1",
    .class = "FalconH1ForCausalLM",
    TG_LIKE_LLAMA_OF(1e-5),
    .top = top,
    .block = block,
    .sizes = sizes,
    .act_key = "hidden_act",
    .acts = acts,
    .switches = switches,
    .read = read,
    .write = write,
};

const tg_family tg_family_falcon_h1 = {
    .name = "falcon-h1",
    .doc = "Falcon-H1",
    .label = "Falcon-H1",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .beside = TG_LAYER_MAMBA2,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
