/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what a layer remembers of a sequence: the one description by which plans, sessions and
 * their files, forecasts and `info` go.
 *
 * Attention remembers rows: the keys and the values of each position, in pages
 * (ops/attention/pages.h). A layer that sees all positions keeps all; one with a window keeps the
 * newest in a ring, unless it would not be shorter. A short convolution remembers rows as well: of
 * each position what it sums over, in floats, of which it sees as many as it has taps. So one may
 * go back in it as in a window.
 */
#ifndef TG_MODEL_STATE_H
#define TG_MODEL_STATE_H

#include "ir/tensor.h"
#include "model/family.h"

typedef struct tg_layer_state {
    tg_dtype dtype;   /* of the rows: ops/attention/kv_row.h */
    size_t heads;     /* 2K: of keys, then of values; 1 of a convolution */
    size_t row_elems; /* of a head at a position */
    size_t page_rows; /* positions of a page */
    size_t n_pages;   /* of a sequence */
    int32_t window;   /* positions that a row sees, its own included; 0: all before it */
    bool windowed;    /* forgets what is behind its window, even where that is in its pages still */
} tg_layer_state;

/* Of a layer in sequences of up to so many positions, which come up to `rows` at a time. */
tg_layer_state tg_layer_state_of(const tg_model_config *c, int layer, tg_dtype dtype,
                                 int32_t positions, int32_t rows);

/* Positions of a sequence that it has room for. */
static inline size_t tg_layer_state_room(const tg_layer_state *s) {
    return s->n_pages * s->page_rows;
}
static inline size_t tg_layer_state_row_bytes(const tg_layer_state *s) {
    return s->row_elems * tg_dtype_bytes(s->dtype);
}
static inline size_t tg_layer_state_page_bytes(const tg_layer_state *s) {
    return s->heads * s->page_rows * tg_layer_state_row_bytes(s);
}
/* [P,2K,R,row_elems]: the pages of n sequences. */
static inline tg_type tg_layer_state_type(const tg_layer_state *s, size_t n) {
    return (tg_type) { s->dtype, 4, { n * s->n_pages, s->heads, s->page_rows, s->row_elems } };
}

/* Bytes that all layers of a sequence take. */
uint64_t tg_model_state_bytes(const tg_model_config *c, tg_dtype dtype, int32_t positions,
                              int32_t rows);

#endif
