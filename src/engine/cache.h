/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - what sequences remember of their tokens: the memory that model/state.h describes.
 *
 * Each layer has its pages in one state of the plans, which all bind the same memory. Sequence s
 * begins with pages s * C .. s * C + C - 1 of a layer. What two sequences begin with alike they may
 * share; who writes into such a page gets one of its own before. As tables name S * C pages in all,
 * there is an unused one where one is named twice.
 *
 * Of layers that keep states, pages are states (slots): each is that behind so many positions. A
 * run goes on from one and fills another; the one to be lost is first one that is unused, then the
 * newest of a short run, then the oldest. So the ends of prompts stay while an answer is written.
 *
 *   block   | layer 0: page 0 | page 1 | ... | layer 1: page 0 | ...
 *   page    | head 0 of keys: R rows | .. | head K-1 | head 0 of values | .. | head K-1 |
 */
#ifndef TG_ENGINE_CACHE_H
#define TG_ENGINE_CACHE_H

#include "load/weights.h"
#include "model/state.h"

/* Zero-initialised it is fine for deinit. */
typedef struct tg_cache {
    tg_context *ctx;
    const tg_layer_state *layers; /* [n_layers], tg_model_states, in the caller's arena */
    const size_t *offsets;        /* [n_layers + 1] of the layers' pages in the block, bytes */
    int32_t n_layers, n_sequences, positions;
    int32_t *pages[TG_KEEPS_COUNT]; /* tables [S,C], by what layers keep */
    int32_t *uses[TG_KEEPS_COUNT];  /* [S C] of each page: how often tables name it */
    size_t n_cols[TG_KEEPS_COUNT];  /* C; 0: there is no such layer */
    struct tg_cache_slot {
        int32_t position; /* it is the state behind so many; 0: it is none */
        int32_t rows;     /* of the run that filled it */
    } *slots;             /* [S C] as their table */
    int32_t *filling;     /* [S] the column that the last run fills */
    tg_block block;
} tg_cache;

/* For sequences of up to so many positions, which come up to `rows` at a time. */
tg_status tg_cache_init(tg_cache *c, tg_context *ctx, tg_arena *arena,
                        const tg_model_config *config, tg_dtype dtype, int32_t positions,
                        int32_t rows, int32_t n_sequences);
void tg_cache_deinit(tg_cache *c);

/* The inputs of a plan that say where its rows belong. */
typedef struct tg_cache_inputs {
    tg_value *at, *pages[TG_KEEPS_COUNT]; /* NULL: no layer asks. Of states [S,2]: from, to */
} tg_cache_inputs;
/* The states and inputs for up to so many rows, in g, whose errors are sticky. NULL: no memory. */
const tg_net_cache *tg_cache_net(const tg_cache *c, tg_graph *g, size_t rows, tg_cache_inputs *in);
tg_status tg_cache_bind(const tg_cache *c, tg_plan *plan);
/* Before a run: rows [first, first + n) of it go on in a sequence at a position, in pages of its
 * own. Of the tables a run sees those of its sequences. */
void tg_cache_place_rows(tg_cache *c, const tg_plan *plan, const tg_cache_inputs *in, size_t first,
                         size_t n, int32_t sequence, int32_t position);

/* After a run, of whose rows a sequence takes n, the last of which is at position - 1. */
void tg_cache_take_rows(tg_cache *c, int32_t sequence, size_t n, int32_t position);
/* The last position, up to n, from which rows may go on. */
int32_t tg_cache_reach(const tg_cache *c, int32_t sequence, int32_t n);
/* Where a layer has the state behind n positions; what is to be filled with it, if it has none. */
uint8_t *tg_cache_state(const tg_cache *c, int32_t layer, int32_t sequence, int32_t n);
/* Rows are to go on from what is put into it. */
void tg_cache_put_state(tg_cache *c, int32_t sequence, int32_t n);

/* The first n positions of `to` are those of `from` from now on. */
void tg_cache_share(tg_cache *c, int32_t to, int32_t from, size_t n);
/* A sequence is about to write positions [first, first + n): what is shared of their pages becomes
 * its own. On a GPU nothing is copied, and what lay there before first is lost. */
void tg_cache_own(tg_cache *c, int32_t sequence, size_t first, size_t n);
/* Is the page of a position shared, by layers of any kind? */
bool tg_cache_is_shared(const tg_cache *c, int32_t sequence, size_t position);
/* Positions that rows of layers with a window see at most, their own included; 0: all see all. */
int32_t tg_cache_window(const tg_cache *c);
/* Positions of a page. */
size_t tg_cache_page_rows(const tg_cache *c);

/* Where a layer has what a head (keys before values) keeps of a position: rows up to the next
 * multiple of page_rows lie behind it. */
uint8_t *tg_cache_row(const tg_cache *c, int32_t layer, int32_t sequence, size_t head,
                      size_t position);

#endif
