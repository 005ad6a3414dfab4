/* SPDX-License-Identifier: Apache-2.0 */
/*
 * all_rows.c - the plan that answers for every row, its cache and its runs.
 *
 * Logits of a piece are all that is kept: for a vocabulary of 262,144 they take 67 MB. Hidden
 * states are small, and come in longer pieces.
 */
#include "engine/all_rows.h"

#include "ops/build.h"

tg_status tg_all_rows_want_writer(tg_context *ctx, const tg_model *model, const char *what) {
    if (!model->table.embed.only) return TG_OK;
    return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                   "%s: want a model that writes text, have a \"%s\" that gives embeddings alone",
                   what, model->layout.config.family);
}

static void add_answer(tg_all_rows *r, tg_graph *g, tg_value *answer) {
    if (r->answers == TG_ANSWER_HIDDEN_STATES) {
        r->hidden = answer;
        if (g->status == TG_OK) tg_output(g, r->hidden, "hidden");
        return;
    }
    r->logits = answer;
    r->targets = tg_input_rows(g, "targets", tg_type_1d(TG_I32, r->most));
    r->lse = tg_out(tg_cross_entropy(g, r->logits, r->targets, 1), 1);
    if (g->status != TG_OK) return;
    tg_output(g, r->logits, "logits");
    tg_output(g, r->lse, "lse");
}

static tg_status build(tg_all_rows *r) {
    TG_TRY(tg_graph_init(&r->graph, &r->ctx->err, r->ctx->levers));
    tg_graph *g = &r->graph;
    TG_TRY(tg_cache_init(&r->cache, r->ctx, &r->arena, &r->model->layout.config, TG_F32,
                         (int32_t)r->window, (int32_t)r->window, 1));
    r->tokens = tg_input_rows(g, "tokens", tg_type_1d(TG_I32, r->most));
    tg_net net;
    tg_weights_net(r->model, g, &net);
    net.cache = tg_cache_net(&r->cache, g, r->most, &r->rows_in);
    if (!net.cache) return tg_fail_memory(&r->ctx->err, "list of caches", sizeof *net.cache);
    net.answers = r->answers;
    add_answer(r, g, tg_net_logits(&net, r->tokens));
    if (r->look) r->look(r->look_user, g);
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(r->ctx, r->hidden ? "embed" : "eval");
    return tg_plan_build(&r->plan, g, &o);
}

static tg_status bind(tg_all_rows *r) {
    TG_TRY(tg_runtime_block(r->ctx, tg_plan_memory_bytes(&r->plan), &r->memory));
    tg_plan_place(&r->plan, r->memory.data);
    TG_TRY(tg_weights_bind(r->model, &r->plan));
    return tg_cache_bind(&r->cache, &r->plan);
}

tg_status tg_all_rows_open(tg_all_rows *r, tg_context *ctx, const tg_model *model, size_t window,
                           tg_answers answers) {
    const size_t piece =
        answers == TG_ANSWER_HIDDEN_STATES ? TG_ALL_ROWS_HIDDEN_PIECE : TG_ALL_ROWS_PIECE;
    r->ctx = ctx;
    r->model = model;
    r->window = window;
    r->most = window < piece ? window : piece;
    r->answers = answers;
    r->built = true;
    tg_arena_init(&r->arena, &ctx->err.mem);
    TG_TRY(build(r));
    return bind(r);
}

void tg_all_rows_deinit(tg_all_rows *r) {
    if (!r->built) return;
    tg_graph_deinit(&r->graph);
    tg_cache_deinit(&r->cache);
    tg_arena_deinit(&r->arena);
    tg_runtime_block_free(r->ctx, &r->memory);
}

int32_t *tg_all_rows_tokens(const tg_all_rows *r) { return tg_plan_data(&r->plan, r->tokens); }
int32_t *tg_all_rows_targets(const tg_all_rows *r) { return tg_plan_data(&r->plan, r->targets); }

tg_status tg_all_rows_run(tg_all_rows *r, size_t n, size_t pos, double deadline_ms) {
    const tg_scalars rt = { .rows = (int32_t)n };
    if (!tg_run_begun(&r->run))
        tg_cache_place_rows(&r->cache, &r->plan, &r->rows_in, 0, n, 0, (int32_t)pos);
    r->run.deadline_ms = deadline_ms;
    TG_TRY(tg_runtime_run(r->ctx, r->plan.name, &r->plan, &rt, &r->run));
    tg_run_restart(&r->run);
    tg_cache_take_rows(&r->cache, 0, n, (int32_t)(pos + n));
    return tg_weights_whole(r->model);
}

const float *tg_all_rows_logits(const tg_all_rows *r) { return tg_plan_data(&r->plan, r->logits); }
const float *tg_all_rows_lse(const tg_all_rows *r) { return tg_plan_data(&r->plan, r->lse); }
const float *tg_all_rows_hidden(const tg_all_rows *r) { return tg_plan_data(&r->plan, r->hidden); }
