/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a family of models: how its weights lie in memory, what they are called in files, and
 * its graph. One file a family (gpt.c, ...), listed in models.def.
 *
 * All weights of a model are one flat array, so that norm and optimizer are single steps:
 *
 *   0                                   n_decayed                     n_elems
 *   | matrices and embeddings (decayed) | biases and norms (not decayed) |
 *
 * Every parameter starts at a multiple of 16 elements; the elements between stay zero. A parameter
 * of the graph may hold several tensors of a file side by side: "attn.qkv" [C,3C] has the columns
 * of q_proj, k_proj and v_proj, so that one product serves the three.
 */
#ifndef TG_MODEL_MODEL_H
#define TG_MODEL_MODEL_H

#include "ir/graph.h"
#include "tinygpt.h"

/* A parameter as the graph sees it. */
typedef struct tg_param {
    const char *name;
    tg_type type;
    size_t offset_elems; /* in the flat array, a multiple of 64 */
} tg_param;

typedef enum tg_init { TG_INIT_NORMAL, TG_INIT_ZERO, TG_INIT_ONE } tg_init;

/* A tensor as the file sees it: rows x cols in the file's [in,out] order, rows 1 for vectors. */
typedef struct tg_tensor_spec {
    const char *name;
    int n_dims; /* 1 or 2 */
    size_t rows, cols;
    size_t offset_elems;     /* of its first element in the flat array */
    size_t row_stride_elems; /* from row to row in the flat array */
    tg_init init;
    double init_std; /* of TG_INIT_NORMAL */
} tg_tensor_spec;

typedef struct tg_layout {
    tg_gpt_config config;
    const tg_param *params;
    size_t n_params;
    const tg_tensor_spec *tensors; /* in the file's order: the ordinal seeds the initial values */
    size_t n_tensors;
    size_t n_elems;   /* of the flat array, padding included */
    size_t n_decayed; /* elements [0, n_decayed) are subject to weight decay */
} tg_layout;

/* Values of a block at which somebody may look, or put another one in their place, while a graph
 * is built: what an experiment needs to know of a family, and all that it may. */
typedef enum tg_site {
    TG_SITE_HEADS,     /* [.., H*D] what the heads gather, side by side: out 0 of attention */
    TG_SITE_ATTENTION, /* [.., C] what attention adds to the stream */
    TG_SITE_MLP,       /* [.., C] what the MLP adds to the stream */
    TG_SITE_STREAM,    /* [.., C] the stream behind the block; behind none where layer is -1 */
    TG_SITE_COUNT
} tg_site;

typedef struct tg_tap {
    /* What the graph goes on with: x, or another value of its type. */
    tg_value *(*at)(void *user, tg_graph *g, tg_site site, int layer, tg_value *x);
    void *user;
} tg_tap;

typedef struct tg_family {
    const char *name, *doc;
    /* Fills out, with tables in the arena. The configuration has been checked (io/manifest.h). */
    tg_status (*layout)(tg_ctx *ctx, tg_arena *arena, const tg_gpt_config *config, tg_layout *out);
    /*
     * Appends the model to g and returns the logits [.., V].
     *   weights  the flat state     tokens  [B,T], or [T] of dynamic rows with caches
     *   caches   [L] states [2,H,Tmax,D], one a layer, for generation; NULL for whole sequences
     *   tap      is shown every site in the order in which they are computed; NULL: nobody looks
     */
    tg_value *(*graph)(tg_graph *g, const tg_layout *layout, tg_value *weights, tg_value *tokens,
                       tg_value *const *caches, const tg_tap *tap);
    /* The logits [.., V] of a stream [.., C]: the end of graph alone. */
    tg_value *(*head)(tg_graph *g, const tg_layout *layout, tg_value *weights, tg_value *x);
} tg_family;

extern const tg_family *const tg_families[];
extern const size_t tg_n_families;
const tg_family *tg_family_find(const char *name);

/* Parameter i as a view of the flat state (weights or gradients), by name; poison if there is none.
 */
tg_value *tg_param_view(tg_graph *g, const tg_layout *layout, tg_value *flat, const char *name);

#endif
