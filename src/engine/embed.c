/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - texts to vectors: several texts in one run of an encoder, then pooling.
 *
 *     tokens     | [CLS] a b [SEP] | [CLS] c [SEP] | ..      up to `rows` together
 *     positions  | 0 1 2 3         | 0 1 2         |
 *     spans      | 0,4 0,4 ..      | 4,7 ..        |
 *
 * A text's vector does not depend on those that run with it: attention stays within its span, and
 * all else is row by row.
 */
#include "engine/embed.h"

#include "base/math.h"

static tg_status build(tg_embedder *e) {
    const size_t rows = (size_t)e->rows;
    e->built = true;
    TG_TRY(tg_graph_init(&e->graph, &e->ctx->err, e->ctx->levers));
    tg_graph *g = &e->graph;
    e->in = (tg_net_texts) { .tokens = tg_input_rows(g, "tokens", tg_type_1d(TG_I32, rows)),
                             .positions = tg_input_rows(g, "positions", tg_type_1d(TG_I32, rows)),
                             .kinds = tg_input_rows(g, "kinds", tg_type_1d(TG_I32, rows)),
                             .spans = tg_input_rows(g, "spans", tg_type_2d(TG_I32, rows, 2)) };
    tg_net net;
    tg_weights_net(e->model, g, &net);
    e->vectors = tg_family_of(net.config)->encode(&net, &e->in);
    if (g->status == TG_OK) tg_output(g, e->vectors, "vectors");
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(e->ctx, "encode");
    TG_TRY(tg_plan_build(&e->plan, g, &o));
    TG_TRY(tg_runtime_block(e->ctx, tg_plan_memory_bytes(&e->plan), &e->memory));
    tg_plan_place(&e->plan, e->memory.data);
    return tg_lm_bind(e->model->lm, &e->plan);
}

tg_status tg_embedder_open(tg_context *ctx, tg_model *model, const tg_embed_options *o,
                           tg_embedder **out) {
    *out = NULL;
    if (!tg_family_of(&model->layout.config)->encode)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "embedding: want an encoder, such as a BERT, have a model that writes text");
    if (o->pooling < TG_POOLING_MODEL || o->pooling > TG_POOLING_LAST)
        return tg_fail(&ctx->err, TG_E_ARG, "embedding: pooling: want 0..%d, have %d",
                       TG_POOLING_LAST, (int)o->pooling);
    tg_embedder *e = tg_alloc(&ctx->err.mem, sizeof *e);
    if (!e) return tg_fail_memory(&ctx->err, "embedder", sizeof *e);
    e->ctx = ctx;
    e->model = model;
    e->o = *o;
    if (e->o.pooling == 0) e->o.pooling = (tg_pooling)model->layout.config.pooling;
    e->ctx_tokens = model->layout.config.ctx;
    if (e->ctx_tokens > TG_EMBED_ROWS) e->ctx_tokens = TG_EMBED_ROWS;
    /* What the makers said of embeddings goes before what they said of the tokenizer. */
    const int32_t said = model->layout.config.embed_ctx;
    const int32_t most = said ? said : tg_tok_truncation(model->tok);
    if (most > 0 && e->ctx_tokens > most) e->ctx_tokens = most;
    e->rows = TG_EMBED_ROWS;
    const tg_status s = build(e);
    if (s == TG_OK)
        *out = e;
    else
        tg_embedder_close(e);
    return s;
}

void tg_embedder_close(tg_embedder *e) {
    if (!e) return;
    const tg_mem mem = e->ctx->err.mem;
    if (e->built) tg_graph_deinit(&e->graph);
    tg_runtime_block_free(e->ctx, &e->memory);
    tg_free(&mem, e, sizeof *e);
}

/* ------------------------------------------------------------------------------------ one batch */

/* Texts of a run: where each begins among the rows. */
typedef struct batch {
    size_t first, n;                 /* texts */
    size_t begin[TG_EMBED_ROWS + 1]; /* [n + 1] */
} batch;

static int32_t *input(const tg_embedder *e, tg_value *v) { return tg_plan_data(&e->plan, v); }

/* A text that is cut keeps its last token, which is one that marks the end. */
static tg_status encode_text(tg_embedder *e, size_t number, const tg_embed_text *text,
                             tg_ids *ids) {
    ids->n = 0;
    TG_TRY(tg_tok_encode(&e->ctx->err, e->model->tok, text->text, text->n_bytes, TG_TOK_ENDS, ids));
    const size_t most = (size_t)e->ctx_tokens;
    const int32_t vocab = e->model->layout.config.vocab;
    for (size_t i = 0; i < ids->n; i++)
        if (ids->id[i] >= vocab)
            return tg_fail(&e->ctx->err, TG_E_RANGE,
                           "embedding: text %zu: token %zu: want an id below %d, have %d", number,
                           i, (int)vocab, (int)ids->id[i]);
    if (ids->n == 0)
        return tg_fail(&e->ctx->err, TG_E_ARG, "embedding: text %zu: want a token, have none",
                       number);
    if (ids->n <= most) return TG_OK;
    if (!e->o.cut)
        return tg_fail(&e->ctx->err, TG_E_FULL,
                       "embedding: text %zu: want at most %zu tokens, have %zu", number, most,
                       ids->n);
    ids->id[most - 1] = ids->id[ids->n - 1];
    ids->n = most;
    return TG_OK;
}

/* Behind what is there, if it fits. */
static bool add_text(const tg_embedder *e, batch *b, const tg_ids *ids) {
    const size_t at = b->begin[b->n];
    if (at + ids->n > (size_t)e->rows) return false;
    int32_t *tokens = input(e, e->in.tokens), *spans = input(e, e->in.spans);
    for (size_t i = 0; i < ids->n; i++) {
        tokens[at + i] = ids->id[i];
        input(e, e->in.positions)[at + i] = (int32_t)i;
        input(e, e->in.kinds)[at + i] = 0;
        spans[2 * (at + i)] = (int32_t)at;
        spans[2 * (at + i) + 1] = (int32_t)(at + ids->n);
    }
    b->begin[++b->n] = at + ids->n;
    return true;
}

/* rows [n,C] of one text to its vector. Sums in double: their order then hardly matters. */
static void pool(const tg_embedder *e, const float *rows, size_t n, float *out) {
    const size_t width = (size_t)e->model->layout.config.width;
    double square = 0;
    for (size_t c = 0; c < width; c++) {
        double x = 0;
        if (e->o.pooling == TG_POOLING_MEAN) {
            for (size_t t = 0; t < n; t++) x += (double)rows[t * width + c];
            x /= (double)n;
        } else {
            x = (double)rows[(e->o.pooling == TG_POOLING_LAST ? n - 1 : 0) * width + c];
        }
        square += x * x;
        out[c] = (float)x;
    }
    const double scale = e->o.raw || square == 0 ? 1 : 1 / tg_sqrt(square);
    for (size_t c = 0; c < width; c++) out[c] = (float)((double)out[c] * scale);
}

static tg_status run_batch(tg_embedder *e, batch *b, float *out) {
    const size_t width = (size_t)e->model->layout.config.width;
    tg_run run = { .next = 0 };
    const tg_scalars rt = { .rows = (int32_t)b->begin[b->n] };
    TG_TRY(tg_backend_run(e->ctx->backend, &e->plan, &rt, &run));
    TG_TRY(tg_lm_whole(e->ctx, e->model->lm));
    const float *vectors = tg_plan_data(&e->plan, e->vectors);
    for (size_t i = 0; i < b->n; i++)
        pool(e, vectors + b->begin[i] * width, b->begin[i + 1] - b->begin[i],
             out + (b->first + i) * width);
    b->first += b->n;
    b->n = 0;
    return TG_OK;
}

static tg_status embed_all(tg_embedder *e, const tg_embed_text *texts, size_t n, tg_ids *ids,
                           batch *b, float *out) {
    for (size_t i = 0; i < n; i++) {
        TG_TRY(encode_text(e, i, &texts[i], ids));
        if (add_text(e, b, ids)) continue;
        TG_TRY(run_batch(e, b, out));
        (void)add_text(e, b, ids); /* an empty batch has room for any text */
    }
    return b->n > 0 ? run_batch(e, b, out) : TG_OK;
}

tg_status tg_embedder_embed(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out) {
    tg_ids ids;
    batch *b = tg_alloc(&e->ctx->err.mem, sizeof *b);
    if (!b) return tg_fail_memory(&e->ctx->err, "batch", sizeof *b);
    tg_ids_init(&ids, &e->ctx->err.mem);
    const tg_status s = embed_all(e, texts, n, &ids, b, out);
    tg_ids_deinit(&ids);
    tg_free(&e->ctx->err.mem, b, sizeof *b);
    return s;
}
