/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_graph.c - the three plans of a training run, from the family's graph.
 *
 * They share memory by the names of their states ("weights", "grads", "adam_m", "adam_v", "loss"),
 * which train.c binds to the same blocks in each. grad and update are two plans and not one, since
 * the first runs once per micro-step and the second once per step.
 */
#include "ops/build.h"
#include "training/train.h"

/* A flat state under a name: weights, grads, adam_m, adam_v. */
static tg_value *flat(tg_graph *g, const tg_layout *l, const char *name) {
    return tg_state(g, name, tg_type_1d(TG_F32, l->n_elems));
}

/* [B, T]. The batch is part of the shape, so a run has one batch size from its first step to its
 * last; only evaluation leaves rows of it unused. */
static tg_value *ids(tg_graph *g, const tg_train_options *o, const char *name) {
    return tg_input(g, name, tg_type_2d(TG_I32, (size_t)o->batch, (size_t)o->row_tokens));
}

/* Every parameter's gradient is added into its place in the flat array. */
static void accumulate_gradients(tg_graph *g, const tg_layout *l, tg_value *weights,
                                 tg_value *grads, tg_value *loss, tg_value **wrt, tg_value **dwrt) {
    /* The parameters are those views of the weights that the graph reads, one or more each. */
    size_t n = 0;
    for (tg_node *node = g->first; node; node = node->next)
        if (node->op == TG_OP_view && node->in[0] == weights) wrt[n++] = &node->out[0];
    TG_ASSERT(n <= 2 * l->n_params);
    tg_grad(g, loss, 1, wrt, n, dwrt);
    for (size_t i = 0; i < n && g->status == TG_OK; i++) {
        if (!dwrt[i]) continue;
        tg_graph_scope(g, "grads");
        tg_value *view = tg_view(g, grads, wrt[i]->node->offset_elems, wrt[i]->type, wrt[i]->name);
        tg_accumulate(g, view, dwrt[i]);
    }
}

/* The loss is scaled by 1/accum here, at its root: gradients of the micro-steps then only have to
 * be added, and "loss" ends as the mean. Whether a micro-step overwrites or adds is the run-time
 * scalar accumulate, so one plan serves the first and the later ones. wrt and dwrt are the halves
 * of one array; a family may view each parameter twice. */
static tg_status build_grad(tg_train_plans *p, const tg_layout *l, const tg_train_options *o) {
    tg_graph *g = &p->grad_graph;
    tg_net net = tg_net_of(g, l);
    net.dropout = (float)o->dropout;
    tg_value *grads = flat(g, l, "grads");
    tg_value *total = tg_state(g, "loss", tg_type_scalar(TG_F32));
    p->tokens = ids(g, o, "tokens");
    p->targets = ids(g, o, "targets");
    tg_value *logits = tg_net_logits(&net, p->tokens);
    tg_graph_scope(g, "loss");
    tg_value *loss = tg_cross_entropy(g, logits, p->targets, 1.0f / (float)o->accum);
    tg_graph_scope(g, "%s", "");
    tg_value **wrt = tg_arena_array(&g->arena, 4 * l->n_params, sizeof *wrt);
    if (!wrt) return tg_fail_memory(g->ctx, "list of parameters", 4 * l->n_params * sizeof *wrt);
    accumulate_gradients(g, l, net.flat, grads, loss, wrt, wrt + 2 * l->n_params);
    tg_graph_scope(g, "%s", "");
    tg_accumulate(g, total, loss);
    return tg_graph_finish(g);
}

/* Decayed parameters lie in front in the flat array (model/gpt.c), so one number says which they
 * are, and norm and update are one op each over the whole array. An attribute has 32 bits: hence
 * the limit. Beta, eps and decay are attributes, fixed for the run; the rate is a run-time
 * scalar. */
static tg_status build_update(tg_train_plans *p, const tg_layout *l, const tg_train_options *o) {
    tg_graph *g = &p->update_graph;
    tg_value *weights = flat(g, l, TG_WEIGHTS_NAME), *grads = flat(g, l, "grads");
    tg_value *m = flat(g, l, "adam_m"), *v = flat(g, l, "adam_v");
    tg_value *loss = tg_state(g, "loss", tg_type_scalar(TG_F32));
    p->stats = tg_grad_norm(g, grads, loss, (float)o->clip);
    if (l->n_decayed > INT32_MAX)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "training: want at most %d decayed weights, have %zu", INT32_MAX,
                       l->n_decayed);
    const tg_attr a = { .i = { (int32_t)l->n_decayed },
                        .f = { (float)o->beta1, (float)o->beta2, (float)o->eps,
                               (float)o->weight_decay } };
    tg_adamw(g, weights, grads, m, v, p->stats, &a);
    if (g->status == TG_OK) tg_output(g, p->stats, "stats");
    return tg_graph_finish(g);
}

/* Only lse of cross_entropy is used: eval.c sums the losses of the rows that hold a window. */
static tg_status build_eval(tg_train_plans *p, const tg_layout *l, const tg_train_options *o) {
    tg_graph *g = &p->eval_graph;
    tg_net net = tg_net_of(g, l);
    p->eval_tokens = ids(g, o, "tokens");
    p->eval_targets = ids(g, o, "targets");
    p->logits = tg_net_logits(&net, p->eval_tokens);
    p->lse = tg_out(tg_cross_entropy(g, p->logits, p->eval_targets, 1), 1);
    if (g->status == TG_OK) {
        tg_output(g, p->logits, "logits");
        tg_output(g, p->lse, "lse");
    }
    return tg_graph_finish(g);
}

/* bytes becomes the largest of the plans: they never run at the same time, and keep nothing in the
 * workspace between two runs but their own inputs and outputs. */
static tg_status plan(tg_context *ctx, tg_plan *plan, tg_graph *g, const char *name,
                      size_t *bytes) {
    const tg_plan_options o = tg_runtime_plan_options(ctx, name);
    TG_TRY(tg_plan_build(plan, g, &o));
    if (tg_plan_memory_bytes(plan) > *bytes) *bytes = tg_plan_memory_bytes(plan);
    return TG_OK;
}

static tg_status build(tg_context *ctx, const tg_layout *l, const tg_train_options *o,
                       tg_train_plans *p) {
    TG_TRY(build_grad(p, l, o));
    TG_TRY(build_update(p, l, o));
    TG_TRY(build_eval(p, l, o));
    TG_TRY(plan(ctx, &p->grad, &p->grad_graph, "grad", &p->memory_bytes));
    TG_TRY(plan(ctx, &p->update, &p->update_graph, "update", &p->memory_bytes));
    return plan(ctx, &p->eval, &p->eval_graph, "eval", &p->memory_bytes);
}

/* All three graphs are opened before one of them is filled, so that tg_train_plans_free can give
 * back all three, whatever the outcome. */
static tg_status open_graphs(tg_context *ctx, tg_train_plans *p) {
    memset(p, 0, sizeof *p);
    p->built = true;
    TG_TRY(tg_graph_init(&p->grad_graph, &ctx->err, ctx->levers));
    TG_TRY(tg_graph_init(&p->update_graph, &ctx->err, ctx->levers));
    return tg_graph_init(&p->eval_graph, &ctx->err, ctx->levers);
}

tg_status tg_train_plans_build(tg_context *ctx, const tg_layout *layout, const tg_train_options *o,
                               tg_train_plans *out) {
    TG_TRY(open_graphs(ctx, out));
    return build(ctx, layout, o, out);
}

tg_status tg_train_plans_build_eval(tg_context *ctx, const tg_layout *layout,
                                    const tg_train_options *o, tg_train_plans *out) {
    TG_TRY(open_graphs(ctx, out));
    TG_TRY(build_eval(out, layout, o));
    return plan(ctx, &out->eval, &out->eval_graph, "eval", &out->memory_bytes);
}

void tg_train_plans_free(tg_train_plans *p) {
    if (!p->built) return;
    tg_graph_deinit(&p->grad_graph);
    tg_graph_deinit(&p->update_graph);
    tg_graph_deinit(&p->eval_graph);
    p->built = false;
}
