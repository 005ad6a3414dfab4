/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_graph.c - the three plans of a training run, from the family's graph.
 *
 * They share memory by the names of their states ("weights", "grads", "adam_m", "adam_v", "loss",
 * and where there are such "average" and "scaling"), which train.c binds to the same blocks in
 * each. grad and update are two plans and not one, since
 * the first runs once per micro-step and the second once per step.
 */
#include "base/math.h"
#include "ops/build.h"
#include "training/train.h"

/* A flat state under a name: weights, grads, adam_m, adam_v. */
static tg_value *flat(tg_graph *g, const tg_layout *l, const char *name) {
    return tg_state(g, name, tg_type_1d(TG_F32, l->n_elems));
}

/* What gradients are scaled by before they are rounded to f16; NULL where nothing is. */
static tg_value *scaling_of(tg_graph *g) {
    if (!TG_TRAIN_SCALES || !(g->levers & TG_LEVER_BIT(f16_storage))) return NULL;
    return tg_state(g, "scaling", tg_type_1d(TG_F32, 4));
}

/* [B, T]. The batch is part of the shape, so a run has one batch size from its first step to its
 * last; only evaluation leaves rows of it unused. */
static tg_value *ids(tg_graph *g, const tg_train_options *o, const char *name) {
    return tg_input(g, name, tg_type_2d(TG_I32, (size_t)o->batch, (size_t)o->row_tokens));
}

/* Rows of an encoder are texts that lie one behind the other. */
static tg_value *text_ids(tg_graph *g, const tg_train_options *o, const char *name) {
    return tg_input(g, name, tg_type_1d(TG_I32, (size_t)o->batch * (size_t)o->row_tokens));
}

static bool is_masked(const tg_net *net) {
    return TG_TRAIN_MASKS && tg_family_of(net->config)->encode;
}

/* What a plan of tokens reads. */
static void make_inputs(const tg_net *net, const tg_train_options *o, tg_value **tokens,
                        tg_value **targets, tg_net_texts *texts) {
    tg_graph *g = net->g;
    const bool masked = is_masked(net);
    *tokens = masked ? text_ids(g, o, "tokens") : ids(g, o, "tokens");
    *targets = masked ? text_ids(g, o, "targets") : ids(g, o, "targets");
    if (!masked) return;
    const size_t rows = (size_t)o->batch * (size_t)o->row_tokens;
    *texts = (tg_net_texts) { .tokens = *tokens,
                              .positions = text_ids(g, o, "positions"),
                              .kinds = text_ids(g, o, "kinds"),
                              .spans = tg_input(g, "spans", tg_type_2d(TG_I32, rows, 2)) };
}

static tg_value *predict(tg_net *net, tg_value *tokens, const tg_net_texts *texts) {
    return is_masked(net) ? tg_net_masked_logits(net, texts) : tg_net_logits(net, tokens);
}

void tg_train_put_texts(tg_plan *plan, const tg_net_texts *texts, const tg_train_options *o) {
    if (!texts->tokens) return;
    const int32_t T = o->row_tokens, rows = o->batch * T;
    int32_t *positions = tg_plan_data(plan, texts->positions);
    int32_t *kinds = tg_plan_data(plan, texts->kinds), *spans = tg_plan_data(plan, texts->spans);
    for (int32_t i = 0; i < rows; i++) {
        if (positions) positions[i] = i % T;
        if (kinds) kinds[i] = 0;
        spans[2 * i] = i / T * T;
        spans[2 * i + 1] = i / T * T + T;
    }
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
 * be added, and "loss" ends as the mean. */
static tg_value *loss_of(tg_graph *g, tg_train_plans *p, tg_value *logits,
                         const tg_train_options *o, double beta) {
    const tg_attr a = { .f = { 1.0f / (float)o->accum, (float)beta } };
    tg_graph_scope(g, "loss");
    if (!TG_NATIVE_PARTS || beta == 0)
        return tg_cross_entropy(g, logits, p->targets, 1.0f / (float)o->accum);
    p->reference = tg_input(g, "reference", tg_type_1d(TG_F32, (size_t)o->batch));
    tg_value *loss = tg_preference(g, logits, p->targets, p->reference, &a);
    p->margin = tg_out(loss, 2);
    if (g->status == TG_OK) tg_output(g, p->margin, "margin");
    /* Zeros alone are what a GPU leaves that computes nothing, and what margins may be. */
    if (g->status == TG_OK) tg_output(g, tg_out(loss, 1), "lse");
    return loss;
}

/* Whether a micro-step overwrites or adds is the run-time scalar accumulate, so one plan serves the
 * first and the later ones. wrt and dwrt are the halves of one array; a family may view each
 * parameter twice. */
static tg_status build_grad(tg_train_plans *p, const tg_layout *l, const tg_train_options *o,
                            double beta) {
    tg_graph *g = &p->grad_graph;
    tg_net net = tg_net_of(g, l);
    net.dropout = (float)o->dropout;
    tg_value *grads = flat(g, l, "grads");
    tg_value *total = tg_state(g, "loss", tg_type_scalar(TG_F32));
    make_inputs(&net, o, &p->tokens, &p->targets, &p->texts);
    g->scaling = scaling_of(g);
    tg_value *logits = predict(&net, p->tokens, &p->texts);
    tg_value *loss = loss_of(g, p, logits, o, beta);
    tg_graph_scope(g, "%s", "");
    tg_value **wrt = tg_arena_array(&g->arena, 4 * l->n_params, sizeof *wrt);
    if (!wrt) return tg_fail_memory(g->ctx, "list of parameters", 4 * l->n_params * sizeof *wrt);
    accumulate_gradients(g, l, net.flat, grads, loss, wrt, wrt + 2 * l->n_params);
    tg_graph_scope(g, "%s", "");
    tg_accumulate(g, total, loss);
    return tg_graph_finish(g);
}

/* What the nodes of an update share. */
typedef struct updating {
    tg_graph *g;
    const tg_layout *l;
    const tg_train_options *o;
    tg_value *weights, *grads, *m, *v, *loss;
    tg_value *average; /* NULL: there is none */
    tg_value *stats;
} updating;

/* Elements [begin, end) of a flat state, which itself stands for all of it. */
static tg_value *range(const updating *u, tg_value *state, size_t begin, size_t end) {
    if (end - begin == u->l->n_elems) return state;
    return tg_view(u->g, state, begin, tg_type_1d(TG_F32, end - begin), state->name);
}

/* new_w, elements of the flat array from `at` on, as they are behind the update. */
static void average(const updating *u, tg_value *new_w, size_t at) {
    if (!u->average) return;
    const bool all = tg_type_elems(&new_w->type) == u->l->n_elems;
    tg_value *part = all ? u->average : tg_view(u->g, u->average, at, new_w->type, "average");
    tg_ema(u->g, part, new_w, u->stats, (float)(1 - u->o->ema));
}

/* Decayed parameters lie in front in the flat array (model/layout.h), so one number says which they
 * are, and the update of a range is one op. Beta, eps and decay are attributes, fixed for the run;
 * the rate is a run-time scalar. */
static void adamw(const updating *u, size_t begin, size_t end) {
    if (begin == end) return;
    const size_t decayed = u->l->n_decayed > begin ? u->l->n_decayed - begin : 0;
    const tg_attr a = { .i = { (int32_t)decayed },
                        .f = { (float)u->o->beta1, (float)u->o->beta2, (float)u->o->eps,
                               (float)u->o->weight_decay } };
    tg_value *w = tg_adamw(u->g, range(u, u->weights, begin, end), range(u, u->grads, begin, end),
                           range(u, u->m, begin, end), range(u, u->v, begin, end), u->stats, &a);
    average(u, w, begin);
}

/*
 * Newton-Schulz: five steps of x <- a x + (b A + c A^2) x with A = x x^T, from a matrix of norm 1,
 * bring its singular values near 1 (Jordan et al. 2024, whose a, b, c these are). The smaller of
 * x x^T and x^T x is taken; the polynomial is the same matrix.
 */
static tg_value *orthogonalised(const updating *u, tg_value *x) {
    enum { STEPS = 5 };
    tg_graph *g = u->g;
    const bool tall = x->type.dim[0] > x->type.dim[1];
    tg_value *flat_x = tg_view(g, x, 0, tg_type_1d(TG_F32, tg_type_elems(&x->type)), "flat");
    x = tg_blend(g, x, NULL, tg_grad_norm(g, flat_x, u->loss, 0), 1, 0, 1e-7f);
    for (int i = 0; i < STEPS; i++) {
        tg_value *gram = tg_matmul(g, x, x, NULL, tall ? 1 : 2);
        tg_value *square = tg_matmul(g, gram, gram, NULL, 0);
        tg_value *poly = tg_blend(g, gram, square, NULL, -4.7750f, 2.0315f, 0);
        tg_value *turned = tall ? tg_matmul(g, x, poly, NULL, 0) : tg_matmul(g, poly, x, NULL, 0);
        x = tg_blend(g, x, turned, NULL, 3.4445f, 1, 0);
    }
    return x;
}

/* A matrix of a layer, which products are taken with. Embeddings, heads and taps are looked up or
 * few, and stay with AdamW, as the authors have it. */
static bool is_muons(const tg_param *p, const tg_tensor_spec *t) {
    return p->layer >= 0 && t->n_dims == 2 && !(t->want->flags & TG_WANT_TAPS) &&
           t->offset_elems >= p->offset_elems &&
           t->offset_elems < p->offset_elems + tg_type_elems(&p->type);
}

/* A parameter that Muon trains: its views, of which the newest versions of w and m. */
typedef struct muon_param {
    tg_value *w, *grads, *m;
} muon_param;

/* One matrix, a block of rows and columns of p. */
static void muon_matrix(const updating *u, muon_param *p, size_t row, size_t rows, size_t col,
                        size_t cols) {
    tg_attr a = { .i = { (int32_t)row, (int32_t)rows, (int32_t)col, (int32_t)cols },
                  .f = { (float)u->o->momentum } };
    p->m = tg_muon_momentum(u->g, p->grads, p->m, u->stats, &a);
    a.f[0] = (float)(0.2 * tg_sqrt((double)(rows > cols ? rows : cols)));
    a.f[1] = (float)u->o->weight_decay;
    p->w = tg_muon_step(u->g, p->w, orthogonalised(u, tg_out(p->m, 1)), u->stats, &a);
}

/* Each tensor of p, a block of its rows and columns; of experts, whose matrices stand one below the
 * other in a tensor, each matrix for itself. false: p is not of Muon's. */
static bool muon(const updating *u, const tg_param *p) {
    tg_graph *g = u->g;
    muon_param k = { NULL, NULL, NULL };
    for (size_t i = 0; i < u->l->n_tensors; i++) {
        const tg_tensor_spec *t = &u->l->tensors[i];
        if (!is_muons(p, t)) continue;
        if (!k.w) {
            tg_graph_scope(g, "%s", p->name);
            k.w = tg_view(g, u->weights, p->offset_elems, p->type, "weights");
            k.grads = tg_view(g, u->grads, p->offset_elems, p->type, "grads");
            k.m = tg_view(g, u->m, p->offset_elems, p->type, "adam_m");
        }
        const size_t at = t->offset_elems - p->offset_elems, stride = t->row_stride_elems;
        const size_t n = t->want->flags & TG_WANT_EXPERTS ? (size_t)u->l->config.experts : 1;
        for (size_t e = 0; e < n; e++)
            muon_matrix(u, &k, at / stride + e * (t->rows / n), t->rows / n, at % stride, t->cols);
    }
    if (k.w) average(u, k.w, p->offset_elems);
    tg_graph_scope(g, "%s", "");
    return k.w != NULL;
}

/* Norm and AdamW are one op each over the whole flat array; Muon's parameters are left out of it.
 * An attribute has 32 bits: hence the limit. */
static tg_status build_update(tg_train_plans *p, const tg_layout *l, const tg_train_options *o) {
    tg_graph *g = &p->update_graph;
    updating u = { .g = g, .l = l, .o = o };
    u.weights = flat(g, l, TG_WEIGHTS_NAME);
    u.grads = flat(g, l, "grads");
    u.m = flat(g, l, "adam_m");
    u.v = flat(g, l, "adam_v");
    if (o->ema > 0) u.average = flat(g, l, "average");
    u.loss = tg_state(g, "loss", tg_type_scalar(TG_F32));
    u.stats = p->stats = tg_grad_norm(g, u.grads, u.loss, (float)o->clip);
    if (l->n_decayed > INT32_MAX)
        return tg_fail(g->ctx, TG_E_UNSUPPORTED,
                       "training: want at most %d decayed weights, have %zu", INT32_MAX,
                       l->n_decayed);
    size_t begin = 0;
    for (size_t i = 0; o->optimizer == TG_MUON && i < l->n_params && g->status == TG_OK; i++) {
        const tg_param *param = &l->params[i];
        if (!muon(&u, param)) continue;
        adamw(&u, begin, param->offset_elems);
        begin = i + 1 < l->n_params ? l->params[i + 1].offset_elems : l->n_elems;
    }
    adamw(&u, begin, l->n_elems);
    tg_value *scaling = scaling_of(g);
    if (scaling) p->scaling = tg_out(tg_loss_scale(g, scaling, u.stats), 1);
    if (g->status == TG_OK) tg_output(g, p->stats, "stats");
    if (g->status == TG_OK && scaling) tg_output(g, p->scaling, "scaling");
    return tg_graph_finish(g);
}

/* Only lse of cross_entropy is used: eval.c sums the losses of the rows that hold a window. */
static tg_status build_eval(tg_train_plans *p, const tg_layout *l, const tg_train_options *o) {
    tg_graph *g = &p->eval_graph;
    tg_net net = tg_net_of(g, l);
    make_inputs(&net, o, &p->eval_tokens, &p->eval_targets, &p->eval_texts);
    p->logits = predict(&net, p->eval_tokens, &p->eval_texts);
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

static tg_status build(tg_context *ctx, const tg_layout *l, const tg_train_options *o, double beta,
                       tg_train_plans *p) {
    TG_TRY(build_grad(p, l, o, beta));
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
    /* The CPU rounds no operand to f16, whatever the lever says, so it has nothing to scale. */
    const uint32_t none = ctx->backend == ctx->cpu ? TG_LEVER_BIT(f16_storage) : 0,
                   levers = ctx->levers & ~none;
    TG_TRY(tg_graph_init(&p->grad_graph, &ctx->err, levers));
    TG_TRY(tg_graph_init(&p->update_graph, &ctx->err, levers));
    return tg_graph_init(&p->eval_graph, &ctx->err, levers);
}

tg_status tg_train_plans_build(tg_context *ctx, const tg_layout *layout, const tg_train_options *o,
                               double beta, tg_train_plans *out) {
    if (TG_NATIVE_PARTS && beta > 0 && tg_family_of(&layout->config)->encode)
        return tg_fail(
            &ctx->err, TG_E_UNSUPPORTED,
            "training on pairs: want a model that writes text, have one that encodes it");
    if (TG_NATIVE_PARTS && beta > 0 && o->batch % 2)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "training: batch: want an even number of rows, two for each pair, have %d",
                       (int)o->batch);
    TG_TRY(open_graphs(ctx, out));
    return build(ctx, layout, o, beta, out);
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
