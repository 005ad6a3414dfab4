/*
 * lm_eval.c - the mean loss of a model out of a GGUF file over windows of a text.
 *
 *   the text's tokens   | step | step | step | rest |    step = 512, or the model's context
 *   a window            B? t t t t t t .. t               B: what texts begin with, if anything;
 *                          ^ ^ ^ ^ ^ .. ^ predicted       step is one less then
 *
 * Each window is read anew, in pieces of 64 tokens over a cache of its own (of fewer, where the
 * context is shorter); without B its first token has nothing to be predicted from. Logits of a
 * piece are all that is kept: for a vocabulary of 262,144 they take 67 MB.
 * tools/oracle/llama_cpp.cpp does the same with llama.cpp.
 */
#include "run/lm_eval.h"

#include "base/time.h"
#include "ops/build.h"

enum { WINDOW = 512, PIECE = 64 };

/* ---------------------------------------------------------------------------------------- plan */

static tg_type cache_type(const tg_lm_evaluating *e) {
    const tg_lm_config *c = &e->lm.config;
    const size_t tokens = e->step + e->begins;
    return (tg_type) { TG_F32, 4, { 2, (size_t)c->kv_heads, tokens, (size_t)c->head_size } };
}

/* Rows of the plan: a whole window, where that is shorter than a piece. */
static size_t piece_rows(const tg_lm_evaluating *e) {
    const size_t window = e->step + e->begins;
    return window < PIECE ? window : PIECE;
}

static tg_status build(tg_lm_evaluating *e) {
    const tg_lm_config *c = &e->lm.config;
    e->built = true;
    TG_TRY(tg_graph_init(&e->graph, &e->ctx->err, e->ctx->levers));
    tg_graph *g = &e->graph;
    tg_value **caches = tg_arena_array(&g->arena, (size_t)c->layers, sizeof *caches);
    if (!caches) return tg_fail_memory(&e->ctx->err, "list of caches", sizeof *caches);
    for (int32_t i = 0; i < c->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "cache.%d", (int)i);
        caches[i] = tg_state(g, name, cache_type(e));
    }
    e->tokens = tg_input_rows(g, "tokens", tg_type_1d(TG_I32, piece_rows(e)));
    e->targets = tg_input_rows(g, "targets", tg_type_1d(TG_I32, piece_rows(e)));
    e->logits = c->family->graph(g, &e->lm, e->tokens, caches);
    e->lse = tg_out(tg_cross_entropy(g, e->logits, e->targets, 1), 1);
    if (g->status == TG_OK) {
        tg_output(g, e->logits, "logits");
        tg_output(g, e->lse, "lse");
    }
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(e->ctx, "eval");
    return tg_plan_build(&e->plan, g, &o);
}

static tg_status bind(tg_lm_evaluating *e) {
    const tg_type type = cache_type(e);
    const size_t bytes = tg_type_elems(&type) * sizeof(float);
    TG_TRY(tg_runtime_block(e->ctx, bytes * (size_t)e->lm.config.layers, &e->cache));
    TG_TRY(tg_runtime_block(e->ctx, tg_plan_memory_bytes(&e->plan), &e->memory));
    tg_plan_place(&e->plan, e->memory.data);
    TG_TRY(tg_lm_bind(e->model->lm, &e->plan));
    for (int32_t i = 0; i < e->lm.config.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "cache.%d", (int)i);
        TG_TRY(tg_plan_bind(&e->plan, name, (char *)e->cache.data + bytes * (size_t)i, bytes));
    }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------- windows */

/* Where window w of n begins in the text's tokens, spread evenly, and how many of them it has. */
static size_t window_at(const tg_lm_evaluating *e, size_t w, size_t *n) {
    const size_t first = (size_t)((uint64_t)w * e->n_windows / e->n) * e->step;
    *n = e->ids.n - first < e->step ? e->ids.n - first : e->step;
    return first;
}

/* The tokens of a piece that have a successor, and those successors. Returns how many there are. */
static size_t fill(tg_lm_evaluating *e) {
    int32_t *tokens = tg_plan_data(&e->plan, e->tokens);
    int32_t *targets = tg_plan_data(&e->plan, e->targets);
    size_t n, rows = 0;
    const size_t first = window_at(e, e->window, &n), ahead = e->begins ? 1 : 0;
    for (; rows < piece_rows(e); rows++) {
        const size_t at = e->piece * PIECE + rows; /* in the window */
        if (at + 1 >= n + ahead) break;
        tokens[rows] = at < ahead ? tg_tok_bos(e->model->tok) : e->ids.id[first + at - ahead];
        targets[rows] = e->ids.id[first + at + 1 - ahead];
    }
    return rows;
}

/* Losses are differences of floats, summed in double. */
static void end_piece(tg_lm_evaluating *e) {
    const size_t rows = e->rows, V = (size_t)e->lm.config.vocab;
    const int32_t *targets = tg_plan_data(&e->plan, e->targets);
    const float *logits = tg_plan_data(&e->plan, e->logits);
    const float *lse = tg_plan_data(&e->plan, e->lse);
    for (size_t i = 0; i < rows; i++)
        e->sum += (double)lse[i] - (double)logits[i * V + (size_t)targets[i]];
    e->predicted += rows;
    tg_run_restart(&e->run);
    if (rows < PIECE || (e->piece + 1) * PIECE >= e->step + e->begins) {
        e->window++;
        e->piece = 0;
    } else {
        e->piece++;
    }
}

/* ----------------------------------------------------------------------------------- from outside
 */

/* The whole text becomes tokens at once: where a word may end, nobody knows before. */
static tg_status tokenize(tg_lm_evaluating *e, tg_text *text, uint64_t first) {
    const size_t n = (size_t)(text->n_bytes - first);
    char *bytes = tg_alloc(&e->ctx->err.mem, n ? n : 1);
    if (!bytes) return tg_fail_memory(&e->ctx->err, "text", n);
    tg_ids_init(&e->ids, &e->ctx->err.mem);
    tg_status s = tg_text_read(text, first, bytes, n);
    if (s == TG_OK) s = tg_tok_encode(&e->ctx->err, e->model->tok, bytes, n, 0, &e->ids);
    tg_free(&e->ctx->err.mem, bytes, n ? n : 1);
    return s;
}

tg_status tg_lm_evaluating_begin(tg_lm_evaluating *e, tg_context *ctx, const tg_model *model,
                                 tg_text *text, uint64_t first, int32_t windows) {
    if (!model->tok)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "evaluation: the model's file has no tokenizer");
    e->ctx = ctx;
    e->model = model;
    e->lm = model->lm->lm;
    e->lm.every_row = true;
    TG_TRY(tokenize(e, text, first));
    e->begins = tg_tok_adds_bos(model->tok) && tg_tok_bos(model->tok) >= 0;
    e->step = e->lm.config.ctx < WINDOW ? (size_t)e->lm.config.ctx : WINDOW;
    e->step -= e->begins;
    if (e->step == 0 || e->step + e->begins < 2 || e->ids.n + e->begins < 2)
        return tg_fail(&ctx->err, TG_E_DATA,
                       "%s: evaluation: want at least 2 tokens, have %zu in windows of %zu",
                       text->name, e->ids.n, e->step);
    e->n_windows = (e->ids.n + e->step - 1) / e->step;
    e->n = windows > 0 && (size_t)windows < e->n_windows ? (size_t)windows : e->n_windows;
    return TG_OK;
}

tg_status tg_lm_evaluating_go_on(tg_lm_evaluating *e, double deadline_ms, double *loss) {
    if (!e->cache.data) {
        if (!e->built) TG_TRY(build(e));
        TG_TRY(bind(e));
    }
    while (e->window < e->n) {
        if (!tg_run_begun(&e->run)) e->rows = fill(e);
        e->run.deadline_ms = deadline_ms;
        const tg_scalars rt = { .rows = (int32_t)e->rows, .pos = (int32_t)(e->piece * PIECE) };
        if (e->rows > 0) TG_TRY(tg_backend_run(e->ctx->backend, &e->plan, &rt, &e->run));
        TG_TRY(tg_lm_whole(e->ctx, e->model->lm));
        end_piece(e);
        if (e->window < e->n && tg_time_over(deadline_ms)) return TG_PENDING;
    }
    *loss = e->sum / (double)e->predicted;
    return TG_OK;
}

void tg_lm_evaluating_deinit(tg_lm_evaluating *e) {
    if (!e->ctx) return;
    if (e->built) tg_graph_deinit(&e->graph);
    tg_runtime_block_free(e->ctx, &e->cache);
    tg_runtime_block_free(e->ctx, &e->memory);
    tg_ids_deinit(&e->ids);
}
