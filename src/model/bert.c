/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bert.c - the family "bert": encoders, whose vectors become the embedding of a text (MiniLM).
 *
 *   x = norm(E[token] + P[position] + S[0])
 *   for each layer:  x = norm(x + W_o attention(x W_qkv + b) + b_o)
 *                    x = norm(x + W_down gelu(x W_up + b) + b_down)
 *
 * norm is the layer norm, and comes behind each branch; attention sees a whole text, both ways;
 * gelu is the exact one. S tells the two texts of a pair apart: there is one text here. Facts:
 * transformers' modeling_bert.
 */
#include "model/lm.h"

static tg_value *layer_of(tg_lm_scope *s, tg_value *x, tg_value *spans) {
    const tg_lm_config *c = &s->lm->config;
    const tg_attr heads = { .i = { c->heads, c->heads, c->head_size }, .f = { c->score_scale } };
    tg_graph_scope(s->g, "blk.%d", s->layer);

    tg_value *qkv = tg_lm_linear(s, x, "attn_q", "attn_k", "attn_v", NULL, TG_READ_PLAIN);
    tg_value *o = tg_attention_spans(s->g, qkv, spans, &heads);
    x = tg_lm_linear(s, o, "attn_output", NULL, NULL, x, TG_READ_PLAIN);
    x = tg_lm_layer_norm(s, x, "attn_output_norm");

    tg_value *h = tg_lm_linear(s, x, "ffn_up", NULL, NULL, NULL, TG_READ_PLAIN);
    h = tg_gelu(s->g, h, TG_ACT_GELU_ERF);
    x = tg_lm_linear(s, h, "ffn_down", NULL, NULL, x, TG_READ_PLAIN);
    return tg_lm_layer_norm(s, x, "layer_output_norm");
}

static tg_value *encode(tg_graph *g, const tg_lm *lm, const tg_lm_texts *in) {
    const int32_t width = lm->config.width;
    tg_lm_scope s = { g, lm, -1 };
    tg_value *x =
        tg_embedding_packed(g, in->tokens, tg_lm_matrix(&s, "token_embd.weight"), width, 1);
    tg_value *p =
        tg_embedding_packed(g, in->positions, tg_lm_matrix(&s, "position_embd.weight"), width, 1);
    tg_value *kind =
        tg_embedding_packed(g, in->kinds, tg_lm_matrix(&s, "token_types.weight"), width, 1);
    x = tg_lm_layer_norm(&s, tg_add(g, tg_add(g, x, kind), p), "token_embd_norm");
    for (s.layer = 0; s.layer < lm->config.layers; s.layer++) x = layer_of(&s, x, in->spans);
    return x;
}

static tg_status config(const tg_gguf *g, tg_lm_config *c) {
    char key[TG_LM_KEY_BYTES];
    bool causal = false;
    c->pooling = TG_POOL_MEAN;
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "pooling_type", key), TG_POOL_MEAN, TG_POOL_LAST,
                           &c->pooling));
    TG_TRY(tg_gguf_get_int(g, tg_lm_key(c, "embedding_tokens", key), 1, INT32_MAX, &c->embed_ctx));
    TG_TRY(tg_gguf_get_bool(g, tg_lm_key(c, "attention.causal", key), &causal));
    if (!causal) return TG_OK;
    return tg_fail(g->ctx, TG_E_UNSUPPORTED, "%s: %s: want false, have true", g->path, key);
}

static const tg_lm_want wants[] = {
    { "token_embd.weight", TG_LM_VOCAB, TG_LM_WIDTH, TG_LM_TABLE },
    { "position_embd.weight", TG_LM_CTX, TG_LM_WIDTH, TG_LM_TABLE },
    { "token_types.weight", TG_LM_TWO, TG_LM_WIDTH, TG_LM_TABLE },
    { "token_embd_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "token_embd_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_q.weight", TG_LM_QUERIES, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_q.bias", TG_LM_ONE, TG_LM_QUERIES, 0 },
    { "blk.%d.attn_k.weight", TG_LM_KEYS, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_k.bias", TG_LM_ONE, TG_LM_KEYS, 0 },
    { "blk.%d.attn_v.weight", TG_LM_KEYS, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_v.bias", TG_LM_ONE, TG_LM_KEYS, 0 },
    { "blk.%d.attn_output.weight", TG_LM_WIDTH, TG_LM_QUERIES, 0 },
    { "blk.%d.attn_output.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_output_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.attn_output_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_up.weight", TG_LM_MLP, TG_LM_WIDTH, 0 },
    { "blk.%d.ffn_up.bias", TG_LM_ONE, TG_LM_MLP, 0 },
    { "blk.%d.ffn_down.weight", TG_LM_WIDTH, TG_LM_MLP, 0 },
    { "blk.%d.ffn_down.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.layer_output_norm.weight", TG_LM_ONE, TG_LM_WIDTH, 0 },
    { "blk.%d.layer_output_norm.bias", TG_LM_ONE, TG_LM_WIDTH, 0 },
};

const tg_lm_family tg_lm_family_bert = {
    .name = "bert",
    .doc = "BERT, MiniLM: embeddings",
    .wants = wants,
    .n_wants = sizeof wants / sizeof wants[0],
    .config = config,
    .encode = encode,
};
