/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - evaluates a graph in double with the references: what everything else is measured by.
 *
 * Slow on purpose: every value has memory of its own, nothing is fused, reordered or shared. A
 * value of dtype f32 is an array of double here; i32 stays i32.
 */
#ifndef TG_BACKEND_CPU_ORACLE_H
#define TG_BACKEND_CPU_ORACLE_H

#include "ir/graph.h"

typedef struct tg_oracle {
    tg_graph *graph; /* borrowed */
    void **data;     /* by tg_value_slot */
    tg_arena arena;
} tg_oracle;

/* Gives every value memory, zeroed. The graph must not change afterwards. */
tg_status tg_oracle_init(tg_oracle *o, tg_graph *g);
void tg_oracle_deinit(tg_oracle *o);

/* The elements of a value: double for f32, int32_t for i32. */
void *tg_oracle_data(const tg_oracle *o, const tg_value *v);

/* Runs every node from first (NULL: all) to last (NULL: the end), both included. */
void tg_oracle_run(tg_oracle *o, const tg_scalars *rt, const tg_node *first, const tg_node *last);

#endif
