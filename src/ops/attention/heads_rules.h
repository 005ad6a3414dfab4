/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heads_rules.h - the shape rules that all ops of attention share.
 */
#ifndef TG_OPS_ATTENTION_HEADS_RULES_H
#define TG_OPS_ATTENTION_HEADS_RULES_H

#include "ops/attention/cache/kv_row.h"
#include "ops/attention/cache/pages.h"
#include "ops/attention/heads.h"
#include "ops/rules.h"

/* The heads are positive, divide each other, and a row of theirs can be addressed. */
static inline bool tg_heads_want(tg_graph *g, const tg_node *n) {
    const int32_t h = n->attr.i[0], k = n->attr.i[1], d = n->attr.i[2];
    if (h >= 1 && k >= 1 && d >= 1 && h % k == 0 &&
        ((int64_t)h + 2 * (int64_t)k) * (int64_t)d <= INT32_MAX)
        return true;
    tg_graph_fail(g, n, TG_E_SHAPE,
                  "want H query heads, K key heads that divide H, and heads of D elements, "
                  "have H %d, K %d, D %d",
                  (int)h, (int)k, (int)d);
    return false;
}

/* f[0] is above 0: the fast bodies look for the largest score before they scale. f[2], the cap, is
 * 0 or above. */
static inline bool tg_heads_want_scale(tg_graph *g, const tg_node *n) {
    const float scale = n->attr.f[0], cap = n->attr.f[2];
    if (scale > 0 && scale <= FLT_MAX && cap >= 0 && cap <= FLT_MAX) return true;
    tg_graph_fail(g, n, TG_E_ARG, "want a scale above 0 and a cap of 0 or more, have %g and %g",
                  (double)scale, (double)cap);
    return false;
}

/* i[3] is a window, or 0. */
static inline bool tg_heads_want_window(tg_graph *g, const tg_node *n) {
    if (n->attr.i[3] >= 0) return true;
    tg_graph_fail(g, n, TG_E_ARG, "want a window of 0 (none) or more, have %d", (int)n->attr.i[3]);
    return false;
}

/* Input k is rows of q, k and v: of n_dims dimensions, the last one (H+2K)*D long. */
static inline bool tg_heads_want_qkv(tg_graph *g, const tg_node *n, int k, int n_dims) {
    if (!tg_heads_want(g, n) || !tg_want_dims(g, n, k, TG_F32, n_dims, n_dims)) return false;
    tg_type want = n->in[k]->type;
    want.dim[n_dims - 1] = tg_heads_of(&n->attr).row;
    return tg_want_type(g, n, k, want);
}

/* Input k is a KV cache [P,2K,R,D]: see kv_row.h, pages.h. */
static inline bool tg_heads_want_cache(tg_graph *g, const tg_node *n, int k) {
    const tg_dtype dtype = n->in[k] ? n->in[k]->type.dtype : TG_F32;
    const bool known = dtype == TG_F16 || dtype == TG_U8;
    if (!tg_heads_want(g, n) || !tg_want_dims(g, n, k, known ? dtype : TG_F32, 4, 4)) return false;
    const tg_heads s = tg_heads_of(&n->attr);
    tg_type want = n->in[k]->type;
    want.dim[1] = 2 * s.n_kv;
    want.dim[3] = tg_kv_row_elems(want.dtype, s.size);
    return tg_want_type(g, n, k, want);
}

/* Inputs 2 and 3 are `at` of the rows of input qkv, and pages of input cache: see pages.h. */
static inline bool tg_heads_want_pages(tg_graph *g, const tg_node *n, int cache, int qkv) {
    const size_t rows = n->in[cache]->type.dim[2];
    if (!tg_want_type(g, n, 2, tg_type_2d(TG_I32, n->in[qkv]->type.dim[0], 2)) ||
        !tg_want_dims(g, n, 3, TG_I32, 2, 2))
        return false;
    if (rows % TG_PAGE_TILE == 0 || n->in[3]->type.dim[1] == 1) return true;
    tg_graph_fail(g, n, TG_E_SHAPE, "want pages of a multiple of %d positions, have %zu",
                  TG_PAGE_TILE, rows);
    return false;
}

#endif
