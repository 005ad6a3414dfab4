/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_thread.c - the worker pool: everybody runs once, barriers hold, nothing is lost when
 * workers sleep, signals stay with the main thread, and starting it fails cleanly. Also run under
 * the thread sanitizer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/os/os.h"
#include "base/thread.h"
#include "fail_alloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_THREADS = 16 };

static const unsigned thread_counts[] = { 1, 2, 3, 4, 7, MAX_THREADS };
#define N_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

static tg_pool *new_pool(unsigned threads) {
    tg_ctx ctx;
    tg_pool *pool;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    if (tg_pool_new(&ctx, threads, &pool)) fail_msg("%s", ctx.message);
    assert_int_equal(tg_pool_threads(pool), threads);
    return pool;
}

static void sleep_us(long us) {
    const struct timespec time = { .tv_sec = 0, .tv_nsec = us * 1000 };
    nanosleep(&time, NULL);
}

/* Plain memory on purpose: if the pool orders accesses wrongly, the sanitizer says so. */
typedef struct shared {
    tg_pool *pool;
    unsigned threads;
    unsigned rounds;
    unsigned ran[MAX_THREADS];
    unsigned long sums[MAX_THREADS];
    unsigned long total;
    bool uneven;
    bool wrong;
} shared;

/* ------------------------------------------------------------------------------------- regions */

static void count(void *arg, unsigned worker) {
    shared *s = arg;
    s->ran[worker]++;
    if (s->uneven && (s->ran[worker] + worker) % 5 == 0) sleep_us(60);
}

static void every_worker_runs_once(void **state) {
    (void)state;
    for (size_t i = 0; i < N_COUNTS; i++) {
        const unsigned threads = thread_counts[i];
        shared s = { .pool = new_pool(threads), .threads = threads };
        for (unsigned region = 1; region <= 500; region++) {
            s.uneven = region > 400; /* longer than anybody spins: sleepers have to be woken */
            tg_pool_run(s.pool, count, &s);
            for (unsigned w = 0; w < threads; w++) assert_int_equal(s.ran[w], region);
        }
        tg_pool_free(s.pool);
    }
    tg_pool_free(NULL);
}

/* The caller pauses between regions, so that all workers have gone to sleep. */
static void regions_wake_sleepers(void **state) {
    (void)state;
    shared s = { .pool = new_pool(4), .threads = 4 };
    for (unsigned region = 1; region <= 50; region++) {
        sleep_us(300);
        tg_pool_run(s.pool, count, &s);
        for (unsigned w = 0; w < 4; w++) assert_int_equal(s.ran[w], region);
    }
    tg_pool_free(s.pool);
}

/* ------------------------------------------------------------------------------------ barriers */

/*
 * Every round, each worker writes its own sum, all meet, and one of them (another one each round)
 * adds the sums of all; all meet again and check the total. Any barrier that lets somebody through
 * early gives a wrong total.
 */
static void sum_rounds(void *arg, unsigned worker) {
    shared *s = arg;
    for (unsigned round = 0; round < s->rounds; round++) {
        s->sums[worker] = (unsigned long)round * (worker + 1);
        if (s->uneven && (round + worker) % 7 == 0) sleep_us(50);
        tg_pool_barrier(s->pool, worker);
        if (worker == round % s->threads) {
            s->total = 0;
            for (unsigned w = 0; w < s->threads; w++) s->total += s->sums[w];
        }
        tg_pool_barrier(s->pool, worker);
        const unsigned long want = (unsigned long)round * s->threads * (s->threads + 1) / 2;
        if (s->total != want) s->wrong = true;
    }
}

static void barriers_hold_everybody(void **state) {
    (void)state;
    for (size_t i = 0; i < N_COUNTS; i++) {
        shared s = { .pool = new_pool(thread_counts[i]), .threads = thread_counts[i] };
        for (int region = 0; region < 6; region++) {
            s.rounds = region % 2 ? 101 : 200; /* an odd number of barriers, too */
            s.uneven = region >= 4;
            if (s.uneven) s.rounds = 30;
            tg_pool_run(s.pool, sum_rounds, &s);
            assert_false(s.wrong);
        }
        tg_pool_free(s.pool);
    }
}

/* ------------------------------------------------------------------------------------- signals */

static void note_signals(void *arg, unsigned worker) {
    shared *s = arg;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    s->ran[worker] = (unsigned)(sigismember(&set, SIGINT) == 1) +
                     2 * (unsigned)(sigismember(&set, SIGTERM) == 1) +
                     4 * (unsigned)(sigismember(&set, SIGSEGV) == 1);
}

static void signals_stay_with_the_caller(void **state) {
    (void)state;
    shared s = { .pool = new_pool(3), .threads = 3 };
    tg_pool_run(s.pool, note_signals, &s);
    assert_int_equal(s.ran[0], 0); /* the caller's mask is what it was */
    assert_int_equal(s.ran[1], 3); /* SIGSEGV of a worker must still be seen */
    assert_int_equal(s.ran[2], 3);
    tg_pool_free(s.pool);
}

/* -------------------------------------------------------------------------------------- starting
 */

static unsigned starts, fail_at;

static int refuse_thread(const char *operation, const char *path) {
    (void)path;
    return strcmp(operation, "thread") == 0 && ++starts == fail_at ? 11 : 0;
}

static void starting_can_fail(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_pool *pool;
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    assert_int_equal(tg_pool_new(&ctx, 0, &pool), TG_E_ARG);
    assert_string_equal(ctx.message, "threads: want 1..256, have 0");
    assert_null(pool);
    assert_int_equal(tg_pool_new(&ctx, 257, &pool), TG_E_ARG);

    tg_os_fault = refuse_thread;
    for (fail_at = 1; fail_at < 5; fail_at++) { /* with 0..3 threads running already */
        starts = 0;
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_pool_new(&ctx, 5, &pool), TG_E_MEMORY);
        assert_null(pool);
        assert_int_equal(a.live_pieces, 0);
        char want[64];
        snprintf(want, sizeof want, "threads: want 5, have room for %u only", fail_at);
        assert_string_equal(ctx.message, want);
    }
    tg_os_fault = NULL;

    a.fail_at = a.requests + 1;
    assert_int_equal(tg_pool_new(&ctx, 2, &pool), TG_E_MEMORY);
    a.fail_at = 0;

    /* One allocation for everything, and none while it works. */
    const size_t before = a.requests;
    assert_int_equal(tg_pool_new(&ctx, 5, &pool), TG_OK);
    assert_int_equal(a.requests, before + 1);
    shared s = { .pool = pool, .threads = 5, .rounds = 10 };
    for (int i = 0; i < 10; i++) tg_pool_run(pool, sum_rounds, &s);
    assert_int_equal(a.requests, before + 1);
    assert_false(s.wrong);
    tg_pool_free(pool);
    assert_int_equal(a.live_pieces, 0);
}

/* Pools come and go without using up anything. */
static void many_pools(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++) {
        shared s = { .pool = new_pool(3), .threads = 3 };
        if (i % 2) tg_pool_run(s.pool, count, &s);
        tg_pool_free(s.pool);
    }
}

static double used_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Not a benchmark: endless spinning shows as seconds of work, not as a hundredth of one, and a lost
 * wake-up never ends. */
static void crowded_barriers_are_quick(void **state) {
    (void)state;
    shared s = { .pool = new_pool(MAX_THREADS), .threads = MAX_THREADS, .rounds = 200 };
    const double start_s = used_s();
    alarm(120);
    tg_pool_run(s.pool, sum_rounds, &s);
    alarm(0);
    assert_true(used_s() - start_s < 5);
    assert_false(s.wrong);
    tg_pool_free(s.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_runs_once),
        cmocka_unit_test(regions_wake_sleepers),
        cmocka_unit_test(barriers_hold_everybody),
        cmocka_unit_test(signals_stay_with_the_caller),
        cmocka_unit_test(starting_can_fail),
        cmocka_unit_test(many_pools),
        cmocka_unit_test(crowded_barriers_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
