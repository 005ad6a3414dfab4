/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the pool of workers that every parallel loop runs on.
 *
 * Made once, used for ever: a region allocates nothing and starts no thread.
 *
 *     caller, worker 0   --run--[ fn ]--barrier--[ fn ]--done-->
 *     worker 1           --wait-[ fn ]--barrier--[ fn ]--wait...
 *     worker 2           --wait-[ fn ]--barrier--[ fn ]--wait...
 *
 * With one thread nothing of all this happens: run calls fn, barrier returns.
 *
 * How the work is divided is up to fn, from its worker number alone, so results cannot depend on
 * who came first. A waiting worker spins for at most 20 us and then sleeps in the kernel; with more
 * workers than processors it sleeps at once, since spinning would hold up the one it waits for.
 */
#ifndef TG_BASE_THREAD_H
#define TG_BASE_THREAD_H

#include "base/err.h"
#include "base/libc.h"

#define TG_POOL_THREADS_MAX 256u

typedef struct tg_pool tg_pool;

/*
 * threads: 1..TG_POOL_THREADS_MAX, the caller included: threads - 1 are started, with all signals
 * blocked (a signal reaches the main thread) and a stack of 1 MiB.
 * Errors: TG_E_ARG; TG_E_MEMORY, also if the system refuses a thread. *out is NULL then.
 */
tg_status tg_pool_new(tg_ctx *ctx, unsigned threads, tg_pool **out);

/* Ends the threads. NULL is fine. Not inside a region. */
void tg_pool_free(tg_pool *pool);

unsigned tg_pool_threads(const tg_pool *pool);

/*
 * Every worker calls fn(arg, worker) once, worker in [0, threads); the caller is worker 0. Returns
 * when all are done; all they wrote is visible then. One region at a time; fn must not call this.
 */
void tg_pool_run(tg_pool *pool, void (*fn)(void *arg, unsigned worker), void *arg);

/*
 * Inside a region: returns when all workers have come here. What any of them wrote before it, all
 * of them see after it. Every worker must pass the same barriers.
 */
void tg_pool_barrier(tg_pool *pool, unsigned worker);

#endif
