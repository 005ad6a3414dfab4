/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe.c - the families "qwen3moe" (Qwen 3 30B-A3B and its like), "olmoe" (OLMoE) and "granitemoe"
 * (Granite 3 MoE): Llama with routed experts in the place of each MLP.
 *
 *   x = E[token]
 *   for each layer:  x = x + W_o attention(rope(norm(x) W_qkv))
 *                    h = norm(x), whose k experts are those of the greatest logits h W_router
 *                    x = x + sum over them of weight W_down (silu(h W_gate) * (h W_up))
 *   logits = norm(x) E^T, or a matrix of its own in E's place
 *
 * qwen3moe has a norm on each head of queries and keys before the rotation, olmoe one on all heads
 * together, and granitemoe scales embeddings, branches and logits. The weights of the k sum to 1,
 * but in olmoe: there they are shares of all. Training adds no loss that balances the experts. GGUF
 * has the matrices of a layer's experts in one tensor, transformers one by one, or, of Granite,
 * gates and values of each in one. Facts: transformers' modeling_qwen3_moe, modeling_olmoe and
 * modeling_granitemoe.
 */
#include "model/families/granite.h"
#include "model/families/llama.h"
#include "model/metadata_put.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_rope(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, 0);
        x = tg_net_project(n, h, "attn_output", TG_READ_PLAIN, x, TG_SITE_ATTENTION);
        h = tg_net_norm(n, x, "ffn_norm");
        x = tg_net_experts(n, h, TG_READ_SILU, x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* feed_forward_length is the width of an expert, unless there is a key for that: then it is of
 * layers without experts, of which there are none. */
static tg_status config(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    const tg_family *f = tg_family_of(c);
    bool sums = f->experts_weigh == TG_EXPERTS_SUM_TO_1;
    TG_TRY(tg_config_want_int(g, c, "expert_count", 1024, &c->experts));
    TG_TRY(tg_config_want_int(g, c, "expert_used_count", c->experts, &c->experts_used));
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "expert_feed_forward_length", key), 1, 262144,
                           &c->mlp));
    TG_TRY(tg_gguf_get_bool(g, tg_config_key(c, "expert_weights_norm", key), &sums));
    c->experts_weigh = sums ? TG_EXPERTS_SUM_TO_1 : TG_EXPERTS_SHARES;
    if (f->scales) TG_TRY(tg_config_read_scales(g, c));
    return tg_config_read_scaling(g, c);
}

/* The width of each expert is stated as feed_forward_length, too. */
static void put(tg_metadata *m) {
    const tg_model_config *c = m->c;
    tg_config_put_kv_heads(m);
    if (tg_family_of(c)->scales) tg_config_put_scales(m);
    tg_config_put_int(m, "expert_count", c->experts);
    tg_config_put_int(m, "expert_used_count", c->experts_used);
    tg_config_put_int(m, "expert_feed_forward_length", c->mlp);
    tg_config_put_bool(m, "expert_weights_norm", c->experts_weigh == TG_EXPERTS_SUM_TO_1);
    tg_config_put_attention(m);
}

#define QKV "blk.%d.attn_qkv.weight"
#define WANTS(pairs)                                                                               \
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },                          \
        { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                                   \
        { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                       \
        { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                              \
        { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, pairs, QKV },                    \
        { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, pairs, QKV },                       \
        { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, QKV },                           \
        { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES, TG_WANT_BRANCH },           \
        { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                               \
        { "blk.%d.ffn_gate_inp.weight", TG_SIZE_EXPERTS, TG_SIZE_WIDTH, TG_WANT_FLOATS },          \
        { "blk.%d.ffn_gate_exps.weight", TG_SIZE_EXPERTS_MLP, TG_SIZE_WIDTH, TG_WANT_EXPERTS },    \
        { "blk.%d.ffn_up_exps.weight", TG_SIZE_EXPERTS_MLP, TG_SIZE_WIDTH, TG_WANT_EXPERTS }, {    \
        "blk.%d.ffn_down_exps.weight", TG_SIZE_EXPERTS_WIDTH, TG_SIZE_MLP,                         \
            TG_WANT_EXPERTS | TG_WANT_BRANCH                                                       \
    }
#define NORMS(queries, keys)                                                                       \
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, queries, 0 },                                      \
        { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, keys, 0 }
static const tg_want qwen3moe[] = { WANTS(0), NORMS(TG_SIZE_HEAD, TG_SIZE_HEAD) };
static const tg_want olmoe[] = { WANTS(0), NORMS(TG_SIZE_QUERIES, TG_SIZE_KEYS) };
static const tg_want granitemoe[] = { WANTS(TG_WANT_ROPE_PAIRS) };

/* Eight experts of which two together are as wide as an MLP would be. */
static void complete(tg_model_config *c) {
    c->tied = 1;
    if (c->experts == 0) c->experts = 8;
    if (c->experts_used == 0) c->experts_used = c->experts < 2 ? c->experts : 2;
    if (c->mlp == 0) c->mlp = (tg_gated_mlp(c->width) / 2 + 15) / 16 * 16;
}

/* Since version 5 transformers has gates and values side by side in memory, which others save so.
 */
#define FUSED(room)                                                                                \
    { room "experts.gate_up_proj", "ffn_gate_exps.weight", TG_HF_WHOLE | TG_HF_HALVES },           \
        { room "experts.gate_up_proj", "ffn_up_exps.weight", TG_HF_WHOLE | TG_HF_HALVES }, {       \
        room "experts.down_proj", "ffn_down_exps.weight", TG_HF_WHOLE                              \
    }
#define LAYER_NORMS                                                                                \
    { "input_layernorm", "attn_norm", 0 }, { "post_attention_layernorm", "ffn_norm", 0 }

static const tg_hf_name top[] = { TG_LLAMA_TOP(0) };
static const tg_hf_name block[] = {
    TG_LLAMA_LAYER,
    LAYER_NORMS,
    { "mlp.gate", "ffn_gate_inp", 0 },
    { "mlp.experts.%d.gate_proj", "ffn_gate_exps", TG_HF_EXPERTS },
    { "mlp.experts.%d.up_proj", "ffn_up_exps", TG_HF_EXPERTS },
    { "mlp.experts.%d.down_proj", "ffn_down_exps", TG_HF_EXPERTS },
    FUSED("mlp."),
    { NULL, NULL, 0 },
};
static const tg_hf_name block_of_granite[] = {
    TG_LLAMA_LAYER,
    LAYER_NORMS,
    { "block_sparse_moe.router.layer", "ffn_gate_inp", 0 },
    { "block_sparse_moe.router", "ffn_gate_inp", 0 },
    { "block_sparse_moe.input_linear", "ffn_gate_exps", TG_HF_HALVES },
    { "block_sparse_moe.input_linear", "ffn_up_exps", TG_HF_HALVES },
    { "block_sparse_moe.output_linear", "ffn_down_exps", 0 },
    FUSED("block_sparse_moe."),
    { NULL, NULL, 0 },
};

#define USED { "num_experts_per_tok", "expert_used_count", 0 }
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(-1), USED, { NULL, NULL, 0 } };
static const tg_hf_size sizes_of_qwen[] = {
    TG_LLAMA_SIZES(-1),
    USED,
    { "moe_intermediate_size", "expert_feed_forward_length", 0 },
    { NULL, NULL, 0 },
};
static const char *const acts[] = { "silu", NULL };
static const char *const switches[] = { "attention_bias", "use_sliding_window", "mlp_only_layers",
                                        "clip_qkv", NULL };

/* As tg_config_complete has it; tensors are joined by this number before it is asked. */
enum { EXPERTS_MAX = 1024 };

/* Either name of how many there are; and what else tells layers apart. */
static tg_status read(tg_hf_values *m) {
    int64_t experts = 0, step = 1;
    const bool local = tg_hf_member(m, m->root, "num_local_experts") != NULL;
    TG_TRY(tg_hf_get_int(m, m->root, local ? "num_local_experts" : "num_experts", &experts));
    if (experts > EXPERTS_MAX)
        return tg_fail(m->g->ctx, TG_E_FORMAT, "%s: %s: want 1..%d experts, have %" PRId64,
                       m->where, local ? "num_local_experts" : "num_experts", EXPERTS_MAX, experts);
    tg_hf_put_int(m, "expert_count", experts);
    const tg_json *sums = tg_hf_member(m, m->root, "norm_topk_prob");
    if (strcmp(m->family->arch, "granitemoe") == 0) return tg_granite_read_scales(m);
    tg_hf_put_bool(m, "expert_weights_norm", sums && tg_json_kind(sums) == TG_JSON_TRUE);
    if (tg_hf_member(m, m->root, "decoder_sparse_step"))
        TG_TRY(tg_hf_get_int(m, m->root, "decoder_sparse_step", &step));
    if (step == 1) return TG_OK;
    return tg_fail(m->g->ctx, TG_E_UNSUPPORTED,
                   "%s: decoder_sparse_step: want 1, experts in all layers, have %d", m->where,
                   (int)step);
}

static const tg_gguf_value *value(const tg_gguf *g, const char *arch, const char *name) {
    char key[TG_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", arch, name);
    return tg_gguf_find(g, key);
}

static void write_of(tg_json_writer *w, const tg_gguf *g, const char *arch, const char *count) {
    const tg_gguf_value *experts = value(g, arch, "expert_count");
    const tg_gguf_value *sums = value(g, arch, "expert_weights_norm");
    tg_json_key(w, count);
    tg_json_put_int(w, experts ? experts->whole : 0);
    if (strcmp(arch, "granitemoe") == 0) return;
    tg_json_key(w, "norm_topk_prob");
    tg_json_put_bool(w, sums ? sums->whole != 0
                             : tg_family_find(arch)->experts_weigh == TG_EXPERTS_SUM_TO_1);
}
static void write_qwen(tg_json_writer *w, const tg_gguf *g) {
    write_of(w, g, "qwen3moe", "num_experts");
    tg_json_key(w, "decoder_sparse_step");
    tg_json_put_int(w, 1);
}
static void write_olmoe(tg_json_writer *w, const tg_gguf *g) {
    write_of(w, g, "olmoe", "num_experts");
}
static void write_granite(tg_json_writer *w, const tg_gguf *g) {
    write_of(w, g, "granitemoe", "num_local_experts");
    tg_granite_write_scales(w, g, "granitemoe");
}

#define HF(id, type, class_name, default_eps, block_table, sizes_table, ...)                       \
    static const tg_hf_family hf_##id = { .model_type = type,                                      \
                                          .arch = #id,                                             \
                                          .class = class_name,                                     \
                                          TG_LIKE_LLAMA_OF(default_eps),                           \
                                          .top = top,                                              \
                                          .block = block_table,                                    \
                                          .sizes = sizes_table,                                    \
                                          .act_key = "hidden_act",                                 \
                                          .acts = acts,                                            \
                                          .switches = switches,                                    \
                                          .read = read,                                            \
                                          __VA_ARGS__ }
#define FAMILY(id, short_name, text, ...)                                                          \
    const tg_family tg_family_##id = { .name = #id,                                                \
                                       .doc = text,                                                \
                                       .label = short_name,                                        \
                                       .wants = id,                                                \
                                       .n_wants = sizeof id / sizeof id[0],                        \
                                       .hf = { &hf_##id },                                         \
                                       .fresh = true,                                              \
                                       .complete = complete,                                       \
                                       .config = config,                                           \
                                       .put = put,                                                 \
                                       .graph = graph,                                             \
                                       __VA_ARGS__ }
HF(qwen3moe, "qwen3_moe", "Qwen3MoeForCausalLM", 1e-6, block, sizes_of_qwen, .write = write_qwen);
HF(olmoe, "olmoe", "OlmoeForCausalLM", 1e-5, block, sizes, .write = write_olmoe);
HF(granitemoe, "granitemoe", "GraniteMoeForCausalLM", 1e-6, block_of_granite, sizes,
   .write = write_granite);
FAMILY(qwen3moe, "Qwen 3 MoE", "Qwen 3 with routed experts", .experts_weigh = TG_EXPERTS_SUM_TO_1);
FAMILY(olmoe, "OLMoE", "OLMoE", .experts_weigh = TG_EXPERTS_SHARES);
FAMILY(granitemoe, "Granite MoE", "Granite 3 with routed experts",
       .experts_weigh = TG_EXPERTS_SUM_TO_1, .scales = true);
