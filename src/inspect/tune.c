/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c - times all that can compute each product of a training step, and keeps the fastest.
 *
 * A gradient plan has few different products, each in every layer. In a round the plan is compiled
 * once for each number of a candidate, all products taking theirs at once, and runs with the GPU's
 * clock read at every step:
 *
 *     candidate     0 1 2 3 4 | 0 1 2 3 4 | ...     rounds, so that all meet the same clock rates
 *
 * Of a product's candidates the one with the least median is kept, if the rule's is slower by more
 * than what is noise. Not in WebAssembly, where nothing could be kept.
 */
#include "inspect/tune.h"

#include "backend/webgpu/webgpu.h"
#include "base/str.h"
#include "training/train.h"

enum { CANDIDATES = 12, ROUNDS = 15 };
static const double noise = 1.03;

typedef struct product {
    const tg_op_desc *d;
    tg_args args[TG_MAX_MEMBERS];
    unsigned n_members;
    size_t n_candidates, rule, count; /* count: steps of it */
    double ms[CANDIDATES][ROUNDS];
} product;

typedef struct tuning {
    tg_trainer *t;
    tg_plan *plan;
    tg_gpu_tiles *tiles;
    product *products; /* [n_steps], n are there */
    size_t n;
    size_t *product_of; /* [n_steps] from 1 on; 0: none */
    double *step_ms;    /* [n_steps] */
} tuning;

static tg_status run_plan(tuning *u, double *step_ms) {
    tg_trainer *t = u->t;
    tg_scalars rt = { .step = (int32_t)(t->updates + 1) };
    TG_TRY(tg_train_fill(t, t->step, 0, &rt));
    tg_run run = { .step_ms = step_ms };
    return tg_backend_run(t->ctx->backend, u->plan, &rt, &run);
}

static bool is_same(const product *p, const tg_op_desc *d, const tg_args *a, unsigned n_members) {
    if (p->d != d || p->n_members != n_members) return false;
    for (unsigned m = 0; m < n_members; m++)
        if (p->args[m].attr.i[0] != a[m].attr.i[0] ||
            memcmp(p->args[m].in_type, a[m].in_type, 2 * sizeof a->in_type[0]) != 0)
            return false;
    return true;
}

static size_t count_candidates(product *p, const tg_shader *by_rule) {
    const tg_shader *s;
    size_t n = 0;
    while (n < CANDIDATES && (s = tg_gpu_tiles_candidate(p->d, p->args, p->n_members, n)) != NULL) {
        if (s == by_rule) p->rule = n;
        n++;
    }
    return n;
}

/* Of a plan that has run, as it was compiled. */
static void list_products(tuning *u) {
    u->n = 0;
    memset(u->product_of, 0, u->plan->n_steps * sizeof *u->product_of);
    for (size_t s = 0; s < u->plan->n_steps; s++) {
        product p = { .d = tg_op_table[u->plan->steps[s].node->op], .count = 1 };
        const tg_shader *shader;
        p.n_members = tg_webgpu_unit(u->t->ctx->backend, u->plan, s, p.args, &shader);
        size_t i = 0;
        while (i < u->n && !is_same(&u->products[i], p.d, p.args, p.n_members)) i++;
        if (i == u->n) {
            p.n_candidates = p.n_members ? count_candidates(&p, shader) : 0;
            if (p.n_candidates < 2) continue;
            u->products[u->n++] = p;
        } else {
            u->products[i].count++;
        }
        u->product_of[s] = i + 1;
    }
}

static void choose(tuning *u, product *p, size_t candidate) {
    const char *name = "";
    if (candidate < p->n_candidates && candidate != p->rule)
        name = tg_gpu_tiles_candidate(p->d, p->args, p->n_members, candidate)->name;
    tg_gpu_tiles_put(u->tiles, p->d, p->args, p->n_members, name);
    u->plan->version++; /* it is compiled anew */
}

static tg_status time_candidate(tuning *u, size_t candidate, int round) {
    for (size_t i = 0; i < u->n; i++) choose(u, &u->products[i], candidate);
    memset(u->step_ms, 0, u->plan->n_steps * sizeof *u->step_ms);
    TG_TRY(run_plan(u, NULL));
    TG_TRY(run_plan(u, u->step_ms));
    for (size_t i = 0; i < u->n; i++)
        if (candidate < u->products[i].n_candidates) u->products[i].ms[candidate][round] = 0;
    for (size_t s = 0; s < u->plan->n_steps; s++) {
        if (!u->product_of[s]) continue;
        product *p = &u->products[u->product_of[s] - 1];
        if (candidate < p->n_candidates)
            p->ms[candidate][round] += u->step_ms[s] / (double)p->count;
    }
    return TG_OK;
}

static double median(double *x, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k] < x[k - 1]; k--) {
            const double keep = x[k];
            x[k] = x[k - 1];
            x[k - 1] = keep;
        }
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void keep_best(tuning *u, product *p, int rounds, tg_tile_fn report, void *user) {
    char what[200] = "";
    size_t best = p->rule;
    const double rule_ms = median(p->ms[p->rule], rounds);
    double best_ms = rule_ms / noise;
    for (size_t c = 0; c < p->n_candidates; c++) {
        if (c == p->rule) continue;
        const double ms = median(p->ms[c], rounds);
        if (ms < best_ms) best = c;
        if (ms < best_ms) best_ms = ms;
    }
    choose(u, p, best);
    const tg_type *a = p->args[0].in_type;
    tg_str_append(what, sizeof what, "%s %zux%zu %zux%zu, trans %d, %u in one", p->d->name,
                  tg_type_rows(&a[0]), tg_type_cols(&a[0]), tg_type_rows(&a[1]),
                  tg_type_cols(&a[1]), (int)p->args[0].attr.i[0], p->n_members);
    const tg_tile_row row = {
        .what = what,
        .rule = tg_gpu_tiles_candidate(p->d, p->args, p->n_members, p->rule)->name,
        .best = tg_gpu_tiles_candidate(p->d, p->args, p->n_members, best)->name,
        .rule_ms = rule_ms,
        .best_ms = best == p->rule ? rule_ms : best_ms,
        .count = (int32_t)p->count
    };
    report(user, &row);
}

static void forget(tuning *u) {
    for (size_t i = 0; i < u->n; i++)
        tg_gpu_tiles_put(u->tiles, u->products[i].d, u->products[i].args, u->products[i].n_members,
                         "");
    u->plan->version++;
}

/* Twice it is run to see what it became: what was found another time is not the rule. */
static tg_status tune(tuning *u, int rounds, tg_tile_fn report, void *user) {
    size_t most = 0;
    TG_TRY(run_plan(u, NULL));
    list_products(u);
    forget(u);
    TG_TRY(run_plan(u, NULL));
    list_products(u);
    for (size_t i = 0; i < u->n; i++)
        if (u->products[i].n_candidates > most) most = u->products[i].n_candidates;
    for (int round = 0; round < rounds; round++)
        for (size_t c = 0; c < most; c++) TG_TRY(time_candidate(u, c, round));
    for (size_t i = 0; i < u->n; i++) keep_best(u, &u->products[i], rounds, report, user);
    tg_gpu_tiles_put_tuned(u->tiles);
    return TG_OK;
}

tg_status tg_train_tune(tg_trainer *t, bool software, int rounds, tg_tile_fn report, void *user) {
    tg_context *ctx = t->ctx;
    const tg_mem *mem = &ctx->err.mem;
    tg_gpu_facts gpu;
    TG_TRY(tg_runtime_gpu(ctx, &gpu));
    if (gpu.software && !software)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "GPU %s: it is software, computes on the CPU, and is not timed",
                       gpu.adapter);
    tuning u = { .t = t, .plan = &t->plans.grad, .tiles = tg_webgpu_tiles(ctx->backend) };
    if (!u.tiles)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "tiles: want the lever tuned_tiles and a folder of a cache to keep them in, "
                       "have not both (TG_GPU_CACHE, XDG_CACHE_HOME, HOME)");
    const size_t n = u.plan->n_steps;
    u.products = tg_alloc(mem, n * sizeof *u.products);
    u.product_of = tg_alloc(mem, n * sizeof *u.product_of);
    u.step_ms = tg_alloc(mem, n * sizeof *u.step_ms);
    t->ahead.step = 0; /* gradients are overwritten */
    tg_status s = u.products && u.product_of && u.step_ms
                      ? TG_OK
                      : tg_fail_memory(&ctx->err, "tuning", n * sizeof *u.products);
    if (s == TG_OK) s = tune(&u, rounds < ROUNDS ? rounds : ROUNDS, report, user);
    if (s != TG_OK) forget(&u); /* half a measurement is none */
    tg_free(mem, u.products, n * sizeof *u.products);
    tg_free(mem, u.product_of, n * sizeof *u.product_of);
    tg_free(mem, u.step_ms, n * sizeof *u.step_ms);
    return s;
}
