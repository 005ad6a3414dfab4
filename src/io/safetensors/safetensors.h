/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - a model as a GPT-2 of transformers: names, shapes, configuration, writing.
 *
 *     OFFSET  SIZE  MEANING
 *     0       8     u64 N, bytes of the header, at most 100,000,000
 *     8       N     header: one JSON object that begins with '{', perhaps with spaces behind it
 *     8+N     ...   data, to the end of the file; little-endian, row by row, no gaps
 *
 *     { "__metadata__": {"format":"pt", "tinygpt":"{...}"},
 *       "wte.weight": {"dtype":"F32", "shape":[256,96], "data_offsets":[0,98304]}, ... }
 *
 * Offsets count from 8+N. The values of __metadata__ are strings; "format" is asked for by
 * transformers, and "tinygpt" is ours: the JSON of a v3 file (docs/format-tgpt.md) as text, so that
 * one file alone is a model, with its step and history. A file without it needs the config.json
 * that transformers writes beside it.
 *
 *     transformers                     .tinygpt                                       shape
 *     wte.weight wpe.weight            token_embedding.weight position_embedding      [V,C] [T,C]
 *     ln_f.weight .bias                ln_final.weight .bias                          [C]
 *     h.i.ln_1, h.i.ln_2               blocks.i.ln1, blocks.i.ln2                     [C]
 *     h.i.attn.c_attn.weight .bias     q_proj, k_proj, v_proj side by side            [C,3C] [3C]
 *     h.i.attn.c_proj.weight .bias     blocks.i.attn.o_proj                           [C,C] [C]
 *     h.i.mlp.c_fc.weight .bias        blocks.i.mlp.fc_in                             [C,4C] [4C]
 *     h.i.mlp.c_proj.weight .bias      blocks.i.mlp.fc_out                            [4C,C] [C]
 *
 * GPT-2 keeps its linear layers as y = x W with W [in, out], as we do: nothing is transposed. In
 * files of GPT2LMHeadModel all names but lm_head begin with "transformer.".
 */
#ifndef TG_IO_SAFETENSORS_H
#define TG_IO_SAFETENSORS_H

#include "io/run/file.h"
#include "io/safetensors/safetensors_head.h"
#include "io/tgpt/tgpt.h"

/* A tensor of the file, and which tensors of the manifest it holds side by side: numbers first,
 * first + 2, first + 4 (a weight and its bias alternate there). */
typedef struct tg_gpt2_tensor {
    char name[48];
    uint32_t n_dims;
    uint64_t dim[2]; /* dim[1] is 1 for vectors */
    size_t first, n_parts;
} tg_gpt2_tensor;

/* How many there are, and number i of them, in the order in which they are written. */
size_t tg_gpt2_tensors(const tg_model_config *config);
tg_gpt2_tensor tg_gpt2_tensor_at(const tg_manifest *manifest, size_t i);

/* The number of the tensor of this name, with or without "transformer."; SIZE_MAX if there is none
 * in a model of so many layers. *layer_buffer: it is none, but may stand in a file all the same, as
 * what old versions of transformers kept per layer besides weights. */
size_t tg_gpt2_find(const char *name, int32_t layers, bool *layer_buffer);

/* config.json: an object. Writing is for a checked configuration; reading checks it, and refuses
 * what computes something else than we do (another activation, ...). where begins the messages. */
void tg_gpt2_put_config(tg_json_writer *w, const tg_model_config *config);
tg_status tg_gpt2_get_config(tg_ctx *ctx, const char *where, const tg_json *root,
                             tg_model_config *out);

/* The whole file, weights as f32, atomically. meta_json as for tg_tgpt3_save. */
tg_status tg_safetensors_save(tg_ctx *ctx, const char *path, const tg_model_config *config,
                              const char *meta_json, size_t meta_bytes, const tg_weights *weights,
                              bool keep_prev);
/* The same in slices: see tg_saving in io/tgpt/tgpt.h. */
tg_status tg_safetensors_saving(tg_ctx *ctx, const char *path, const tg_model_config *config,
                                const char *meta_json, size_t meta_bytes, const tg_weights *weights,
                                bool keep_prev, tg_saving **out);

#endif
