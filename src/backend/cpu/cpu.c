/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu.c - walks a plan: every worker goes through the whole list, and they share out the units of
 * each phase by counters.
 *
 *   worker 0   [units 0 1 . 3]|[serial ][serial ]|[units ...
 *   worker 1   [units . . 2 .]|                  |[units ...
 *                             barrier            barrier
 *
 * Each worker begins with a range of its own, the same part of every phase, and then helps the
 * others: so it finds in its caches what it wrote itself a step before. Where the processors do not
 * share a cache, that is three hundredths of a training step (xl, two cores on two dies).
 *
 * Invariants. A phase of one unit belongs to worker 0, and so does a step that is not worth sharing
 * (plan/share.c), so that between two of them nobody has to wait. Which worker takes a unit changes
 * from run to run; results do not, since no unit depends on another of its phase. Nothing is
 * allocated and no lock is taken while a plan runs.
 *
 * A run with a deadline or a cancel is watched. Worker 0 alone looks at the clock: where a step
 * begins and, in phases that take long, after each piece of units that it has done. Those have one
 * range for all, so that what is done is a beginning. To stop inside one it takes the counter away;
 * pieces that were handed out are finished, and the first unit that was not is where the run goes
 * on:
 *
 *     units     0 1 | 2 3 | 4 5 | 6 7 8 9 ...      the counter is 6, then TAKEN: go on with unit 6
 *     worker     0     1     0
 *                               ^ the time is up
 *
 * How long a unit takes is measured on the way and kept in the plan: so pieces are short enough to
 * stop soon, and long enough to be worth it, on any machine.
 */
#include <stdatomic.h>

#include "backend/cpu/cpu.h"
#include "base/time.h"
#include "ops/kernel.h"

typedef struct cpu {
    tg_backend base;
    tg_ctx *ctx;
    tg_pool *pool;
    unsigned workers;
    /* By step and phase: units handed out of each worker's range, then 1 if one is for all. */
    atomic_size_t *claimed;
    size_t n_claimed;
} cpu;

/* A place in a plan: units [0, unit) of this phase, and all before it, are done. */
typedef struct place {
    size_t step;
    unsigned phase;
    size_t unit;
} place;

/* One call of run, shared by the workers. */
typedef struct walk {
    cpu *b;
    tg_plan *plan;
    tg_run *run;
    const tg_scalars *rt;
    place begin;
    size_t end;   /* step */
    bool watched; /* there is somebody who may want to stop it */
    /* Set by worker 0 where it stops. Everybody returns who enters a phase of that mark or a later
     * one; SIZE_MAX: go on. */
    atomic_size_t halt;
    place at; /* where to go on */
    tg_status reason;
} walk;

/* Marks are passed in rising order: before a phase, inside it, before the next. The difference is
 * for the worker who is late, and enters a phase in which worker 0 has stopped already: there is a
 * barrier to come, and it must be passed by all. */
static size_t mark_before(const place *p) { return 2 * (p->step * TG_MAX_PHASES + p->phase); }
static size_t mark_inside(const place *p) { return mark_before(p) + 1; }

/* Room for the counters of the largest plan seen; a plan's first run is outside the hot path. */
static tg_status reserve_counters(cpu *b, size_t n) {
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

/* What was planned for the most rows is looked at again when a call has another number of them. */
static void take_rows(tg_plan *plan, const tg_scalars *rt) {
    const size_t rows = (size_t)rt->rows;
    if (!plan->dynamic || plan->shared_rows == rows) return;
    set_rows(plan, rows);
    tg_plan_share(plan, rt);
    plan->shared_rows = rows;
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

/* --------------------------------------------------------------------------------------- stopping
 */

/* Of a counter that was taken away: above any number of units, and far from overflowing. */
#define TAKEN (SIZE_MAX / 2)

/* Worker 0 alone: is this a moment to stop? */
static bool should_stop(walk *w, double now_ms) {
    const tg_run *r = w->run;
    if (r->cancel && r->cancel(r->cancel_user))
        w->reason = TG_STOPPED;
    else if (r->deadline_ms > 0 && now_ms >= r->deadline_ms)
        w->reason = TG_PENDING;
    else
        return false;
    return true;
}

static void halt(walk *w, size_t mark, place at) {
    w->at = at;
    atomic_store_explicit(&w->halt, mark, memory_order_relaxed);
}

/* For all workers, behind a barrier: then it is what worker 0 wrote before that. */
static bool halted(walk *w, const place *here) {
    return mark_before(here) >= atomic_load_explicit(&w->halt, memory_order_relaxed);
}

/* Worker 0 alone, before a step. A call always makes progress: it does not stop where it began. A
 * stop in the phase before stands. */
static void decide(walk *w, const place *here) {
    if (!w->watched || here->step == w->begin.step || halted(w, here)) return;
    if (should_stop(w, tg_time_ms())) halt(w, mark_before(here), *here);
}

/* ---------------------------------------------------------------------------------------- sharing
 */

/* A piece of a long phase takes about PIECE_NS. A phase that takes less than QUIET_NS in all is not
 * watched. Units of unknown length are handed out one by one, and to worker 0 in pieces that
 * double, until LEARN_MS tell how long they take: a browser's clock may have steps of 0.1 ms. */
#define PIECE_NS 4e6
#define QUIET_NS 5e6
#define LEARN_MS 0.5

/* Units [first, first + n) of a phase, of which `taken` are handed out. */
typedef struct range {
    atomic_size_t *taken;
    size_t first, n;
    unsigned sharers; /* workers who take from it at any time */
} range;

/* Before the barrier, worker 0 writes here whether the phase has one range for all. */
static atomic_size_t *whole_of(const walk *w, const place *here) {
    const size_t stride = w->b->workers + 1;
    return &w->b->claimed[(here->step * TG_MAX_PHASES + here->phase + 1) * stride - 1];
}
static range range_of(const walk *w, const place *here, size_t units, unsigned worker) {
    const size_t workers = w->b->workers;
    atomic_size_t *const whole = whole_of(w, here);
    if (atomic_load_explicit(whole, memory_order_relaxed))
        return (range) { whole - workers, 0, units, w->b->workers };
    const size_t first = units / workers * worker + units % workers * worker / workers;
    const size_t end = units / workers * (worker + 1) + units % workers * (worker + 1) / workers;
    return (range) { whole - workers + worker, first, end - first, 1 };
}

/* Units to be taken at once by one who finds so many `left`: an eighth of a worker's share, later a
 * quarter of its share of what is left. So the last pieces are small, and all end together even if
 * one of them was slower. At most `most`. */
static size_t piece_of(const walk *w, const range *r, size_t left, double most) {
    size_t even = r->n;
    if (w->b->workers > 1) even = tg_min_size(r->n / (r->sharers * 8), left / (r->sharers * 4));
    const size_t piece = (double)even > most ? (size_t)most : even;
    return piece ? piece : 1;
}

/* Takes the next piece; false if there is none, or if the counter was taken away. */
static bool take_piece(const walk *w, const range *r, double most, size_t *begin, size_t *end) {
    size_t taken = atomic_load_explicit(r->taken, memory_order_relaxed), next;
    do {
        if (taken >= r->n) return false;
        next = taken + tg_min_size(piece_of(w, r, r->n - taken, most), r->n - taken);
    } while (!atomic_compare_exchange_weak_explicit(r->taken, &taken, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    *begin = r->first + taken;
    *end = r->first + next;
    return true;
}

/* A cost of 0 is an unknown one, so what takes no time at all costs 1 ns. */
static void learn(atomic_uint *unit_ns, double ms, size_t units) {
    const double ns = ms * 1e6 / (double)units;
    const unsigned cost = ns < 1 ? 1 : ns > UINT_MAX ? UINT_MAX : (unsigned)ns;
    atomic_store_explicit(unit_ns, cost, memory_order_relaxed);
}

/* The share of worker 0 in a watched phase, until there is nothing left or it is time to stop. */
static void watch_units(walk *w, place here, const tg_args *a, size_t units) {
    tg_step *s = &w->plan->steps[here.step];
    const tg_phase *phase = &s->variant->phase[here.phase];
    atomic_uint *unit_ns = &s->unit_ns[here.phase];
    const unsigned known = atomic_load_explicit(unit_ns, memory_order_relaxed);
    const range all = range_of(w, &here, units, 0);
    const double start = tg_time_ms();
    double now = start;
    double most = known ? PIECE_NS / known : 1;
    size_t begin, end, done = 0;
    while (take_piece(w, &all, most, &begin, &end)) {
        phase->run(a, begin, end);
        done += end - begin;
        now = tg_time_ms();
        if (should_stop(w, now)) {
            here.unit = atomic_exchange_explicit(all.taken, TAKEN, memory_order_relaxed);
            if (here.unit > units) here.unit = units;
            halt(w, mark_inside(&here), here);
            break;
        }
        if (!known && now - start < LEARN_MS) most *= 2;
    }
    if (done > 0) learn(unit_ns, now - start, done);
}

/* Worker 0 alone, before a phase: does it take so long that it must be possible to stop inside, or
 * does it go on where it was stopped? */
static bool is_whole(const walk *w, const place *here, size_t units) {
    const tg_step *s = &w->plan->steps[here->step];
    const double cost = atomic_load_explicit(&s->unit_ns[here->phase], memory_order_relaxed);
    const bool quiet = cost > 0 && cost * (double)units < QUIET_NS * w->b->workers;
    return here->unit > 0 || (w->watched && !quiet);
}

static void share_units(walk *w, const place *here, const tg_args *a, size_t units,
                        unsigned worker) {
    const tg_step *s = &w->plan->steps[here->step];
    const bool whole = atomic_load_explicit(whole_of(w, here), memory_order_relaxed);
    double most = (double)units;
    if (whole && w->watched) {
        if (worker == 0) {
            watch_units(w, *here, a, units);
            return;
        }
        const double cost = atomic_load_explicit(&s->unit_ns[here->phase], memory_order_relaxed);
        most = cost > 0 ? PIECE_NS / cost : 1;
    }
    const unsigned workers = w->b->workers;
    for (unsigned i = 0; i < (whole ? 1 : workers); i++) {
        const range r = range_of(w, here, units, (worker + i) % workers);
        size_t begin, end;
        while (take_piece(w, &r, most, &begin, &end))
            s->variant->phase[here->phase].run(a, begin, end);
    }
}

/* ---------------------------------------------------------------------------------------- walking
 */

/* The phases of a step, from here->phase on; false: the walk is over. *was_serial: nobody but
 * worker 0 has anything to do with what came before, so it need not be waited for. */
static bool walk_step(walk *w, place *here, unsigned worker, bool *was_serial) {
    const tg_step *s = &w->plan->steps[here->step];
    const tg_variant *v = s->variant;
    const tg_args a = args_of(w, here->step, worker);
    const bool alone = w->b->workers == 1 || w->plan->alone;
    for (; here->phase < TG_MAX_PHASES && v->phase[here->phase].run; here->phase++) {
        const size_t units = v->phase[here->phase].units(&a);
        const bool serial = alone || s->alone || units <= 1;
        const bool meet = !(serial && *was_serial);
        if (here->phase == 0 && worker == 0 && (meet || alone)) decide(w, here);
        if (worker == 0 && (!serial || alone)) {
            atomic_store_explicit(whole_of(w, here), alone || is_whole(w, here, units),
                                  memory_order_relaxed);
        }
        if (meet) tg_pool_barrier(w->b->pool, worker);
        if ((meet || alone) && halted(w, here)) return false;
        if (!serial || (alone && w->watched))
            share_units(w, here, &a, units, worker);
        else if (worker == 0 && here->unit < units)
            v->phase[here->phase].run(&a, here->unit, units);
        here->unit = 0;
        *was_serial = serial;
    }
    return true;
}

/* The caller did what came before, so it counts as serial. */
static void walk_plan(void *arg, unsigned worker) {
    walk *w = arg;
    bool was_serial = true;
    place here = w->begin;
    for (; here.step < w->end; here.step++, here.phase = 0) {
        double *const step_ms = worker == 0 ? w->run->step_ms : NULL;
        const double start = step_ms ? tg_time_ms() : 0;
        if (!walk_step(w, &here, worker, &was_serial)) return;
        if (step_ms) step_ms[here.step] += tg_time_ms() - start;
    }
}

/* The counter of the phase in which the run goes on begins with the unit that it goes on with. */
static tg_status run_plan(tg_backend *base, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    cpu *b = (cpu *)base;
    const size_t stride = (size_t)b->workers + 1;
    TG_TRY(reserve_counters(b, plan->n_steps * TG_MAX_PHASES * stride));
    walk w = { .b = b,
               .plan = plan,
               .run = run,
               .rt = rt,
               .begin = { run->next, run->phase, run->unit },
               .end = run->end ? run->end : plan->n_steps,
               .watched = run->cancel || run->deadline_ms > 0 };
    atomic_init(&w.halt, SIZE_MAX);
    if (w.begin.step >= w.end) return TG_OK;
    take_rows(plan, rt);
    for (size_t i = w.begin.step * TG_MAX_PHASES * stride; i < w.end * TG_MAX_PHASES * stride; i++)
        atomic_init(&b->claimed[i], 0);
    /* Units behind a beginning that is done: then the phase has one range for all. */
    atomic_init(&b->claimed[(w.begin.step * TG_MAX_PHASES + w.begin.phase) * stride], w.begin.unit);
    if (plan->alone)
        walk_plan(&w, 0);
    else
        tg_pool_run(b->pool, walk_plan, &w);
    const bool stopped = atomic_load_explicit(&w.halt, memory_order_relaxed) != SIZE_MAX;
    const place at = stopped ? w.at : (place) { .step = w.end };
    run->next = at.step;
    run->phase = at.phase;
    run->unit = at.unit;
    return stopped ? w.reason : TG_OK;
}

static void free_cpu(tg_backend *base) {
    cpu *b = (cpu *)base;
    const tg_mem mem = b->ctx->mem;
    tg_free(&mem, b->claimed, b->n_claimed * sizeof *b->claimed);
    tg_free(&mem, b, sizeof *b);
}

tg_status tg_cpu_new(tg_ctx *ctx, tg_pool *pool, tg_backend **out) {
    cpu *b = tg_alloc(&ctx->mem, sizeof *b);
    *out = NULL;
    if (!b) return tg_fail_memory(ctx, "CPU backend", sizeof *b);
    *b = (cpu) { .base = { .run = run_plan,
                           .free = free_cpu,
                           .unwanted_levers = TG_LEVER_BIT(fused_decode) },
                 .ctx = ctx,
                 .pool = pool,
                 .workers = tg_pool_threads(pool) };
    *out = &b->base;
    return TG_OK;
}

void tg_cpu_run_step_alone(const tg_variant *variant, tg_args *a, size_t chunk) {
    for (int p = 0; p < TG_MAX_PHASES && variant->phase[p].run; p++) {
        const size_t units = variant->phase[p].units(a);
        const size_t piece = chunk ? chunk : units;
        for (size_t u = 0; u < units; u += piece)
            variant->phase[p].run(a, u, u + piece < units ? u + piece : units);
    }
}
