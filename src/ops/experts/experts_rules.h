/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experts_rules.h - what the products with routed experts share: sizes, their shape rule, and how
 * the references read a weight.
 *
 * Each token has k choices among E experts (ops/experts/route.c). The matrices of all experts are
 * one matrix w [E*N,K], those of expert e in its rows [e*N, e*N + N). What the choices of a token
 * give lies side by side in its row, and with two matrices (gates and values of a gated MLP) all
 * gates come first, so that glu reads them as it reads those of any MLP:
 *
 *     row of a token   | choice 0: N of w | .. | choice k-1 | choice 0: N of w1 | .. |
 */
#ifndef TG_OPS_EXPERTS_RULES_H
#define TG_OPS_EXPERTS_RULES_H

#include "ops/kernel.h"
#include "ops/rules.h"

/* Inputs of experts and of experts_x_grad; of experts_w_grad the third one is x. */
enum { EXPERTS_X, EXPERTS_IDS, EXPERTS_W, EXPERTS_W1, EXPERTS_PARTS = 2 };
enum { EXPERTS_DW_X = EXPERTS_W };
/* Attributes: E; 1: each choice has columns of x of its own. Of experts_w_grad: which matrix, and
 * N. */
enum { EXPERTS_E, EXPERTS_OWN, EXPERTS_PART, EXPERTS_ROWS };

typedef struct experts_sizes {
    size_t tokens, k, experts;
    size_t N, K;  /* rows and columns of one expert's matrix */
    size_t parts; /* matrices: 1, or gates and values */
    bool own;
} experts_sizes;

/* Of experts and experts_x_grad, by the types of their inputs. */
static inline experts_sizes experts_sizes_of(const tg_type *ids, const tg_type *w,
                                             const tg_type *w1, const tg_attr *attr) {
    const size_t E = (size_t)attr->i[EXPERTS_E];
    return (experts_sizes) { .tokens = tg_type_rows(ids),
                             .k = tg_type_cols(ids),
                             .experts = E,
                             .N = w->dim[0] / E,
                             .K = tg_type_cols(w),
                             .parts = w1->n_dims ? 2 : 1,
                             .own = attr->i[EXPERTS_OWN] != 0 };
}
static inline experts_sizes experts_sizes_of_args(const tg_args *a) {
    return experts_sizes_of(&a->in_type[EXPERTS_IDS], &a->in_type[EXPERTS_W],
                            &a->in_type[EXPERTS_W1], &a->attr);
}

/* Of experts_w_grad, whose matrix is its output. */
static inline experts_sizes experts_sizes_of_dw(const tg_args *a) {
    const size_t k = tg_type_cols(&a->in_type[EXPERTS_IDS]), N = (size_t)a->attr.i[EXPERTS_ROWS];
    return (experts_sizes) { .tokens = tg_type_rows(&a->in_type[EXPERTS_IDS]),
                             .k = k,
                             .experts = (size_t)a->attr.i[EXPERTS_E],
                             .N = N,
                             .K = tg_type_cols(&a->out_type[0]),
                             .parts = tg_type_cols(&a->in_type[0]) / (k * N),
                             .own = a->attr.i[EXPERTS_OWN] != 0 };
}

static inline size_t experts_x_cols(const experts_sizes *s) { return s->own ? s->k * s->K : s->K; }
static inline size_t experts_y_cols(const experts_sizes *s) { return s->parts * s->k * s->N; }

/* Of experts and experts_x_grad. */
static inline double experts_flop(const tg_args *a) {
    const experts_sizes s = experts_sizes_of_args(a);
    return 2.0 * (double)s.tokens * (double)experts_y_cols(&s) * (double)s.K;
}

/* Where the columns begin that choice j of token t reads, and those that it gives by a part. */
static inline size_t experts_x_at(const experts_sizes *s, size_t t, size_t j) {
    return t * experts_x_cols(s) + (s->own ? j * s->K : 0);
}
static inline size_t experts_y_at(const experts_sizes *s, size_t t, size_t j, size_t part) {
    return t * experts_y_cols(s) + (part * s->k + j) * s->N;
}

/* Plain f32, which is trained; others are weights of files. */
static inline bool experts_is_floats(const tg_type *w) {
    return w->dtype == TG_F32 && tg_type_is_plain(w);
}

/* Weights of E experts, all of one shape: floats, packed, or rows of 16-bit floats. */
static inline bool experts_want_weights(tg_graph *g, const tg_node *n) {
    const tg_type *first = &n->in[EXPERTS_W]->type;
    const int32_t E = n->attr.i[EXPERTS_E];
    for (int k = EXPERTS_W; k <= EXPERTS_W1 && n->in[k]; k++) {
        const tg_type *t = &n->in[k]->type;
        const bool floats = tg_dtype_table[t->dtype].cols == 1 && t->dtype != TG_I32;
        if (E > 0 && t->n_dims == 2 && t->dim[0] > 0 && t->dim[0] % (size_t)E == 0 &&
            tg_type_same_shape(t, first) && (floats || t->layout) &&
            experts_is_floats(t) == experts_is_floats(first))
            continue;
        char text[TG_TYPE_TEXT_BYTES];
        tg_graph_fail(g, n, TG_E_SHAPE,
                      "%s: want weights of %d experts, floats or packed, alike, have %s",
                      tg_in_name(n, k), (int)E, tg_type_text(t, text));
        return false;
    }
    return true;
}

/* The choices: as many rows as x, whose columns are `cols`. */
static inline bool experts_want_choices(tg_graph *g, const tg_node *n, int k, size_t cols) {
    if (!tg_want_dims(g, n, k, TG_I32, 1, TG_MAX_DIMS) ||
        !tg_want_dims(g, n, 0, TG_F32, 1, TG_MAX_DIMS))
        return false;
    tg_type want = n->in[k]->type;
    want.dtype = TG_F32;
    want.dim[want.n_dims - 1] = cols;
    return tg_want_type(g, n, 0, want);
}

/* A weight as the references read it. */
static inline double experts_weight(const tg_args *a, int in, size_t row, size_t col) {
    const tg_type *t = &a->in_type[in];
    if (experts_is_floats(t)) return (double)((const TG_REAL *)a->in[in])[row * t->dim[1] + col];
    float w;
    tg_matrix_to_f32_n(t->dtype, t->layout, t->dim[1], a->in[in], row, col, 1, &w);
    return (double)w;
}

#endif
