/* SPDX-License-Identifier: Apache-2.0 */
/*
 * structure.c - the ops that compute nothing: they say what memory a value stands for.
 *
 *   input     memory that the caller fills before a run
 *   state     memory that outlives a run: weights, gradients, moments, KV cache
 *   view      a dense part of a state: in 0, from node->offset_elems on, as another shape
 *   latest    the whole of a state after every write that stands before it in the list
 *   constant  a scalar f32, f[0]
 *
 * They have no shape rule, since their types are given to the builders of ir/graph.c, no kernel and
 * no gradient of their own: what is differentiated is the view itself.
 */
#include "ir/op.h"

TG_OP_DESC(input) = {
    .name = "input",
    TG_DOC "memory that the caller fills",
    .out_names = { "value" },
    .n_out = 1,
    .structural = true,
};

TG_OP_DESC(state) = {
    .name = "state",
    TG_DOC "memory that outlives a run",
    .out_names = { "value" },
    .n_out = 1,
    .structural = true,
    .is_state = true,
};

TG_OP_DESC(view) = {
    .name = "view",
    TG_DOC "a dense part of a state",
    .in_names = { "state" },
    .out_names = { "value" },
    .n_in = 1,
    .n_out = 1,
    .structural = true,
};

TG_OP_DESC(latest) = {
    .name = "latest",
    TG_DOC "a whole state after every write so far",
    .in_names = { "state" },
    .out_names = { "value" },
    .n_in = 1,
    .n_out = 1,
    .structural = true,
};

TG_OP_DESC(constant) = {
    .name = "constant",
    TG_DOC "a scalar, f[0]",
    .out_names = { "value" },
    .n_out = 1,
    .structural = true,
    .is_constant = true,
};
