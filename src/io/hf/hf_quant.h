/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hf_quant.h - quantised weights of folders: what config.json says of them, which stored tensors
 * make one matrix, and the type that its rows are read as.
 *
 *   method         matrix            beside it                           becomes
 *   MLX, affine    .weight U32       .scales .biases                     MLX4, MLX8
 *   MLX, mxfp4     .weight U32       .scales U8                          MXFP4
 *   fp8            .weight F8_E4M3   .weight_scale, .weight_scale_inv    BF16
 *   gptq           .qweight I32      .qzeros .scales .g_idx              Q4_0, Q8_0, MLX4, MLX8
 *   gptq, ordered  .qweight I32      .qzeros .scales .g_idx              F16
 *   awq            .qweight I32      .qzeros .scales                     MLX4
 *   bitsandbytes   .weight U8        .weight.absmax, .weight.quant_map   F32, F16, BF16
 *   its int8       .weight I8        .SCB                                MLX8
 *
 * Where a type of ours holds what a method stores, nothing is rounded. Where none does, weights
 * become floats, rounded once, as the methods' own libraries have them before a product:
 *
 *   fp8            a scale times an e4m3 has up to 28 bits: BF16. Scales that are powers of two
 *                  lose nothing
 *   gptq           columns in the order of their activations, each with a group of its own: F16
 *   bitsandbytes   the dtype that the file names
 *
 * Scales of activations are for products of 8 bits, which are not computed here: they are passed
 * over.
 */
#ifndef TG_IO_HF_QUANT_H
#define TG_IO_HF_QUANT_H

#include "io/hf/hf.h"

/* The files of a folder that have tensors. */
typedef struct tg_hf_files {
    tg_gguf *g;
    tg_st_head *heads;
    tg_reader *readers; /* [n], of the same files */
    uint32_t **by_name; /* [n][n of the head]: numbers of its tensors, sorted */
    size_t n;
} tg_hf_files;

/* Sorts the names, once all files are open. */
tg_status tg_hf_sort_stored(tg_hf_files *f);

/* The tensor whose name is the n_name bytes of name and suffix, and its file; NULL: there is none.
 * It is asked for each part of each matrix, of which quantised experts make tens of thousands. */
const tg_st_tensor *tg_hf_find_stored(const tg_hf_files *f, const char *name, size_t n_name,
                                      const char *suffix, size_t *file);
/* F32, F16 and BF16 are GGUF's elements, too. */
bool tg_hf_type_of(const tg_st_tensor *s, tg_dtype *out);

/* A matrix that is being placed: t and place are to be set. */
typedef struct tg_hf_matrix {
    const tg_hf_files *files;
    const tg_hf_quant *quant;
    const tg_st_tensor *stored;
    size_t n_stem; /* of its name, without what the method has for ".weight" */
    tg_gguf_tensor *t;
    tg_gguf_place *place;
} tg_hf_matrix;

struct tg_hf_method {
    const char *name;           /* quant_method of config.json */
    const char *matrix, *dtype; /* the end of the name of a matrix, and its type */
    const char *const *beside;  /* ends of names of what belongs to matrices; NULL ends it */
    /* Options of quantization_config that matter. */
    tg_status (*configure)(tg_hf_values *m, const tg_json *q, tg_hf_quant *out);
    /* Type, sizes, form and parts of a matrix. TG_E_UNSUPPORTED: parts that do not fit. */
    tg_status (*set)(const tg_hf_matrix *x);
};

/* Methods beside MLX's, which native builds have (hf_methods.c); a module has none. */
extern const tg_hf_method *const tg_hf_methods[];
extern const size_t tg_hf_n_methods;

/* Of config.json, once the family is known. out->method NULL: nothing is quantised. */
tg_status tg_hf_quant_read(tg_hf_values *m, tg_hf_quant *out);
/* Is it a matrix that the method has quantised; or what belongs to one? */
bool tg_hf_is_quantised(const tg_hf_quant *q, const tg_st_tensor *s);
bool tg_hf_is_beside(const tg_hf_quant *q, const char *name);
/* "fp8"; "none" */
const char *tg_hf_quant_name(const tg_hf_quant *q);
/* The matrix's name as floats would have it, in the arena; NULL: no memory. */
const char *tg_hf_matrix_name(tg_gguf *g, const tg_hf_quant *q, const tg_st_tensor *s);
tg_status tg_hf_set_matrix(const tg_hf_files *f, const tg_hf_quant *q, const tg_st_tensor *s,
                           tg_gguf_tensor *t, tg_gguf_place *place);

/* Finds a part of a matrix, which must be there, with up to two dimensions; a scalar is [1,1] and a
 * vector [n,1]. Its type is one of floats where `floats`, else dtype. */
tg_status tg_hf_find_part(const tg_hf_matrix *x, const char *suffix, const char *dtype,
                          tg_gguf_part *out);
/* Into a block of MLX's, which lies anywhere. */
static inline void tg_hf_put_f32(uint8_t *out, float x) { memcpy(out, &x, sizeof x); }
/* "tensor NAME of TYPE: want .., have others" */
tg_status tg_hf_misfit(const tg_hf_matrix *x, const char *want);

#endif
