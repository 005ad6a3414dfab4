/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - the language of model files: one small builder per op, saying what it means.
 *
 * Every builder appends one node and returns its output 0; tg_out(v, k) gives the others. Letters
 * as in ir/tensor.h. Errors are sticky in the graph.
 */
#ifndef TG_OPS_BUILD_H
#define TG_OPS_BUILD_H

#include "ir/graph.h"

#define TG_APPLY(g, op, attr, ...)                                                                 \
    tg_apply((g), TG_OP_##op, (attr), (tg_value *[]) { __VA_ARGS__ },                              \
             (int)(sizeof((tg_value *[]) { __VA_ARGS__ }) / sizeof(tg_value *)))

/* y[n,:] = scale * table[ids[n],:]   ids [..] i32 in [0,V)   table [V,C], plain f32 or weights of
 * files   y [.., C]   f[0] scale; 0 is 1 */
static inline tg_value *tg_embedding(tg_graph *g, tg_value *ids, tg_value *table, float scale) {
    return TG_APPLY(g, embedding, (&(tg_attr) { .f = { scale } }), ids, table);
}
/* dtable [V,C], row v = scale * sum over n with ids[n] = v, n rising, of dy[n,:].   i[0] = V */
static inline tg_value *tg_embedding_grad(tg_graph *g, tg_value *ids, tg_value *dy, int32_t vocab,
                                          float scale) {
    return TG_APPLY(g, embedding_grad, (&(tg_attr) { .i = { vocab }, .f = { scale } }), ids, dy);
}

/* y[b,t,:] = x[b,t,:] + p[pos[t],:]     x [B,T,C] or [T,C]   p [Tmax,C]; pos[t] is at[t,1] of rows
 * x [T,C] of sessions, or t where at is NULL */
static inline tg_value *tg_position_add(tg_graph *g, tg_value *x, tg_value *p, tg_value *at) {
    return TG_APPLY(g, position_add, NULL, x, p, at);
}
/* dp [Tmax,C]: row t = sum over b, b rising, of dy[b,t,:]; rows from T on are 0.   i[0] = Tmax */
static inline tg_value *tg_position_grad(tg_graph *g, tg_value *dy, int32_t t_max) {
    return TG_APPLY(g, position_grad, (&(tg_attr) { .i = { t_max } }), dy);
}

/* y = (x - mean) * rstd * w + b, row by row.  x [.., C]  w,b [C]   out 0 y, out 1 mean [rows],
 * out 2 rstd [rows] = 1/sqrt(var + eps)   f[0] = eps */
static inline tg_value *tg_layer_norm(tg_graph *g, tg_value *x, tg_value *w, tg_value *b,
                                      float eps) {
    return TG_APPLY(g, layer_norm, (&(tg_attr) { .f = { eps } }), x, w, b);
}
/* in: x [..,C], w [C], mean, rstd [rows], dy [..,C], optional res [..,C]
 * out 0 dx = (res +) layer norm's input gradient, out 1 dw [C], out 2 db [C] (1 and 2 accumulate)
 */
static inline tg_value *tg_layer_norm_grad(tg_graph *g, tg_value *x, tg_value *w, tg_value *mean,
                                           tg_value *rstd, tg_value *dy, tg_value *res) {
    return TG_APPLY(g, layer_norm_grad, NULL, x, w, mean, rstd, dy, res);
}

/* What a matmul does after the sum, in attr.i[1] (not RELU2); what gelu does. */
enum { TG_ACT_NONE, TG_ACT_GELU_ERF, TG_ACT_GELU_TANH, TG_ACT_RELU2, TG_ACT_SOFT_CAP };
/* How it reads a, in attr.i[3]: as it is, or as gates and values side by side; what glu does. */
enum { TG_READ_PLAIN, TG_READ_SILU, TG_READ_GELU_TANH, TG_READ_GELU_ERF /* glu alone */ };
/*
 * y[M,N] = a b (+ bias) : sums over K run in rising k as one chain per element.
 *   i[0] trans: 0  a [M,K]  b [K,N]      (forward: y = x W)
 *               1  a [K,M]  b [K,N]      (dW = x^T dy)
 *               2  a [M,K]  b [N,K]      (y = x W^T; dx = dy W^T; tied head: x E^T)
 *   i[1] activation, i[2] 1: also keep z, what went into the activation
 *   in 2 bias [N] optional, in 3 residual [M,N] optional: y = act(a b + bias) + residual
 *   out 0 y has a's leading dimensions (trans 1: [M,N]) and accumulates; out 1 z, the same shape.
 *   a may have more dimensions than two: rows are all but the last one.
 */
static inline tg_value *tg_matmul(tg_graph *g, tg_value *a, tg_value *b, tg_value *bias,
                                  int trans) {
    return TG_APPLY(g, matmul, (&(tg_attr) { .i = { trans } }), a, b, bias, NULL);
}
/* The same by the rows of up to three matrices one behind the other, the last ones NULL: packed, or
 * one of floats. trans 0 or 2. */
static inline tg_value *tg_matmul_rows(tg_graph *g, tg_value *a, tg_value *const b[3],
                                       tg_value *bias, int trans) {
    return TG_APPLY(g, matmul, (&(tg_attr) { .i = { trans } }), a, b[0], bias, NULL, b[1], b[2]);
}
/* y = x * mask (+ around): dropout at a rate, the mask drawn for this place in the model (stream)
 * x, y [B, ..]   around as x, or NULL */
static inline tg_value *tg_dropout(tg_graph *g, tg_value *x, tg_value *around, float rate,
                                   int32_t stream) {
    return TG_APPLY(g, dropout, (&(tg_attr) { .i = { stream }, .f = { rate } }), x, around);
}
/* db [C] = sum over rows of dy [.., C] (accumulates): the gradient of a bias */
static inline tg_value *tg_bias_grad(tg_graph *g, tg_value *dy) {
    return TG_APPLY(g, bias_grad, NULL, dy);
}

/* y = gelu(x); i[0] is TG_ACT_GELU_ERF (x * Phi(x)) or TG_ACT_GELU_TANH; or TG_ACT_RELU2, for
 * which y = max(x, 0)^2 */
static inline tg_value *tg_gelu(tg_graph *g, tg_value *x, int kind) {
    return TG_APPLY(g, gelu, (&(tg_attr) { .i = { kind } }), x);
}
/* y = cap tanh(x / cap) */
static inline tg_value *tg_soft_cap(tg_graph *g, tg_value *x, float cap) {
    return TG_APPLY(g, gelu, (&(tg_attr) { .i = { TG_ACT_SOFT_CAP }, .f = { cap } }), x);
}
/* dx = dy * gelu'(x)   in: x, dy   a: of the gelu */
static inline tg_value *tg_gelu_grad(tg_graph *g, tg_value *x, tg_value *dy, const tg_attr *a) {
    return TG_APPLY(g, gelu_grad, a, x, dy);
}

/* y = a + b, same shape (accumulates: no) */
static inline tg_value *tg_add(tg_graph *g, tg_value *a, tg_value *b) {
    return TG_APPLY(g, add, NULL, a, b);
}

/*
 * Causal self-attention of B sequences.   qkv [B,T,(H+2K)*D]: H query heads, then K key heads, then
 * K value heads; query head h reads key head h / (H/K).   out 0 o [B,T,H*D], out 1 lse [B,H,T] =
 * the log of the sum of exponentials of the scaled scores. i[0] H, i[1] K, i[2] D, i[3] how many
 * tokens one sees, itself included (0: all before it);  f[0] scale, usually 1/sqrt(D), f[2] cap
 */
static inline tg_value *tg_attention(tg_graph *g, tg_value *qkv, const tg_attr *a) {
    return TG_APPLY(g, attention, a, qkv);
}
/* dqkv [B,T,(H+2K)*D]   in: qkv, o, lse, do */
static inline tg_value *tg_attention_grad(tg_graph *g, tg_value *qkv, tg_value *o, tg_value *lse,
                                          tg_value *dout, const tg_attr *a) {
    return TG_APPLY(g, attention_grad, a, qkv, o, lse, dout);
}

/* loss = mean over rows of (log sum exp(logits) - logits[target]).  logits [..,V]  targets [..] i32
 * out 0 loss, a scalar (accumulates; scaled by f[0], 1/micro-steps), out 1 lse [rows] */
static inline tg_value *tg_cross_entropy(tg_graph *g, tg_value *logits, tg_value *targets,
                                         float scale) {
    return TG_APPLY(g, cross_entropy, (&(tg_attr) { .f = { scale } }), logits, targets);
}
/* dlogits = (exp(logits - lse) - [target]) * dloss * scale / rows   in: logits, targets, lse, dloss
 * (scalar) */
static inline tg_value *tg_cross_entropy_grad(tg_graph *g, tg_value *logits, tg_value *targets,
                                              tg_value *lse, tg_value *dloss, float scale) {
    return TG_APPLY(g, cross_entropy_grad, (&(tg_attr) { .f = { scale } }), logits, targets, lse,
                    dloss);
}

/* How surprised a model is that the first answer of each pair is preferred: preference.c. Sequences
 * 2p and 2p + 1 are a pair.   logits [B,T,V]   targets [B,T] i32   reference [B], log-probabilities
 * f[0] scale, 1/micro-steps, f[1] beta   out 0 loss, a scalar (accumulates), out 1 lse [B*T], out 2
 * margin [B/2] */
static inline tg_value *tg_preference(tg_graph *g, tg_value *logits, tg_value *targets,
                                      tg_value *reference, const tg_attr *a) {
    return TG_APPLY(g, preference, a, logits, targets, reference);
}
/* dlogits [B,T,V]   in: logits, targets, lse, margin, dloss (scalar) */
static inline tg_value *tg_preference_grad(tg_graph *g, tg_value *logits, tg_value *targets,
                                           tg_value *lse, tg_value *margin, tg_value *dloss,
                                           const tg_attr *a) {
    return TG_APPLY(g, preference_grad, a, logits, targets, lse, margin, dloss);
}
/* A new version of state: x when rt->accumulate is 0, state + x when it is 1. */
static inline tg_value *tg_accumulate(tg_graph *g, tg_value *state, tg_value *x) {
    return TG_APPLY(g, accumulate, NULL, state, x);
}

/*
 * stats [4] = norm of all gradients, clip coefficient min(1, clip/(norm + 1e-6)) (1 when f[0] clip
 * is 0), ok (1: loss and norm are finite, 0: not), loss.     in: grads [P], loss scalar
 */
static inline tg_value *tg_grad_norm(tg_graph *g, tg_value *grads, tg_value *loss, float clip) {
    return TG_APPLY(g, grad_norm, (&(tg_attr) { .f = { clip } }), grads, loss);
}
/* The state scaling [4] of the next step, and as out 1 the same for the caller; see loss_scale.c.
 * in: scaling, stats [4] */
static inline tg_value *tg_loss_scale(tg_graph *g, tg_value *scaling, tg_value *stats) {
    return TG_APPLY(g, loss_scale, NULL, scaling, stats);
}
/*
 * AdamW on flat arrays; nothing is written when stats' ok is 0. Learning rate and step t are
 * run-time scalars.   in: w, g, m, v [n], stats [4]   out 0..2: new versions of w, m, v
 *   f[0..2] beta1 beta2 eps,  f[3] weight decay,  i[0] elements [0, i[0]) are decayed, the rest not
 */
static inline tg_value *tg_adamw(tg_graph *g, tg_value *w, tg_value *grads, tg_value *m,
                                 tg_value *v, tg_value *stats, const tg_attr *a) {
    return TG_APPLY(g, adamw, a, w, grads, m, v, stats);
}

/* Muon on one matrix, a block of a parameter [R,C]: ops/muon/block.h says i[0..3].
 * New version of m, the momentum; its output 1 is what is to be made orthogonal, [rows, cols].
 *   in: grads, m, stats of all gradients   f[0] momentum */
static inline tg_value *tg_muon_momentum(tg_graph *g, tg_value *grads, tg_value *m, tg_value *stats,
                                         const tg_attr *a) {
    return TG_APPLY(g, muon_momentum, a, grads, m, stats);
}
/* New version of w: (1 - lr wd) w - lr scale x.   in: w, x [rows, cols], stats   f[0] scale  f[1]
 * wd
 */
static inline tg_value *tg_muon_step(tg_graph *g, tg_value *w, tg_value *x, tg_value *stats,
                                     const tg_attr *a) {
    return TG_APPLY(g, muon_step, a, w, x, stats);
}
/* New version of an average of weights: average + r (w - average), r = max(rest, 9 / (10 + t)).
 *   in: average, w, the same shape, stats   step t is a run-time scalar */
static inline tg_value *tg_ema(tg_graph *g, tg_value *average, tg_value *w, tg_value *stats,
                               float rest) {
    return TG_APPLY(g, ema, (&(tg_attr) { .f = { rest } }), average, w, stats);
}
/* y = (p x + q z) / max(stats[0], least); z and stats may be NULL */
static inline tg_value *tg_blend(tg_graph *g, tg_value *x, tg_value *z, tg_value *stats, float p,
                                 float q, float least) {
    return TG_APPLY(g, blend, (&(tg_attr) { .f = { p, q, least } }), x, z, stats);
}

/* y [1,C] = the last row of x [T,C], which may have dynamic rows: only the logits that follow the
 * newest token are wanted. */
static inline tg_value *tg_last_row(tg_graph *g, tg_value *x) {
    return TG_APPLY(g, last_row, NULL, x);
}
/*
 * A gated short convolution of B sequences: y[t] = c[t] * sum over j of w[:,j] u[t - L + 1 + j], u
 * = b * x, 0 before the first.   z [B,T,3C]: b, c, x side by side   w [C,L]   y [B,T,C]
 */
static inline tg_value *tg_short_conv(tg_graph *g, tg_value *z, tg_value *w) {
    return TG_APPLY(g, short_conv, NULL, z, w);
}
/* out 0 dz [B,T,3C], out 1 dw [C,L], which accumulates; in: z, w, dy [B,T,C] */
static inline tg_value *tg_short_conv_grad(tg_graph *g, tg_value *z, tg_value *w, tg_value *dy) {
    return TG_APPLY(g, short_conv_grad, NULL, z, w, dy);
}
enum { TG_CONV_TAPS_MAX = 8 }; /* L at most */

/*
 * Mamba2's mixer over B sequences, between its two products (ops/mamba2): a causal convolution with
 * SiLU, a state of H heads that rows decay, write to and read, and the gate.
 *   z [B,T,2I+2GN+H]: gates, x, B's, C's, steps, side by side; I = H*P   w [I+2GN,L] taps
 *   bias [I+2GN]   heads [3H]: biases of the steps, logs of the decays, weights of x
 *   y [B,T,I]      i[0] H, i[1] P, i[2] G, i[3] N
 */
static inline tg_value *tg_mamba2(tg_graph *g, tg_value *z, tg_value *w, tg_value *bias,
                                  tg_value *heads, const tg_attr *a) {
    return TG_APPLY(g, mamba2, a, z, w, bias, heads);
}
/* out 0 dz, out 1 dw, out 2 dbias, out 3 dheads; all but dz accumulate; in: those, dy [B,T,I] */
static inline tg_value *tg_mamba2_grad(tg_graph *g, tg_value *z, tg_value *w, tg_value *bias,
                                       tg_value *heads, tg_value *dy, const tg_attr *a) {
    return TG_APPLY(g, mamba2_grad, a, z, w, bias, heads, dy);
}
/*
 * The mixer of a gated delta net over B sequences, between its products (ops/delta_net): a causal
 * convolution with SiLU, a state of H heads that rows recall values from and write to, a norm of
 * each head, and the gate.
 *   z [B,T,2I+2GN]: gates, queries, keys, values, side by side; I = H*P   w [I+2GN,L] taps
 *   ba [B,T,2H]: how much is written, steps   heads [2H+P]: biases of the steps, logs of the
 * decays, gains of the norm   y [B,T,I]   i[0] H, i[1] P, i[2] G, i[3] N, i[4] 1: heads of values
 * take those of keys in turns, 0: H/G in a row take one   f[0] eps of the norm
 */
static inline tg_value *tg_delta_net(tg_graph *g, tg_value *z, tg_value *ba, tg_value *w,
                                     tg_value *heads, const tg_attr *a) {
    return TG_APPLY(g, delta_net, a, z, ba, w, heads);
}
/* out 0 dz, out 1 dba, out 2 dw, out 3 dheads; the last two accumulate; in: those, dy [B,T,I] */
static inline tg_value *tg_delta_net_grad(tg_graph *g, tg_value *z, tg_value *ba, tg_value *w,
                                          tg_value *heads, tg_value *dy, const tg_attr *a) {
    return TG_APPLY(g, delta_net_grad, a, z, ba, w, heads, dy);
}

/* Rows of heads with gates, x [.., (2H+2K)*D] (of each query head D elements and D gates, then keys
 * and values): out 0 qkv [.., (H+2K)*D], out 1 gates [.., H*D]   i[0] H, i[1] K, i[2] D */
static inline tg_value *tg_split_gates(tg_graph *g, tg_value *x, const tg_attr *a) {
    return TG_APPLY(g, split_gates, a, x);
}
/* dx of split_gates   in: dqkv, dgates */
static inline tg_value *tg_join_gates(tg_graph *g, tg_value *dqkv, tg_value *dgates,
                                      const tg_attr *a) {
    return TG_APPLY(g, join_gates, a, dqkv, dgates);
}
/* y = x / (1 + exp(-gate)), same shapes */
static inline tg_value *tg_sigmoid_gate(tg_graph *g, tg_value *x, tg_value *gate) {
    return TG_APPLY(g, sigmoid_gate, NULL, x, gate);
}
/* out 0 dx, out 1 dgate   in: x, gate, dy */
static inline tg_value *tg_sigmoid_gate_grad(tg_graph *g, tg_value *x, tg_value *gate,
                                             tg_value *dy) {
    return TG_APPLY(g, sigmoid_gate_grad, NULL, x, gate, dy);
}
/*
 * Routed experts (ops/experts). Of logits [..,E] the k greatest of each row: out 0 weights [..,k],
 * out 1 ids [..,k] i32.   i[0] k, i[1] share: 0 softmax of the k, 1 of all E
 */
static inline tg_value *tg_route(tg_graph *g, tg_value *logits, int32_t k, int32_t share) {
    return TG_APPLY(g, route, (&(tg_attr) { .i = { k, share } }), logits);
}
/* dlogits [..,E]   in: logits, weights, ids, dweights   a: of the route */
static inline tg_value *tg_route_grad(tg_graph *g, tg_value *logits, tg_value *weights,
                                      tg_value *ids, tg_value *dw, const tg_attr *a) {
    return TG_APPLY(g, route_grad, a, logits, weights, ids, dw);
}
/* y [..,k*N] = x times the rows of w [E*N,K] that its choices have, and where w1 is given, behind
 * all of them, of w1: [..,2*k*N].   x [..,K], or (own) [..,k*K]   i[0] E, i[1] own */
static inline tg_value *tg_experts(tg_graph *g, tg_value *x, tg_value *ids, tg_value *w,
                                   tg_value *w1, int32_t experts, bool own) {
    return TG_APPLY(g, experts, (&(tg_attr) { .i = { experts, own } }), x, ids, w, w1);
}
/* dx as x   in: dy, ids, w, w1   a: of the experts */
static inline tg_value *tg_experts_x_grad(tg_graph *g, tg_value *dy, tg_value *ids,
                                          tg_value *const w[2], const tg_attr *a) {
    return TG_APPLY(g, experts_x_grad, a, dy, ids, w[0], w[1]);
}
/* dw [E*N,K] of one matrix, which accumulates   in: dy, ids, x   i[2] which, i[3] N */
static inline tg_value *tg_experts_w_grad(tg_graph *g, tg_value *dy, tg_value *ids, tg_value *x,
                                          const tg_attr *a) {
    return TG_APPLY(g, experts_w_grad, a, dy, ids, x);
}
/* y [..,C] = sum over choices j of w[..,j] z[..,j*C ..]   z [..,k*C]   w [..,k] */
static inline tg_value *tg_experts_sum(tg_graph *g, tg_value *z, tg_value *w) {
    return TG_APPLY(g, experts_sum, NULL, z, w);
}
/* out 0 dz, out 1 dw   in: z, w, dy */
static inline tg_value *tg_experts_sum_grad(tg_graph *g, tg_value *z, tg_value *w, tg_value *dy) {
    return TG_APPLY(g, experts_sum_grad, NULL, z, w, dy);
}
/* y = scale * x */
static inline tg_value *tg_scale(tg_graph *g, tg_value *x, float scale) {
    return tg_blend(g, x, NULL, NULL, scale, 0, 0);
}

/* y [..,i[3]] = base, or zeros, and from column i[2] on in addition f[0] (0: 1) times columns i[0]
 * .. i[0] + i[1] of x [..,C]   base [..,i[3]], or NULL */
static inline tg_value *tg_columns(tg_graph *g, tg_value *x, tg_value *base, const tg_attr *a) {
    return TG_APPLY(g, columns, a, x, base);
}
/* y = s x   s [1], a weight that is not trained */
static inline tg_value *tg_times(tg_graph *g, tg_value *x, tg_value *s) {
    return TG_APPLY(g, times, NULL, x, s);
}

/* Where rows of dynamic number belong, and where the keys and values of sequences are
 * (ops/attention/cache/pages.h): at [T,2] sequence and position of each row, pages [S,C] of each
 * sequence its pages; i32. */
typedef struct tg_rows_value {
    tg_value *at, *pages;
} tg_rows_value;
/* New version of cache [P,2K,R,D] (pages; keys, then values), to which keys and values of
 * qkv [T,(H+2K)*D] were added at their positions.   in: cache, qkv, at, pages   i as attention */
static inline tg_value *tg_kv_append(tg_graph *g, tg_value *cache, tg_value *qkv,
                                     const tg_rows_value *rows, const tg_attr *a) {
    return TG_APPLY(g, kv_append, a, cache, qkv, rows->at, rows->pages);
}
/* o [T,H*D]: row t attends to the positions of its sequence up to its own, or with a window i[3] to
 * the last of them.   in: qkv, cache, at, pages   i, f as attention */
static inline tg_value *tg_attention_cached(tg_graph *g, tg_value *qkv, tg_value *cache,
                                            const tg_rows_value *rows, const tg_attr *a) {
    return TG_APPLY(g, attention_cached, a, qkv, cache, rows->at, rows->pages);
}

/* The same over the rows of sessions, z [T,3C].   out 0 y [T,C], out 1 the next version of
 * cache [P,1,R,C], which keeps u */
static inline tg_value *tg_short_conv_cached(tg_graph *g, tg_value *z, tg_value *w, tg_value *cache,
                                             const tg_rows_value *rows) {
    return TG_APPLY(g, short_conv_cached, NULL, z, cache, rows->at, rows->pages, w);
}

/* The same over the rows of sessions, z [T,..].   out 0 y [T,I], out 1 the next version of states
 * [P,1,1,E], E = (L-1)*(I+2GN) + I*N, of which rows->pages [S,2] name, for each sequence, the one
 * that its rows go on from, and another one that takes what they leave */
static inline tg_value *tg_mamba2_cached(tg_graph *g, tg_value *z, tg_value *w, tg_value *bias,
                                         tg_value *heads, tg_value *states,
                                         const tg_rows_value *rows, const tg_attr *a) {
    return TG_APPLY(g, mamba2_cached, a, z, states, rows->at, rows->pages, w, bias, heads);
}

/* Likewise: delta_net over the rows of sessions, z [T,..] and ba [T,2H] */
static inline tg_value *tg_delta_net_cached(tg_graph *g, tg_value *z, tg_value *ba, tg_value *w,
                                            tg_value *heads, tg_value *states,
                                            const tg_rows_value *rows, const tg_attr *a) {
    return TG_APPLY(g, delta_net_cached, a, z, states, rows->at, rows->pages, w, heads, ba);
}

/* o [T,H*D]: row t attends to rows spans[t,0] .. spans[t,1]-1 of qkv [T,(H+2K)*D] of dynamic rows:
 * its text's.   in: qkv, spans [T,2] i32   out 1 lse [T,H]   i, f as attention; a window i[3]
 * reaches half as far to both sides */
static inline tg_value *tg_attention_spans(tg_graph *g, tg_value *qkv, tg_value *spans,
                                           const tg_attr *a) {
    return TG_APPLY(g, attention_spans, a, qkv, spans);
}
/* dqkv [T,(H+2K)*D]   in: qkv, spans, o, lse, do   i, f as attention_spans */
static inline tg_value *tg_attention_spans_grad(tg_graph *g, tg_value *qkv, tg_value *spans,
                                                tg_value *o, tg_value *lse, tg_value *dout,
                                                const tg_attr *a) {
    return TG_APPLY(g, attention_spans_grad, a, qkv, spans, o, lse, dout);
}

/* y [..,M] = act(x[..,0:M]) * x[..,M:2M], with the bits of a matmul that reads so: read is
 * TG_READ_SILU, TG_READ_GELU_TANH or TG_READ_GELU_ERF, which no matmul reads by */
static inline tg_value *tg_glu(tg_graph *g, tg_value *x, int read) {
    return TG_APPLY(g, glu, (&(tg_attr) { .i = { read } }), x);
}
/* dx [..,2M]   in: x [..,2M], dy [..,M] */
static inline tg_value *tg_glu_grad(tg_graph *g, tg_value *x, tg_value *dy, int read) {
    return TG_APPLY(g, glu_grad, (&(tg_attr) { .i = { read } }), x, dy);
}
/* y = (residual +) x / sqrt(mean(x^2) + eps) * w, row by row; residual may be NULL */
static inline tg_value *tg_rms_norm(tg_graph *g, tg_value *x, tg_value *w, tg_value *residual,
                                    float eps) {
    return TG_APPLY(g, rms_norm, (&(tg_attr) { .f = { eps } }), x, w, residual);
}
/* The same of so many groups of each row's columns, each with a mean of its own. */
static inline tg_value *tg_rms_norm_groups(tg_graph *g, tg_value *x, tg_value *w, int32_t groups,
                                           float eps) {
    return TG_APPLY(g, rms_norm, (&(tg_attr) { .i = { groups }, .f = { eps } }), x, w);
}
/* in: x [..,C], w [C], dy [..,C], optional res [..,C]
 * out 0 dx = (res +) rms norm's input gradient, out 1 dw [C], which accumulates; attr: rms_norm's
 */
static inline tg_value *tg_rms_norm_grad(tg_graph *g, tg_value *x, tg_value *w, tg_value *dy,
                                         tg_value *res, const tg_attr *attr) {
    return TG_APPLY(g, rms_norm_grad, attr, x, w, dy, res);
}
/* What says where a row is, in attr.i[0] of rope_table: whole sequences [B,T,..], where pos[t] is
 * t; at [T,2] of the rows of sessions, where it is at[t,1]; or pos [T] itself. */
enum { TG_ROPE_WHOLE, TG_ROPE_AT, TG_ROPE_POSITIONS };
/* table [T,R]: cosines, then sines, of pos[t] * freq [R/2], times scale (0: 1). */
static inline tg_value *tg_rope_table(tg_graph *g, tg_value *like, tg_value *freq, int how,
                                      float scale) {
    return TG_APPLY(g, rope_table, (&(tg_attr) { .i = { how }, .f = { scale } }), like, freq);
}
/* qkv [B,T,..] or [T,..], of whose query and key heads the first R elements are turned by table
 * [T,R], after an RMS norm of each head where q_norm and k_norm [D] are given (NULL: none); i[0],
 * i[1], i[2] as attention, i[3] 1: the norms are of all heads together, [H*D] and [K*D]; f[0] eps
 */
static inline tg_value *tg_rope(tg_graph *g, tg_value *qkv, tg_value *table, tg_value *q_norm,
                                tg_value *k_norm, const tg_attr *a) {
    return TG_APPLY(g, rope, a, qkv, table, q_norm, k_norm);
}
/* out 0 dqkv, out 1 dq_norm [D], out 2 dk_norm [D], which accumulate; in: dy, table, and where
 * there are norms what went into rope   i, f as rope */
static inline tg_value *tg_rope_grad(tg_graph *g, tg_value *dy, tg_value *table, tg_value *qkv,
                                     tg_value *q_norm, tg_value *k_norm, const tg_attr *a) {
    return TG_APPLY(g, rope_grad, a, dy, table, qkv, q_norm, k_norm);
}

/* p [B,H,T,T]: the weights by which the attention node that made o sums values; rows sum to 1 */
static inline tg_value *tg_attention_probs(tg_graph *g, tg_value *o) {
    if (tg_is_poison(g, o)) return o;
    return TG_APPLY(g, attention_probs, &o->node->attr, o->node->in[0]);
}
/* y [..,C]: piece g (C/G columns) of row r from x where mode [rows,G] is 0, from a where it is 1,
 * from b where it is 2, else zeros. Absent sources are zeros; one of the three is needed. */
static inline tg_value *tg_choose(tg_graph *g, tg_value *mode, tg_value *x, tg_value *a,
                                  tg_value *b) {
    return TG_APPLY(g, choose, NULL, mode, x, a, b);
}

/*
 * token, a scalar i32, drawn from the last row of logits [T,V] by the run-time scalars: repeat
 * penalty over recent [R] i32 (the first n_recent count), temperature (0: greedy, ties to the lower
 * id), top-k, top-p, min-p, then one uniform of (seed, purpose SAMPLE, draw). Without recent it is
 * greedy whatever the scalars say.   out 1, 2: work space [V]
 */
static inline tg_value *tg_sample(tg_graph *g, tg_value *logits, tg_value *recent) {
    return TG_APPLY(g, sample, NULL, logits, recent);
}

#endif
