/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - what a tg_model is inside: sizes, weights, tokenizer, and the run that made it.
 */
#ifndef TG_LOAD_WEIGHTS_H
#define TG_LOAD_WEIGHTS_H

#include "base/os/os.h"
#include "io/run/file.h"
#include "io/tgpt/tgpt.h"
#include "load/keys.h"
#include "load/vocabulary.h"
#include "model/net.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

/* A vector that is computed when a model is opened: frequencies, biases side by side. */
typedef struct tg_vector {
    char name[96]; /* of its state */
    float *data;
    size_t bytes;
} tg_vector;

/* A file of which tensors are used or packed where they lie. */
typedef struct tg_file_map {
    tg_os_map map;
    const tg_os_file *file;
    bool stays; /* some tensors are not packed */
} tg_file_map;

/*
 * Its weights are one of two:
 *
 *   flat     floats of one array, which can be trained: layout has tensors, table has none
 *   packed   states of their own, in the types of a file: table has tensors, layout has none
 *
 * The sizes are in layout.config either way. Tables, and arrays without another owner, are in the
 * arena.
 */
struct tg_model {
    tg_context *ctx;
    tg_arena arena;
    tg_layout layout;
    tg_tensors table;
    tg_block block;     /* the weights, or */
    tg_os_map map;      /* the file that packed ones were kept in (pack_cache.h) */
    float *weights;     /* [layout.n_elems] flat; NULL: */
    const char *packed; /* [table.bytes] */
    tg_vector *vectors; /* [n_vectors] */
    size_t n_vectors;
    tg_tok *tok;             /* never NULL: where nothing says otherwise, tokens are bytes */
    tg_tokenizer tokenizer;  /* the same for callers; borrows tok */
    tg_keys *keys;           /* of flat weights that began with a file or a vocabulary, or NULL */
    const tg_gguf *metadata; /* of keys, or of the file that is packed; NULL: there are none */
    const char *format, *dtype;
    uint64_t n_params, weight_bytes;

    /* The run that made it: training/checkpoint.c. */
    tg_meta meta; /* its history and options */
    int64_t step;
    double loss, val_loss;
    bool has_moments; /* in the file it came from */
    bool used_prev;   /* which was PATH.prev */
    bool changing;    /* the trainer is in the middle of an update */
    uint64_t version; /* rises with every slice that changes the weights */
    int n_saves;      /* pending: the trainer must wait */

    /* The file that is packed, which stays open: packing.c, file_maps.c. */
    tg_gguf file;
    tg_file_map *maps; /* [n_maps] */
    size_t n_maps;
    const uint8_t **in_file; /* [table.n_tensors] where the maps have them; NULL: they do not */
    double open_ms, tok_ms, pack_ms; /* what the head took; the tokenizer, of one worker; reading
                                        and packing, or mapping and checking, of all but for that */
    struct tg_packer *packer;        /* how far the packing is, NULL: not begun */
};

/* An empty one, which tg_weights_free takes at any stage from then on. */
tg_status tg_weights_new(tg_context *ctx, tg_model **out);
/* A model with its weights in place but zero. */
tg_status tg_weights_alloc(tg_context *ctx, const tg_model_config *config, tg_model **out);
/* The same, for slices: tg_block_clear makes its block zero. keys: the model's from then on, in any
 * case; NULL: tokens are bytes. */
tg_status tg_weights_take(tg_context *ctx, const tg_model_config *config, tg_keys *keys,
                          tg_model **out);
/* Of the sizes and keys of an open file. */
tg_status tg_weights_take_file(tg_context *ctx, const tg_file *f, tg_model **out);
void tg_weights_free(tg_model *m);

/* The tokenizer and the chat template that the metadata describe, in whole or in what is missing.
 */
tg_status tg_weights_read_text_parts(tg_model *m);
/* vectors.c: what is computed, once packed weights are in memory. */
tg_status tg_weights_make_vectors(tg_model *m);
const tg_vector *tg_weights_vector(const tg_model *m, const char *name); /* NULL: there is none */

/* A net of the model in g, of whole sequences; and its weights' memory for a plan. */
void tg_weights_net(const tg_model *m, tg_graph *g, tg_net *out);
tg_status tg_weights_bind(const tg_model *m, tg_plan *plan);
/* Are they floats of one array? */
bool tg_weights_are_flat(const tg_model *m);
/* TG_E_IO if a file that weights are mapped from has shrunk: what was computed is worthless. */
tg_status tg_weights_whole(const tg_model *m);

/* Makes the host's weights right, where the backend has the newer ones: before they are read. */
tg_status tg_weights_fetch(const tg_model *m);
/* E_ARG while a trainer is in the middle of changing the weights: for whoever reads them. */
tg_status tg_weights_want_steady(const tg_model *m);
/* E_UNSUPPORTED where they are packed, as a file has them: for whoever wants one flat array. */
tg_status tg_weights_want_floats(const tg_model *m, const char *what);
/* What follows may be done in slices: a zero-initialised struct holds the place, and go_on answers
 * TG_PENDING until it is done. Deadlines are on tg_time_ms's clock; 0: none. */

/* Fills fresh weights as seed says (base/rng.h, purpose INIT). */
typedef struct tg_filling {
    size_t tensor;
    uint64_t first; /* element of it */
} tg_filling;
tg_status tg_filling_go_on(tg_filling *f, tg_model *m, uint64_t seed, double deadline_ms);

/* Copies the tensors of a file whose names begin with prefix ("" or "adam_m.") into a flat array of
 * the layout, and back: the reader that the writers of io/tgpt/tgpt.h want. */
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

/* Flat arrays as a source for a writer. NULL: there are none of that part. */
typedef struct tg_flat_source {
    const tg_layout *layout;
    const float *part[TG_PARTS]; /* by tg_part */
    const tg_keys *keys;         /* of the model; NULL: none */
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
