/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms_groups.h - the groups of columns of an RMS norm: attr.i[0], or one. A group is a row of fewer
 * columns, with its part of the gains.
 */
#ifndef TG_OPS_RMS_GROUPS_H
#define TG_OPS_RMS_GROUPS_H

#include "ops/build.h"

static inline size_t rms_groups(const tg_attr *attr) {
    return attr->i[0] > 1 ? (size_t)attr->i[0] : 1;
}
static inline size_t rms_cols(const tg_args *a) {
    return tg_type_cols(&a->in_type[0]) / rms_groups(&a->attr);
}

static inline bool rms_want_groups(tg_graph *g, tg_node *n) {
    const size_t cols = tg_type_cols(&n->in[0]->type);
    if (n->attr.i[0] >= 0 && cols % rms_groups(&n->attr) == 0) return true;
    tg_graph_fail(g, n, TG_E_SHAPE, "want groups that divide %zu columns, have %" PRId32, cols,
                  n->attr.i[0]);
    return false;
}

#endif
