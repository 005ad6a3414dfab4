/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_grads.c - gradient nodes against central differences, both in double. See check.h.
 *
 * For out 0 of the op and fixed random weights r, f(x) = sum r * out(x). The gradient nodes, seeded
 * with dy = r, must give df/dx; the difference (f(x+h) - f(x-h)) / 2h with h = 1e-5 errs by about
 * h*h = 1e-10 in relative terms, so the bound of 1e-6 is met by a right formula alone.
 */
#include "backend/cpu/check.h"
#include "backend/cpu/oracle.h"
#include "base/math.h"

typedef struct grad_bench {
    tg_ctx *ctx;
    const tg_check_options *o;
    const tg_case *c;
    size_t number;
    tg_graph graph;
    tg_oracle oracle;
    tg_node *node;
    tg_value *dy;
    tg_value *din[TG_MAX_IN];
    size_t n_run, n_failed;
} grad_bench;

enum { SAMPLES = 12 }; /* elements tried per input: enough to hit every part of a formula */

static bool build(grad_bench *b, tg_op_id op) {
    const tg_op_desc *d = tg_op_table[op];
    tg_graph *g = &b->graph;
    tg_value *in[TG_MAX_IN] = { NULL };
    for (int i = 0; i < d->n_in; i++) {
        if (b->c->in[i].dtype == TG_DTYPE_COUNT || b->c->in[i].dim[0] == 0) continue;
        in[i] = tg_input(g, "in", b->c->in[i]);
    }
    tg_value *v = tg_apply(g, op, &b->c->attr, in, d->n_in);
    if (g->status != TG_OK) return false;
    b->node = v->node;
    b->dy = tg_input(g, "dy", v->type);
    tg_value *dy[TG_MAX_OUT] = { b->dy };
    g->in_backward = true;
    d->grad(g, b->node, dy, b->din);
    return tg_graph_finish(g) == TG_OK && tg_oracle_init(&b->oracle, g) == TG_OK;
}

/* Random contents in double: normals for f32, token ids for i32. */
static void fill(grad_bench *b, const tg_value *v, uint32_t stream) {
    void *p = tg_oracle_data(&b->oracle, v);
    const size_t n = tg_type_elems(&v->type);
    if (v->type.dtype == TG_I32) {
        tg_check_fill_i32(p, n, b->number, stream, b->c->i32_below);
        return;
    }
    const float scale = b->c->scale > 0 ? b->c->scale : 1;
    for (size_t i = 0; i < n; i++) {
        float x;
        tg_check_fill_f32(&x, 1, b->number + 1000003 * i, stream, scale);
        const bool positive = stream < TG_MAX_IN && (b->c->positive >> stream & 1);
        ((double *)p)[i] = positive ? tg_fabs((double)x) : (double)x;
    }
}

/* Where a case has inputs that must fit each other, or are bytes of its own making: those of the op
 * test, made in float and widened. False: there is no memory for them. *finite: differences say
 * something of them; where a case is about a NaN they do not. */
static bool fill_prepared(grad_bench *b, bool *finite) {
    tg_args a = { .attr = b->c->attr, .rt = &b->c->rt, .workers = 1 };
    float *in[TG_MAX_IN] = { NULL };
    for (int i = 0; i < b->node->n_in; i++) {
        const tg_value *v = b->node->in[i];
        if (!v) continue;
        const size_t n = tg_type_elems(&v->type);
        a.in[i] = tg_oracle_data(&b->oracle, v);
        a.in_type[i] = v->type;
        if (v->type.dtype != TG_F32 || !tg_type_is_plain(&v->type)) continue;
        a.in[i] = in[i] = tg_arena_array(&b->graph.arena, n, sizeof *in[i]);
        if (!in[i]) return false;
        tg_check_fill_f32(in[i], n, b->number, (uint32_t)i, b->c->scale > 0 ? b->c->scale : 1);
    }
    b->c->prepare(&a);
    for (int i = 0; i < b->node->n_in; i++)
        for (size_t e = 0; in[i] && e < tg_type_elems(&a.in_type[i]); e++) {
            ((double *)tg_oracle_data(&b->oracle, b->node->in[i]))[e] = (double)in[i][e];
            *finite = *finite && tg_fabs((double)in[i][e]) < TG_INF;
        }
    return true;
}

static double weighted_sum(const grad_bench *b) {
    const double *y = tg_oracle_data(&b->oracle, &b->node->out[0]);
    const double *r = tg_oracle_data(&b->oracle, b->dy);
    double f = 0;
    for (size_t i = 0; i < tg_type_elems(&b->dy->type); i++) f += r[i] * y[i];
    return f;
}

/* The worst relative error over a sample of elements of input i. */
static double worst_error(grad_bench *b, int i) {
    double *x = tg_oracle_data(&b->oracle, b->node->in[i]);
    const double *dx = tg_oracle_data(&b->oracle, b->din[i]);
    const size_t n = tg_type_elems(&b->node->in[i]->type);
    double largest = 1e-3, worst = 0;
    for (size_t e = 0; e < n; e++) largest = tg_fabs(dx[e]) > largest ? tg_fabs(dx[e]) : largest;
    for (size_t s = 0; s < SAMPLES && s < n; s++) {
        const size_t e = n <= SAMPLES ? s : (s * 7919 + s * s * 31) % n;
        const double keep = x[e], h = 1e-5;
        x[e] = keep + h;
        tg_oracle_run(&b->oracle, &b->c->rt, b->node, b->node);
        const double up = weighted_sum(b);
        x[e] = keep - h;
        tg_oracle_run(&b->oracle, &b->c->rt, b->node, b->node);
        const double down = weighted_sum(b);
        x[e] = keep;
        const double error = tg_fabs((up - down) / (2 * h) - dx[e]) / largest;
        if (error > worst || tg_isnan(error)) worst = tg_isnan(error) ? TG_INF : error;
    }
    return worst;
}

static bool check_inputs(grad_bench *b) {
    for (int i = 0; i < b->node->n_in && !b->c->prepare; i++)
        if (b->node->in[i]) fill(b, b->node->in[i], (uint32_t)i);
    bool finite = true;
    if (b->c->prepare && !fill_prepared(b, &finite)) return false;
    if (!finite) return true;
    fill(b, b->dy, 50);
    tg_oracle_run(&b->oracle, &b->c->rt, NULL, NULL);
    for (int i = 0; i < b->node->n_in; i++) {
        if (!b->node->in[i] || !b->din[i]) continue;
        const double tol = b->c->grad_tol > 0 ? b->c->grad_tol : 1e-6;
        const double error = worst_error(b, i);
        char what[96];
        snprintf(what, sizeof what, "case %zu gradient of input %d", b->number, i);
        const tg_check check = { tg_op_table[b->node->op]->name, what, error, tol, error <= tol };
        b->n_run++;
        b->n_failed += !check.passed;
        if (b->o->report) b->o->report(b->o->user, &check);
    }
    return true;
}

/* The references are plain loops, and differences call them dozens of times: large cases add
 * nothing to a formula that holds for a dozen smaller ones. */
static bool too_large(const tg_case *c) {
    size_t elems = 0;
    for (int i = 0; i < TG_MAX_IN; i++)
        if (c->in[i].dtype != TG_DTYPE_COUNT && c->in[i].dim[0]) elems += tg_type_elems(&c->in[i]);
    return elems > 30000;
}

static tg_status check_case(tg_ctx *ctx, const tg_check_options *o, tg_op_id op, size_t number,
                            size_t *n_run, size_t *n_failed) {
    grad_bench b = { .ctx = ctx, .o = o, .c = &tg_op_table[op]->cases[number], .number = number };
    TG_TRY(tg_graph_init(&b.graph, ctx, 0));
    const bool fine = build(&b, op) && check_inputs(&b);
    tg_status status = fine ? TG_OK : ctx->code ? ctx->code : TG_E_INTERNAL;
    if (status ==
        TG_E_UNSUPPORTED) { /* an op may have no gradient for some attributes, and says so */
        tg_ctx_clear(ctx);
        status = TG_OK;
    }
    if (b.oracle.data) tg_oracle_deinit(&b.oracle);
    tg_graph_deinit(&b.graph);
    *n_run += b.n_run;
    *n_failed += b.n_failed;
    return status;
}

tg_status tg_check_op_gradients(tg_ctx *ctx, const tg_check_options *o, size_t *n_run,
                                size_t *n_failed) {
    *n_run = *n_failed = 0;
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        if (!d->grad || (o->filter && !strstr(d->name, o->filter))) continue;
        for (size_t i = 0; i < d->n_cases; i++)
            if (!too_large(&d->cases[i]))
                TG_TRY(check_case(ctx, o, (tg_op_id)op, i, n_run, n_failed));
    }
    return TG_OK;
}
