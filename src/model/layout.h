/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - all weights of a model as one flat array of floats, so that norm and optimizer are
 * single steps:
 *
 *   0                                   n_decayed                     n_elems
 *   | matrices and embeddings (decayed) | biases and norms (not decayed) |
 *
 * A parameter of the graph may hold several tensors of a file side by side: "attn.qkv" has those of
 * queries, keys and values, so that one product serves the three. Every parameter starts at a
 * multiple of 64 elements, so that a vector load of a parameter's tail never touches the next one,
 * and a GPU can bind it: at a multiple of 256 bytes. The elements between stay zero: their
 * gradients are zero, and AdamW of zeros is zero.
 */
#ifndef TG_MODEL_LAYOUT_H
#define TG_MODEL_LAYOUT_H

#include "io/run/manifest.h"
#include "model/family.h"

/* A parameter as the graph sees it. */
typedef struct tg_param {
    const char *name;
    tg_type type;
    size_t offset_elems; /* in the flat array, a multiple of 64 */
    const char *role;    /* of tg_want */
    int layer;           /* -1: of none */
    bool in_out;         /* y = x W */
} tg_param;

typedef enum tg_init { TG_INIT_NORMAL, TG_INIT_ZERO, TG_INIT_ONE } tg_init;

/* A tensor as the file sees it: rows x cols in the file's order, rows 1 for vectors. */
typedef struct tg_tensor_spec {
    const char *name;
    const tg_want *want;
    int n_dims; /* 1 or 2 */
    size_t rows, cols;
    size_t offset_elems;     /* of its first element in the flat array */
    size_t row_stride_elems; /* from row to row in the flat array */
    tg_init init;
    double init_std; /* of TG_INIT_NORMAL */
} tg_tensor_spec;

#define TG_WEIGHTS_NAME "weights" /* of the state that is the flat array */

typedef struct tg_layout {
    tg_model_config config; /* complete */
    const tg_param *params;
    size_t n_params;
    const tg_tensor_spec *tensors; /* in the file's order: the ordinal seeds the initial values */
    size_t n_tensors;
    size_t n_elems;       /* of the flat array, padding included */
    size_t n_decayed;     /* elements [0, n_decayed) are subject to weight decay */
    tg_manifest manifest; /* the tensors, for writers of files */
} tg_layout;

/* Tables are in the arena. The configuration is complete. */
tg_status tg_layout_make(tg_ctx *ctx, tg_arena *arena, const tg_model_config *config,
                         tg_layout *out);

#endif
