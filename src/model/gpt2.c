/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt2.c - the family "gpt2", of any vocabulary (gpt.c is the one that is trained here).
 *
 *   x = E[token] + P[position]
 *   for each layer:  x = x + W_o attention(norm(x) W_qkv + b) + b_o
 *                    x = x + W_down gelu(norm(x) W_up + b) + b_down
 *   logits = norm(x) E^T, or a matrix of its own in E's place
 *
 * norm is the layer norm; gelu is the one by tanh, unless the file says that it is the exact one.
 * Facts: transformers' modeling_gpt2.
 */
#include "model/lm.h"

static tg_value *layer_of(tg_lm_scope *s, tg_value *x, tg_value *cache) {
    const tg_lm_config *c = &s->lm->config;
    const tg_attr heads = { .i = { c->heads, c->heads, c->head_size }, .f = { c->score_scale } };
    tg_graph_scope(s->g, "blk.%d", s->layer);

    tg_value *h = tg_lm_layer_norm(s, x, "attn_norm");
    tg_value *qkv = tg_lm_linear(s, h, "attn_qkv", NULL, NULL, NULL, TG_READ_PLAIN);
    tg_value *o = tg_attention_cached(s->g, qkv, tg_kv_append(s->g, cache, qkv, &heads), &heads);
    x = tg_lm_linear(s, o, "attn_output", NULL, NULL, x, TG_READ_PLAIN);

    h = tg_lm_layer_norm(s, x, "ffn_norm");
    h = tg_lm_linear(s, h, "ffn_up", NULL, NULL, NULL, TG_READ_PLAIN);
    h = tg_gelu(s->g, h, c->gelu_erf ? TG_ACT_GELU_ERF : TG_ACT_GELU_TANH);
    return tg_lm_linear(s, h, "ffn_down", NULL, NULL, x, TG_READ_PLAIN);
}

static tg_value *graph(tg_graph *g, const tg_lm *lm, tg_value *tokens, tg_value *const *caches) {
    tg_lm_scope s = { g, lm, -1 };
    tg_value *x =
        tg_embedding_packed(g, tokens, tg_lm_matrix(&s, "token_embd.weight"), lm->config.width, 1);
    x = tg_position_add(g, x, tg_lm_floats(&s, "position_embd.weight"), true);
    for (s.layer = 0; s.layer < lm->config.layers; s.layer++) x = layer_of(&s, x, caches[s.layer]);
    s.layer = -1;
    tg_graph_scope(g, "%s", "output");
    x = tg_lm_layer_norm(&s, tg_lm_asked(&s, x), "output_norm");
    return tg_lm_answer(&s, x);
}

/* The key is ours: nobody else's files have the exact gelu. */
static tg_status config(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    tg_gguf_string activation = { "", 0 };
    TG_TRY(tg_gguf_get_string(g, tg_lm_key(c, "activation", key), &activation));
    c->gelu_erf = activation.n_bytes == 8 && memcmp(activation.bytes, "gelu_erf", 8) == 0;
    if (c->gelu_erf || activation.n_bytes == 0) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want gelu_erf or none, have '%.*s'", g->path,
                   key, (int)(activation.n_bytes < 32 ? activation.n_bytes : 32), activation.bytes);
}

static const tg_lm_want wants[] = {
    { "token_embd.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_TABLE },
    { "position_embd.weight", TG_LM_CTX, TG_LM_WIDTH, TG_LM_FLOATS },
    { "output_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "output_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "output.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_OPTIONAL },
    { "blk.%d.attn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_qkv.weight", TG_LM_QKV, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_qkv.bias", TG_LM_ONE, TG_LM_QKV, 0 },
    { "blk.%d.attn_output.weight", TG_LM_WIDTH, TG_LM_QUERIES, 0 },
    { "blk.%d.attn_output.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_up.bias", TG_LM_ONE, TG_LM_MLP, 0 },
    { "blk.%d.ffn_down.weight", TG_LM_WIDTH, TG_LM_MLP, 0 },
    { "blk.%d.ffn_down.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
};

const tg_lm_family tg_lm_family_gpt2 = {
    .name = "gpt2",
    .doc = "GPT-2",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .config = config,
    .graph = graph,
};
