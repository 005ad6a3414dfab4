/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - what the files of ops share: the checks of shape rules, and the types of test cases.
 *
 * A shape rule is a list of wants. The first one that is not met records one kind of message in the
 * graph, "w: want f32 [256], have f32 [3, 256]", and returns false:
 *
 *     if (!tg_want_dims(g, n, 0, TG_F32, 1, 4) || !tg_want_type(g, n, 1, row)) return;
 */
#ifndef TG_OPS_RULES_H
#define TG_OPS_RULES_H

#include "ir/graph.h"

static inline const char *tg_in_name(const tg_node *n, int k) {
    const char *name = tg_op_table[n->op]->in_names[k];
    return name ? name : "input";
}

/* Input k has this type, layout and shape. An absent optional input is fine. */
static inline bool tg_want_type(tg_graph *g, const tg_node *n, int k, tg_type want) {
    if (!n->in[k]) return true;
    const tg_type *have = &n->in[k]->type;
    if (tg_type_same(have, &want)) return true;
    char a[TG_TYPE_TEXT_BYTES], b[TG_TYPE_TEXT_BYTES];
    tg_graph_fail(g, n, TG_E_SHAPE, "%s: want %s, have %s", tg_in_name(n, k),
                  tg_type_text(&want, a), tg_type_text(have, b));
    return false;
}

/* Input k is plain rows of this element type, from min to max dimensions, and at least one element.
 */
static inline bool tg_want_dims(tg_graph *g, const tg_node *n, int k, tg_dtype dtype, int min,
                                int max) {
    if (!n->in[k]) return true;
    const tg_type *have = &n->in[k]->type;
    if (have->dtype == dtype && have->layout == TG_PACK_NONE && have->n_dims >= min &&
        have->n_dims <= max && tg_type_elems(have) > 0)
        return true;
    char text[TG_TYPE_TEXT_BYTES];
    tg_graph_fail(g, n, TG_E_SHAPE, "%s: want %s with %d..%d dimensions, none of them 0, have %s",
                  tg_in_name(n, k), tg_dtype_name(dtype), min, max, tg_type_text(have, text));
    return false;
}

/* Only outputs below n_differentiable may be followed back by a gradient. */
static inline bool tg_want_no_gradient(tg_graph *g, const tg_node *n, tg_value *const *dy,
                                       int n_differentiable) {
    for (int k = n_differentiable; k < n->n_out; k++) {
        if (!dy[k]) continue;
        tg_graph_fail(g, n, TG_E_UNSUPPORTED, "output %d has no gradient", k);
        return false;
    }
    return true;
}

/* Types as static initialisers, for the tables of test cases: TG_T2(F32, 3, 17). */
#define TG_T0(t)          { TG_##t, 0, { 1, 1, 1, 1 } }
#define TG_T1(t, a)       { TG_##t, 1, { (a), 1, 1, 1 } }
#define TG_T2(t, a, b)    { TG_##t, 2, { (a), (b), 1, 1 } }
#define TG_T3(t, a, b, c) { TG_##t, 3, { (a), (b), (c), 1 } }
#define TG_T4(t, a, b, c, d)                                                                       \
    {                                                                                              \
        TG_##t, 4, { (a), (b), (c), (d) }                                                          \
    }
/* A matrix in the layout of its type: TG_PACKED(Q4_1, Q4MX16, 48, 64). */
#define TG_PACKED(t, packing, rows, cols) { TG_##t, 2, { (rows), (cols), 1, 1 }, TG_PACK_##packing }
#define TG_ABSENT                         { TG_DTYPE_COUNT, 0, { 1, 1, 1, 1 } }

#endif
