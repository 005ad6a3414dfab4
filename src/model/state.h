/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what a layer remembers of a sequence: the one description by which plans, sessions and
 * their files, forecasts and `info` go.
 *
 * Attention remembers rows: the keys and the values of each position, in pages
 * (ops/attention/cache/pages.h). A layer that sees all positions keeps all; one with a window keeps
 * the newest in a ring, unless it would not be shorter. A short convolution remembers rows as well:
 * of each position what it sums over, in floats, of which it sees as many as it has taps. So one
 * may go back in it as in a window. Layers that read the keys of an earlier one (kv_shared), which
 * are a model's last ones, remember nothing.
 *
 * Mamba2 and the gated delta net remember a state (ops/mamba2), which has all positions in it and
 * cannot be taken back. So a call never writes to the state that it goes on from, and a sequence
 * has a few: going back is going on from the newest one that is not beyond, and what lies between
 * is computed again. A layer that has Mamba2 beside attention (tg_family.beside) remembers both,
 * and one that is an MLP alone nothing.
 */
#ifndef TG_MODEL_STATE_H
#define TG_MODEL_STATE_H

#include "ir/tensor.h"
#include "model/family.h"

/* What a layer keeps: rows of all positions, those of a window, or states. */
typedef enum tg_keeps { TG_KEEPS_ALL, TG_KEEPS_WINDOW, TG_KEEPS_STATES, TG_KEEPS_COUNT } tg_keeps;

/* States of a sequence: two take turns while tokens come one by one, the others stay where a
 * conversation may return to (engine/cache.h). */
enum { TG_STATE_SLOTS = 4, TG_STATE_SHORT_ROWS = 16 };

typedef struct tg_layer_state {
    tg_dtype dtype;   /* of the rows: ops/attention/cache/kv_row.h */
    size_t heads;     /* 2K: of keys, then of values; 1 of a convolution, and of states */
    size_t row_elems; /* of a head at a position; of a state */
    size_t page_rows; /* positions of a page; 1 of states */
    size_t n_pages;   /* of a sequence; its states */
    int32_t window;   /* positions that a row sees, its own included; 0: all before it */
    tg_keeps keeps;   /* a window forgets what is behind it, even where that is in its pages */
} tg_layer_state;

/* Does a layer remember anything? An MLP alone does not, nor does one that reads another's keys. */
static inline bool tg_layer_remembers(const tg_model_config *c, int32_t layer) {
    if (!TG_NATIVE_PARTS) return true;
    return tg_layer_kind_of(c, layer) != TG_LAYER_MLP && !tg_shares_keys(c, layer);
}
/* The number of what a layer goes on from: layers before it that remember something. */
static inline int32_t tg_layer_rows_at(const tg_model_config *c, int32_t layer) {
    int32_t n = 0;
    for (int32_t i = 0; i < layer; i++) n += tg_layer_remembers(c, i);
    return n;
}
/* The same of its mixer of states, which in families that have something beside attention come
 * behind all others. */
static inline int32_t tg_layer_state_at(const tg_model_config *c, int32_t layer) {
    return tg_family_of(c)->beside ? c->layers + layer : tg_layer_rows_at(c, layer);
}
/* How many a model has. */
static inline int32_t tg_model_states(const tg_model_config *c) {
    return tg_layer_state_at(c, c->layers);
}

/* The layer that number i of them is of. */
int32_t tg_state_layer(const tg_model_config *c, int32_t i);

/* Number i of them, in sequences of up to so many positions, which come up to `rows` at a time. */
tg_layer_state tg_layer_state_of(const tg_model_config *c, int i, tg_dtype dtype, int32_t positions,
                                 int32_t rows);

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
