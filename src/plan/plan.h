/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a graph made ready to run: a flat list of steps over memory at fixed offsets.
 *
 *   graph -> recompute -> fuse -> drop dead nodes -> (verify after each) -> variants -> memory ->
 * steps
 *
 * Memory of a plan is one block that the caller allocates and may share between plans that never
 * run at once:
 *
 *   0            workspace_bytes   + scratch_bytes     + workers * local_bytes
 *   | values, by lifetime | scratch of a step | local of worker 0 | local of worker 1 | ...
 *
 * State lives elsewhere, bound by name. Inputs and outputs are values of the workspace whose place
 * is not given to anything else while they are needed.
 */
#ifndef TG_PLAN_PLAN_H
#define TG_PLAN_PLAN_H

#include <stdatomic.h>

#include "ir/graph.h"
#include "ops/kernels.h"

/* Every part of a plan's memory begins on a cache line, so that no two workers or values share one
 * and kernels may rely on the alignment. */
static inline size_t tg_plan_round(size_t bytes) { return (bytes + 63) / 64 * 64; }

typedef struct tg_step {
    const tg_node *node;
    const tg_variant *variant;
    tg_args args;                    /* pointers valid after tg_plan_place; acc set at run time */
    uint8_t acc_mask;                /* outputs that go into existing state */
    uint8_t dynamic_in, dynamic_out; /* bit k: dim[0] is the call's number of rows */
    /* What a unit of each phase took when it was last measured, 0: never. The backend's alone. */
    atomic_uint unit_ns[TG_MAX_PHASES];
    /* Too little work to be worth sharing; how that was found (share.c). */
    bool alone;
    uint8_t came_from;
} tg_step;

/* Where a value's bytes are. */
typedef struct tg_place {
    enum { TG_PLACE_NONE, TG_PLACE_WORKSPACE, TG_PLACE_STATE } kind;
    size_t offset_bytes; /* in the workspace, or in the state */
    size_t bytes;
    size_t state;       /* index into tg_plan.states */
    size_t first, last; /* steps between which a workspace value is needed, for dumps */
} tg_place;

typedef struct tg_bound_state {
    const tg_value *value;
    void *data; /* NULL until bound */
    size_t bytes;
} tg_bound_state;

typedef struct tg_plan {
    tg_ctx *ctx;
    tg_graph *graph; /* borrowed: must outlive the plan */
    const char *name;
    size_t isa;
    uint32_t levers;
    unsigned workers;
    tg_step *steps;
    size_t n_steps;
    tg_place *places; /* by tg_value_slot */
    tg_bound_state *states;
    size_t n_states;
    size_t workspace_bytes, scratch_bytes, local_bytes;
    size_t unaliased_bytes; /* what the workspace would be without sharing */
    char *memory;           /* NULL until placed */
    bool dynamic;
    size_t align_bytes;
    bool apart;
    size_t segment_bytes;
    bool rows_alone;
    unsigned version; /* how often the plan was placed or bound: addresses are those of before */
    bool alone;       /* all steps are */
    /* An input and an output of one word: see tg_run.carries. NULL: nothing is carried. */
    const tg_value *carry_in, *carry_out;
    size_t shared_rows; /* the rows that it was decided for, if it is dynamic; 0: the most */
} tg_plan;

typedef struct tg_plan_options {
    const char *name;
    size_t isa;
    uint32_t levers;
    unsigned workers;
    size_t align_bytes;   /* of values in the workspace: a multiple of 64, 0 for 64 */
    bool apart;           /* no step's output shares bytes with one of its inputs, nor with what was
                             read in the few steps before it: so these may become one dispatch */
    size_t segment_bytes; /* no value crosses a multiple of this; 0: they may */
    bool rows_alone;      /* see tg_args */
} tg_plan_options;

/* Rewrites g and plans it. The plan's own tables live in g's arena, so there is nothing to free. */
tg_status tg_plan_build(tg_plan *plan, tg_graph *g, const tg_plan_options *options);

/* Bytes of the block that tg_plan_place needs. */
size_t tg_plan_memory_bytes(const tg_plan *plan);

/* Gives the plan its block, 64-byte aligned; writes the constants into it. */
void tg_plan_place(tg_plan *plan, void *memory);

/* Gives the state of this name its memory: bytes must be its size. Unknown names are fine: a plan
 * need not use every state. All states must be bound before a run. */
tg_status tg_plan_bind(tg_plan *plan, const char *name, void *data, size_t bytes);

/* The bytes of a value of the graph, once placed and bound; NULL if it has none. */
void *tg_plan_data(const tg_plan *plan, const tg_value *v);

const tg_place *tg_plan_place_of(const tg_plan *plan, const tg_value *v);

/* One line per step: what, variant, shapes, places. write is called once a line. */
typedef void (*tg_line_fn)(void *user, const char *line);
void tg_plan_dump(const tg_plan *plan, tg_line_fn write, void *user);

/* The passes, each leaving a graph that verifies. */
tg_status tg_rewrite(tg_graph *g);
/* Offsets by lifetime; fills plan->places and the sizes. */
tg_status tg_plan_memory(tg_plan *plan);
/* Which steps one worker does. rt: the call's, if the plan is dynamic and has its rows, or NULL. */
void tg_plan_share(tg_plan *plan, const tg_scalars *rt);

#endif
