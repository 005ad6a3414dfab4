/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemma3.c - the family "gemma3".
 *
 *   x = sqrt(C) E[token]
 *   for each layer:  x = x + norm(W_o attention(rope(norm(x) W_qkv)))
 *                    x = x + norm(W_down (gelu(norm(x) W_gate) * (norm(x) W_up)))
 *   logits = norm(x) E^T
 *
 * Norms come before and after each branch, and on each head of queries and keys; their gains are
 * 1 + w, which files hold added up. Five layers of six see a window and turn by a base of their
 * own; gelu is the one with tanh. Facts: transformers' modeling_gemma3.
 */
#include "base/math.h"
#include "model/lm.h"

static tg_value *layer_of(tg_lm_scope *s, tg_value *x, tg_value *const table[2], tg_value *cache) {
    const tg_lm_config *c = &s->lm->config;
    const bool windowed = tg_lm_windowed(c, s->layer);
    const tg_attr heads = { .i = { c->heads, c->kv_heads, c->head_size }, .f = { c->eps } };
    tg_attr scaled = heads;
    scaled.f[0] = c->score_scale;
    scaled.i[3] = windowed ? c->window : 0;
    tg_graph_scope(s->g, "blk.%d", s->layer);

    tg_value *h = tg_rms_norm(s->g, x, tg_lm_vector(s, "attn_norm.weight"), NULL, c->eps);
    tg_value *qkv = tg_lm_linear(s, h, "attn_q", "attn_k", "attn_v", NULL, TG_READ_PLAIN);
    qkv = tg_rope(s->g, qkv, table[windowed], tg_lm_vector(s, "attn_q_norm.weight"),
                  tg_lm_vector(s, "attn_k_norm.weight"), &heads);
    tg_value *o = tg_attention_cached(s->g, qkv, tg_kv_append(s->g, cache, qkv, &heads), &scaled);
    o = tg_lm_linear(s, o, "attn_output", NULL, NULL, NULL, TG_READ_PLAIN);
    x = tg_rms_norm(s->g, o, tg_lm_vector(s, "post_attention_norm.weight"), x, c->eps);

    h = tg_rms_norm(s->g, x, tg_lm_vector(s, "ffn_norm.weight"), NULL, c->eps);
    h = tg_lm_linear(s, h, "ffn_gate", "ffn_up", NULL, NULL, TG_READ_PLAIN);
    h = tg_lm_linear(s, h, "ffn_down", NULL, NULL, NULL, TG_READ_GELU_TANH);
    return tg_rms_norm(s->g, h, tg_lm_vector(s, "post_ffw_norm.weight"), x, c->eps);
}

static tg_value *graph(tg_graph *g, const tg_lm *lm, tg_value *tokens, tg_value *const *caches) {
    const tg_lm_config *c = &lm->config;
    tg_lm_scope s = { g, lm, -1 };
    tg_value *x = tg_embedding_packed(g, tokens, tg_lm_matrix(&s, "token_embd.weight"), c->width,
                                      c->embed_scale);
    tg_value *const table[2] = { tg_rope_table(g, x, tg_lm_freq(&s, 0), true),
                                 tg_rope_table(g, x, tg_lm_freq(&s, 1), true) };
    for (s.layer = 0; s.layer < c->layers; s.layer++) x = layer_of(&s, x, table, caches[s.layer]);
    s.layer = -1;
    tg_graph_scope(g, "%s", "output");
    x = tg_rms_norm(g, tg_lm_asked(&s, x), tg_lm_vector(&s, "output_norm.weight"), NULL, c->eps);
    return tg_lm_answer(&s, x);
}

/* The base of the windows and their rhythm are in files of llama.cpp only where they are other
 * ones. The largest model divides scores by another root than the others: its heads are fewer than
 * its width would have. Keys with global and local are those of Ollama's converter. */
static tg_status config(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    c->rope_base[1] = 1e4f;
    c->window_every = 6;
    TG_TRY(
        tg_gguf_get_int(g, tg_lm_key(c, "attention.sliding_window", key), 0, 1 << 24, &c->window));
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "attention.sliding_window_pattern", key), 1, 512,
                           &c->window_every));
    TG_TRY(tg_lm_read_scaling(g, c));
    c->embed_scale = (float)tg_sqrt((double)c->width);
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.global.freq_base", key), &c->rope_base[0]));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.local.freq_base", key), &c->rope_base[1]));
    TG_TRY(tg_gguf_get_float(g, tg_lm_key(c, "rope.freq_base_swa", key), &c->rope_base[1]));
    if (c->layers == 62 && !tg_gguf_find(g, tg_lm_key(c, "attention.scale", key)))
        c->score_scale = (float)(1 / tg_sqrt((double)(c->width / c->heads)));
    return TG_OK;
}

static const tg_lm_want wants[] = {
    { "token_embd.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_TABLE },
    { "output_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "output.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_LM_QUERIES, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_k.weight", TG_LM_KEYS, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_v.weight", TG_LM_KEYS, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_q_norm.weight", TG_LM_ONE, TG_LM_HEAD, 0 },
    { "blk.%d.attn_k_norm.weight", TG_LM_ONE, TG_LM_HEAD, 0 },
    { "blk.%d.attn_output.weight", TG_LM_WIDTH, TG_LM_QUERIES, 0 },
    { "blk.%d.post_attention_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_gate.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_down.weight", TG_LM_WIDTH, TG_LM_MLP, 0 },
    { "blk.%d.post_ffw_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
};

const tg_lm_family tg_lm_family_gemma3 = {
    .name = "gemma3",
    .doc = "Gemma 3",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .config = config,
    .graph = graph,
};
