/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemma.c - the families "gemma2" and "gemma3".
 *
 *   x = sqrt(C) E[token]
 *   for each layer:  x = x + norm(W_o attention(rope(norm(x) W_qkv)))
 *                    x = x + norm(W_down (gelu(norm(x) W_gate) * (norm(x) W_up)))
 *   logits = norm(x) E^T
 *
 * Norms come before and after each branch; their gains are 1 + w, which files hold added up; gelu
 * is the one with tanh. gemma3 has norms on each head of queries and keys, too; of its layers five
 * of six see a window, and turn by a base of their own. Of gemma2's each second one does, all turn
 * alike, and scores and logits have soft caps. Facts: transformers' modeling_gemma2,
 * modeling_gemma3.
 */
#include "base/math.h"
#include "model/families/llama.h"
#include "model/metadata_put.h"

static tg_value *graph(tg_net *n, tg_value *tokens) {
    tg_value *x = tg_net_tap(n, TG_SITE_STREAM, tg_net_embed(n, tokens, "token_embd"));
    for (n->layer = 0; n->layer < n->config->layers; n->layer++) {
        const bool windowed = tg_windowed(n->config, n->layer);
        tg_value *h = tg_net_norm(n, x, "attn_norm");
        h = tg_net_rope(n, tg_net_linear(n, h, "attn_qkv", TG_READ_PLAIN));
        h = tg_net_attention(n, h, windowed ? n->config->window : 0);
        h = tg_net_linear(n, h, "attn_output", TG_READ_PLAIN);
        x = tg_net_norm_add(n, h, "post_attention_norm", x, TG_SITE_ATTENTION);

        h = tg_net_linear(n, tg_net_norm(n, x, "ffn_norm"), "ffn_gate_up", TG_READ_PLAIN);
        h = tg_net_linear(n, h, "ffn_down", TG_READ_GELU_TANH);
        x = tg_net_norm_add(n, h, "post_ffw_norm", x, TG_SITE_MLP);
        x = tg_net_tap(n, TG_SITE_STREAM, x);
    }
    return tg_net_head(n, x);
}

/* Of EmbeddingGemma, whose attention sees both ways, and whose texts' means go through two
 * matrices. They are linear, so the mean of what tokens become by them is what the mean becomes:
 * each token goes through them here, and pooling stays the last step of all. */
static tg_value *encode(tg_net *n) {
    tg_value *x = graph(n, n->texts->tokens);
    if (!tg_net_has(n, "dense_2") && !tg_net_has(n, "dense_3")) return x;
    return tg_net_linear(n, tg_net_linear(n, x, "dense_2", TG_READ_PLAIN), "dense_3",
                         TG_READ_PLAIN);
}

/* What both have: the window, its rhythm and its base, the latter two in files of llama.cpp only
 * where they are other ones than c has already. The model of so many layers divides scores by
 * another root than the others: its heads are fewer than its width would have. */
static tg_status config(const tg_gguf *g, tg_model_config *c, int32_t layers_of_largest) {
    char key[TG_KEY_BYTES];
    c->embed_scale = (float)tg_sqrt((double)c->width);
    TG_TRY(tg_gguf_get_int(g, tg_config_key(c, "attention.sliding_window", key), 0, 1 << 24,
                           &c->window));
    TG_TRY(tg_gguf_get_period(g, tg_config_key(c, "attention.sliding_window_pattern", key),
                              (size_t)c->layers, &c->window_every));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.freq_base_swa", key), &c->rope_base[1]));
    if (c->layers == layers_of_largest &&
        !tg_gguf_find(g, tg_config_key(c, "attention.scale", key)))
        c->score_scale = (float)(1 / tg_sqrt((double)(c->width / c->heads)));
    return TG_OK;
}

/* Keys with global and local are those of Ollama's converter. */
static tg_status config3(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    c->rope_base[1] = 1e4f;
    c->window_every = 6;
    TG_TRY(tg_config_read_scaling(g, c));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.global.freq_base", key), &c->rope_base[0]));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "rope.local.freq_base", key), &c->rope_base[1]));
    return config(g, c, 62);
}

static tg_status config_embedding(const tg_gguf *g, tg_model_config *c) {
    TG_TRY(tg_config_want_encoder(g, c));
    return config3(g, c);
}

/* Caps and a window that a file does not state are the published ones. */
#define SCORE_CAP 50
#define LOGIT_CAP 30
static tg_status config2(const tg_gguf *g, tg_model_config *c) {
    char key[TG_KEY_BYTES];
    c->window_every = 2;
    c->window = 4096;
    c->score_cap = SCORE_CAP;
    c->logit_cap = LOGIT_CAP;
    c->rope_base[1] = c->rope_base[0];
    TG_TRY(config(g, c, 46));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "attn_logit_softcapping", key), &c->score_cap));
    TG_TRY(tg_gguf_get_float(g, tg_config_key(c, "final_logit_softcapping", key), &c->logit_cap));
    if (c->score_cap >= 0 && c->logit_cap >= 0) return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT, "%s: soft caps: want 0 or more, have %g and %g", g->path,
                   (double)c->score_cap, (double)c->logit_cap);
}

static void put2(tg_metadata *m) {
    tg_config_put_kv_heads(m);
    tg_config_put_attention(m);
    tg_config_put_float(m, "attn_logit_softcapping", m->c->score_cap);
    tg_config_put_float(m, "final_logit_softcapping", m->c->logit_cap);
}

#define WANTS(...)                                                                                 \
    { "token_embd.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_TABLE },                          \
        { "output_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                                   \
        { "output.weight", TG_SIZE_VOCAB, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },                       \
        { "blk.%d.attn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                              \
        { "blk.%d.attn_q.weight", TG_SIZE_QUERIES, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },   \
        { "blk.%d.attn_k.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },      \
        { "blk.%d.attn_v.weight", TG_SIZE_KEYS, TG_SIZE_WIDTH, 0, "blk.%d.attn_qkv.weight" },      \
        __VA_ARGS__ { "blk.%d.attn_output.weight", TG_SIZE_WIDTH, TG_SIZE_QUERIES,                 \
                      TG_WANT_BRANCH },                                                            \
        { "blk.%d.post_attention_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                    \
        { "blk.%d.ffn_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 },                               \
        { "blk.%d.ffn_gate.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },  \
        { "blk.%d.ffn_up.weight", TG_SIZE_MLP, TG_SIZE_WIDTH, 0, "blk.%d.ffn_gate_up.weight" },    \
        { "blk.%d.ffn_down.weight", TG_SIZE_WIDTH, TG_SIZE_MLP, TG_WANT_BRANCH },                  \
        { "blk.%d.post_ffw_norm.weight", TG_SIZE_ONE, TG_SIZE_WIDTH, 0 }
static const tg_want wants2[] = { WANTS() };
#define HEAD_NORMS                                                                                 \
    { "blk.%d.attn_q_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, 0 },                                 \
        { "blk.%d.attn_k_norm.weight", TG_SIZE_ONE, TG_SIZE_HEAD, 0 },
static const tg_want wants3[] = { WANTS(HEAD_NORMS) };
static const tg_want wants_embedding[] = {
    WANTS(HEAD_NORMS),
    { "dense_2.weight", TG_SIZE_ANY, TG_SIZE_WIDTH, TG_WANT_OPTIONAL },
    { "dense_3.weight", TG_SIZE_WIDTH, TG_SIZE_ANY, TG_WANT_OPTIONAL },
};

/* Fresh ones have the rhythm and the bases of the published ones. */
static void complete(tg_model_config *c, int32_t window_every, float rope_base) {
    c->tied = 1;
    if (c->mlp == 0) c->mlp = tg_gated_mlp(c->width);
    if (c->window > 0 && c->window_every == 0) c->window_every = window_every;
    if (c->embed_scale == 0) c->embed_scale = (float)tg_sqrt((double)c->width);
    if (c->rope_base[0] == 0) c->rope_base[0] = rope_base;
    if (c->eps == 0) c->eps = 1e-6f;
}
static void complete2(tg_model_config *c) {
    complete(c, 2, 1e4f);
    if (c->rope_base[1] == 0) c->rope_base[1] = c->rope_base[0];
    if (c->score_cap == 0) c->score_cap = SCORE_CAP;
    if (c->logit_cap == 0) c->logit_cap = LOGIT_CAP;
}
static void complete3(tg_model_config *c) { complete(c, 6, 1e6f); }

/* The first name that fits counts: norms of heads are those with 1 added. */
static const tg_hf_name top[] = { TG_LLAMA_TOP(TG_HF_PLUS_ONE) };
static const tg_hf_name top_embedding[] = { { "2_Dense/linear", "dense_2", 0 },
                                            { "3_Dense/linear", "dense_3", 0 },
                                            TG_LLAMA_TOP(TG_HF_PLUS_ONE) };
static const tg_hf_name block[] = {
    { "self_attn.q_norm", "attn_q_norm", TG_HF_PLUS_ONE },
    { "self_attn.k_norm", "attn_k_norm", TG_HF_PLUS_ONE },
    TG_LLAMA_LAYER,
    { "input_layernorm", "attn_norm", TG_HF_PLUS_ONE },
    { "post_attention_layernorm", "post_attention_norm", TG_HF_PLUS_ONE },
    { "pre_feedforward_layernorm", "ffn_norm", TG_HF_PLUS_ONE },
    { "post_feedforward_layernorm", "post_ffw_norm", TG_HF_PLUS_ONE },
    { NULL, NULL, 0 },
};
static const tg_hf_size sizes[] = { TG_LLAMA_SIZES(256),
                                    { "sliding_window", "attention.sliding_window", 4096 },
                                    { NULL, NULL, 0 } };
static const char *const acts[] = { "gelu_pytorch_tanh", NULL };
static const char *const switches2[] = { "use_bidirectional_attention", NULL };
static const char *const switches_embedding[] = { "attn_logit_softcapping",
                                                  "final_logit_softcapping", NULL };
static const char *const switches3[] = { "use_bidirectional_attention", "attn_logit_softcapping",
                                         "final_logit_softcapping", NULL };

/* null says that there is none, and a missing key the published one. */
static tg_status read_cap(tg_hf_values *m, const char *key, double cap) {
    const bool there = tg_json_get(m->root, key) != NULL;
    if (there && !tg_hf_member(m, m->root, key)) cap = 0;
    TG_TRY(tg_hf_get_float(m, m->root, key, &cap));
    tg_hf_put_float(m, key, cap);
    return TG_OK;
}
static tg_status read_caps(tg_hf_values *m) {
    TG_TRY(read_cap(m, "attn_logit_softcapping", SCORE_CAP));
    return read_cap(m, "final_logit_softcapping", LOGIT_CAP);
}

static void write_cap(tg_json_writer *w, const tg_gguf *g, const char *ours, double cap) {
    const tg_gguf_value *v = tg_gguf_find(g, ours);
    tg_json_key(w, ours + strlen("gemma2."));
    if (v) cap = v->real;
    if (cap > 0)
        tg_json_put_real(w, cap);
    else
        tg_json_put_null(w);
}
static void write_caps(tg_json_writer *w, const tg_gguf *g) {
    write_cap(w, g, "gemma2.attn_logit_softcapping", SCORE_CAP);
    write_cap(w, g, "gemma2.final_logit_softcapping", LOGIT_CAP);
}

#define HF(n, type, ...)                                                                           \
    static const tg_hf_family hf##n = { .model_type = type,                                        \
                                        .arch = "gemma" #n,                                        \
                                        .class = "Gemma" #n "ForCausalLM",                         \
                                        TG_LIKE_LLAMA,                                             \
                                        .top = top,                                                \
                                        .block = block,                                            \
                                        .sizes = sizes,                                            \
                                        .act_key = "hidden_activation",                            \
                                        .acts = acts,                                              \
                                        .switches = switches##n,                                   \
                                        .tied = true,                                              \
                                        __VA_ARGS__ }
#define FAMILY(n, ...)                                                                             \
    const tg_family tg_family_gemma##n = { .name = "gemma" #n,                                     \
                                           .doc = "Gemma " #n,                                     \
                                           .label = "Gemma " #n,                                   \
                                           .wants = wants##n,                                      \
                                           .n_wants = sizeof wants##n / sizeof wants##n[0],        \
                                           .hf = { &hf##n },                                       \
                                           .fresh = true,                                          \
                                           .windows = true,                                        \
                                           .complete = complete##n,                                \
                                           .config = config##n,                                    \
                                           .graph = graph,                                         \
                                           __VA_ARGS__ }
HF(2, "gemma2", .window_every = 2, .query_scalar = true, .read = read_caps, .write = write_caps);
HF(3, "gemma3_text", .window_every = 6, .query_scalar = true, .local_rope = true, .local_base = 1e4,
   .rope_base = 1e6);

static void write_both_ways(tg_json_writer *w, const tg_gguf *g) {
    (void)g;
    tg_json_key(w, "use_bidirectional_attention");
    tg_json_put_bool(w, true);
}
static const tg_hf_family hf_embedding = { .model_type = "gemma3_text",
                                           .arch = "gemma-embedding",
                                           .class = "Gemma3TextModel",
                                           TG_LIKE_LLAMA,
                                           .top = top_embedding,
                                           .block = block,
                                           .sizes = sizes,
                                           .act_key = "hidden_activation",
                                           .acts = acts,
                                           .switches = switches_embedding,
                                           .tied = true,
                                           .window_every = 6,
                                           .query_scalar = true,
                                           .local_rope = true,
                                           .local_base = 1e4,
                                           .rope_base = 1e6,
                                           .encoder = true,
                                           .both_ways = true,
                                           .write = write_both_ways };
const tg_family tg_family_gemma_embedding = { .name = "gemma-embedding",
                                              .doc = "EmbeddingGemma: embeddings",
                                              .label = "EmbeddingGemma",
                                              .wants = wants_embedding,
                                              .n_wants = sizeof wants_embedding /
                                                         sizeof wants_embedding[0],
                                              .hf = { &hf_embedding },
                                              .windows = true,
                                              .linear_behind = true,
                                              .config = config_embedding,
                                              .encode = encode };
FAMILY(2, .caps = true, .put = put2);
FAMILY(3, .caps = false);
