/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - what a tg_probe is inside: the family's graph with every site tapped.
 *
 * At each site of each layer (model.h) stands a choose, whose mode says row by row what the graph
 * goes on with, and whose result stays in memory for whoever looks, or takes it as a donor:
 *
 *                      mode [n,G]     0             1               2
 *   the site's own value x ------> choose ------> kept, and on with it
 *   nothing, or the stream before the block ----------^             |
 *   the donor's kept value (a state, bound for each run) -----------^
 *
 * So edits are data: one plan serves every experiment on texts of n tokens, and with no edits it
 * computes the bits of the untapped graph.
 */
#ifndef TG_INSPECT_PROBE_H
#define TG_INSPECT_PROBE_H

#include "load/weights.h"
#include "runtime/job.h"

typedef struct tg_probe_site {
    tg_value *mode;    /* [n,G] i32: G is H for the heads, 1 elsewhere */
    tg_value *kept;    /* [1,n,C], or what the heads have together */
    const char *donor; /* name of the state */
    size_t bytes;      /* of either */
} tg_probe_site;

typedef struct tg_probe_layer {
    tg_probe_site site[TG_SITE_COUNT];
    tg_value *attention; /* [1,H,n,n] */
} tg_probe_layer;

struct tg_probe {
    tg_context *ctx;
    tg_model *model;
    size_t n; /* tokens */
    tg_graph graph;
    tg_plan plan; /* in the graph's arena, as are the lists below */
    tg_value *weights, *tokens;
    tg_probe_layer *layer; /* [L] */
    tg_value **lens;       /* [L+1] logits [1,n,V] */
    tg_value *stream;      /* while the graph is built: in front of the block */
    tg_block memory;
    tg_block zeros;      /* bound as donor where there is none */
    size_t zeros_bytes;  /* of the largest site */
    tg_run run;          /* where the plan stands */
    unsigned generation; /* of the context's device, that it runs on */
    bool has_run;        /* from begin to end, since the last begin */
    const tg_job *job;   /* pending on this probe; NULL: none */
};

tg_status tg_probe_open(tg_context *ctx, tg_model *model, size_t n_tokens, tg_probe **out);
void tg_probe_close(tg_probe *p);

/* Checks everything, and sets up a run; nothing of the arguments is needed later but the donor. */
tg_status tg_probe_begin(tg_probe *p, const int32_t *tokens, const tg_edit *edits, size_t n_edits,
                         const tg_probe *donor);
/* Goes on with it. deadline_ms on tg_time_ms's clock, 0: to the end. TG_PENDING: not done yet. */
tg_status tg_probe_go_on(tg_probe *p, double deadline_ms);

#endif
