/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c - the interpreter in double. See oracle.h.
 */
#include "backend/cpu/oracle.h"

/* f32 is computed in double; packed weights stay what they are. */
static bool is_double(const tg_type *t) { return t->dtype == TG_F32 && tg_type_is_plain(t); }

static size_t elem_bytes(const tg_type *t) {
    return is_double(t) ? sizeof(double) : tg_dtype_bytes(t->dtype);
}

tg_status tg_oracle_init(tg_oracle *o, tg_graph *g) {
    o->graph = g;
    tg_arena_init(&o->arena, &g->ctx->mem);
    o->data = tg_arena_array(&o->arena, (size_t)g->n_nodes * TG_MAX_OUT, sizeof(void *));
    if (!o->data) return tg_fail_memory(g->ctx, "oracle", g->n_nodes * sizeof(void *));
    for (const tg_node *n = g->first; n; n = n->next) {
        for (int k = 0; k < n->n_out; k++) {
            const tg_value *v = &n->out[k];
            size_t offset;
            const tg_value *root = tg_value_root(v, &offset);
            if (root != v) {
                o->data[tg_value_slot(v)] =
                    (char *)o->data[tg_value_slot(root)] + offset * elem_bytes(&v->type);
                continue;
            }
            const size_t bytes = is_double(&v->type) ? tg_type_elems(&v->type) * sizeof(double)
                                                     : tg_type_bytes(&v->type);
            o->data[tg_value_slot(v)] = tg_arena_alloc(&o->arena, bytes);
            if (!o->data[tg_value_slot(v)])
                return tg_fail_memory(g->ctx, "value of the oracle", bytes);
            if (tg_op_table[n->op]->is_constant)
                *(double *)o->data[tg_value_slot(v)] = (double)n->attr.f[0];
        }
    }
    return TG_OK;
}

void tg_oracle_deinit(tg_oracle *o) { tg_arena_deinit(&o->arena); }

void *tg_oracle_data(const tg_oracle *o, const tg_value *v) { return o->data[tg_value_slot(v)]; }

void tg_oracle_run(tg_oracle *o, const tg_scalars *rt, const tg_node *first, const tg_node *last) {
    for (const tg_node *n = first ? first : o->graph->first; n; n = n->next) {
        const tg_op_desc *d = tg_op_table[n->op];
        if (!d->structural) {
            tg_args a = { .attr = n->attr, .rt = rt, .workers = 1 };
            for (int i = 0; i < n->n_in; i++) {
                if (!n->in[i]) continue;
                a.in[i] = tg_oracle_data(o, n->in[i]);
                a.in_type[i] = n->in[i]->type;
                if (n->in[i]->dynamic_rows) a.in_type[i].dim[0] = (size_t)rt->rows;
            }
            for (int k = 0; k < n->n_out; k++) {
                a.out[k] = tg_oracle_data(o, &n->out[k]);
                a.out_type[k] = n->out[k].type;
                if (n->out[k].dynamic_rows) a.out_type[k].dim[0] = (size_t)rt->rows;
                if (n->acc_into[k] && rt->accumulate) a.acc |= (uint8_t)(1u << k);
            }
            d->ref64(&a);
        }
        if (n == last) return;
    }
}
