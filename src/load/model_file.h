/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_file.h - a file with a model in it, whatever its kind, by its head: what `info` tells, what
 * a configuration is asked of, what is checked. No weight is read.
 *
 *     a model's file     GGUF, a folder or a zip file of safetensors, .tinygpt of packed weights:
 *                        metadata, sizes and tensors are the file's
 *     a run              .tinygpt, safetensors of the byte GPT: sizes stand in its header, metadata
 *                        are its keys (keys.h), and beside the model stand moments, history, step
 */
#ifndef TG_LOAD_MODEL_FILE_H
#define TG_LOAD_MODEL_FILE_H

#include "io/detect.h"
#include "io/run/file.h"
#include "load/keys.h"
#include "model/tensors.h"

/* Everything may be read and nothing written. */
typedef struct tg_model_file {
    tg_gguf gguf;            /* of a model's file */
    tg_file *run;            /* NULL: a model's file */
    const tg_gguf *metadata; /* of either; of a run without keys one that has no values */
    /* Of a model's file all of it; of a run config, which is complete, elems and bytes, which its
     * weights take as floats. */
    tg_tensors table;
    /* For model_file.c alone. */
    tg_keys *keys; /* of a run */
    tg_arena arena;
    char folder[TG_GGUF_PATH_BYTES]; /* what was opened: path, or the folder that it stands for */
} tg_model_file;

/* path is borrowed until close. On failure *out is closed; else it stays where it is, since it
 * points into itself. Errors: those of tg_gguf_open_any and tg_tensors_read, or those of
 * tg_file_open; TG_E_UNSUPPORTED: a run of a family that is not known. */
tg_status tg_model_file_open(tg_ctx *ctx, const char *path, tg_model_file *out);
void tg_model_file_close(tg_model_file *f);

/* "tinygpt v3, GGUF v3, safetensors": for people; "gguf", "safetensors", "tinygpt v3": for
 * programs. */
const char *tg_model_file_format(const tg_model_file *f);
const char *tg_model_file_kind(const tg_model_file *f);
/* The type that most bytes of the weights have: "f32", "q4_k". */
const char *tg_model_file_dtype(const tg_model_file *f);
/* Can a changed byte be told? */
bool tg_model_file_checksummed(const tg_model_file *f);

#endif
