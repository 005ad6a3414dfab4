/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - the words in which the graph of a family is written.
 *
 * A word finds its weights by role ("attn_norm", "attn_qkv") in the layer that is being written,
 * and builds what the form of the net asks for:
 *
 *                  weights are floats of one array      states of their own, packed
 *   sequences      training, evaluation, probes         -
 *   with caches    writing from a trained model         writing from a file's
 *   texts          training of an encoder               embedding by an encoder
 *
 * Sequences are rows [B,T,..]; with caches rows are dynamic, [T,..], and each brings its sequence
 * and its position, as do rows of texts, which see their text both ways. Errors are sticky in the
 * graph.
 */
#ifndef TG_MODEL_NET_H
#define TG_MODEL_NET_H

#include "model/layout.h"
#include "model/tensors.h"
#include "ops/build.h"

/* What a graph answers with. */
typedef enum tg_answers {
    TG_ANSWER_NEWEST,       /* logits: with caches of the last row alone, [1,V] */
    TG_ANSWER_ROWS,         /* logits of all rows */
    TG_ANSWER_HIDDEN_STATES /* [.., C] of all rows, behind the final norm */
} tg_answers;

/* What rows go on behind: see ops/attention/cache/pages.h. */
typedef struct tg_net_cache {
    tg_value **layers;    /* [tg_model_states] states [P,2K,R,D] */
    tg_rows_value all;    /* of layers that see all positions */
    tg_rows_value window; /* of the others: the same rows, pages of their own */
    tg_rows_value state;  /* of layers with states: the same rows, and where states are */
    size_t positions;     /* of a sequence, at most */
} tg_net_cache;

typedef struct tg_net {
    tg_graph *g;
    const tg_model_config *config;
    const tg_layout *layout; /* of floats in one array, which is the state `flat`; or NULL: */
    tg_value *flat;
    const tg_tensors *tensors; /* states of their own */
    const tg_net_cache *cache; /* NULL: whole sequences, or */
    const tg_net_texts *texts; /* NULL: none */
    const tg_tap *tap;         /* is shown every site, in the order of computation; or NULL */
    tg_answers answers;
    int layer;                      /* -1 outside of the blocks */
    tg_value *turn[TG_FREQ_TABLES]; /* tables of rotary positions, once they are made */
    tg_value *kept[2]; /* keys and values, or the cache that has them, of the newest layer with its
                          own: of those that see all, and of those with a window */
    float dropout;     /* rate of training: of embeddings, attention's weights, ends of branches */
    int32_t n_dropped; /* places that have it so far: their streams */
} tg_net;

/* A net of whole sequences, whose weights are floats of one array. */
tg_net tg_net_of(tg_graph *g, const tg_layout *layout);

/* The whole model: tg_family.graph with the net at its beginning. */
tg_value *tg_net_logits(tg_net *n, tg_value *tokens);

/* What an encoder says of the masked tokens of texts: logits [T,V] of each token, by the table. */
tg_value *tg_net_masked_logits(tg_net *n, const tg_net_texts *texts);

/* x [.., C] of tokens, times the configuration's embed_scale. */
tg_value *tg_net_embed(tg_net *n, tg_value *tokens, const char *role);
/* Their rows of any table, times scale. */
tg_value *tg_net_look_up(tg_net *n, tg_value *tokens, const char *role, float scale);
/* x times the number of a role, which is not trained. */
tg_value *tg_net_times(tg_net *n, tg_value *x, const char *role);
/* x + the learned positions of its rows. */
tg_value *tg_net_positions(tg_net *n, tg_value *x, const char *role);

/* By what the family has under the role: a layer norm (with a bias, or of a family of such), or an
 * RMS norm. */
tg_value *tg_net_norm(tg_net *n, tg_value *x, const char *role);
/* f(x) W + b by the matrices of a role, side by side; b where the family has one. read: TG_READ_..
 */
tg_value *tg_net_linear(tg_net *n, tg_value *x, const char *role, int read);
/* Has the model a weight of this role? */
bool tg_net_has(tg_net *n, const char *role);
/* The same at the end of a branch, added to the stream. */
tg_value *tg_net_project(tg_net *n, tg_value *x, const char *role, int read, tg_value *stream,
                         tg_site site);
/* x at the end of a branch that is no site, added to the stream. */
tg_value *tg_net_add(tg_net *n, tg_value *stream, tg_value *x);
/* An RMS norm of each of ssm_groups of the columns. */
tg_value *tg_net_group_norm(tg_net *n, tg_value *x, const char *role);
/* norm(x), added to the stream. */
tg_value *tg_net_norm_add(tg_net *n, tg_value *x, const char *role, tg_value *stream, tg_site site);

/* Queries of a layer that reads the keys and values of an earlier one, beside zeros in the place of
 * its own, which the words below take. */
tg_value *tg_net_queries(tg_net *n, tg_value *q);
/* The values of qkv after an RMS norm of each head, which has no gain. */
tg_value *tg_net_norm_values(tg_net *n, tg_value *qkv);
/* Columns [first, first + count) of x times scale, put at column `at` of rows of `all` on top of
 * base, or of zeros where that is NULL. */
tg_value *tg_net_columns(tg_net *n, tg_value *x, tg_value *base, size_t first, size_t count,
                         size_t at, size_t all, float scale);

/* Queries and keys of qkv, turned by their positions, after a norm of each head, or where it is as
 * long of all heads, where the family has one (roles attn_q_norm, attn_k_norm). In layers that
 * stand still (tg_family.still_every) it is qkv as it is. */
tg_value *tg_net_rope(tg_net *n, tg_value *qkv);
/* Causal attention over the sequence, or over the cache, which takes the new rows first; of texts,
 * both ways. window: of positions; 0: all. A layer without keys of its own
 * (kv_shared) reads those of the last layer like it that has some. */
tg_value *tg_net_attention(tg_net *n, tg_value *qkv, int32_t window);

/* Mamba2's mixer of z [.., 2I+2GN+H], by the taps, their biases, and the heads' numbers, over the
 * sequence, or on from the state that the cache has. */
tg_value *tg_net_mamba2(tg_net *n, tg_value *z, const char *conv, const char *heads);

/* A gated delta net's mixer of z [.., 2I+2GN] and ba [.., 2H], likewise. */
tg_value *tg_net_delta_net(tg_net *n, tg_value *z, tg_value *ba, const char *conv,
                           const char *heads);

/* Attention whose queries come with gates: x [.., (2H+2K)*D] of ops/sigmoid_gate, turned by its
 * positions as tg_net_rope does; what the heads gather, through the gates. */
tg_value *tg_net_gated_attention(tg_net *n, tg_value *x);

/* A gated short convolution of z [.., 3C], by the taps of a role, over the sequence, or behind what
 * the cache has. */
tg_value *tg_net_short_conv(tg_net *n, tg_value *z, const char *role);

/* x through the experts that the router of role "ffn_gate_inp" chooses for each row, each a gated
 * MLP (roles ffn_gate_exps, ffn_up_exps, ffn_down_exps), weighted and added to the stream. */
tg_value *tg_net_experts(tg_net *n, tg_value *x, int read, tg_value *stream, tg_site site);

/* x, or what somebody puts in its place. The stream outside of the blocks, which is where it
 * begins, has dropout first. */
tg_value *tg_net_tap(tg_net *n, tg_site site, tg_value *x);

/* The answer out of the stream behind the last block: of the rows that are asked for their final
 * norm, and but for hidden states their logits, by output.weight or where there is none by the
 * embedding. */
tg_value *tg_net_head(tg_net *n, tg_value *x);

#endif
