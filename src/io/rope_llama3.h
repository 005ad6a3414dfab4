/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rope_llama3.h - how Llama 3 stretches its frequencies: slow ones are divided by a factor, fast
 * ones stay, and those between are blended (transformers' modeling_rope_utils).
 *
 * config.json has the rule, a GGUF file what comes out of it: rope_freqs.weight, by which each
 * frequency is divided. So the rule makes the tensor, and is found again from it.
 */
#ifndef TG_IO_ROPE_LLAMA3_H
#define TG_IO_ROPE_LLAMA3_H

#include "base/libc.h"

typedef struct tg_rope_llama3 {
    double factor;
    double low, high; /* turns within the original context, below and above which nothing blends */
    double original;  /* positions that the model was first trained for */
} tg_rope_llama3;

/* What frequencies are divided by: out [head / 2]. */
void tg_rope_llama3_fill(const tg_rope_llama3 *rule, double base, size_t head, float *out);

/* The rule behind factors [head / 2]: low 1 and high 4, as in all models of the family, and a power
 * of two of positions. False: none gives them again to 1e-6. */
bool tg_rope_llama3_find(const float *factors, double base, size_t head, tg_rope_llama3 *out);

#endif
