/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.h - what a tg_embedder is inside: one plan of an encoder, for as many tokens as it can see;
 * or that of a decoder, over a cache that grows to the longest text.
 */
#ifndef TG_ENGINE_EMBED_H
#define TG_ENGINE_EMBED_H

#include "engine/all_rows.h"
#include "engine/pooler.h"
#include "engine/rank.h"

enum { TG_EMBED_ROWS = 512 };

struct tg_embedder {
    tg_context *ctx;
    tg_model *model;
    tg_embed_options o;
    int32_t rows, ctx_tokens; /* of a run, and of a text, at most; rows grow to the longest text */
    tg_graph graph;           /* from here: of an encoder */
    tg_plan plan;
    tg_net_texts in;
    tg_value *vectors;
    tg_block memory;
    bool built;
    tg_all_rows decoder; /* not open: an encoder, or no text came yet */
    tg_pooler pooler;
    tg_rank_head head; /* of a reranker: texts are scored beside */
    tg_ids query;      /* this one, which is there once somebody asked */
    tg_buf prompt;     /* in front of every text */
    tg_buf text;       /* the one that is being encoded, with what goes in front of it */
    const tg_job *job; /* pending on it; NULL: none */
};

/* Floats of a text's result. */
size_t tg_embedder_wide(const tg_embedder *e);
/* The query beside which texts are scored from now on. */
tg_status tg_embedder_ask(tg_embedder *e, const char *query);
tg_status tg_embedder_open(tg_context *ctx, tg_model *model, const tg_embed_options *o,
                           tg_embedder **out);
void tg_embedder_close(tg_embedder *e);

/* Texts of a run of an encoder: where each begins among the rows. */
typedef struct tg_embed_batch {
    size_t first, n;                 /* texts */
    size_t begin[TG_EMBED_ROWS + 1]; /* [n + 1] */
} tg_embed_batch;

/* Texts on their way to vectors, in slices. */
typedef struct tg_embed_work {
    tg_embedder *e;
    const tg_embed_text *texts; /* [n] borrowed until deinit */
    size_t n, next;             /* how many of them have become tokens */
    float *out;                 /* [n, W] */
    tg_ids ids;                 /* those of the last one, */
    bool held;                  /* which wait for a run; of a decoder, */
    size_t at;                  /* from here on */
    tg_embed_batch batch;
    tg_run run;          /* of the batch */
    unsigned generation; /* of the context's device, that has the batch or the text */
} tg_embed_work;

/* Zeros with these members set; go_on answers TG_PENDING until all vectors are there. */
void tg_embed_begin(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out,
                    tg_embed_work *w);
tg_status tg_embed_go_on(tg_embed_work *w, double deadline_ms);
void tg_embed_deinit(tg_embed_work *w); /* zeros are fine */
/* All at once. */
tg_status tg_embedder_embed(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out);

#endif
