/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - the tensors of a byte GPT, in the order of a .tinygpt file.
 *
 *     token_embedding.weight     [V, C]        then, for each block i:
 *     position_embedding.weight  [T, C]          blocks.i.ln1.weight .bias           [C]
 *     ln_final.weight .bias      [C]             blocks.i.attn.q_proj.weight .bias   [C, C] [C]
 *                                                blocks.i.attn.k_proj, v_proj, o_proj
 *                                                blocks.i.ln2.weight .bias           [C]
 *                                                blocks.i.mlp.fc_in.weight .bias     [C, M] [M]
 *                                                blocks.i.mlp.fc_out.weight .bias    [M, C] [C]
 *
 * The trap: these are the shapes of the bytes. A linear layer is y = x W, W stored [in, out], row
 * by row. The manifest inside a v2 header states PyTorch's shape of it, [out, in], though the bytes
 * are not transposed. Whoever compares with PyTorch transposes; nothing else in this project does.
 *
 * The place in this list also decides which random stream fills a tensor.
 */
#ifndef TG_IO_MANIFEST_H
#define TG_IO_MANIFEST_H

#include "base/err.h"
#include "base/libc.h"
#include "base/mem.h"

typedef struct tg_manifest_entry {
    const char *name;
    int n_dims;          /* 1 or 2 */
    uint64_t dim[2];     /* of the bytes; dim[1] is 1 for vectors */
    bool linear;         /* PyTorch's shape is the reverse */
    uint64_t elems;      /* dim[0] * dim[1] */
    uint64_t first_elem; /* elements before this tensor: floatOffset of a v2 header */
} tg_manifest_entry;

typedef struct tg_manifest {
    const tg_manifest_entry *entry; /* [n], in file order */
    size_t n;                       /* 4 + 16 * layers */
    uint64_t elems;                 /* of all: the parameters */
} tg_manifest;

/*
 * The limits of a configuration: layers 1..256, width 1..16384 and a multiple of heads, ctx
 * 1..65536, vocab 256, mlp 4 * width. TG_E_UNSUPPORTED for another vocabulary, TG_E_RANGE for the
 * rest; the message begins with `where` and names the field.
 */
tg_status tg_gpt_config_check(tg_ctx *ctx, const char *where, const tg_model_config *config);

/* Elements of all tensors of a checked configuration. */
uint64_t tg_manifest_elems(const tg_model_config *config);

/* The list for a checked configuration, in the arena. TG_E_MEMORY. */
tg_status tg_manifest_new(tg_ctx *ctx, tg_arena *arena, const tg_model_config *config,
                          tg_manifest *out);

#endif
