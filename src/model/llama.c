/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llama.c - the families "llama" (Llama 2 and 3, SmolLM2), "qwen2" and "qwen3".
 *
 *   x = E[token]
 *   for each layer:  x = x + W_o attention(rope(norm(x) W_qkv (+ b)))
 *                    x = x + W_down (silu(norm(x) W_gate) * (norm(x) W_up))
 *   logits = norm(x) E^T, or a matrix of its own in E's place
 *
 * norm is the RMS norm, attention is grouped. qwen2 has biases on queries, keys and values, qwen3 a
 * norm on each head before its rotation. Llama's files pair neighbouring rows of queries and keys;
 * Llama 3 stretches its frequencies by factors that are in the file (rope_freqs).
 * Facts: transformers' modeling_llama, modeling_qwen2, modeling_qwen3.
 */
#include "model/lm.h"

static tg_value *layer_of(tg_lm_scope *s, tg_value *x, tg_value *table, tg_value *cache) {
    const tg_lm_config *c = &s->lm->config;
    const tg_attr heads = { .i = { c->heads, c->kv_heads, c->head_size }, .f = { c->eps } };
    tg_attr scaled = heads;
    scaled.f[0] = c->score_scale;
    tg_graph_scope(s->g, "blk.%d", s->layer);

    tg_value *h = tg_rms_norm(s->g, x, tg_lm_vector(s, "attn_norm.weight"), NULL, c->eps);
    tg_value *qkv = tg_lm_linear(s, h, "attn_q", "attn_k", "attn_v", NULL, TG_READ_PLAIN);
    qkv = tg_rope(s->g, qkv, table, tg_lm_vector(s, "attn_q_norm.weight"),
                  tg_lm_vector(s, "attn_k_norm.weight"), &heads);
    tg_value *o = tg_attention_cached(s->g, qkv, tg_kv_append(s->g, cache, qkv, &heads), &scaled);
    x = tg_lm_linear(s, o, "attn_output", NULL, NULL, x, TG_READ_PLAIN);

    h = tg_rms_norm(s->g, x, tg_lm_vector(s, "ffn_norm.weight"), NULL, c->eps);
    h = tg_lm_linear(s, h, "ffn_gate", "ffn_up", NULL, NULL, TG_READ_PLAIN);
    return tg_lm_linear(s, h, "ffn_down", NULL, NULL, x, TG_READ_SILU);
}

static tg_value *graph(tg_graph *g, const tg_lm *lm, tg_value *tokens, tg_value *const *caches) {
    const tg_lm_config *c = &lm->config;
    tg_lm_scope s = { g, lm, -1 };
    tg_value *x = tg_embedding_packed(g, tokens, tg_lm_matrix(&s, "token_embd.weight"), c->width,
                                      c->embed_scale);
    tg_value *table = tg_rope_table(g, x, tg_lm_freq(&s, 0), true);
    for (s.layer = 0; s.layer < c->layers; s.layer++) x = layer_of(&s, x, table, caches[s.layer]);
    s.layer = -1;
    tg_graph_scope(g, "%s", "output");
    x = tg_rms_norm(g, tg_lm_asked(&s, x), tg_lm_vector(&s, "output_norm.weight"), NULL, c->eps);
    return tg_lm_answer(&s, x);
}

/* A window as long as the context hides nothing; a shorter one would. Factors of each frequency
 * (rope_freqs) are read with the weights. */
static tg_status config(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    int32_t window = 0;
    TG_TRY(
        tg_gguf_get_int(g, tg_lm_key(c, "attention.sliding_window", key), 0, INT32_MAX, &window));
    if (window > 0 && window < c->ctx)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "%s: %s: want 0, or the context of %d at least, have %d", g->path, key,
                       (int)c->ctx, (int)window);
    return tg_lm_read_scaling(g, c);
}

#define MATRICES(pairs)                                                                            \
    { "token_embd.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_TABLE },                                \
        { "output_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },                                       \
        { "output.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_OPTIONAL },                             \
        { "blk.%d.attn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },                                  \
        { "blk.%d.attn_q.weight", TG_LM_QUERIES, TG_LM_WIDTH, pairs },                             \
        { "blk.%d.attn_k.weight", TG_LM_KEYS, TG_LM_WIDTH, pairs },                                \
        { "blk.%d.attn_v.weight", TG_LM_KEYS, TG_LM_WIDTH, 0 },                                    \
        { "blk.%d.attn_output.weight", TG_LM_WIDTH, TG_LM_QUERIES, 0 },                            \
        { "blk.%d.ffn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },                                   \
        { "blk.%d.ffn_gate.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },                                   \
        { "blk.%d.ffn_up.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },                                     \
        { "blk.%d.ffn_down.weight", TG_LM_WIDTH, TG_LM_MLP, 0 }

static const tg_lm_want llama[] = { MATRICES(TG_LM_ROPE_PAIRS) };
static const tg_lm_want qwen2[] = {
    MATRICES(0),
    { "blk.%d.attn_q.bias", TG_LM_ONE, TG_LM_QUERIES, 0 },
    { "blk.%d.attn_k.bias", TG_LM_ONE, TG_LM_KEYS, 0 },
    { "blk.%d.attn_v.bias", TG_LM_ONE, TG_LM_KEYS, 0 },
};
static const tg_lm_want qwen3[] = {
    MATRICES(0),
    { "blk.%d.attn_q_norm.weight", TG_LM_ONE, TG_LM_HEAD, 0 },
    { "blk.%d.attn_k_norm.weight", TG_LM_ONE, TG_LM_HEAD, 0 },
};

#define FAMILY(id, text)                                                                           \
    const tg_lm_family tg_lm_family_##id = { .name = #id,                                          \
                                             .doc = text,                                          \
                                             .wants = id,                                          \
                                             .n_wants = sizeof(id) / sizeof(id)[0],                \
                                             .config = config,                                     \
                                             .graph = graph }
FAMILY(llama, "Llama 2 and 3, SmolLM2");
FAMILY(qwen2, "Qwen 2 and 2.5");
FAMILY(qwen3, "Qwen 3");
