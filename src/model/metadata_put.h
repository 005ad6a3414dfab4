/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata_put.h - the sizes of a configuration as metadata of a file: the way back of metadata.c,
 * and of what a family reads of its own (tg_family.config, tg_family.put).
 */
#ifndef TG_MODEL_METADATA_PUT_H
#define TG_MODEL_METADATA_PUT_H

#include "model/family.h"

enum { TG_METADATA_MAX = 30 };

/* Metadata as it is made. Who has no memory for a value notes that, and goes on. */
typedef struct tg_metadata {
    tg_arena *arena; /* has keys and lists */
    const tg_model_config *c;
    const char *arch;
    tg_gguf_value *value; /* [n], with room for TG_METADATA_MAX that are put */
    size_t n;
    bool failed;
} tg_metadata;

/* "llama.block_count" is put as "block_count". */
void tg_config_put_int(tg_metadata *m, const char *name, int64_t x);
void tg_config_put_float(tg_metadata *m, const char *name, float x);
void tg_config_put_bool(tg_metadata *m, const char *name, bool x);
void tg_config_put_text(tg_metadata *m, const char *name, const char *text);
/* Room for n integers of 32 bits, little-endian; NULL: there was no memory. */
uint8_t *tg_config_put_list(tg_metadata *m, const char *name, size_t n);

/* The same of n bytes that are 0 or 1. */
uint8_t *tg_config_put_bools(tg_metadata *m, const char *name, size_t n);

/* Heads of keys: one number, or where kinds of layers differ one for each, 0 in layers that are not
 * attention. */
void tg_config_put_kv_heads(tg_metadata *m);
/* The MLP's size: one number, or of families whose layers may be one alone one for each. */
void tg_config_put_mlp(tg_metadata *m);
/* Sizes of recurrent layers, Mamba2's and the gated delta net's. */
void tg_config_put_states(tg_metadata *m);
/* What tg_config_read_scales reads: all four, since a reader's default may be another than 1. */
void tg_config_put_scales(tg_metadata *m);
/* Heads of attention, the norms' eps, rotary positions, windows. */
void tg_config_put_attention(tg_metadata *m);

/* All of them but general.*. */
void tg_config_put(tg_metadata *m);

#endif
