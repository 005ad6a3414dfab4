/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.h - the weights of a file as it has them: each matrix a state of the graph by its name,
 * packed (dtype/packed.h) or plain, each vector a state of floats.
 */
#ifndef TG_MODEL_TENSORS_H
#define TG_MODEL_TENSORS_H

#include "io/pooling.h"
#include "model/family.h"

/* A tensor as the graph sees it. */
typedef struct tg_tensor {
    const char *name;
    const tg_want *want;
    int layer; /* -1: of none */
    const tg_gguf_tensor *source;
    tg_type type; /* of its state: vectors and some matrices are plain f32, whatever the file has */
    bool turns;   /* its rows are heads that rotate */
    bool pairs;   /* and pair (2i, 2i + 1) in the file */
    bool logs;    /* are logs of what the file has, times -1 */
    bool reorder; /* has heads of values, in turns where the file is GGUF: tg_head_in_turns */
    bool stays;   /* in the file, which is mapped (tg_gguf_lies_plain) */
    size_t offset_bytes, bytes; /* in the model's block, or in the tensor's file */
} tg_tensor;

typedef struct tg_tensors {
    tg_model_config config;
    tg_embed_rules embed;     /* what the file says of it */
    const tg_tensor *tensors; /* [n_tensors] in the order of the family's list */
    size_t n_tensors;
    size_t bytes;   /* of all of them that do not stay in the file */
    uint64_t elems; /* parameters */
    bool in_turns;  /* heads of values lie so */
} tg_tensors;

/* Reads sizes and the table of tensors; all that is missing or misshapen is listed in one error.
 * Tables are in the arena, and point into g. stay: floats whose rows are looked up and never
 * multiplied with stay in the file. */
tg_status tg_tensors_read(const tg_gguf *g, tg_arena *arena, bool stay, tg_tensors *out);

/* The type that most bytes of the weights have in the file. */
tg_dtype tg_tensors_type(const tg_tensors *t);

/* Rows of a head of D whose halves lie side by side, and the same ones paired (2i, 2i + 1): where
 * row i of the first order is in the second, and the other way. */
static inline size_t tg_row_paired(size_t i, size_t D) {
    const size_t at = i % D;
    return i - at + (at < D / 2 ? 2 * at : 2 * (at - D / 2) + 1);
}
static inline size_t tg_row_halved(size_t i, size_t D) {
    const size_t at = i % D;
    return i - at + at / 2 + (at % 2 ? D / 2 : 0);
}

/* Of a gated delta net, R = H/G heads of values read one of G heads of keys. Heads that share one
 * lie side by side, or, in GGUF, in turns: that of head r of key head g is r*G + g. Where element i
 * of rows or columns that have heads of values (TG_WANT_IN_TURNS) is in the other order. */
size_t tg_head_in_turns(const tg_model_config *c, const tg_want *want, size_t i);
size_t tg_head_in_row(const tg_model_config *c, const tg_want *want, size_t i);
/* A row's columns come into the other order, by one of the two; room [cols]. */
void tg_head_columns(const tg_model_config *c, const tg_want *want,
                     size_t (*order)(const tg_model_config *c, const tg_want *want, size_t i),
                     float *x, float *room, size_t cols);
/* Are these its columns, and not its rows? */
static inline bool tg_turns_columns(const tg_want *want) {
    return want->rows == TG_SIZE_ONE || want->cols == TG_SIZE_SSM_INNER;
}

/* Rows and columns of a tensor's state; a vector, which may be a column in its file, is a row. */
static inline uint64_t tg_tensor_cols(const tg_tensor *t) {
    return t->type.n_dims == 1 ? t->source->elems : t->source->dim[0];
}
static inline uint64_t tg_tensor_rows(const tg_tensor *t) {
    return t->source->elems / tg_tensor_cols(t);
}
/* Do its rows come into another order than that of the file? */
bool tg_tensor_moves(const tg_gguf *g, const tg_tensor *t);

/* Rows [first, first + n) of the file as floats in the order of layout.h: halves of a head side by
 * side, heads of values too, logs. to: where row `origin` begins, from which a row lies stride
 * elements further on; rows of a tensor that moves may go anywhere in it. room
 * [tg_tensor_room_bytes(t, n)], aligned for floats. */
size_t tg_tensor_room_bytes(const tg_tensor *t, uint64_t n);
tg_status tg_tensor_read(const tg_gguf *g, const tg_model_config *c, const tg_tensor *t,
                         uint64_t first, uint64_t n, void *room, float *to, uint64_t origin,
                         size_t stride);

/* Numbers of the file become those of a tensor that is logs; others stay. */
void tg_tensor_logs(const tg_tensor *t, float *x, size_t n);

/* The i-th tensor of a role in a layer; NULL: there are no more. */
const tg_tensor *tg_tensors_find(const tg_tensors *t, const char *role, int layer, size_t i);

/* What the state of several biases side by side is called: by the first matrix's role. */
#define TG_BIASES_NAME "blk.%d.%s.biases"
/* Of a layer norm that has none: a shift by 0. */
#define TG_NO_SHIFT_NAME "no_shift"
/* Of norms that have none: a gain of 1, by their size. */
#define TG_NO_GAIN_NAME "no_gain.%d"

#endif
