/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt.c - the family "tinygpt": a byte-level GPT-2 with a tied head.
 *
 *   x = E[token] + P[position]
 *   for each layer:  x = x + W_o attention(LN1(x) W_qkv + b_qkv) + b_o
 *                    x = x + W_out gelu(LN2(x) W_in + b_in) + b_out
 *   logits = LN_final(x) E^T
 *
 * Pre-norm, LayerNorm eps 1e-5, exact erf gelu, scale 1/sqrt(D), no dropout (facts: the original
 * TinyGPT; Radford et al. 2019). Initial values: N(0, 0.02), the two projections that end a
 * residual branch N(0, 0.02 / sqrt(2L)), biases 0, gains 1.
 *
 * Weights lie as [in,out] (y = x W), in memory and in .tinygpt files alike.
 */
#include "base/math.h"
#include "model/model.h"
#include "ops/build.h"

#define EPS 1e-5f

/* The parameters of a block: name, rows, columns in units of C; rows 0 for a vector. split is the
 * number of file tensors that lie side by side in it.
 *
 * Queries, keys and values are one parameter here, as one product then serves the three: its rows
 * are read once, and it is three times as wide, which suits the register tile of small models. In
 * files they are three tensors each, so a row of "attn.qkv.weight" is
 *
 *     | q_proj row: C | k_proj row: C | v_proj row: C |
 */
typedef struct block_param {
    const char *name;
    const char *parts[3];
    size_t rows, cols;
    int split;
    tg_init init;
    bool ends_branch;
} block_param;

static const block_param block[] = {
    { "ln1.weight", { "ln1.weight" }, 0, 1, 1, TG_INIT_ONE, false },
    { "ln1.bias", { "ln1.bias" }, 0, 1, 1, TG_INIT_ZERO, false },
    { "attn.qkv.weight",
      { "attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight" },
      1,
      3,
      3,
      TG_INIT_NORMAL,
      false },
    { "attn.qkv.bias",
      { "attn.q_proj.bias", "attn.k_proj.bias", "attn.v_proj.bias" },
      0,
      3,
      3,
      TG_INIT_ZERO,
      false },
    { "attn.o_proj.weight", { "attn.o_proj.weight" }, 1, 1, 1, TG_INIT_NORMAL, true },
    { "attn.o_proj.bias", { "attn.o_proj.bias" }, 0, 1, 1, TG_INIT_ZERO, false },
    { "ln2.weight", { "ln2.weight" }, 0, 1, 1, TG_INIT_ONE, false },
    { "ln2.bias", { "ln2.bias" }, 0, 1, 1, TG_INIT_ZERO, false },
    { "mlp.fc_in.weight", { "mlp.fc_in.weight" }, 1, 4, 1, TG_INIT_NORMAL, false },
    { "mlp.fc_in.bias", { "mlp.fc_in.bias" }, 0, 4, 1, TG_INIT_ZERO, false },
    { "mlp.fc_out.weight", { "mlp.fc_out.weight" }, 4, 1, 1, TG_INIT_NORMAL, true },
    { "mlp.fc_out.bias", { "mlp.fc_out.bias" }, 0, 1, 1, TG_INIT_ZERO, false },
};
enum { N_BLOCK_PARAMS = sizeof block / sizeof block[0], N_BLOCK_TENSORS = 16, N_TOP = 4 };

/* Builds the two tables. Parameters come in the order of the flat array: two passes, decayed first.
 * Weight decay is for what multiplies (matrices and embeddings) and not for what shifts or scales
 * (biases, gains); with the two apart, the optimizer needs one number to know which is which. */
typedef struct layout_builder {
    tg_arena *arena;
    tg_param *params;
    tg_tensor_spec *tensors;
    size_t n_params, n_tensors, n_elems;
    bool out_of_memory;
} layout_builder;

/* Lack of memory is remembered and asked for once, at the end: the tables are small, and the code
 * below stays a list of what a model has. */
static const char *named(layout_builder *b, const char *prefix, const char *name) {
    const char *s = tg_arena_sprintf(b->arena, "%s%s", prefix, name);
    if (!s) b->out_of_memory = true;
    return s;
}

/* Appends a parameter and gives it its place. Rounded up to 64 elements, so that a vector load of a
 * parameter's tail never touches the next one, and a GPU can bind it: at a multiple of 256 bytes.
 * The gaps stay zero for ever: their gradients are zero, and AdamW of zeros is zero. */
static size_t add_param(layout_builder *b, const char *prefix, const char *name, size_t rows,
                        size_t cols) {
    tg_param *p = &b->params[b->n_params++];
    p->name = named(b, prefix, name);
    p->type = rows ? tg_type_2d(TG_F32, rows, cols) : tg_type_1d(TG_F32, cols);
    p->offset_elems = b->n_elems;
    b->n_elems += (tg_type_elems(&p->type) + 63) / 64 * 64;
    return p->offset_elems;
}

/* The file's order differs from the array's: tensors go to the slot of their ordinal. The ordinal
 * is part of the contract of initial weights: it seeds them (base/rng.h), so it follows the
 * manifest of the file format and never the layout in memory. */
static void set_tensor(layout_builder *b, size_t ordinal, const char *prefix, const char *name,
                       size_t rows, size_t cols, size_t offset, size_t stride, tg_init init,
                       double std) {
    b->tensors[ordinal] = (tg_tensor_spec) {
        .name = named(b, prefix, name),
        .n_dims = rows ? 2 : 1,
        .rows = rows ? rows : 1,
        .cols = cols,
        .offset_elems = offset,
        .row_stride_elems = stride,
        .init = init,
        .init_std = std,
    };
}

/* What is not in a block. The embedding is also the head: one tensor, found by one name, whose
 * gradient is the sum of both uses. */
static void add_top(layout_builder *b, const tg_gpt_config *c, bool matrices) {
    static const char *const names[N_TOP] = { "token_embedding.weight", "position_embedding.weight",
                                              "ln_final.weight", "ln_final.bias" };
    const size_t C = (size_t)c->width;
    const size_t rows[N_TOP] = { (size_t)c->vocab, (size_t)c->ctx, 0, 0 };
    const tg_init init[N_TOP] = { TG_INIT_NORMAL, TG_INIT_NORMAL, TG_INIT_ONE, TG_INIT_ZERO };
    for (size_t i = 0; i < N_TOP; i++) {
        if ((rows[i] != 0) != matrices) continue;
        const size_t offset = add_param(b, "", names[i], rows[i], C);
        set_tensor(b, i, "", names[i], rows[i], C, offset, C, init[i], 0.02);
    }
}

/* A branch is added to the stream 2L times; with initial values smaller by sqrt(2L) the stream has
 * the same size at the end of any depth (Radford et al. 2019). */
static void add_block(layout_builder *b, const tg_gpt_config *c, int layer, bool matrices) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "blocks.%d.", layer);
    const size_t C = (size_t)c->width;
    const double branch_std = 0.02 / tg_sqrt(2.0 * c->layers);
    size_t ordinal = N_TOP + (size_t)layer * N_BLOCK_TENSORS;
    /* Ordinals run q.weight, q.bias, k.weight, ...: the parts of a weight and its bias alternate.
     */
    for (size_t i = 0; i < N_BLOCK_PARAMS; i++) {
        const block_param *p = &block[i];
        const size_t rows = p->rows * C, cols = p->cols * C, part = cols / (size_t)p->split;
        const size_t step = p->split > 1 ? 2 : 1;
        if ((rows != 0) == matrices) {
            const size_t offset = add_param(b, prefix, p->name, rows, cols);
            for (int s = 0; s < p->split; s++)
                set_tensor(b, ordinal + (size_t)s * step, prefix, p->parts[s], rows, part,
                           offset + (size_t)s * part, cols, p->init,
                           p->ends_branch ? branch_std : 0.02);
        }
        /* qkv.weight is followed by qkv.bias, whose parts start one ordinal later. */
        if (p->split == 1)
            ordinal += 1;
        else
            ordinal += rows ? 1 : 5;
    }
}

/* Tables are counted before they are filled, and each pass writes its own slots of tensors, so that
 * after both of them none is left over. */
static tg_status layout(tg_ctx *ctx, tg_arena *arena, const tg_gpt_config *c, tg_layout *out) {
    const size_t L = (size_t)c->layers;
    const size_t n_params = N_TOP + L * N_BLOCK_PARAMS, n_tensors = N_TOP + L * N_BLOCK_TENSORS;
    layout_builder b = { .arena = arena,
                         .params = tg_arena_array(arena, n_params, sizeof(tg_param)),
                         .tensors = tg_arena_array(arena, n_tensors, sizeof(tg_tensor_spec)) };
    if (!b.params || !b.tensors)
        return tg_fail_memory(ctx, "layout of a model", n_tensors * sizeof(tg_tensor_spec));
    for (int pass = 0; pass < 2; pass++) {
        const bool matrices = pass == 0;
        add_top(&b, c, matrices);
        for (int l = 0; l < c->layers; l++) add_block(&b, c, l, matrices);
        if (matrices) out->n_decayed = b.n_elems;
    }
    if (b.out_of_memory) return tg_fail_memory(ctx, "names of a model", 64);
    out->config = *c;
    out->params = b.params;
    out->n_params = b.n_params;
    out->tensors = b.tensors;
    out->n_tensors = n_tensors;
    out->n_elems = b.n_elems;
    return TG_OK;
}

/* What a part of the graph needs to find its weights. */
typedef struct scope {
    tg_graph *g;
    const tg_layout *layout;
    tg_value *weights;
    const tg_tap *tap; /* NULL: nobody looks */
    int layer;         /* -1 outside the blocks */
} scope;

/* x, or what somebody puts in its place. */
static tg_value *tapped(const scope *s, tg_site site, tg_value *x) {
    return s->tap ? s->tap->at(s->tap->user, s->g, site, s->layer, x) : x;
}

/* The view of a parameter, named in full and outside of any scope: gradients and plans find it by
 * this name. So every caller sets its own scope again afterwards. */
static tg_value *weight(const scope *s, const char *name) {
    char full[96];
    if (s->layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "blocks.%d.%s", s->layer, name);
    tg_graph_scope(s->g, "%s", "");
    return tg_param_view(s->g, s->layout, s->weights, full);
}

static tg_value *norm(const scope *s, tg_value *x, const char *w, const char *b, const char *name) {
    tg_value *gain = weight(s, w), *bias = weight(s, b);
    if (s->layer < 0)
        tg_graph_scope(s->g, "%s", name);
    else
        tg_graph_scope(s->g, "blocks.%d.%s", s->layer, name);
    return tg_layer_norm(s->g, x, gain, bias, EPS);
}

static tg_value *linear(const scope *s, tg_value *x, const char *w, const char *b,
                        const char *name) {
    tg_value *matrix = weight(s, w), *bias = weight(s, b);
    tg_graph_scope(s->g, "blocks.%d.%s", s->layer, name);
    return tg_matmul(s->g, x, matrix, bias, 0);
}

/* With a cache, the new keys and values are written first and attention then reads them all out of
 * it, its own tokens' included; so prefill and decode are one graph that differs in its rows. */
static tg_value *attend(const scope *s, tg_value *qkv, tg_value *cache) {
    const int32_t H = s->layout->config.heads, D = s->layout->config.width / H;
    const float scale = (float)(1 / tg_sqrt(D));
    tg_graph_scope(s->g, "blocks.%d.attn", s->layer);
    if (!cache) return tg_attention(s->g, qkv, H, H, D, scale);
    const tg_attr a = { .i = { H, H, D }, .f = { scale } };
    return tg_attention_cached(s->g, qkv, tg_kv_append(s->g, cache, qkv, &a), &a);
}

static tg_value *logits_of(const scope *s, tg_value *x, tg_value *E) {
    x = norm(s, x, "ln_final.weight", "ln_final.bias", "ln_final");
    tg_graph_scope(s->g, "head");
    tg_value *logits = tg_matmul(s->g, x, E, NULL, 2);
    tg_graph_scope(s->g, "%s", "");
    return logits;
}

/* The mathematics of the file's head, line by line. Nothing here knows whether it is for training
 * or for writing, but for two places: with caches, positions begin where the cache ends, and only
 * the last token goes on to the final norm and the head, which for a long prompt is most of their
 * work. Errors stay in g. */
static tg_value *graph(tg_graph *g, const tg_layout *layout, tg_value *weights, tg_value *tokens,
                       tg_value *const *caches, const tg_tap *tap) {
    scope s = { g, layout, weights, tap, -1 };
    tg_value *E = weight(&s, "token_embedding.weight"),
             *P = weight(&s, "position_embedding.weight");
    tg_value *x = tg_position_add(g, tg_embedding(g, tokens, E), P, caches != NULL);
    x = tapped(&s, TG_SITE_STREAM, x);

    for (s.layer = 0; s.layer < layout->config.layers; s.layer++) {
        tg_value *h = norm(&s, x, "ln1.weight", "ln1.bias", "ln1");
        tg_value *qkv = linear(&s, h, "attn.qkv.weight", "attn.qkv.bias", "attn.qkv");
        tg_value *o = attend(&s, qkv, caches ? caches[s.layer] : NULL);
        o = tapped(&s, TG_SITE_HEADS, o);
        o = linear(&s, o, "attn.o_proj.weight", "attn.o_proj.bias", "attn.o_proj");
        x = tg_add(g, x, tapped(&s, TG_SITE_ATTENTION, o));

        h = norm(&s, x, "ln2.weight", "ln2.bias", "ln2");
        h = linear(&s, h, "mlp.fc_in.weight", "mlp.fc_in.bias", "mlp.fc_in");
        h = tg_gelu(g, h, TG_ACT_GELU_ERF);
        h = linear(&s, h, "mlp.fc_out.weight", "mlp.fc_out.bias", "mlp.fc_out");
        x = tg_add(g, x, tapped(&s, TG_SITE_MLP, h));
        x = tapped(&s, TG_SITE_STREAM, x);
    }
    s.layer = -1;
    if (caches) x = tg_last_row(g, x);
    return logits_of(&s, x, E);
}

static tg_value *head(tg_graph *g, const tg_layout *layout, tg_value *weights, tg_value *x) {
    const scope s = { g, layout, weights, NULL, -1 };
    return logits_of(&s, x, weight(&s, "token_embedding.weight"));
}

const tg_family tg_family_gpt = {
    .name = "tinygpt",
    .doc = "byte-level GPT-2 with a tied head, the original TinyGPT's model",
    .layout = layout,
    .graph = graph,
    .head = head,
};
