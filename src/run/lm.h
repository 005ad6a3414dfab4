/*
 * lm.h - a model out of files of others (GGUF, safetensors): its weights packed into one block, its
 * tokenizer, its plans' states. A tg_model has one of these in the place of a layout and flat
 * weights of its own.
 */
#ifndef TG_RUN_LM_H
#define TG_RUN_LM_H

#include "model/lm.h"
#include "run/runtime.h"
#include "tok/tok.h"

/* A vector that no tensor of the file is: frequencies, biases side by side. */
typedef struct tg_lm_extra {
    char name[96];
    float *data;
    size_t bytes;
} tg_lm_extra;

typedef struct tg_lm_model {
    tg_gguf file;
    tg_arena arena;
    tg_lm lm;
    tg_block block;
    tg_lm_extra *extras;
    size_t n_extras;
    tg_tok *tok;
    double read_ms; /* what reading and packing took */
} tg_lm_model;

/* Is path a model of others: a GGUF file, a folder of safetensors or a zip file of one? False, too,
 * where it cannot be read. folder: what is to be opened, which is path, but for a
 * model.safetensors the folder that it is in. */
#define TG_LM_PATH_BYTES 4096
bool tg_lm_takes(const char *path, char folder[TG_LM_PATH_BYTES]);

tg_status tg_lm_load(tg_context *ctx, const char *path, tg_lm_model **out);
void tg_lm_unload(tg_context *ctx, tg_lm_model *m);

/* The type that most bytes of the weights have, by its name. */
const char *tg_lm_types(const tg_lm_model *m);

/* tg_file_info of such a model. */
tg_status tg_lm_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user);

/* Gives every weight of a plan its memory. */
tg_status tg_lm_bind(const tg_lm_model *m, tg_plan *plan);

#endif
