/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masked.h - rows of an encoder's training: it is shown a text with gaps, and predicts what was
 * there (Devlin et al. 2018).
 *
 *     the text's tokens            t0 t1 t2 t3 t4 t5
 *     inputs, a row of T = 8   CLS t0 ## t2 t3 rr t5 SEP
 *     targets                  -   -  t1 -  -  t4 -  -          -: TG_NO_TARGET
 *
 * 15 of 100 tokens are chosen. Of these 80 of 100 become the mask (##), 10 another token (rr), and
 * 10 stay as they are. Each token's choice is a draw of its own (purpose MASK of base/rng.h), so
 * that a row is the same in every run and on every machine; a row has one at least, since a loss of
 * nothing is none. CLS and SEP are what the tokenizer puts around a text, and are never chosen.
 */
#ifndef TG_TRAINING_MASKED_H
#define TG_TRAINING_MASKED_H

#include "ir/op.h"
#include "tok/tok.h"

typedef struct tg_masking {
    int32_t begins, ends; /* CLS and SEP; -1: the tokenizer has none */
    int32_t mask;
    size_t vocab; /* V, of which other tokens are drawn */
} tg_masking;

/* E_UNSUPPORTED: the tokenizer has neither "[MASK]" nor "<mask>"; name begins the message. */
tg_status tg_masking_of(tg_ctx *err, const char *name, const tg_tok *tok, size_t V,
                        tg_masking *out);
/* Tokens of the text in a row of T. */
size_t tg_masking_room(const tg_masking *m, size_t T);
/* Row `index` of a seed: inputs [T] begin with so many tokens of a text; targets [T]. */
void tg_masking_row(const tg_masking *m, uint64_t seed, uint64_t index, size_t T, int32_t *inputs,
                    int32_t *targets);

#endif
