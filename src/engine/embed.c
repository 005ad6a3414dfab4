/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed.c - texts to vectors: of each token the hidden state behind the final norm, then pooling.
 *
 * An encoder takes several texts in one run:
 *
 *     tokens     | [CLS] a b [SEP] | [CLS] c [SEP] | ..      up to `rows` together, or a longer one
 *     positions  | 0 1 2 3         | 0 1 2         |
 *     spans      | 0,4 0,4 ..      | 4,7 ..        |
 *
 * A decoder takes one text after the other, each from position 0 on, in pieces: attention sees
 * what is before a token alone, so a cache has what earlier pieces were.
 *
 * A reranker reads each text behind a query, which is of kind 0, as one of kind 1, and its pooled
 * vector becomes a score (rank.h):
 *
 *     tokens     | [CLS] q q [SEP] a b [SEP] | [CLS] q q [SEP] c [SEP] | ..
 *
 * A text's vector does not depend on those beside it: attention stays within its span, or within
 * its own positions of the cache; all else is row by row.
 */
#include "engine/embed.h"

#include "base/codec/json.h"
#include "base/str.h"
#include "base/time.h"

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
    net.texts = &e->in;
    net.answers = TG_ANSWER_HIDDEN_STATES;
    e->vectors = tg_family_of(net.config)->encode(&net);
    if (g->status == TG_OK) tg_output(g, e->vectors, "vectors");
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(e->ctx, "encode");
    TG_TRY(tg_plan_build(&e->plan, g, &o));
    TG_TRY(tg_runtime_block(e->ctx, tg_plan_memory_bytes(&e->plan), &e->memory));
    tg_plan_place(&e->plan, e->memory.data);
    return tg_weights_bind(e->model, &e->plan);
}

static void unbuild(tg_embedder *e) {
    if (e->built) tg_graph_deinit(&e->graph);
    e->built = false;
    tg_runtime_block_free(e->ctx, &e->memory);
}

/* A plan of more rows, at least twice as many, in the place of one that a text does not fit into;
 * where that failed there is none, until the next text asks for one of as many rows as before. */
static tg_status grow(tg_embedder *e, size_t n) {
    const int32_t rows = e->rows;
    unbuild(e);
    while ((size_t)e->rows < n) e->rows *= 2;
    const tg_status s = build(e);
    if (s == TG_OK) return TG_OK;
    unbuild(e);
    e->rows = rows;
    return s;
}

static bool encodes(const tg_model *model) {
    return tg_family_of(&model->layout.config)->encode != NULL;
}

static bool ranks(const tg_model *model, const tg_embed_options *o) {
    return o->pooling == TG_POOLING_RANK ||
           (o->pooling == TG_POOLING_MODEL && model->table.embed.type == TG_POOLING_TYPE_RANK &&
            tg_rank_there(model));
}

/* The ways of the options, of the model's files, or of its kind. */
static tg_status ways_of(tg_context *ctx, const tg_model *model, const tg_embed_options *o,
                         tg_pooling_ways *ways) {
    static const uint8_t named[] = {
        [TG_POOLING_MEAN] = TG_POOLING_BY_MEAN,
        [TG_POOLING_CLS] = TG_POOLING_BY_CLS,
        [TG_POOLING_LAST] = TG_POOLING_BY_LAST,
        [TG_POOLING_MAX] = TG_POOLING_BY_MAX,
        [TG_POOLING_MEAN_SQRT_LEN] = TG_POOLING_BY_MEAN_SQRT_LEN,
        [TG_POOLING_WEIGHTED_MEAN] = TG_POOLING_BY_WEIGHTED_MEAN,
    };
    const tg_embed_rules said = model->table.embed;
    if (o->pooling < TG_POOLING_MODEL || o->pooling > TG_POOLING_RANK)
        return tg_fail(&ctx->err, TG_E_ARG, "embedding: pooling: want 0..%d, have %d",
                       TG_POOLING_RANK, (int)o->pooling);
    if (ranks(model, o)) {
        *ways = said.ways.n ? said.ways : tg_rank_ways(model);
        if (ways->n == 1) return TG_OK;
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "reranking: pooling_modes of the file: want one way, have %d", (int)ways->n);
    }
    *ways = (tg_pooling_ways) { 1, { encodes(model) ? TG_POOLING_BY_MEAN : TG_POOLING_BY_LAST } };
    if (o->pooling != TG_POOLING_MODEL)
        ways->way[0] = named[o->pooling];
    else if (said.type >= 0)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "embedding: pooling_type of the file: want 1 (mean), 2 (CLS) or 3 (last), "
                       "have %d: name a way of pooling",
                       (int)said.type);
    else if (said.ways.n)
        *ways = said.ways;
    for (int32_t i = 0; i < ways->n; i++)
        if (ways->way[i] == TG_POOLING_BY_MAX && tg_family_of(&model->layout.config)->linear_behind)
            return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                           "embedding: pooling: want no maximum in front of matrices, as %s has "
                           "them, have max",
                           model->layout.config.family);
    return TG_OK;
}

/* Of the prompts in the model's files, the one of this name. */
static tg_status named_prompt(tg_context *ctx, const tg_model *model, const char *name,
                              tg_buf *out) {
    const tg_gguf_string all = model->table.embed.prompts;
    const tg_json *root, *text = NULL;
    char known[300] = "";
    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    tg_status s =
        tg_json_parse(&ctx->err, &arena, "embedding_prompts", all.bytes, all.n_bytes, NULL, &root);
    if (s == TG_OK) {
        for (const tg_json *v = tg_json_first(root); v; v = tg_json_next(v))
            tg_str_append(known, sizeof known, " '%s'", v->key);
        text = tg_json_get(root, name);
        if (text && tg_json_kind(text) == TG_JSON_STRING)
            tg_buf_append(out, text->u.text, text->length);
        else
            s = tg_fail(&ctx->err, TG_E_ARG, "embedding: prompt: want one of%s, have '%s'",
                        known[0] ? known : " none, as the model's files name none", name);
    }
    tg_arena_deinit(&arena);
    return s;
}

/* The options' own words, what they name, or what the files say. */
static tg_status take_prompt(tg_embedder *e, const tg_embed_options *o) {
    const tg_gguf_string said = e->model->table.embed.prompt;
    if (o->prompt && o->prompt_name)
        return tg_fail(&e->ctx->err, TG_E_ARG, "embedding: want a prompt or its name, have both");
    if (o->prompt_name)
        TG_TRY(named_prompt(e->ctx, e->model, o->prompt_name, &e->prompt));
    else if (o->prompt)
        tg_buf_append(&e->prompt, o->prompt, strlen(o->prompt));
    else
        tg_buf_append(&e->prompt, said.bytes, said.n_bytes);
    return tg_buf_status(&e->ctx->err, &e->prompt, "prompt of embeddings");
}

/* How much of a text counts. What the makers said of embeddings goes before what they said of the
 * tokenizer. */
static int32_t most_tokens(const tg_model *model) {
    const int32_t most = model->layout.config.ctx;
    const int32_t own = model->table.embed.most_tok;
    const int32_t said = own ? own : tg_tok_truncation(model->tok);
    return said > 0 && said < most ? said : most;
}

tg_status tg_embedder_open(tg_context *ctx, tg_model *model, const tg_embed_options *o,
                           tg_embedder **out) {
    tg_pooling_ways ways;
    *out = NULL;
    TG_TRY(ways_of(ctx, model, o, &ways));
    tg_embedder *e = tg_alloc(&ctx->err.mem, sizeof *e);
    if (!e) return tg_fail_memory(&ctx->err, "embedder", sizeof *e);
    e->ctx = ctx;
    e->model = model;
    e->o = *o;
    e->ctx_tokens = most_tokens(model);
    e->rows = TG_EMBED_ROWS;
    tg_buf_init(&e->text, &ctx->err.mem);
    tg_buf_init(&e->prompt, &ctx->err.mem);
    tg_ids_init(&e->query, &ctx->err.mem);
    size_t width = (size_t)model->layout.config.width;
    tg_status s = take_prompt(e, o);
    if (s == TG_OK && ranks(model, o)) s = tg_rank_open(model, &e->head);
    if (s == TG_OK && encodes(e->model)) s = build(e);
    if (s == TG_OK && e->built) width = tg_type_cols(&e->vectors->type);
    if (s == TG_OK) s = tg_pooler_init(&ctx->err, &e->pooler, ways, width);
    if (s == TG_OK)
        *out = e;
    else
        tg_embedder_close(e);
    return s;
}

void tg_embedder_close(tg_embedder *e) {
    if (!e) return;
    const tg_mem mem = e->ctx->err.mem;
    unbuild(e);
    tg_all_rows_deinit(&e->decoder);
    tg_pooler_deinit(&e->pooler);
    tg_rank_close(&e->head);
    tg_ids_deinit(&e->query);
    tg_buf_deinit(&e->text);
    tg_buf_deinit(&e->prompt);
    tg_free(&mem, e, sizeof *e);
}

size_t tg_embedder_wide(const tg_embedder *e) {
    return e->head.pooled ? 1 : tg_pooler_width(&e->pooler);
}

tg_status tg_embedder_ask(tg_embedder *e, const char *query) {
    if (!e->head.pooled)
        return tg_fail(&e->ctx->err, TG_E_ARG,
                       "reranking: want an embedder of a reranker (TG_POOLING_RANK) to ask, have "
                       "one whose texts become vectors");
    e->query.n = 0;
    TG_TRY(
        tg_tok_encode(&e->ctx->err, e->model->tok, query, strlen(query), TG_TOK_ENDS, &e->query));
    const size_t most = (size_t)e->ctx_tokens;
    if (e->query.n + 2 <= most) return TG_OK;
    const size_t n = e->query.n;
    e->query.n = 0;
    return tg_fail(&e->ctx->err, TG_E_FULL,
                   "reranking: query: want at most %zu tokens, which leaves one for a text, have "
                   "%zu",
                   most - 2, n);
}

/* ---------------------------------------------------------------------------------- beginnings */

/* From its first token, whatever an error or a lost device has left. */
static void begin_text(tg_embed_work *w) {
    tg_run_restart(&w->e->decoder.run);
    w->e->pooler.n = 0;
    w->at = 0;
}

/* Another device has nothing of a run or a text that began on a lost one, whoever noticed the loss.
 * All that they need is on the host. */
static bool begin_anew(tg_embed_work *w) {
    tg_context *const ctx = w->e->ctx;
    if (w->generation == ctx->generation) return false;
    w->generation = ctx->generation;
    tg_ctx_clear(&ctx->err);
    tg_run_restart(&w->run);
    begin_text(w);
    return true;
}

/* ------------------------------------------------------------------------------------ encoders */

/* NULL: the family does not read it. */
static int32_t *input(const tg_embedder *e, tg_value *v) { return tg_plan_data(&e->plan, v); }

/* Which text a message is about, as people count. */
typedef struct place {
    size_t number, n;
} place;

/* A text that is cut keeps its last token, if that is one that the tokenizer put behind it. */
static void cut(tg_embedder *e, place at, size_t most, tg_ids *ids) {
    tg_say(&e->ctx->err, TG_LOG_WARNING,
           "embedding: text %zu of %zu: %zu of %zu tokens are cut off its end: at most %zu count",
           at.number, at.n, ids->n - most, ids->n, most);
    if (tg_tok_adds_eos(e->model->tok)) ids->id[most - 1] = ids->id[ids->n - 1];
    ids->n = most;
}

/* The query in front, with both of its ends; the text behind it has its last end alone. */
static tg_status begin_pair(tg_embedder *e, place at, tg_ids *ids) {
    const size_t n = e->query.n;
    if (n == 0)
        return tg_fail(&e->ctx->err, TG_E_ARG,
                       "reranking: text %zu of %zu: want a query first (tg_embedder_query), as the "
                       "model scores pairs, have none",
                       at.number, at.n);
    for (size_t i = 0; i < n; i++) TG_TRY(tg_ids_push(&e->ctx->err, ids, e->query.id[i]));
    return TG_OK;
}

static void end_pair(const tg_embedder *e, tg_ids *ids) {
    const size_t n = e->query.n;
    if (!tg_tok_adds_bos(e->model->tok)) return;
    memmove(ids->id + n, ids->id + n + 1, (ids->n - n - 1) * sizeof *ids->id);
    ids->n--;
}

static tg_status encode_text(tg_embedder *e, place at, const tg_embed_text *text, tg_ids *ids) {
    const bool pair = e->head.pooled != NULL;
    ids->n = 0;
    if (pair) TG_TRY(begin_pair(e, at, ids));
    tg_buf_clear(&e->text);
    tg_buf_append(&e->text, tg_buf_text(&e->prompt), e->prompt.length);
    tg_buf_append(&e->text, text->text, text->n_bytes);
    TG_TRY(tg_buf_status(&e->ctx->err, &e->text, "text to embed"));
    TG_TRY(tg_tok_encode(&e->ctx->err, e->model->tok, tg_buf_text(&e->text), e->text.length,
                         TG_TOK_ENDS, ids));
    if (pair) end_pair(e, ids);
    const size_t most = (size_t)e->ctx_tokens;
    const int32_t vocab = e->model->layout.config.vocab;
    for (size_t i = 0; i < ids->n; i++)
        if (ids->id[i] >= vocab)
            return tg_fail(&e->ctx->err, TG_E_RANGE,
                           "embedding: text %zu of %zu: token %zu: want an id below %d, have %d",
                           at.number, at.n, i, (int)vocab, (int)ids->id[i]);
    if (ids->n == 0)
        return tg_fail(&e->ctx->err, TG_E_ARG,
                       "embedding: text %zu of %zu: want a token, have none", at.number, at.n);
    if (ids->n <= most) return TG_OK;
    if (e->o.cut && (e->query.n == 0 || e->query.n + 2 <= most)) {
        cut(e, at, most, ids);
        return TG_OK;
    }
    return tg_fail(&e->ctx->err, TG_E_FULL,
                   "embedding: text %zu of %zu: want at most %zu tokens, have %zu", at.number, at.n,
                   most, ids->n);
}

/* Behind what is there, if it fits. */
static bool add_text(const tg_embedder *e, tg_embed_batch *b, const tg_ids *ids) {
    const size_t at = b->begin[b->n];
    if (at + ids->n > (size_t)e->rows || b->n == TG_EMBED_ROWS) return false;
    int32_t *tokens = input(e, e->in.tokens), *spans = input(e, e->in.spans);
    int32_t *positions = input(e, e->in.positions), *kinds = input(e, e->in.kinds);
    for (size_t i = 0; i < ids->n; i++) {
        tokens[at + i] = ids->id[i];
        if (positions) positions[at + i] = (int32_t)i;
        if (kinds) kinds[at + i] = i >= e->query.n && e->query.n > 0;
        spans[2 * (at + i)] = (int32_t)at;
        spans[2 * (at + i) + 1] = (int32_t)(at + ids->n);
    }
    b->begin[++b->n] = at + ids->n;
    return true;
}

/* The text's vector, or its score. */
static void end_text(tg_embedder *e, float *out) {
    if (!e->head.pooled) {
        tg_pooler_end(&e->pooler, e->o.raw, out);
        return;
    }
    tg_pooler_end(&e->pooler, true, e->head.pooled);
    *out = tg_rank_score(&e->head, e->head.pooled);
}

static tg_status run_batch(tg_embed_work *w, double deadline_ms) {
    tg_embedder *e = w->e;
    tg_embed_batch *b = &w->batch;
    const size_t width = e->pooler.width, wide = tg_embedder_wide(e);
    const tg_scalars rt = { .rows = (int32_t)b->begin[b->n] };
    w->run.deadline_ms = deadline_ms;
    const tg_status s = tg_runtime_run(e->ctx, "embedding", &e->plan, &rt, &w->run);
    if (begin_anew(w)) return TG_OK;
    TG_TRY(s);
    TG_TRY(tg_weights_whole(e->model));
    tg_run_restart(&w->run);
    const float *vectors = tg_plan_data(&e->plan, e->vectors);
    for (size_t i = 0; i < b->n; i++) {
        tg_pooler_add(&e->pooler, vectors + b->begin[i] * width, b->begin[i + 1] - b->begin[i]);
        end_text(e, w->out + (b->first + i) * wide);
    }
    b->first += b->n;
    b->n = 0;
    return TG_OK;
}

static tg_status encode_next(tg_embed_work *w) {
    TG_TRY(encode_text(w->e, (place) { w->next + 1, w->n }, &w->texts[w->next], &w->ids));
    w->next++;
    w->held = true;
    return TG_OK;
}

/* Gathers texts until one has no room, which an empty batch has for any. A run that goes on finds
 * nothing to gather: whatever fitted has been taken before it began. */
static tg_status encode_batch(tg_embed_work *w, double deadline_ms) {
    while (w->held || w->next < w->n) {
        if (!w->held) TG_TRY(encode_next(w));
        const bool fits = w->e->built && w->ids.n <= (size_t)w->e->rows;
        if (w->batch.n == 0 && !fits) TG_TRY(grow(w->e, w->ids.n));
        if (!add_text(w->e, &w->batch, &w->ids)) break;
        w->held = false;
    }
    return run_batch(w, deadline_ms);
}

/* ------------------------------------------------------------------------------------- decoders */

/* A cache for so many tokens. It at least doubles, so that growing texts do not mean a plan each.
 */
static tg_status make_room(tg_embedder *e, size_t n) {
    size_t window = e->decoder.built ? e->decoder.window : TG_EMBED_ROWS;
    if (e->decoder.built && window >= n) return TG_OK;
    while (window < n) window *= 2;
    if (window > (size_t)e->ctx_tokens) window = (size_t)e->ctx_tokens;
    tg_all_rows_deinit(&e->decoder);
    e->decoder = (tg_all_rows) { .built = false };
    const tg_status s =
        tg_all_rows_open(&e->decoder, e->ctx, e->model, window, TG_ANSWER_HIDDEN_STATES);
    if (s == TG_OK) return TG_OK;
    tg_all_rows_deinit(&e->decoder);
    e->decoder = (tg_all_rows) { .built = false };
    return s;
}

/* A piece of the text, or its end. */
static tg_status run_text(tg_embed_work *w, double deadline_ms) {
    tg_embedder *e = w->e;
    if (!w->held) {
        TG_TRY(encode_next(w));
        TG_TRY(make_room(e, w->ids.n));
        begin_text(w);
    }
    const size_t left = w->ids.n - w->at, n = left < e->decoder.most ? left : e->decoder.most;
    memcpy(tg_all_rows_tokens(&e->decoder), w->ids.id + w->at, n * sizeof *w->ids.id);
    const tg_status s = tg_all_rows_run(&e->decoder, n, w->at, deadline_ms);
    if (begin_anew(w)) return TG_OK;
    TG_TRY(s);
    tg_pooler_add(&e->pooler, tg_all_rows_hidden(&e->decoder), n);
    w->at += n;
    if (w->at < w->ids.n) return TG_OK;
    w->held = false;
    end_text(e, w->out + (w->next - 1) * tg_embedder_wide(e));
    return TG_OK;
}

/* ----------------------------------------------------------------------------------------- both */

void tg_embed_begin(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out,
                    tg_embed_work *w) {
    *w = (tg_embed_work) {
        .e = e, .texts = texts, .n = n, .out = out, .generation = e->ctx->generation
    };
    tg_ids_init(&w->ids, &e->ctx->err.mem);
}

tg_status tg_embed_go_on(tg_embed_work *w, double deadline_ms) {
    begin_anew(w);
    while (w->next < w->n || w->held || w->batch.n > 0) {
        TG_TRY(encodes(w->e->model) ? encode_batch(w, deadline_ms) : run_text(w, deadline_ms));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

void tg_embed_deinit(tg_embed_work *w) {
    if (w->e) tg_ids_deinit(&w->ids);
}

tg_status tg_embedder_embed(tg_embedder *e, const tg_embed_text *texts, size_t n, float *out) {
    tg_embed_work w;
    tg_status s;
    tg_embed_begin(e, texts, n, out, &w);
    do {
        s = tg_embed_go_on(&w, 0);
    } while (s == TG_PENDING);
    tg_embed_deinit(&w);
    return s;
}
