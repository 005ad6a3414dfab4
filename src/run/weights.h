/*
 * weights.h - what a tg_model is inside: configuration, layout, the flat array, and its story.
 */
#ifndef TG_RUN_WEIGHTS_H
#define TG_RUN_WEIGHTS_H

#include "io/file.h"
#include "io/tgpt.h"
#include "model/model.h"
#include "run/runtime.h"

struct tg_model {
    tg_context *ctx;
    const tg_family *family;
    tg_layout layout; /* tables in the arena */
    tg_arena arena;
    tg_block block; /* layout.n_elems floats */
    float *weights; /* = block.data */
    tg_meta meta;   /* history and options of the run that made it; arrays in the arena */
    int64_t step;
    double loss, val_loss;
    bool has_moments; /* in the file it came from */
    const char *format, *dtype;
};

/* A model with its weights in place but zero. */
tg_status tg_weights_alloc(tg_context *ctx, const tg_gpt_config *config, tg_model **out);
/* Fills them as seed says (base/rng.h, purpose INIT). */
void tg_weights_init(tg_model *m, uint64_t seed);
tg_status tg_weights_open(tg_context *ctx, const char *path, tg_model **out);
void tg_weights_free(tg_model *m);

/* Copies the tensors of a file whose names begin with prefix ("" or "adam_m.") into a flat array of
 * the layout, and back: the reader that the writers of io/tgpt.h want. */
tg_status tg_weights_load(tg_file *f, const tg_layout *layout, const char *prefix, float *flat);

/* Flat arrays as a source for a writer. m and v NULL: no moments. */
typedef struct tg_flat_source {
    const tg_layout *layout;
    const float *part[3]; /* by tg_part */
} tg_flat_source;
tg_weights tg_flat_weights(const tg_flat_source *source);

tg_status tg_weights_save(tg_model *m, const char *path, tg_file_kind kind);
const tg_tensor_spec *tg_weights_find(const tg_model *m, const char *name);
/* Elements [first, first+n) of a tensor of a flat array, in the file's order. */
void tg_weights_copy_out(const tg_tensor_spec *t, const float *flat, uint64_t first, size_t n,
                         float *out);

#endif
