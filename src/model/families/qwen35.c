/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qwen35.c - the family "qwen35" (Qwen 3.5, dense, of text).
 *
 *   x = E[token]
 *   each layer:         n = norm(x)
 *     of three in four  x = x + W_out delta_net(n W_in, n W_ba)
 *     each fourth       q, gate, k, v = n W
 *                       x = x + W_o (attention(rope(q, k, v)) * sigmoid(gate))
 *     all               n = norm(x)
 *                       x = x + W_down (silu(n W_gate) * (n W_up))
 *   logits = norm(x) E^T, or with a matrix of its own in E's place
 *
 * Three of four layers are gated delta nets (ops/delta_net); the others have Qwen 3's attention, of
 * whose heads a quarter turns, behind gates that come with the queries (ops/sigmoid_gate). GGUF has
 * gains as 1 + w, -exp(A_log) where transformers and training have A_log, and heads of values in
 * another order (model/tensors.h). Images and the layers that guess further tokens (mtp) are left
 * out. Facts: transformers' modeling_qwen3_5 and llama.cpp's converter.
 */
#include "model/families/llama.h"
#include "model/metadata_put.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        const bool delta = tg_layer_kind_of(n->config, n->layer) == TG_LAYER_DELTA;
        tg_value *normed = tg_net_norm(n, x, "attn_norm");
        tg_value *h = tg_net_linear(n, normed, delta ? "ssm_in" : "attn_qkv", TG_READ_PLAIN);
        if (delta)
            h = tg_net_delta_net(n, h, tg_net_linear(n, normed, "ssm_ba", TG_READ_PLAIN),
                                 "ssm_conv1d", "ssm_heads");
        else
            h = tg_net_gated_attention(n, h);
        x = tg_net_project(n, h, delta ? "ssm_out" : "attn_output", TG_READ_PLAIN, x,
                           TG_SITE_ATTENTION);

        h = tg_net_norm(n, x, "post_attention_norm");
        h = tg_net_linear(n, h, "ffn_gate_up", TG_READ_PLAIN);
        x = tg_net_project(n, h, "ffn_down", TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* A list of the layers that are delta nets, or one of so many is attention. */
static tg_status read_kinds(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    int32_t every = 4;
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "full_attention_interval", key), 1, 512, &every));
    const tg_gguf_value *list =
        tg_gguf_find(g, tg_config_key(c, "attention.recurrent_layers", key));
    const bool bools = list && list->element == TG_GGUF_BOOL;
    const bool whole = list && (list->element == TG_GGUF_I32 || list->element == TG_GGUF_U32);
    if (list &&
        (list->type != TG_GGUF_ARRAY || list->count != (uint64_t)c->layers || (!bools && !whole)))
        return tg_fail(g->ctx, TG_E_FORMAT, "%s: %s: want one for each of %d layers, have others",
                       g->path, key, (int)c->layers);
    for (int32_t i = 0; i < c->layers; i++) {
        const bool delta = bools   ? list->elements[i] != 0
                           : whole ? tg_get_u32(list->elements + 4 * i) != 0
                                   : (i + 1) % every != 0;
        c->layer_kind[i] = (char)(delta ? TG_LAYER_DELTA : TG_LAYER_ATTENTION);
    }
    return TG_OK;
}

static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    int32_t inner = 0;
    TG_TRY(read_kinds(g, c));
    TG_TRY(tg_config_want_int(g, c, "ssm.conv_kernel", TG_CONV_TAPS_MAX, &c->conv_taps));
    TG_TRY(tg_config_want_int(g, c, "ssm.time_step_rank", 4096, &c->ssm_heads));
    TG_TRY(tg_config_want_int(g, c, "ssm.inner_size", 1 << 20, &inner));
    TG_TRY(tg_config_want_int(g, c, "ssm.state_size", 1024, &c->ssm_state));
    TG_TRY(tg_config_want_int(g, c, "ssm.group_count", 4096, &c->ssm_groups));
    c->ssm_head_size = inner / c->ssm_heads;
    if (inner % c->ssm_heads != 0 || c->ssm_head_size < 1 || c->ssm_head_size > 1024 ||
        c->ssm_heads % c->ssm_groups != 0 || c->conv_taps < 2)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: ssm: want an inner_size of whole heads of 1..1024, a group_count that "
                       "divides them and 2 taps or more, have %d of %d heads, %d and %d",
                       g->path, (int)inner, (int)c->ssm_heads, (int)c->ssm_groups,
                       (int)c->conv_taps);
    tg_gguf_find(g, tg_config_key(c, "rope.dimension_sections", key)); /* a text has time alone */
    return tg_config_read_scaling(g, c);
}

/* Layers that are not attention; and how many of a head's pairs turn by time, rows and columns,
 * which llama.cpp wants to know though a text has time alone: a third each, the first ones one more
 * where it does not divide. */
static void put(tg_metadata *m) {
    const tg_model_config *c = m->c;
    const size_t pairs = tg_config_turned(c, TG_FREQ_ALL) / 2;
    tg_config_put_int(m, "attention.head_count_kv", c->kv_heads);
    tg_config_put_states(m);
    uint8_t *each = tg_config_put_list(m, "attention.recurrent_layers", (size_t)c->layers);
    for (int i = 0; each && i < c->layers; i++)
        tg_put_u32(each + 4 * i, tg_layer_kind_of(c, i) != TG_LAYER_ATTENTION);
    each = tg_config_put_list(m, "rope.dimension_sections", 4);
    for (size_t i = 0; each && i < 4; i++)
        tg_put_u32(each + 4 * i, i < 3 ? (uint32_t)((pairs + 2 - i) / 3) : 0);
    tg_config_put_attention(m);
}

#define ATTENTION TG_WANT_IN_ATTENTION
#define DELTA     TG_WANT_IN_DELTA
#define VALUES    TG_WANT_IN_DELTA | TG_WANT_IN_TURNS
static const tg_want wants[] = {
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },
    { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_SIZE_GATED_QUERIES, TG_SIZE_WIDTH, ATTENTION,
      "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, ATTENTION, "blk.%d.attn_qkv.weight" },
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, ATTENTION },
    { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, ATTENTION },
    { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, ATTENTION | TG_WANT_BRANCH },
    { "blk.%d.attn_gate.weight", TG_SIZE_SSM_INNER, TG_SIZE_WIDTH, VALUES, "blk.%d.ssm_in.weight" },
    { "blk.%d.attn_qkv.weight", TG_SIZE_SSM_CONV, TG_SIZE_WIDTH, VALUES, "blk.%d.ssm_in.weight" },
    { "blk.%d.ssm_beta.weight", TG_SIZE_SSM_HEADS, TG_SIZE_WIDTH, VALUES, "blk.%d.ssm_ba.weight" },
    { "blk.%d.ssm_alpha.weight", TG_SIZE_SSM_HEADS, TG_SIZE_WIDTH, VALUES, "blk.%d.ssm_ba.weight" },
    { "blk.%d.ssm_conv1d.weight", TG_SIZE_SSM_CONV, TG_SIZE_TAPS,
      VALUES | TG_WANT_FLOATS | TG_WANT_TAPS },
    { "blk.%d.ssm_dt.bias", TG_SIZE_ONE, TG_SIZE_SSM_HEADS, VALUES, "blk.%d.ssm_heads.bias" },
    { "blk.%d.ssm_a", TG_SIZE_ONE, TG_SIZE_SSM_HEADS, VALUES | TG_WANT_LOGS,
      "blk.%d.ssm_heads.bias" },
    { "blk.%d.ssm_norm.weight", TG_SIZE_ONE, TG_SIZE_DELTA_HEAD, DELTA, "blk.%d.ssm_heads.bias" },
    { "blk.%d.ssm_out.weight", TG_SIZE_WIDTH, TG_SIZE_SSM_INNER, VALUES | TG_WANT_BRANCH },
    { "blk.%d.post_attention_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },
    { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },
};

/* What nobody gave, after the smallest published model: as many heads of keys as of values, whose
 * values together are twice as wide as the model, and of each head of attention a quarter turns. */
static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    tg_config_complete_states(c, c->width < 512 ? 32 : 128);
    if (c->ssm_groups == 0) c->ssm_groups = c->ssm_heads;
    if (c->ssm_state == 0) c->ssm_state = c->ssm_head_size;
    if (c->rope_size == 0 && c->head_size >= 8) c->rope_size = c->head_size / 8 * 2;
    if (c->rope_base[0] == 0) c->rope_base[0] = 1e7f;
    if (c->eps == 0) c->eps = 1e-6f;
}

static const tg_hf_name top[] = { TG_LLAMA_TOP(TG_HF_PLUS_ONE) };
static const tg_hf_name block[] = {
    { "input_layernorm", "attn_norm", TG_HF_PLUS_ONE },
    { "post_attention_layernorm", "post_attention_norm", TG_HF_PLUS_ONE },
    { "self_attn.q_proj", "attn_q", 0 },
    { "self_attn.k_proj", "attn_k", 0 },
    { "self_attn.v_proj", "attn_v", 0 },
    { "self_attn.o_proj", "attn_output", 0 },
    { "self_attn.q_norm", "attn_q_norm", TG_HF_PLUS_ONE },
    { "self_attn.k_norm", "attn_k_norm", TG_HF_PLUS_ONE },
    { "linear_attn.in_proj_qkv", "attn_qkv", 0 },
    { "linear_attn.in_proj_z", "attn_gate", 0 },
    { "linear_attn.in_proj_b", "ssm_beta", 0 },
    { "linear_attn.in_proj_a", "ssm_alpha", 0 },
    { "linear_attn.conv1d", "ssm_conv1d", TG_HF_CHANNELS },
    { "linear_attn.dt_bias", "ssm_dt.bias", TG_HF_WHOLE },
    { "linear_attn.A_log", "ssm_a", TG_HF_WHOLE },
    { "linear_attn.norm", "ssm_norm", 0 },
    { "linear_attn.out_proj", "ssm_out", 0 },
    { "mlp.gate_proj", "ffn_gate", 0 },
    { "mlp.up_proj", "ffn_up", 0 },
    { "mlp.down_proj", "ffn_down", 0 },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = {
    { "vocab_size", "vocab_size", -1 },
    { "num_hidden_layers", "block_count", 0 },
    { "hidden_size", "embedding_length", 0 },
    { "intermediate_size", "feed_forward_length", 0 },
    { "max_position_embeddings", "context_length", 0 },
    { "num_attention_heads", "attention.head_count", 0 },
    { "head_dim", "attention.key_length", 0 },
    { "head_dim", "attention.value_length", 0 },
    { "linear_conv_kernel_dim", "ssm.conv_kernel", 4 },
    { "linear_key_head_dim", "ssm.state_size", 128 },
    { "linear_num_key_heads", "ssm.group_count", 16 },
    { "linear_num_value_heads", "ssm.time_step_rank", 32 },
    { NULL, NULL, 0 },
};
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "attention_bias", "mlp_only_layers", NULL };
static const char *const beside[] = { "model.visual.", "mtp.", NULL };

/* Pairs that turn by time, by rows and by columns, interleaved: 11, 11 and 10 of 32. */
static tg_status put_sections(tg_hf_values *m) {
    const tg_json *rope = tg_hf_member(m, m->root, "rope_parameters");
    const tg_json *list = rope ? tg_json_get(rope, "mrope_section") : NULL;
    static const int64_t usual[] = { 11, 11, 10, 0 };
    uint8_t *to = tg_hf_put_ints(m, "rope.dimension_sections", 4);
    const tg_json *v = list && tg_json_kind(list) == TG_JSON_ARRAY ? tg_json_first(list) : NULL;
    for (size_t i = 0; to && i < 4; i++, v = v ? tg_json_next(v) : NULL) {
        int64_t n = list ? 0 : usual[i];
        if (v && (tg_json_int64(NULL, v, &n) != TG_OK || n < 0 || n > 65536))
            return tg_fail(m->g->ctx, TG_E_FORMAT,
                           "%s: mrope_section: want numbers of pairs, have %.60s", m->where,
                           TG_JSON_SHOWN(list));
        tg_put_u32(to + 4 * i, (uint32_t)n);
    }
    return TG_OK;
}

static tg_status read(tg_hf_values *m) {
    const tg_json *gate = tg_hf_member(m, m->root, "attn_output_gate");
    int64_t heads = 32, size = 128;
    if (gate && tg_json_kind(gate) != TG_JSON_TRUE)
        return tg_fail(m->g->ctx, TG_E_UNSUPPORTED, "%s: attn_output_gate: want true, have %.60s",
                       m->where, TG_JSON_SHOWN(gate));
    if (tg_hf_member(m, m->root, "linear_num_value_heads"))
        TG_TRY(tg_hf_get_int(m, m->root, "linear_num_value_heads", &heads));
    if (tg_hf_member(m, m->root, "linear_value_head_dim"))
        TG_TRY(tg_hf_get_int(m, m->root, "linear_value_head_dim", &size));
    if (heads > 4096 || size > 1024)
        return tg_fail(m->g->ctx, TG_E_FORMAT,
                       "%s: linear_num_value_heads: want up to 4096 of up to 1024, have %d of %d",
                       m->where, (int)heads, (int)size);
    tg_hf_put_int(m, "ssm.inner_size", heads * size);
    return put_sections(m);
}

static void write(tg_json_writer *w, const tg_gguf *g) {
    const tg_gguf_value *inner = tg_gguf_find(g, "qwen35.ssm.inner_size");
    const tg_gguf_value *heads = tg_gguf_find(g, "qwen35.ssm.time_step_rank");
    if (!inner || !heads || heads->whole < 1) return;
    tg_json_key(w, "linear_value_head_dim");
    tg_json_put_int(w, inner->whole / heads->whole);
}

static const tg_hf_family hf = {
    .model_type = "qwen3_5_text",
    .arch = "qwen35",
    .class = "Qwen3_5ForCausalLM",
    TG_LIKE_LLAMA,
    .top = top,
    .block = block,
    .beside = beside,
    .sizes = sizes,
    .act_key = "hidden_act",
    .acts = acts,
    .switches = switches,
    .part = 0.25,
    .other_layer = "linear_attention",
    .recurrent = true,
    .read = read,
    .write = write,
};

const tg_family tg_family_qwen35 = {
    .name = "qwen35",
    .doc = "Qwen 3.5, dense, of text",
    .label = "Qwen 3.5",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .hf = { &hf },
    .fresh = true,
    .other = TG_LAYER_DELTA,
    .attention_every = 4,
    .partial = true,
    .complete = complete,
    .config = config,
    .put = put,
    .graph = graph,
};
