/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - the words of net.h, for both forms of weights.
 */
#include "model/net.h"

#include "base/math.h"
#include "model/state.h"

/* ---------------------------------------------------------------------------------------- weights
 */

typedef struct scope {
    char text[sizeof((tg_graph *)0)->scope];
} scope;

/* Weights are named in full and outside of any scope: gradients and plans find them by this name.
 */
static scope leave_scope(tg_graph *g) {
    scope s;
    memcpy(s.text, g->scope, sizeof s.text);
    tg_graph_scope(g, "%s", "");
    return s;
}
static void enter_scope(tg_graph *g, const scope *s) { memcpy(g->scope, s->text, sizeof s->text); }

/* One that was asked for before is the same value: the gradient of the embedding, which is also the
 * head, is the sum of both uses. */
static tg_value *state(tg_net *n, const char *name, tg_type type) {
    for (tg_node *node = n->g->first; node; node = node->next)
        if (node->op == TG_OP_state && strcmp(node->name, name) == 0) return &node->out[0];
    const scope s = leave_scope(n->g);
    tg_value *v = tg_state(n->g, name, type);
    enter_scope(n->g, &s);
    return v;
}

static tg_value *view(tg_net *n, const tg_param *p) {
    for (tg_node *node = n->g->first; node; node = node->next)
        if (node->op == TG_OP_view && node->in[0] == n->flat &&
            node->offset_elems == p->offset_elems)
            return &node->out[0];
    const scope s = leave_scope(n->g);
    tg_value *v = tg_view(n->g, n->flat, p->offset_elems, p->type, p->name);
    enter_scope(n->g, &s);
    return v;
}

static const tg_param *param(const tg_net *n, const char *role, int layer) {
    for (size_t i = 0; n->layout && i < n->layout->n_params; i++) {
        const tg_param *p = &n->layout->params[i];
        if (p->layer == layer && strcmp(p->role, role) == 0) return p;
    }
    return NULL;
}

static const tg_tensor *tensor(const tg_net *n, const char *role, size_t i) {
    return n->tensors ? tg_tensors_find(n->tensors, role, n->layer, i) : NULL;
}

/* A vector, or a matrix that is kept as floats, by its role with a suffix; NULL if the model has
 * none. */
static tg_value *floats(tg_net *n, const char *role, const char *suffix) {
    char name[96];
    snprintf(name, sizeof name, "%s%s", role, suffix);
    const tg_param *p = param(n, name, n->layer);
    if (p) return view(n, p);
    const tg_tensor *t = tensor(n, name, 0);
    if (!t) return NULL;
    return state(n, t->name, t->type);
}

/* Matrix i of a role, whatever form it has; NULL: there are no more. Floats of one array lie side
 * by side in one parameter, those of a file are states of their own. */
static tg_value *matrix(tg_net *n, const char *role, size_t i) {
    char name[96];
    snprintf(name, sizeof name, "%s.weight", role);
    const tg_param *p = param(n, name, n->layer);
    if (p) return i == 0 ? view(n, p) : NULL;
    const tg_tensor *t = tensor(n, name, i);
    return t ? state(n, t->name, t->type) : NULL;
}

/* Whether it is stored [in,out]. */
static bool is_in_out(const tg_net *n, const char *role) {
    char name[96];
    snprintf(name, sizeof name, "%s.weight", role);
    const tg_param *p = param(n, name, n->layer);
    return p && p->in_out;
}

/* Biases lie apart in files, and side by side in the product of several matrices: a state of their
 * own, which whoever binds the states puts together. */
static tg_value *bias(tg_net *n, const char *role) {
    char name[96];
    snprintf(name, sizeof name, "%s.bias", role);
    const tg_tensor *second = tensor(n, name, 1);
    if (!second) return floats(n, name, "");
    size_t cols = 0;
    for (size_t i = 0; tensor(n, name, i); i++) cols += tensor(n, name, i)->type.dim[0];
    char all[160];
    snprintf(all, sizeof all, TG_BIASES_NAME, n->layer, role);
    return state(n, all, tg_type_1d(TG_F32, cols));
}

/* Nodes are named after the weights that they use. */
static void name_after(tg_net *n, const char *name) {
    const size_t length = strlen(name), suffix = strlen(".weight");
    const bool ends = length > suffix && strcmp(name + length - suffix, ".weight") == 0;
    tg_graph_scope(n->g, "%.*s", (int)(ends ? length - suffix : length), name);
}

/* ------------------------------------------------------------------------------------------ words
 */

/* What is added to the stream, scaled where the model says so, with dropout where there is a rate.
 */
tg_value *tg_net_add(tg_net *n, tg_value *stream, tg_value *x) {
    const float scale = n->config->residual_scale;
    if (scale != 0 && scale != 1) x = tg_scale(n->g, x, scale);
    if (!(n->dropout > 0)) return tg_add(n->g, stream, x);
    return tg_dropout(n->g, x, stream, n->dropout, n->n_dropped++);
}

tg_value *tg_net_tap(tg_net *n, tg_site site, tg_value *x) {
    if (n->dropout > 0 && site == TG_SITE_STREAM && n->layer < 0)
        x = tg_dropout(n->g, x, NULL, n->dropout, n->n_dropped++);
    return n->tap ? n->tap->at(n->tap->user, n->g, site, n->layer, x) : x;
}

tg_value *tg_net_look_up(tg_net *n, tg_value *tokens, const char *role, float scale) {
    return tg_embedding(n->g, tokens, matrix(n, role, 0), scale);
}

tg_value *tg_net_embed(tg_net *n, tg_value *tokens, const char *role) {
    return tg_net_look_up(n, tokens, role, n->config->embed_scale);
}

tg_value *tg_net_times(tg_net *n, tg_value *x, const char *role) {
    return tg_times(n->g, x, floats(n, role, ".weight"));
}

tg_value *tg_net_positions(tg_net *n, tg_value *x, const char *role) {
    return tg_position_add(n->g, x, floats(n, role, ".weight"), n->cache ? n->cache->all.at : NULL);
}

static tg_value *norm(tg_net *n, tg_value *x, const char *role, tg_value *residual) {
    tg_value *gain = floats(n, role, ".weight"), *shift = floats(n, role, ".bias");
    if (gain) name_after(n, gain->name);
    if (!shift && tg_family_of(n->config)->layer_norms)
        shift = state(n, TG_NO_SHIFT_NAME, tg_type_1d(TG_F32, (size_t)n->config->width));
    if (shift) return tg_layer_norm(n->g, x, gain, shift, n->config->eps);
    return tg_rms_norm(n->g, x, gain, residual, n->config->eps);
}

tg_value *tg_net_norm(tg_net *n, tg_value *x, const char *role) { return norm(n, x, role, NULL); }

tg_value *tg_net_group_norm(tg_net *n, tg_value *x, const char *role) {
    tg_value *gain = floats(n, role, ".weight");
    if (gain) name_after(n, gain->name);
    return tg_rms_norm_groups(n->g, x, gain, n->config->ssm_groups, n->config->eps);
}

tg_value *tg_net_norm_add(tg_net *n, tg_value *x, const char *role, tg_value *stream,
                          tg_site site) {
    if (!n->tap && !(n->dropout > 0)) return norm(n, x, role, stream);
    return tg_net_add(n, stream, tg_net_tap(n, site, norm(n, x, role, NULL)));
}

bool tg_net_has(tg_net *n, const char *role) { return matrix(n, role, 0) != NULL; }

/* Gates, and what is added behind the product, are nodes of their own: the planner fuses them. */
tg_value *tg_net_linear(tg_net *n, tg_value *x, const char *role, int read) {
    tg_value *w[3];
    for (size_t i = 0; i < 3; i++) w[i] = matrix(n, role, i);
    tg_value *b = bias(n, role);
    if (w[0]) name_after(n, w[0]->name);
    if (read != TG_READ_PLAIN) x = tg_glu(n->g, x, read);
    return tg_matmul_rows(n->g, x, w, b, is_in_out(n, role) ? 0 : 2);
}

tg_value *tg_net_project(tg_net *n, tg_value *x, const char *role, int read, tg_value *stream,
                         tg_site site) {
    return tg_net_add(n, stream, tg_net_tap(n, site, tg_net_linear(n, x, role, read)));
}

tg_value *tg_net_experts(tg_net *n, tg_value *x, int read, tg_value *stream, tg_site site) {
    const tg_model_config *c = n->config;
    tg_value *logits = tg_net_linear(n, x, "ffn_gate_inp", TG_READ_PLAIN);
    tg_value *weights =
        tg_route(n->g, logits, c->experts_used, c->experts_weigh == TG_EXPERTS_SHARES);
    tg_value *ids = tg_out(weights, 1);
    tg_value *gate = matrix(n, "ffn_gate_exps", 0), *up = matrix(n, "ffn_up_exps", 0);
    tg_value *down = matrix(n, "ffn_down_exps", 0);
    if (gate) name_after(n, gate->name);
    x = tg_glu(n->g, tg_experts(n->g, x, ids, gate, up, c->experts, false), read);
    if (down) name_after(n, down->name);
    x = tg_experts_sum(n->g, tg_experts(n->g, x, ids, down, NULL, c->experts, true), weights);
    return tg_net_add(n, stream, tg_net_tap(n, site, x));
}

/* By the length that a text may have, and not by the one that it has: keys stay in the cache as
 * they were turned. */
static int freq_table(const tg_net *n, const tg_value *qkv) {
    const tg_model_config *c = n->config;
    /* A poison node, as of a graph for which there was no memory, has no dimensions. */
    const size_t length = qkv->type.n_dims < 2 ? 0 : qkv->type.dim[qkv->type.n_dims - 2];
    const size_t most = n->cache ? n->cache->positions : length;
    if (tg_config_longrope(c)) return most > (size_t)c->rope_original ? TG_FREQ_LONG : TG_FREQ_ALL;
    return tg_windowed(c, n->layer) && c->window_every > 0 ? TG_FREQ_WINDOW : TG_FREQ_ALL;
}

/* One table serves all layers that turn alike. */
tg_value *tg_net_rope(tg_net *n, tg_value *qkv) {
    const tg_model_config *c = n->config;
    const int32_t still = tg_family_of(c)->still_every, base = freq_table(n, qkv);
    if (still > 0 && (n->layer + 1) % still == 0) return qkv;
    tg_value *q = floats(n, "attn_q_norm", ".weight"), *k = floats(n, "attn_k_norm", ".weight");
    const int32_t D = tg_layer_head_size(c, n->layer);
    const bool together = q && q->type.dim[0] > (size_t)D;
    const tg_attr heads = { .i = { c->heads, c->kv_heads, D, together }, .f = { c->eps } };
    if (!n->turn[base]) {
        char name[32];
        snprintf(name, sizeof name, TG_FREQ_NAME, base);
        tg_value *freq = state(n, name, tg_type_1d(TG_F32, tg_config_turned(c, base) / 2));
        const float scale = base == TG_FREQ_WINDOW ? 0 : c->rope_scale;
        const int how = n->texts ? TG_ROPE_POSITIONS : n->cache ? TG_ROPE_AT : TG_ROPE_WHOLE;
        tg_value *like = n->texts ? n->texts->positions : n->cache ? n->cache->all.at : qkv;
        n->turn[base] = tg_rope_table(n->g, like, freq, how, scale);
    }
    return tg_rope(n->g, qkv, n->turn[base], q, k, &heads);
}

tg_value *tg_net_columns(tg_net *n, tg_value *x, tg_value *base, size_t first, size_t count,
                         size_t at, size_t all, float scale) {
    const tg_attr a = { .i = { (int32_t)first, (int32_t)count, (int32_t)at, (int32_t)all },
                        .f = { scale } };
    return tg_columns(n->g, x, base, &a);
}

/* Columns of qkv in this layer: where keys begin, where values do, and all. */
typedef struct row {
    size_t keys, values, all;
} row;
static row row_of(const tg_net *n) {
    const size_t q = tg_size_of(n->config, TG_SIZE_QUERIES, n->layer);
    const size_t k = tg_size_of(n->config, TG_SIZE_KEYS, n->layer);
    return (row) { q, q + k, q + 2 * k };
}

tg_value *tg_net_queries(tg_net *n, tg_value *q) {
    const row r = row_of(n);
    return tg_net_columns(n, q, NULL, 0, r.keys, 0, r.all, 1);
}

/* The norm of rows is what there is, so each head becomes one: models of this kind have one or two
 * heads of keys. */
tg_value *tg_net_norm_values(tg_net *n, tg_value *qkv) {
    const row r = row_of(n);
    const size_t D = (size_t)tg_layer_head_size(n->config, n->layer);
    char name[32];
    snprintf(name, sizeof name, TG_NO_GAIN_NAME, (int)D);
    tg_value *ones = state(n, name, tg_type_1d(TG_F32, D));
    tg_value *y = tg_net_columns(n, qkv, NULL, 0, r.values, 0, r.all, 1);
    for (size_t at = r.values; at < r.all; at += D) {
        tg_value *v = tg_net_columns(n, qkv, NULL, at, D, 0, D, 1);
        v = tg_rms_norm(n->g, v, ones, NULL, n->config->eps);
        y = tg_net_columns(n, v, y, 0, D, at, r.all, 1);
    }
    return y;
}

/* Keys and values of this layer: its own, which later layers may read, or those of an earlier one.
 */
static tg_value *keep(tg_net *n, tg_value *own, bool windowed) {
    if (!tg_shares_keys(n->config, n->layer)) n->kept[windowed] = own;
    return n->kept[windowed];
}

/* With a cache, the new keys and values are written first and attention then reads them all out of
 * it, its own tokens' included; so prefill and decode are one graph that differs in its rows. */
tg_value *tg_net_attention(tg_net *n, tg_value *qkv, int32_t window) {
    const tg_model_config *c = n->config;
    const bool shares = tg_shares_keys(c, n->layer);
    tg_attr a = { .i = { c->heads, c->kv_heads, tg_layer_head_size(c, n->layer), window },
                  .f = { c->score_scale, 0, c->score_cap } };
    tg_value *o;
    if (n->texts) {
        o = tg_attention_spans(n->g, qkv, n->texts->spans, &a);
    } else if (n->cache) {
        const tg_rows_value *rows = window > 0 ? &n->cache->window : &n->cache->all;
        tg_value *keys = shares ? NULL : n->cache->layers[tg_layer_rows_at(c, n->layer)];
        tg_value *cache = shares ? NULL : tg_kv_append(n->g, keys, qkv, rows, &a);
        o = tg_attention_cached(n->g, qkv, keep(n, cache, window > 0), rows, &a);
    } else {
        const row r = row_of(n);
        tg_value *from = keep(n, qkv, window > 0);
        if (shares) qkv = tg_net_columns(n, from, qkv, r.keys, r.all - r.keys, r.keys, r.all, 1);
        if (n->dropout > 0) a.i[4] = n->n_dropped++;
        a.f[1] = n->dropout;
        o = tg_attention(n->g, qkv, &a);
    }
    return tg_net_tap(n, TG_SITE_HEADS, o);
}

tg_value *tg_net_mamba2(tg_net *n, tg_value *z, const char *conv, const char *heads) {
    const tg_model_config *c = n->config;
    const tg_attr a = { .i = { c->ssm_heads, c->ssm_head_size, c->ssm_groups, c->ssm_state } };
    tg_value *w = floats(n, conv, ".weight"), *b = floats(n, conv, ".bias"), *h = bias(n, heads);
    if (w) name_after(n, w->name);
    if (!n->cache) return tg_mamba2(n->g, z, w, b, h, &a);
    tg_value *states = n->cache->layers[tg_layer_state_at(c, n->layer)];
    return tg_mamba2_cached(n->g, z, w, b, h, states, &n->cache->state, &a);
}

tg_value *tg_net_delta_net(tg_net *n, tg_value *z, tg_value *ba, const char *conv,
                           const char *heads) {
    const tg_model_config *c = n->config;
    const tg_attr a = { .i = { c->ssm_heads, c->ssm_head_size, c->ssm_groups, c->ssm_state,
                               n->tensors && n->tensors->in_turns },
                        .f = { c->eps } };
    tg_value *w = floats(n, conv, ".weight"), *h = bias(n, heads);
    if (w) name_after(n, w->name);
    if (!n->cache) return tg_delta_net(n->g, z, ba, w, h, &a);
    return tg_delta_net_cached(n->g, z, ba, w, h, n->cache->layers[n->layer], &n->cache->state, &a);
}

tg_value *tg_net_gated_attention(tg_net *n, tg_value *x) {
    const tg_model_config *c = n->config;
    const tg_attr heads = { .i = { c->heads, c->kv_heads, c->head_size } };
    tg_value *qkv = tg_split_gates(n->g, x, &heads), *gates = tg_out(qkv, 1);
    return tg_sigmoid_gate(n->g, tg_net_attention(n, tg_net_rope(n, qkv), 0), gates);
}

tg_value *tg_net_short_conv(tg_net *n, tg_value *z, const char *role) {
    tg_value *w = floats(n, role, ".weight");
    if (w) name_after(n, w->name);
    if (!n->cache) return tg_short_conv(n->g, z, w);
    return tg_short_conv_cached(n->g, z, w, n->cache->layers[n->layer], &n->cache->window);
}

tg_value *tg_net_head(tg_net *n, tg_value *x) {
    n->layer = -1;
    if (n->cache && n->answers == TG_ANSWER_NEWEST) x = tg_last_row(n->g, x);
    x = tg_net_norm(n, x, "output_norm");
    if (n->answers == TG_ANSWER_HIDDEN_STATES) return x;
    const bool own = param(n, "output.weight", -1) || tensor(n, "output.weight", 0);
    const float scale = n->config->logit_scale;
    x = tg_net_linear(n, x, own ? "output" : "token_embd", TG_READ_PLAIN);
    if (n->config->logit_cap > 0) x = tg_soft_cap(n->g, x, n->config->logit_cap);
    tg_graph_scope(n->g, "%s", "");
    return scale != 0 && scale != 1 ? tg_scale(n->g, x, 1 / scale) : x;
}

tg_net tg_net_of(tg_graph *g, const tg_layout *layout) {
    return (tg_net) { .g = g,
                      .config = &layout->config,
                      .layout = layout,
                      .flat = tg_state(g, TG_WEIGHTS_NAME, tg_type_1d(TG_F32, layout->n_elems)),
                      .layer = -1 };
}

static void begin(tg_net *n) {
    n->layer = -1;
    memset(n->turn, 0, sizeof n->turn);
}

tg_value *tg_net_logits(tg_net *n, tg_value *tokens) {
    begin(n);
    return tg_family_of(n->config)->graph(n, tokens);
}

tg_value *tg_net_masked_logits(tg_net *n, const tg_net_texts *texts) {
    begin(n);
    n->texts = texts;
    n->answers = TG_ANSWER_HIDDEN_STATES;
    tg_value *x = tg_family_of(n->config)->encode(n);
    n->layer = -1;
    x = tg_net_linear(n, x, "token_embd", TG_READ_PLAIN);
    tg_graph_scope(n->g, "%s", "");
    return x;
}
