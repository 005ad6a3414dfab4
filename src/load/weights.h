/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - what a tg_model is inside: configuration, layout, the flat array, and its story.
 */
#ifndef TG_LOAD_WEIGHTS_H
#define TG_LOAD_WEIGHTS_H

#include "io/file.h"
#include "io/tgpt.h"
#include "load/keys.h"
#include "load/lm.h"
#include "load/vocabulary.h"
#include "model/net.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

struct tg_model {
    tg_context *ctx;
    tg_layout layout; /* tables in the arena */
    tg_arena arena;
    tg_block block; /* layout.n_elems floats */
    float *weights; /* = block.data */
    tg_meta meta;   /* history and options of the run that made it; arrays in the arena */
    int64_t step;
    double loss, val_loss;
    bool has_moments; /* in the file it came from */
    bool used_prev;   /* which was PATH.prev */
    const char *format, *dtype;
    tg_tok *tok;            /* of the file or of keys; else tokens are bytes */
    tg_keys *keys;          /* of a trained model with a vocabulary of its own; else NULL */
    tg_tokenizer tokenizer; /* the same for callers; borrows tok */
    float *freq[2];   /* [D/2] of rotary positions, by the number of their base; in the arena */
    tg_lm_model *lm;  /* of a GGUF file: it has the weights, and layout (but for its config), block
                         and weights are empty; else NULL */
    bool changing;    /* the trainer is in the middle of an update */
    uint64_t version; /* rises with every slice that changes the weights */
    int n_saves;      /* pending: the trainer must wait */
};

/* A model with its weights in place but zero. */
tg_status tg_weights_alloc(tg_context *ctx, const tg_model_config *config, tg_model **out);
/* The same, for slices: tg_block_clear makes its block zero. keys: the model's from then on, in any
 * case; NULL: tokens are bytes. */
tg_status tg_weights_take(tg_context *ctx, const tg_model_config *config, tg_keys *keys,
                          tg_model **out);
/* Of the sizes and keys of an open file. */
tg_status tg_weights_take_file(tg_context *ctx, const tg_file *f, tg_model **out);
/* The metadata of the file that the model came from; NULL: it has none. */
const tg_gguf *tg_weights_metadata(const tg_model *m);
void tg_weights_free(tg_model *m);

/* A net of the model in g, of whole sequences; and its weights' memory for a plan. */
void tg_weights_net(const tg_model *m, tg_graph *g, tg_net *out);
tg_status tg_weights_bind(const tg_model *m, tg_plan *plan);

/* Makes the host's weights right, where the backend has the newer ones: before they are read. */
tg_status tg_weights_fetch(const tg_model *m);
/* E_ARG while a trainer is in the middle of changing the weights: for whoever reads them. */
tg_status tg_weights_want_steady(const tg_model *m);
/* E_UNSUPPORTED where they are packed, as a file has them: for whoever wants one flat array. */
tg_status tg_weights_want_floats(const tg_model *m, const char *what);
/* A model out of third-party files, in slices: load/lm.h, whose rules for *out and the deadline
 * hold here, too. */
tg_status tg_weights_open_lm(tg_context *ctx, const char *path, double deadline_ms, tg_model **out);

/* What follows may be done in slices: a zero-initialised struct holds the place, and go_on answers
 * TG_PENDING until it is done. Deadlines are on tg_time_ms's clock; 0: none. */

/* Fills fresh weights as seed says (base/rng.h, purpose INIT). */
typedef struct tg_filling {
    size_t tensor;
    uint64_t first; /* element of it */
} tg_filling;
tg_status tg_filling_go_on(tg_filling *f, tg_model *m, uint64_t seed, double deadline_ms);

/* Copies the tensors of a file whose names begin with prefix ("" or "adam_m.") into a flat array of
 * the layout, and back: the reader that the writers of io/tgpt.h want. */
typedef struct tg_loading {
    size_t tensor;
    uint64_t first;
} tg_loading;
tg_status tg_loading_go_on(tg_loading *l, tg_file *f, const tg_layout *layout, const char *prefix,
                           float *flat, double deadline_ms);

/* floats.c: the tensors of a third-party file into the flat array of a new model. */
typedef struct tg_floats tg_floats;
tg_status tg_floats_new(tg_context *ctx, const char *path, tg_floats **out);
tg_status tg_floats_go_on(tg_floats *f, double deadline_ms, tg_model **out);
void tg_floats_free(tg_floats *f); /* NULL is fine */

/* Opens the file at path, which is borrowed until deinit, and loads its weights into a new model.
 */
typedef struct tg_model_opening {
    bool wants_floats; /* of a third-party file, too */
    tg_floats *floats; /* of one: in place of all below */
    tg_opening *opening;
    tg_file *file;
    bool used_prev;
    tg_model *model;
    tg_loading loading;
} tg_model_opening;
tg_status tg_model_opening_go_on(tg_model_opening *o, tg_context *ctx, const char *path,
                                 double deadline_ms, tg_model **out);
void tg_model_opening_deinit(tg_model_opening *o);

/* Flat arrays as a source for a writer. m and v NULL: no moments. */
typedef struct tg_flat_source {
    const tg_layout *layout;
    const float *part[3]; /* by tg_part */
    const tg_keys *keys;  /* of the model; NULL: none */
} tg_flat_source;
tg_weights tg_flat_weights(const tg_flat_source *source);

/* Begins to write the weights to a file; weights must be those of the model, and stay. */
tg_status tg_weights_saving(tg_model *m, const char *path, tg_file_kind kind,
                            const tg_weights *weights, tg_saving **out);
const tg_tensor_spec *tg_weights_find(const tg_model *m, const char *name);
/* Elements [first, first+n) of a tensor of a flat array, in the file's order. */
void tg_weights_copy_out(const tg_tensor_spec *t, const float *flat, uint64_t first, size_t n,
                         float *out);

#endif
