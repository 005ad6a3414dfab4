/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - the metadata that a trained model keeps of the file it began with: its vocabulary and
 * chat template above all, and the sizes and names that a conversion writes out again.
 *
 * In memory they are a tg_gguf without tensors, so that whoever asks a third-party model's file
 * asks a trained model in the same words; in a .tinygpt file they are the section KEYS, in the form
 * of a GGUF file's metadata (io/gguf/gguf.h), with keys of our own making:
 *
 *     tokenizer.huggingface.json   a tokenizer.json as it was (TG_GGUF_TOKENIZER_JSON)
 *     rope_freqs.weight            f32 [R/2], what a GGUF file has as a tensor of that name, as are
 *                                  all of tg_gguf_factors
 */
#ifndef TG_LOAD_KEYS_H
#define TG_LOAD_KEYS_H

#include "base/buf.h"
#include "io/gguf/gguf.h"

typedef struct tg_keys {
    tg_gguf g;
    tg_buf bytes; /* as the section has them: a u32 number of values, then each */
} tg_keys;

/* Copies of all values of a file, or of those of its vocabulary alone (tokenizer.*). */
tg_status tg_keys_of_gguf(tg_ctx *ctx, const tg_gguf *from, bool vocabulary_alone, tg_keys **out);
/* From a section, which is copied; name begins messages. TG_E_FORMAT. */
tg_status tg_keys_of_bytes(tg_ctx *ctx, const char *name, const uint8_t *bytes, size_t n_bytes,
                           tg_keys **out);
void tg_keys_free(tg_ctx *ctx, tg_keys *keys); /* NULL is fine */

/* Factors of rotary frequencies, of tg_gguf_factors, to out [n]; *there: it has them. TG_E_SHAPE:
 * another number. */
tg_status tg_keys_factors(const tg_keys *keys, const char *name, size_t n, float *out, bool *there);

#endif
