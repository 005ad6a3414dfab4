/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the sticky builder: a model file that uses it reads as mathematics.
 *
 * A graph is a list of nodes in the order in which they run; a node has an op, inputs (values made
 * by earlier nodes), attributes and up to four outputs. The first error stays: later calls return a
 * poison value of no meaning, and tg_graph_finish reports. Everything lives in the graph's arena.
 *
 * State (weights, gradients, moments, KV cache) is memory that outlives a call. A node that writes
 * it makes a new version of the same memory:
 *
 *     state "grads" [P] --view--> "blocks.0.ln1.weight" [C] --accumulate(., dw)--> version 2 of it
 *
 * A value therefore has a root and an offset (tg_value_root); tg_verify refuses a reader of an old
 * version that comes after the write. tg_latest gives the whole root after all writes so far.
 */
#ifndef TG_IR_GRAPH_H
#define TG_IR_GRAPH_H

#include "base/mem.h"
#include "ir/op.h"

struct tg_value {
    tg_node *node;
    tg_type type;
    const char *name;  /* never NULL once the graph is finished */
    uint8_t index;     /* this is node->out[index] */
    bool dynamic_rows; /* dim[0] is a maximum; the call says how many (tg_scalars.rows) */
    bool is_output;    /* read by the caller after the run: its memory is kept */
};

struct tg_node {
    tg_op_id op;
    uint32_t id; /* in the order of creation, for dumps */
    tg_attr attr;
    const char *name; /* scope and what it is: "blocks.0.attn.qkv" */
    uint8_t n_in, n_out;
    bool backward;                  /* made by tg_grad or after it */
    tg_value *in[TG_MAX_IN];        /* NULL: an optional one that is absent */
    tg_value *acc_into[TG_MAX_OUT]; /* out k is added into this state instead of fresh memory */
    tg_value out[TG_MAX_OUT];
    tg_node *prev, *next;
    size_t offset_elems; /* of a view in its parent */
};

struct tg_graph {
    tg_ctx *ctx;
    tg_arena arena;
    uint32_t levers;
    tg_status status; /* of the first error, whose message is in ctx */
    tg_node *first, *last;
    uint32_t n_nodes;
    bool in_backward;
    bool rows_alone;   /* of the plan that is made of it: see tg_args */
    tg_value *scaling; /* state of op loss_scale, which products of gradients read; NULL: none */
    char scope[160];
    tg_value poison;
    tg_node poison_node;
};

/* The number of v in tables that have a line for every value of a graph: [n_nodes * TG_MAX_OUT].
 * Lines of outputs that a node does not have stay unused. */
static inline size_t tg_value_slot(const tg_value *v) {
    return (size_t)v->node->id * TG_MAX_OUT + v->index;
}

/* The graph allocates from ctx->mem and reports to ctx; ctx must outlive it. */
tg_status tg_graph_init(tg_graph *g, tg_ctx *ctx, uint32_t levers);
void tg_graph_deinit(tg_graph *g);
/* The first error, if there was one; else names what has no name and verifies. */
tg_status tg_graph_finish(tg_graph *g);
/* Records an error of node n (its op and name are added to the message); n may be NULL. */
void tg_graph_fail(tg_graph *g, const tg_node *n, tg_status code, const char *fmt, ...)
    TG_PRINTF(4, 5);

/* Names of nodes made from now on begin with this; "" for none. */
void tg_graph_scope(tg_graph *g, const char *fmt, ...) TG_PRINTF(2, 3);

/* Structural values. */
tg_value *tg_input(tg_graph *g, const char *name, tg_type type);      /* the caller fills it */
tg_value *tg_input_rows(tg_graph *g, const char *name, tg_type type); /* ... of dynamic rows */
tg_value *tg_state(tg_graph *g, const char *name, tg_type type);
tg_value *tg_view(tg_graph *g, tg_value *state, size_t offset_elems, tg_type type,
                  const char *name);
tg_value *tg_latest(tg_graph *g, tg_value *state); /* all of it, after every write so far */
tg_value *tg_constant(tg_graph *g, float x);       /* a scalar */

/* Appends a node; in[k] may be NULL where an input is optional. Returns its output 0. */
tg_value *tg_apply(tg_graph *g, tg_op_id op, const tg_attr *attr, tg_value *const *in, int n_in);
/* Output k of the node that made v. */
tg_value *tg_out(tg_value *v, int k);
/* Marks v as read by the caller and names it. */
void tg_output(tg_graph *g, tg_value *v, const char *name);
bool tg_is_poison(const tg_graph *g, const tg_value *v);

/* Gradients of the scalar loss: dwrt[i] becomes d(loss)/d(wrt[i]) * scale, NULL if it does not
 * depend on it. Adds nodes; a value that is used twice gets the sum. */
void tg_grad(tg_graph *g, tg_value *loss, float scale, tg_value *const *wrt, size_t n,
             tg_value **dwrt);

/* Whether every input of n is whole, and plain where its op reads nothing else; if not, the graph
 * has failed. */
bool tg_want_readable(tg_graph *g, const tg_node *n);

/* The law of graphs: topological order, types that a fresh inference agrees with, states written in
 * order, no reader of an old version. */
tg_status tg_verify(tg_graph *g);

/* The state or fresh value whose memory v uses, and where in it. */
const tg_value *tg_value_root(const tg_value *v, size_t *offset_elems);

/* Rewriting. */
size_t tg_count_uses(const tg_graph *g, const tg_value *v);    /* outputs count as a use */
tg_node *tg_single_user(const tg_graph *g, const tg_value *v); /* NULL unless there is just one */
void tg_replace_uses(tg_graph *g, tg_value *from, tg_value *to, const tg_node *except);
void tg_node_move_after(tg_graph *g, tg_node *n, tg_node *where);
/* A copy of n that runs just before where, with outputs of its own; NULL after an error. */
tg_node *tg_node_clone_before(tg_graph *g, const tg_node *n, tg_node *where);
void tg_node_remove(tg_graph *g, tg_node *n);
bool tg_node_before(const tg_node *a, const tg_node *b); /* in the list's order */

#endif
