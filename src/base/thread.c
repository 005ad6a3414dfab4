/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - the worker pool: two words that waiters watch, and two counters.
 *
 *     epoch    raised by the caller to start a region       watched by the workers
 *     running  workers that have not finished the region    the last one raises `done`
 *     done     raised at the end of a region                watched by the caller
 *     arrived  workers that have come to the barrier        the last one raises `round`
 *     round    raised when a barrier opens                  watched by all that wait in it
 *
 * Waiting on a word is the only thing that can go wrong, so it is written once (wait_change and
 * change). It spins first and then sleeps on the futex. The sleeper announces itself before it
 * looks at the word for the last time, and the changer changes the word before it looks for
 * sleepers. Both are sequentially consistent, so at least one sees the other: no wake-up is lost,
 * and nobody who only spins costs the changer a system call.
 *
 * What was written before change() is visible after wait_change(): the word carries it.
 */
#include "base/thread.h"

#include "base/os/os.h"
#include "base/os/os_fp.h"
#include "base/time.h"

#include <stdatomic.h>

#define SPIN_MS           0.02 /* longer than balanced work needs, shorter than a time slice */
#define PAUSES_PER_LOOK   16   /* spins between two looks at the clock */
#define STACK_BYTES       ((size_t)1 << 20)
#define CACHE_LINES_APART 128 /* neighbours are fetched in pairs */

/* A word to wait on, alone in its cache lines wherever the pool begins. */
typedef struct signal_word {
    _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
    char apart[CACHE_LINES_APART - 2 * sizeof(uint32_t)];
} signal_word;

typedef struct counter {
    _Atomic uint32_t value;
    char apart[CACHE_LINES_APART - sizeof(uint32_t)];
} counter;

typedef struct pool_worker {
    tg_pool *pool;
    tg_os_thread thread;
    unsigned number;
} pool_worker;

struct tg_pool {
    /* Read by all, written between regions only. */
    void (*fn)(void *arg, unsigned worker);
    void *arg;
    unsigned threads;
    bool spin; /* there is a processor for each worker */
    bool stop;
    tg_mem mem;
    size_t self_bytes;
    char apart[CACHE_LINES_APART];

    signal_word epoch, done, round;
    counter running, arrived;
    pool_worker workers[]; /* [threads]; number 0 is the caller and has no thread */
};

/* -------------------------------------------------------------------------------------- waiting */

/* True once the word differs from `old`; false if that takes longer than SPIN_MS. */
static bool spin_change(const signal_word *word, uint32_t old) {
    double give_up_ms = 0; /* the clock is read only if the first spins were in vain */
    for (;;) {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(&word->value, memory_order_acquire) != old) return true;
            tg_os_pause();
        }
        const double now_ms = tg_time_ms();
        if (give_up_ms == 0)
            give_up_ms = now_ms + SPIN_MS;
        else if (now_ms >= give_up_ms)
            return false;
    }
}

/* Returns once the word differs from `old`. */
static void wait_change(const tg_pool *pool, signal_word *word, uint32_t old) {
    if (pool->spin && spin_change(word, old)) return;
    atomic_fetch_add(&word->sleepers, 1);
    while (atomic_load(&word->value) == old) tg_os_wait(&word->value, old);
    atomic_fetch_sub(&word->sleepers, 1);
}

/* Lets everybody go who waits for a change. */
static void change(signal_word *word) {
    atomic_fetch_add(&word->value, 1);
    if (atomic_load(&word->sleepers) > 0) tg_os_wake_all(&word->value);
}

/* For a word that cannot change now, because its next change needs the one who asks. */
static uint32_t current(const signal_word *word) {
    return atomic_load_explicit(&word->value, memory_order_relaxed);
}

/* -------------------------------------------------------------------------------------- regions */

/* The worker that finishes last reports; acquire and release chain all workers' writes to it. */
static void finish_region(tg_pool *pool) {
    if (atomic_fetch_sub_explicit(&pool->running.value, 1, memory_order_acq_rel) == 1)
        change(&pool->done);
}

/*
 * A worker counts the regions itself, from 0, in step with the epoch: no region can be skipped,
 * since the caller does not begin the next one before all have finished this one.
 */
static void *worker_main(void *arg) {
    const pool_worker *self = arg;
    tg_pool *pool = self->pool;
    uint32_t epoch = 0; /* of the last region that this worker took part in */
    tg_os_fp_begin();   /* a thread begins with that of the one that started it */
    for (;;) {
        wait_change(pool, &pool->epoch, epoch);
        epoch++;
        if (pool->stop) return NULL;
        pool->fn(pool->arg, self->number);
        finish_region(pool);
    }
}

/* fn, arg and running are plain writes made visible by the change of the epoch that follows. */
void tg_pool_run(tg_pool *pool, void (*fn)(void *arg, unsigned worker), void *arg) {
    if (pool->threads == 1) {
        fn(arg, 0);
        return;
    }
    const uint32_t done = current(&pool->done);
    TG_ASSERT(atomic_load(&pool->running.value) == 0);
    pool->fn = fn;
    pool->arg = arg;
    atomic_store_explicit(&pool->running.value, pool->threads, memory_order_relaxed);
    change(&pool->epoch);
    fn(arg, 0);
    /* The caller counts as a worker, so that it does not wait at all if it is the last one. */
    finish_region(pool);
    if (atomic_load_explicit(&pool->done.value, memory_order_acquire) == done)
        wait_change(pool, &pool->done, done);
}

/*
 * The last to arrive resets the counter before it opens the round: nobody can come to the next
 * barrier before the round is open. `round` cannot run ahead of a worker that is about to wait,
 * since the next round needs that worker's arrival.
 */
void tg_pool_barrier(tg_pool *pool, unsigned worker) {
    TG_ASSERT(worker < pool->threads);
    (void)worker;
    if (pool->threads == 1) return;
    const uint32_t round = current(&pool->round);
    const uint32_t before =
        atomic_fetch_add_explicit(&pool->arrived.value, 1, memory_order_acq_rel);
    if (before + 1 == pool->threads) {
        atomic_store_explicit(&pool->arrived.value, 0, memory_order_relaxed);
        change(&pool->round);
    } else {
        wait_change(pool, &pool->round, round);
    }
}

/* ----------------------------------------------------------------------------------- life cycle */

unsigned tg_pool_threads(const tg_pool *pool) { return pool->threads; }

/* Ends the first n_started - 1 threads (worker 0 has none) and gives the memory back. */
static void end_pool(tg_pool *pool, unsigned n_started) {
    pool->stop = true;
    change(&pool->epoch);
    for (unsigned i = 1; i < n_started; i++) tg_os_thread_join(pool->workers[i].thread);
    const tg_mem mem = pool->mem;
    tg_free(&mem, pool, pool->self_bytes);
}

/* If a thread cannot be started, those before it are ended as in tg_pool_free: they wait for their
 * first region like all others. */
tg_status tg_pool_new(tg_ctx *ctx, unsigned threads, tg_pool **out) {
    *out = NULL;
    if (threads < 1 || threads > TG_POOL_THREADS_MAX)
        return tg_fail(ctx, TG_E_ARG, "threads: want 1..%u, have %u", TG_POOL_THREADS_MAX, threads);
    const size_t self_bytes = sizeof(tg_pool) + threads * sizeof(pool_worker);
    tg_pool *pool = tg_alloc(&ctx->mem, self_bytes);
    if (!pool) return tg_fail_memory(ctx, "thread pool", self_bytes);
    tg_os_cpus cpus;
    tg_os_cpus_get(&cpus);
    pool->threads = threads;
    pool->spin = threads <= cpus.usable;
    pool->mem = ctx->mem;
    pool->self_bytes = self_bytes;
    for (unsigned i = 1; i < threads; i++) {
        pool->workers[i] = (pool_worker) { .pool = pool, .number = i };
        if (!tg_os_thread_start(&pool->workers[i].thread, STACK_BYTES, worker_main,
                                &pool->workers[i])) {
            end_pool(pool, i);
            return tg_fail(ctx, TG_E_MEMORY, "threads: want %u, have room for %u only", threads, i);
        }
    }
    *out = pool;
    return TG_OK;
}

void tg_pool_free(tg_pool *pool) {
    if (pool) end_pool(pool, pool->threads);
}
