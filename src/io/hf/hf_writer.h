/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_writer.h - a model as a folder that transformers opens: the way back of hf.h.
 *
 * Names and keys are those of the families (model/), read from right to left.
 */
#ifndef TG_IO_HF_WRITER_H
#define TG_IO_HF_WRITER_H

#include "base/os/os.h"
#include "io/hf/hf.h"

/* A tensor on its way: its name there, and how its rows change. */
typedef struct tg_hf_out {
    const char *name;
    size_t source, second; /* numbers in the tg_gguf; the second's rows follow where halves */
    bool turned, plus_one, channels, vector, halves; /* halves: of each expert, if there are some */
    uint64_t first_row, n_rows; /* of one expert; n_rows 0: all of the tensor's */
} tg_hf_out;

/* All tensors that are written, those of experts one by one where the form has them so: out and the
 * family, in the arena. E_UNSUPPORTED: the family, or what a folder cannot say. */
tg_status tg_hf_outline(const tg_gguf *g, tg_arena *arena, const tg_hf_family **family,
                        tg_hf_out **out, size_t *n);

/* The head of model.safetensors: tensors of one type, which follow in this order without gaps. */
tg_status tg_hf_save_begin(const tg_gguf *g, const char *path, const tg_hf_out *out, size_t n,
                           tg_dtype type, tg_save **save);

/* config.json out of the metadata. */
tg_status tg_hf_put_config(const tg_gguf *g, const tg_hf_family *family, tg_dtype type,
                           tg_buf *text);

/* generation_config.json: the tokens that begin and end a text, and how the makers draw.
 * ends [n]: all that end one. */
tg_status tg_hf_put_generation(const tg_gguf *g, const int32_t *ends, size_t n, tg_buf *text);
/* 1_Pooling/config.json; nothing where the model does not say how texts become vectors. */
tg_status tg_hf_put_pooling(const tg_gguf *g, const tg_hf_family *family, tg_buf *text);
/* What stands beside it: modules.json; how many tokens count (sentence_bert_config.json) and the
 * prompts (config_sentence_transformers.json), or nothing; N_Dense/config.json of [out,in]. */
tg_status tg_hf_put_modules(const tg_gguf *g, tg_buf *text);
tg_status tg_hf_put_most_tokens(const tg_gguf *g, const tg_hf_family *family, tg_buf *text);
tg_status tg_hf_put_prompts(const tg_gguf *g, const tg_hf_family *family, tg_buf *text);
tg_status tg_hf_put_dense(const tg_gguf *g, uint64_t in, uint64_t out, tg_buf *text);

#endif
