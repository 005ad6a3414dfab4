/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharp_util.h - a model with weights that tell its parts apart, as sharpen() of
 * tools/oracle/probe.py makes them: attention of a fresh model is the same everywhere.
 */
#ifndef TG_TEST_SHARP_UTIL_H
#define TG_TEST_SHARP_UTIL_H

#include "engine_util.h"

#include "load/weights.h"
#include "training/data/text.h"

/* Matrices of the blocks are multiplied by 8; biases, which are zeros, become -3/16 .. 3/16. */
static inline void sharpen(tg_model *m) {
    for (size_t i = 0; i < m->layout.n_tensors; i++) {
        const tg_tensor_spec *t = &m->layout.tensors[i];
        const bool bias = strstr(t->name, ".bias") != NULL;
        const bool matrix = t->n_dims == 2 && strncmp(t->name, "blocks.", 7) == 0;
        for (size_t r = 0; r < t->rows; r++)
            for (size_t c = 0; c < t->cols; c++) {
                float *w = &m->weights[t->offset_elems + r * t->row_stride_elems + c];
                if (matrix) *w *= 8;
                if (bias) *w = (float)((int)(c % 7) - 3) / 16;
            }
    }
}

/* Bytes [first, first + n) of the text as tokens; n is at most 64. */
static inline void read_tokens(tg_context *ctx, uint64_t first, int32_t *tokens, size_t n) {
    tg_text *text;
    uint8_t bytes[64];
    OK(ctx, tg_text_open(ctx, STORIES, &text));
    assert_int_equal(tg_text_read(text, first, bytes, n), TG_OK);
    for (size_t i = 0; i < n; i++) tokens[i] = bytes[i];
    tg_text_free(text);
}

#endif
