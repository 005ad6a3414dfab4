/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - what dump, profile, bench matmul and doctor need from inside. See inspect.h.
 */
#include "inspect/inspect.h"

#include "backend/cpu/check.h"
#include "backend/cpu/oracle.h"
#include "base/math.h"
#include "base/time.h"
#include "ops/build.h"

/* ------------------------------------------------------------------------------------------- dump
 */

/* Turns the dump's lines into the bytes of a tg_text_fn. Once the receiver has refused, nothing
 * more is sent: plans go on being printed into the void, since a dump has no way to stop. */
typedef struct line_sink {
    tg_text_fn write;
    void *user;
    bool stopped;
} line_sink;

static void put_line(void *user, const char *line) {
    line_sink *s = user;
    if (s->stopped) return;
    s->stopped = s->write(s->user, line, strlen(line)) != 0 || s->write(s->user, "\n", 1) != 0;
}

/* Only graphs and plans are made, no weights: a dump of the largest preset takes hardly more memory
 * than one of the smallest. Values are shown by their offsets, which do not depend on a block. */
static tg_status dump_training(tg_context *ctx, const tg_model_config *config, const char *which,
                               int32_t batch, line_sink *sink) {
    tg_train_options o = tg_train_options_default();
    o.batch = batch ? batch : 16;
    o.accum = 1;
    o = tg_train_options_of(&o, config);
    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    tg_layout layout;
    tg_train_plans plans = { .built = false };
    tg_status s = tg_layout_make(&ctx->err, &arena, config, &layout);
    if (s == TG_OK) s = tg_train_plans_build(ctx, &layout, &o, 0, &plans);
    if (s == TG_OK && strcmp(which, "eval") == 0) tg_plan_dump(&plans.eval, put_line, sink);
    if (s == TG_OK && strcmp(which, "train") == 0) {
        tg_plan_dump(&plans.grad, put_line, sink);
        tg_plan_dump(&plans.update, put_line, sink);
    }
    tg_train_plans_free(&plans);
    tg_arena_deinit(&arena);
    return s;
}

static tg_status dump_session(tg_context *ctx, tg_model *model, const char *which,
                              line_sink *sink) {
    const bool decode = strcmp(which, "decode") == 0;
    tg_session *session;
    if (!decode && strcmp(which, "prefill") != 0)
        return tg_fail(&ctx->err, TG_E_ARG, "dump: want %sdecode or prefill, have '%s'",
                       tg_weights_are_flat(model) ? "train, eval, " : "", which);
    TG_TRY(tg_session_open(ctx, model, 0, TG_KV_F32, &session));
    tg_plan_dump(&session->d->by_rows[decode ? 0 : TG_SESSION_CLASSES - 1].plan, put_line, sink);
    if (decode) tg_plan_dump(&session->sample, put_line, sink);
    tg_session_close(session);
    return TG_OK;
}

tg_status tg_inspect_dump(tg_context *ctx, const tg_model_config *config, const char *which,
                          int32_t batch, tg_text_fn write, void *user) {
    line_sink sink = { write, user, false };
    tg_model_config whole = *config;
    TG_TRY(tg_config_complete(&ctx->err, "model", &whole));
    config = &whole;
    if (strcmp(which, "train") == 0 || strcmp(which, "eval") == 0)
        return dump_training(ctx, config, which, batch, &sink);
    /* A session's plans are bound when they are made, so here a model has to exist. Its weights and
     * caches are zero pages that nobody touches. */
    tg_model *model;
    TG_TRY(tg_weights_alloc(ctx, config, &model));
    const tg_status s = dump_session(ctx, model, which, &sink);
    tg_weights_free(model);
    return s;
}

tg_status tg_inspect_dump_model(tg_context *ctx, tg_model *model, const char *which, int32_t batch,
                                tg_text_fn write, void *user) {
    line_sink sink = { write, user, false };
    return tg_weights_are_flat(model)
               ? tg_inspect_dump(ctx, &model->layout.config, which, batch, write, user)
               : dump_session(ctx, model, which, &sink);
}

/* ---------------------------------------------------------------------------------------- profile
 */

/* Rows are by (op, variant): one op may run by several kernels, depending on its shapes. Or, if
 * each, there is one for every step of both plans; those that run as part of another step stay
 * empty. room is the number of steps, which is as many rows as there can be. Names are borrowed
 * from the static tables of ops and kernels, and from the graph. */
typedef struct profile {
    tg_profile_row *rows; /* [n_rows] */
    size_t n_rows, room;
    bool each;
} profile;

static tg_profile_row *row_for(profile *p, const char *op, const char *variant) {
    for (size_t i = 0; i < p->n_rows; i++)
        if (strcmp(p->rows[i].op, op) == 0 && strcmp(p->rows[i].variant, variant) == 0)
            return &p->rows[i];
    TG_ASSERT(p->n_rows < p->room);
    p->rows[p->n_rows] = (tg_profile_row) { .op = op, .variant = variant };
    return &p->rows[p->n_rows++];
}

/* What a step would move if every operand were read or written once, from and to memory. A kernel
 * that reads an operand again out of a cache, or finds it there, gives a rate above the
 * memory's. */
static double bytes_of(const tg_step *s) {
    double bytes = 0;
    for (int k = 0; k < TG_MAX_IN; k++)
        if (s->args.in[k]) bytes += (double)tg_type_bytes(&s->args.in_type[k]);
    for (int k = 0; k < TG_MAX_OUT; k++)
        if (s->args.out[k]) bytes += (double)tg_type_bytes(&s->args.out_type[k]);
    return bytes;
}

/* step_ms has been summed over n_steps steps, with all their micro-steps; the row gets the mean.
 * The work is that of one pass over the plan, so rates hold for accum 1. */
static void add_plan(profile *p, tg_backend *b, const tg_plan *plan, const double *step_ms,
                     int n_steps, int runs_a_step) {
    tg_profile_row *const rows = p->rows + p->n_rows;
    if (p->each) p->n_rows += plan->n_steps;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const tg_step *s = &plan->steps[i];
        const tg_op_desc *d = tg_op_table[s->node->op];
        size_t leader = i;
        const char *kernel = b->kernel_name ? b->kernel_name(b, plan, i, &leader) : NULL;
        const tg_node *led = plan->steps[leader].node;
        const char *op = tg_op_table[led->op]->name;
        if (!kernel) kernel = s->variant->name;
        tg_profile_row *row = p->each ? &rows[leader] : row_for(p, op, kernel);
        if (p->each) row->op = op, row->variant = kernel, row->step = led->name;
        row->count += leader == i;
        row->ms += step_ms[i] / n_steps;
        row->gflop += d->flop ? d->flop(&s->args) / 1e9 * runs_a_step : 0;
        row->gbytes += bytes_of(s) / 1e9 * runs_a_step;
    }
}

/* Selection in place, costliest first: a plan has some dozens of kinds. Steps stay in their order.
 */
static void report_rows(profile *p, tg_profile_fn report, void *user) {
    for (size_t i = 0; i < p->n_rows; i++) {
        size_t best = i;
        for (size_t j = i + 1; j < p->n_rows && !p->each; j++)
            if (p->rows[j].ms > p->rows[best].ms) best = j;
        const tg_profile_row row = p->rows[best];
        p->rows[best] = p->rows[i];
        p->rows[i] = row;
        if (row.op) report(user, &row);
    }
}

/* A step with the clock read at every step of its plans. The rate is 0, so that the weights stay as
 * they are and every step meets the same batch; the moments do follow the gradients, so a trainer
 * that was profiled is no longer the run that it was. */
static tg_status timed_step(tg_trainer *t, double *grad_ms, double *update_ms) {
    for (int32_t micro = 0; micro < t->o.accum; micro++) {
        t->rt =
            (tg_scalars) { .accumulate = micro > 0, .step = (int32_t)(t->updates + 1), .lr = 0 };
        TG_TRY(tg_train_fill(t, t->step, micro, &t->rt));
        tg_run run = { .step_ms = grad_ms };
        TG_TRY(tg_backend_run(t->ctx->backend, &t->plans.grad, &t->rt, &run));
    }
    tg_run run = { .step_ms = update_ms };
    return tg_backend_run(t->ctx->backend, &t->plans.update, &t->rt, &run);
}

/* What has rested is slow at first - an H200 takes five times as long for the first fifth of a
 * second -, so some runs go before those that count. */
static const double warm_ms = 300;

static tg_status timed_steps(tg_trainer *t, int n_steps, double *grad_ms, double *update_ms) {
    t->ahead.step = 0; /* gradients are overwritten */
    const double start = tg_time_ms();
    do TG_TRY(timed_step(t, grad_ms, update_ms));
    while (tg_time_ms() - start < warm_ms);
    memset(grad_ms, 0, t->plans.grad.n_steps * sizeof *grad_ms);
    memset(update_ms, 0, t->plans.update.n_steps * sizeof *update_ms);
    for (int i = 0; i < n_steps; i++) TG_TRY(timed_step(t, grad_ms, update_ms));
    return TG_OK;
}

/* Memory for the times and rows of n steps of plans. */
static tg_status open_profile(tg_context *ctx, size_t n, bool each, profile *p, double **ms) {
    *p = (profile) { .room = n, .each = each };
    *ms = tg_alloc(&ctx->err.mem, n * sizeof **ms);
    p->rows = tg_alloc(&ctx->err.mem, n * sizeof *p->rows);
    if (*ms && p->rows) return TG_OK;
    return tg_fail_memory(&ctx->err, "profile", n * sizeof *p->rows);
}

static void close_profile(tg_context *ctx, profile *p, double *ms) {
    tg_free(&ctx->err.mem, ms, p->room * sizeof *ms);
    tg_free(&ctx->err.mem, p->rows, p->room * sizeof *p->rows);
}

tg_status tg_inspect_profile(tg_trainer *t, int n_steps, bool each, tg_profile_fn report,
                             void *user) {
    const size_t n_grad = t->plans.grad.n_steps;
    profile p;
    double *ms;
    tg_status s = open_profile(t->ctx, n_grad + t->plans.update.n_steps, each, &p, &ms);
    if (s == TG_OK) s = timed_steps(t, n_steps, ms, ms + n_grad);
    if (s == TG_OK) {
        add_plan(&p, t->ctx->backend, &t->plans.grad, ms, n_steps, t->o.accum);
        add_plan(&p, t->ctx->backend, &t->plans.update, ms + n_grad, n_steps, 1);
        report_rows(&p, report, user);
    }
    close_profile(t->ctx, &p, ms);
    return s;
}

/* A run of k's plan for n_rows tokens behind those that s has. Tokens of 0: which they are does not
 * matter for the time. */
static tg_status timed_run(tg_session *s, tg_session_class *k, size_t n_rows, double *step_ms) {
    memset(tg_plan_data(&k->plan, k->tokens), 0, n_rows * sizeof(int32_t));
    tg_cache_place_rows(&s->d->cache, &k->plan, &k->rows_in, 0, n_rows, s->sequence, s->n_held);
    tg_session_note_run(s, s->n_held + (int32_t)n_rows);
    const tg_scalars rt = { .rows = (int32_t)n_rows };
    tg_run run = { .step_ms = step_ms };
    return tg_session_run_plan(s, &k->plan, &rt, &run);
}

tg_status tg_inspect_profile_session(tg_session *s, size_t n_rows, int n_times, bool each,
                                     tg_profile_fn report, void *user) {
    tg_session_class *k = tg_decoder_class_for(s->d, n_rows);
    const size_t room = (size_t)(s->capacity - s->n_tokens);
    if (n_rows > room || n_rows > (size_t)k->rows)
        return tg_fail(&s->ctx->err, TG_E_FULL,
                       "session: want room for %zu tokens, at most %zu at once, have %zu left",
                       n_rows, (size_t)k->rows, room);
    (void)tg_session_find_cache(s);
    profile p;
    double *ms;
    tg_status status = open_profile(s->ctx, k->plan.n_steps, each, &p, &ms);
    for (double start = tg_time_ms(); status == TG_OK && tg_time_ms() - start < warm_ms;)
        status = timed_run(s, k, n_rows, ms);
    if (status == TG_OK) memset(ms, 0, p.room * sizeof *ms);
    for (int i = 0; i < n_times && status == TG_OK; i++) status = timed_run(s, k, n_rows, ms);
    if (status == TG_OK) {
        add_plan(&p, s->ctx->backend, &k->plan, ms, n_times, 1);
        report_rows(&p, report, user);
    }
    close_profile(s->ctx, &p, ms);
    tg_session_go_back(s, 0);
    return status;
}

/* ------------------------------------------------------------------------------------- one product
 */

/* A plan of one product: what is timed is what a training step would run, threads, packing and all.
 * Each time is of a whole run of the plan, so small shapes contain the hand-over to the workers. */
tg_status tg_inspect_matmul(tg_context *ctx, int32_t m, int32_t n, int32_t k, int trans,
                            size_t n_times, double *ms) {
    tg_graph g;
    tg_plan plan;
    tg_block memory = { .data = NULL };
    TG_TRY(tg_graph_init(&g, &ctx->err, ctx->levers));
    const size_t M = (size_t)m, N = (size_t)n, K = (size_t)k;
    tg_value *a =
        tg_input(&g, "a", trans == 1 ? tg_type_2d(TG_F32, K, M) : tg_type_2d(TG_F32, M, K));
    tg_value *b =
        tg_input(&g, "b", trans == 2 ? tg_type_2d(TG_F32, N, K) : tg_type_2d(TG_F32, K, N));
    tg_value *c = tg_matmul(&g, a, b, NULL, trans);
    if (g.status == TG_OK) tg_output(&g, c, "c");
    const tg_plan_options o = tg_runtime_plan_options(ctx, "matmul");
    tg_status s = tg_plan_build(&plan, &g, &o);
    if (s == TG_OK) s = tg_runtime_block(ctx, tg_plan_memory_bytes(&plan), &memory);
    if (s == TG_OK) {
        tg_plan_place(&plan, memory.data);
        tg_check_fill_f32(tg_plan_data(&plan, a), M * K, 1, 0, 1);
        tg_check_fill_f32(tg_plan_data(&plan, b), N * K, 1, 1, 1);
    }
    const tg_scalars rt = { .rows = 0 };
    for (size_t i = 0; i < n_times && s == TG_OK; i++) {
        /* A GPU's own time, without the way of the operands to it. */
        double step_ms = 0;
        tg_run run = { .step_ms = ctx->backend != ctx->cpu ? &step_ms : NULL, .often = true };
        const double start = tg_time_ms();
        s = tg_backend_run(ctx->backend, &plan, &rt, &run);
        ms[i] = run.step_ms ? step_ms : tg_time_ms() - start;
    }
    tg_runtime_block_free(ctx, &memory);
    tg_graph_deinit(&g);
    return s;
}

/* -------------------------------------------------------------------------- gradients of a model
 */

enum { TOKENS = 7, ROWS = 2 * TOKENS };

/* A tiny model in the oracle: every parameter's gradient node, and some elements of each tried. */
typedef struct model_check {
    tg_graph g;
    tg_oracle oracle;
    tg_layout layout;
    tg_arena arena;
    tg_value *weights, *tokens, *targets, *loss;
    tg_net_texts texts; /* of an encoder */
    tg_value *wrt[96], *dwrt[96];
    size_t n;
} model_check;

/* What an encoder makes of two texts, by the rows of its embedding. */
static tg_value *encoder_logits(model_check *m, tg_net *net) {
    tg_graph *g = net->g;
    m->texts = (tg_net_texts) { .tokens = m->tokens,
                                .positions = tg_input(g, "positions", m->tokens->type),
                                .kinds = tg_input(g, "kinds", m->tokens->type),
                                .spans = tg_input(g, "spans", tg_type_2d(TG_I32, ROWS, 2)) };
    return tg_net_masked_logits(net, &m->texts);
}

/* A number that is not trained, by the op that multiplies with it (ops/columns/times.c). */
static bool stands_still(const tg_graph *g, const tg_value *weight) {
    for (const tg_node *n = g->first; n; n = n->next)
        if (n->op == TG_OP_times && n->in[1] == weight) return true;
    return false;
}

/* Levers are off (see the caller's tg_graph_init), so that no fusion hides a node. */
static tg_status build_model(model_check *m, tg_ctx *err, const tg_model_config *config) {
    TG_TRY(tg_layout_make(err, &m->arena, config, &m->layout));
    tg_graph *g = &m->g;
    tg_net net = tg_net_of(g, &m->layout);
    m->weights = net.flat;
    const bool encodes = tg_family_of(config)->encode;
    const tg_type ids =
        encodes ? tg_type_1d(TG_I32, ROWS) : tg_type_2d(TG_I32, ROWS / TOKENS, TOKENS);
    m->tokens = tg_input(g, "tokens", ids);
    m->targets = tg_input(g, "targets", ids);
    tg_value *logits = encodes ? encoder_logits(m, &net) : tg_net_logits(&net, m->tokens);
    m->loss = tg_cross_entropy(g, logits, m->targets, 1);
    for (tg_node *n = g->first; n && m->n < 96; n = n->next)
        if (n->op == TG_OP_view && n->in[0] == m->weights && !stands_still(g, &n->out[0]))
            m->wrt[m->n++] = &n->out[0];
    tg_grad(g, m->loss, 1, m->wrt, m->n, m->dwrt);
    TG_TRY(tg_graph_finish(g));
    return tg_oracle_init(&m->oracle, g);
}

/* Normals of deviation 0.3, fifteen times those of a fresh model: there, attention would be uniform
 * and gelu nearly linear, and a wrong gradient of either would hardly show. */
static void fill_model(model_check *m) {
    double *w = tg_oracle_data(&m->oracle, m->weights);
    for (size_t i = 0; i < m->layout.n_elems; i++) {
        float x;
        tg_check_fill_f32(&x, 1, i, 0, 0.3f);
        w[i] = (double)x;
    }
    tg_check_fill_i32(tg_oracle_data(&m->oracle, m->tokens), ROWS, 1, 1, 256);
    tg_check_fill_i32(tg_oracle_data(&m->oracle, m->targets), ROWS, 1, 2, 256);
    if (!m->texts.tokens) return;
    /* Texts of other lengths than rows of a batch would have. Their kind is 0 throughout. */
    int32_t *positions = tg_oracle_data(&m->oracle, m->texts.positions);
    int32_t *spans = tg_oracle_data(&m->oracle, m->texts.spans);
    for (int32_t t = 0, cut = TOKENS - 2; t < ROWS; t++) {
        const int32_t first = t < cut ? 0 : cut;
        if (positions) positions[t] = (t - first) % TOKENS;
        spans[2 * t] = first;
        spans[2 * t + 1] = t < cut ? cut : ROWS;
    }
}

/* Central difference at one element, relative to the largest gradient of its tensor. In double,
 * with h = 1e-5, truncation (h^2) and rounding (1e-16 / h) both stay below 1e-9, so a tolerance of
 * 1e-6 finds any wrong factor. The oracle runs up to the loss only, not on to the gradients. */
static double difference(model_check *m, double *x, double have, double largest) {
    const tg_scalars rt = { .accumulate = 0 };
    const double keep = *x, h = 1e-5;
    const double *loss = tg_oracle_data(&m->oracle, m->loss);
    *x = keep + h;
    tg_oracle_run(&m->oracle, &rt, NULL, m->loss->node);
    const double up = *loss;
    *x = keep - h;
    tg_oracle_run(&m->oracle, &rt, NULL, m->loss->node);
    const double down = *loss;
    *x = keep;
    return tg_fabs((up - down) / (2 * h) - have) / largest;
}

/* Five elements or so of each tensor, the first among them. A parameter that has no gradient node
 * at all counts as infinitely wrong. largest has a floor, so that a gradient which is rightly 0 is
 * not divided by 0. A NaN must not slip through: !(error <= worst) is true for it. */
static void check_param(model_check *m, size_t i, tg_check_fn report, void *user,
                        size_t *n_failed) {
    const double tolerance = 1e-6;
    const size_t n = tg_type_elems(&m->wrt[i]->type);
    double *x = tg_oracle_data(&m->oracle, m->wrt[i]);
    const double *dx = m->dwrt[i] ? tg_oracle_data(&m->oracle, m->dwrt[i]) : NULL;
    double worst = dx ? 0 : TG_INF, largest = 1e-4;
    for (size_t e = 0; dx && e < n; e++)
        largest = tg_fabs(dx[e]) > largest ? tg_fabs(dx[e]) : largest;
    for (size_t e = 0; dx && e < n; e += n / 5 + 1) {
        const double error = difference(m, &x[e], dx[e], largest);
        if (!(error <= worst)) worst = tg_isnan(error) ? TG_INF : error;
    }
    const tg_check check = { "model", m->wrt[i]->name, worst, tolerance, worst <= tolerance };
    *n_failed += !check.passed;
    if (report) report(user, &check);
}

/* Nobody makes fresh encoders, so their sizes are those that a file would have. */
static void complete_encoder(tg_model_config *c) {
    c->kv_heads = c->heads;
    c->head_size = c->width / c->heads;
    c->eps = 1e-5f;
    c->embed_scale = c->rope_factor = 1;
    c->rope_base[0] = c->rope_base[1] = 1e4f;
    c->score_scale = 0.5f;
    if (!tg_family_of(c)->windows) return;
    c->window = 6;
    c->window_every = 2;
}

/* Sizes that are no multiple of anything: width 12 in heads of 4, 7 tokens, so every kernel has
 * tails and every reshape is seen. */
static tg_status check_family(tg_context *ctx, const tg_family *family, tg_check_fn report,
                              void *user, size_t *n_failed) {
    tg_model_config config = { 2, 12, 3, TOKENS, 256, 48, .family = family->name };
    if (family->encode)
        complete_encoder(&config);
    else
        TG_TRY(tg_config_complete(&ctx->err, "gradients", &config));
    model_check *m = tg_alloc(&ctx->err.mem, sizeof *m);
    if (!m) return tg_fail_memory(&ctx->err, "gradient check", sizeof *m);
    tg_arena_init(&m->arena, &ctx->err.mem);
    tg_status s = tg_graph_init(&m->g, &ctx->err, 0);
    if (s == TG_OK) s = build_model(m, &ctx->err, &config);
    if (s == TG_OK) {
        const tg_scalars rt = { .accumulate = 0 };
        fill_model(m);
        tg_oracle_run(&m->oracle, &rt, NULL, NULL);
        for (size_t i = 0; i < m->n; i++) check_param(m, i, report, user, n_failed);
    }
    if (m->oracle.data) tg_oracle_deinit(&m->oracle);
    tg_graph_deinit(&m->g);
    tg_arena_deinit(&m->arena);
    tg_free(&ctx->err.mem, m, sizeof *m);
    return s;
}

/* The ops' own checks cannot see how a model joins them: a residual whose gradient is dropped
 * passes all of those. *n_failed is added to, not set. */
tg_status tg_inspect_model_gradients(tg_context *ctx, tg_check_fn report, void *user,
                                     size_t *n_failed) {
    for (size_t i = 0; i < tg_n_families; i++)
        TG_TRY(check_family(ctx, tg_families[i], report, user, n_failed));
    return TG_OK;
}
