/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2.h - what families with Mamba2 have of it: tensors and sizes, in GGUF's words and in those
 * of transformers.
 *
 *     ssm_in      [2I+2GN+H,C]   gates I | x I, B GN, C GN | steps H        I = ssm_heads * P
 *     ssm_conv1d  [I+2GN,L]      L taps for each column of x, B and C, the oldest first
 *     ssm_heads   b, a, d [H]    biases of the steps, logs of the decays, weights of x: one vector
 *
 * GGUF has -exp(A_log) where transformers, and training, have A_log. ssm_a and ssm_d are columns
 * there, a row of one element for each head, while the graph has one vector of three parts. Facts:
 * transformers' modeling_mamba2, and llama.cpp's converter.
 */
#ifndef TG_MODEL_MAMBA2_H
#define TG_MODEL_MAMBA2_H

#include "io/hf/hf.h"
#include "model/family.h"

/* kind: TG_WANT_IN_MAMBA2, or 0 where it is in all layers. */
#define TG_MAMBA2_WANTS(kind)                                                                      \
    { "blk.%d.ssm_in.weight", TG_SIZE_SSM_IN, TG_SIZE_WIDTH, kind },                               \
        { "blk.%d.ssm_conv1d.weight", TG_SIZE_SSM_CONV, TG_SIZE_TAPS,                              \
          (kind) | TG_WANT_FLOATS | TG_WANT_TAPS },                                                \
        { "blk.%d.ssm_conv1d.bias", TG_SIZE_ONE, TG_SIZE_SSM_CONV, kind },                         \
        { "blk.%d.ssm_dt.bias", TG_SIZE_ONE, TG_SIZE_SSM_HEADS, kind, "blk.%d.ssm_heads.bias" },   \
        { "blk.%d.ssm_a", TG_SIZE_ONE, TG_SIZE_SSM_HEADS, (kind) | TG_WANT_COLUMN | TG_WANT_LOGS,  \
          "blk.%d.ssm_heads.bias" },                                                               \
        { "blk.%d.ssm_d", TG_SIZE_ONE, TG_SIZE_SSM_HEADS, (kind) | TG_WANT_COLUMN,                 \
          "blk.%d.ssm_heads.bias" }

/* in_proj is in the order of ssm_in already. */
#define TG_MAMBA2_NAMES(room)                                                                      \
    { room ".in_proj", "ssm_in", 0 }, { room ".conv1d", "ssm_conv1d", TG_HF_CHANNELS },            \
        { room ".dt_bias", "ssm_dt.bias", TG_HF_WHOLE }, { room ".A_log", "ssm_a", TG_HF_WHOLE },  \
        { room ".D", "ssm_d", TG_HF_WHOLE }, { room ".out_proj", "ssm_out", 0 }

#define TG_MAMBA2_SIZES                                                                            \
    { "mamba_d_conv", "ssm.conv_kernel", 0 }, { "mamba_d_state", "ssm.state_size", 0 },            \
        { "mamba_n_heads", "ssm.time_step_rank", 0 }, { "mamba_n_groups", "ssm.group_count", 0 }

/* Sizes of a file: up to so many groups. */
tg_status tg_mamba2_config(const tg_gguf *g, tg_model_config *c, int32_t most_groups);
/* What nobody gave: one group, heads of 32 columns or the next smaller number that divides twice
 * the width; states of 128 as published models have, or smaller ones beside a width below 512. */
void tg_mamba2_complete(tg_model_config *c);
/* Of config.json: steps that have a limit are refused. */
tg_status tg_mamba2_want_no_limit(tg_hf_values *m);
/* Of config.json: heads of `inner` columns in all, and steps without a limit. */
tg_status tg_mamba2_read(tg_hf_values *m, int64_t inner);
/* The size of a head, which follows in GGUF. */
void tg_mamba2_write(tg_json_writer *w, const tg_gguf *g, const char *arch);

#endif
