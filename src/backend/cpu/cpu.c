/*
 * cpu.c - walks a plan: every worker goes through the whole list, and they share out the units of
 * each phase by a counter.
 *
 *   worker 0   [units 0 1 . 3]|[serial ][serial ]|[units ...
 *   worker 1   [units . . 2 .]|                  |[units ...
 *                             barrier            barrier
 *
 * Invariants. A phase of one unit belongs to worker 0, so that between two of them nobody has to
 * wait. Which worker takes a unit changes from run to run; results do not, since no unit depends on
 * another of its phase. Nothing is allocated and no lock is taken while a plan runs.
 */
#include <stdatomic.h>

#include "backend/cpu/cpu.h"
#include "base/time.h"

struct tg_backend {
    tg_ctx *ctx;
    tg_pool *pool;
    unsigned workers;
    atomic_size_t *claimed; /* units handed out, by step and phase */
    size_t n_claimed;
};

/* One call of tg_backend_run, shared by the workers. */
typedef struct walk {
    tg_backend *b;
    tg_plan *plan;
    tg_run *run;
    const tg_scalars *rt;
    size_t begin, end;
    atomic_size_t halt; /* the step at which worker 0 decided to stop; SIZE_MAX: go on */
    tg_status reason;
} walk;

tg_status tg_cpu_new(tg_ctx *ctx, tg_pool *pool, tg_backend **out) {
    tg_backend *b = tg_alloc(&ctx->mem, sizeof *b);
    *out = b;
    if (!b) return tg_fail_memory(ctx, "CPU backend", sizeof *b);
    *b = (tg_backend) { .ctx = ctx, .pool = pool, .workers = tg_pool_threads(pool) };
    return TG_OK;
}

void tg_cpu_free(tg_backend *b) {
    if (!b) return;
    const tg_mem mem = b->ctx->mem;
    tg_free(&mem, b->claimed, b->n_claimed * sizeof *b->claimed);
    tg_free(&mem, b, sizeof *b);
}

/* Room for the counters of the largest plan seen; a plan's first run is outside the hot path. */
static tg_status reserve_counters(tg_backend *b, size_t n) {
    if (n <= b->n_claimed) return TG_OK;
    tg_free(&b->ctx->mem, b->claimed, b->n_claimed * sizeof *b->claimed);
    b->n_claimed = 0;
    b->claimed = tg_alloc(&b->ctx->mem, n * sizeof *b->claimed);
    if (!b->claimed) return tg_fail_memory(b->ctx, "counters of a plan", n * sizeof *b->claimed);
    b->n_claimed = n;
    return TG_OK;
}

/* The rows of this call, in every type that has dynamic rows. */
static void set_rows(tg_plan *plan, size_t rows) {
    for (size_t i = 0; i < plan->n_steps; i++) {
        tg_step *s = &plan->steps[i];
        for (int k = 0; k < TG_MAX_IN; k++)
            if (s->dynamic_in >> k & 1) s->args.in_type[k].dim[0] = rows;
        for (int k = 0; k < TG_MAX_OUT; k++)
            if (s->dynamic_out >> k & 1) s->args.out_type[k].dim[0] = rows;
    }
}

static tg_args args_of(const walk *w, size_t step, unsigned worker) {
    const tg_step *s = &w->plan->steps[step];
    tg_args a = s->args;
    a.rt = w->rt;
    a.acc = w->rt->accumulate ? s->acc_mask : 0;
    a.local = w->plan->memory + w->plan->workspace_bytes + w->plan->scratch_bytes +
              worker * w->plan->local_bytes;
    return a;
}

static void share_units(walk *w, const tg_phase *phase, const tg_args *a, size_t units,
                        size_t counter) {
    size_t piece = units / ((size_t)w->b->workers * 8);
    if (piece == 0) piece = 1;
    for (;;) {
        const size_t begin =
            atomic_fetch_add_explicit(&w->b->claimed[counter], piece, memory_order_relaxed);
        if (begin >= units) return;
        phase->run(a, begin, begin + piece < units ? begin + piece : units);
    }
}

/* Worker 0 alone: is this the place to stop? */
static void decide(walk *w, size_t step) {
    const tg_run *r = w->run;
    if (step == w->begin) return; /* a call always makes progress */
    if (r->cancel && r->cancel(r->cancel_user))
        w->reason = TG_STOPPED;
    else if (r->deadline_ms > 0 && tg_time_ms() >= r->deadline_ms)
        w->reason = TG_PENDING;
    else
        return;
    atomic_store_explicit(&w->halt, step, memory_order_relaxed);
}

static bool halted(walk *w, size_t step) {
    return atomic_load_explicit(&w->halt, memory_order_relaxed) == step;
}

static void walk_plan(void *arg, unsigned worker) {
    walk *w = arg;
    const bool alone = w->b->workers == 1;
    bool was_serial = true; /* the caller did what came before */
    for (size_t i = w->begin; i < w->end; i++) {
        const tg_variant *v = w->plan->steps[i].variant;
        const tg_args a = args_of(w, i, worker);
        const double start = worker == 0 && w->run->step_ms ? tg_time_ms() : 0;
        for (int p = 0; p < TG_MAX_PHASES && v->phase[p].run; p++) {
            const size_t units = v->phase[p].units(&a);
            const bool serial = alone || units <= 1;
            const bool meet = !(serial && was_serial);
            if (p == 0 && worker == 0 && (meet || alone)) decide(w, i);
            if (meet) tg_pool_barrier(w->b->pool, worker);
            if (p == 0 && (meet || alone) && halted(w, i)) return;
            if (!serial)
                share_units(w, &v->phase[p], &a, units, i * TG_MAX_PHASES + (size_t)p);
            else if (worker == 0 && units > 0)
                v->phase[p].run(&a, 0, units);
            was_serial = serial;
        }
        if (worker == 0 && w->run->step_ms) w->run->step_ms[i] += tg_time_ms() - start;
    }
}

tg_status tg_backend_run(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    TG_TRY(reserve_counters(b, plan->n_steps * TG_MAX_PHASES));
    walk w = { .b = b,
               .plan = plan,
               .run = run,
               .rt = rt,
               .begin = run->next,
               .end = run->end ? run->end : plan->n_steps };
    atomic_init(&w.halt, SIZE_MAX);
    if (w.begin >= w.end) return TG_OK;
    if (plan->dynamic) set_rows(plan, (size_t)rt->rows);
    for (size_t i = w.begin * TG_MAX_PHASES; i < w.end * TG_MAX_PHASES; i++)
        atomic_init(&b->claimed[i], 0);
    tg_pool_run(b->pool, walk_plan, &w);
    const size_t halt = atomic_load_explicit(&w.halt, memory_order_relaxed);
    run->next = halt != SIZE_MAX ? halt : w.end;
    return halt != SIZE_MAX ? w.reason : TG_OK;
}

void tg_cpu_run_step_alone(const tg_variant *variant, tg_args *a, size_t chunk) {
    for (int p = 0; p < TG_MAX_PHASES && variant->phase[p].run; p++) {
        const size_t units = variant->phase[p].units(a);
        const size_t piece = chunk ? chunk : units;
        for (size_t u = 0; u < units; u += piece)
            variant->phase[p].run(a, u, u + piece < units ? u + piece : units);
    }
}
