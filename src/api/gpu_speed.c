/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_speed.c - what a GPU's kernels reach: additions of large arrays, and a large product.
 *
 * What is timed is a plan that is a chain of one op, in one submit, so that the submit's own cost
 * is lost in it. Sizes grow until a chain lasts some hundredths of a second: a large card needs a
 * large product to be full, and a small one would be ended by its watchdog in the middle of that.
 * Of each size the best of a few runs is taken, and of the last size the rate.
 *
 * It goes on in slices, since a page cannot wait for a GPU.
 */
#include "api/jobs.h"
#include "backend/webgpu/webgpu.h"
#include "base/math.h"
#include "base/time.h"
#include "ops/build.h"

/* The first step of a chain is left out, which goes with the inputs' way up, and the last one, with
 * the output's way down. */
enum { CHAIN = 34, ROUNDS = 5 };
static const double timed = CHAIN - 2, long_ms = 40;

/* Arrays of up to 128 MiB, which are beyond the caches and within the binding limit of all. */
static const size_t sums[] = { 1 << 17, 1 << 19, 1 << 21, 1 << 23, 1 << 25 };
static const size_t products[] = { 128, 256, 512, 1024, 2048, 4096 };
enum { N_SUMS = sizeof sums / sizeof *sums, N_PRODUCTS = sizeof products / sizeof *products };

typedef struct speed_job {
    tg_job job;
    double *bytes_per_s, *gflops;
    bool software; /* is measured as well: a test's way to be run where there is no GPU */
    size_t at;     /* sums first, then products */
    bool built, begun;
    tg_graph graph;
    tg_plan plan;
    tg_block memory;
    int round; /* 0: the whole plan, unmeasured */
    tg_run run;
    double start, best_ms;
} speed_job;

static void clear(speed_job *j) {
    if (!j->built) return;
    tg_runtime_block_free(j->job.ctx, &j->memory);
    tg_graph_deinit(&j->graph);
    j->built = false;
}

static tg_status build(speed_job *j) {
    tg_context *ctx = j->job.ctx;
    tg_graph *g = &j->graph;
    const bool adds = j->at < N_SUMS;
    const size_t n = adds ? sums[j->at] / 128 : products[j->at - N_SUMS];
    const tg_type type = tg_type_2d(TG_F32, n, adds ? 128 : n);
    TG_TRY(tg_graph_init(g, &ctx->err, ctx->levers));
    j->built = true;
    tg_value *a = tg_input(g, "a", type), *b = tg_input(g, "b", type), *out = a;
    for (int i = 0; i < CHAIN; i++) out = adds ? tg_add(g, out, b) : tg_matmul(g, out, b, NULL, 0);
    if (g->status == TG_OK) tg_output(g, out, "out");
    TG_TRY(tg_graph_finish(g));
    const tg_plan_options o = tg_runtime_plan_options(ctx, "speed");
    TG_TRY(tg_plan_build(&j->plan, g, &o));
    TG_ASSERT(j->plan.n_steps == CHAIN);
    TG_TRY(tg_runtime_block(ctx, tg_plan_memory_bytes(&j->plan), &j->memory));
    tg_plan_place(&j->plan, j->memory.data);
    /* Zeros all through would come down as zeros, which the backend takes for a broken driver's. */
    *(float *)tg_plan_data(&j->plan, a) = *(float *)tg_plan_data(&j->plan, b) = 1;
    j->run = (tg_run) { .next = 0 };
    j->round = 0;
    j->best_ms = TG_INF;
    return TG_OK;
}

/* One run of the chain; TG_PENDING: it is on its way. */
static tg_status go_round(speed_job *j) {
    tg_backend *backend = j->job.ctx->backend;
    const tg_scalars rt = { .rows = 0 };
    if (!j->begun) {
        j->start = tg_time_ms();
        TG_TRY(tg_backend_run(backend, &j->plan, &rt, &j->run));
        j->begun = true;
    }
    TG_TRY(tg_gpu_wait(tg_webgpu_gpu(backend)));
    const double each = (tg_time_ms() - j->start) / timed;
    if (j->round > 0 && each < j->best_ms) j->best_ms = each;
    j->begun = false;
    j->run = (tg_run) { .next = 1, .end = CHAIN - 1 };
    j->round++;
    return TG_OK;
}

/* Three arrays of a sum pass through memory. */
static void end_size(speed_job *j) {
    const bool adds = j->at < N_SUMS, is_long = j->best_ms * timed >= long_ms;
    if (adds) {
        *j->bytes_per_s = 12.0 * (double)sums[j->at] / j->best_ms * 1e3;
    } else {
        const double n = (double)products[j->at - N_SUMS];
        *j->gflops = 2 * n * n * n / j->best_ms / 1e6;
    }
    clear(j);
    if (is_long)
        j->at = adds ? N_SUMS : N_SUMS + N_PRODUCTS;
    else
        j->at++;
}

static tg_status work(tg_job *job, double deadline_ms) {
    speed_job *j = (speed_job *)job;
    tg_gpu_facts gpu;
    TG_TRY(tg_runtime_gpu(job->ctx, &gpu));
    if (gpu.software && !j->software)
        return tg_fail(&job->ctx->err, TG_E_UNSUPPORTED,
                       "GPU %s: it is software, computes on the CPU, and is not timed",
                       gpu.adapter);
    while (j->at < N_SUMS + N_PRODUCTS) {
        if (!j->built) TG_TRY(build(j));
        TG_TRY(go_round(j));
        if (j->round > ROUNDS) end_size(j);
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return TG_OK;
}

static void end(tg_job *job) { clear((speed_job *)job); }

tg_status tg_job_measure_gpu(tg_context *ctx, bool software, double *bytes_per_s, double *gflops,
                             tg_job **job) {
    static const tg_job_kind kind = { "measurement of the GPU", sizeof(speed_job), NULL, work,
                                      end };
    speed_job *j = tg_job_make(ctx, &kind, NULL, 0);
    if (!j) return TG_E_MEMORY;
    j->software = software;
    j->bytes_per_s = bytes_per_s;
    j->gflops = gflops;
    *job = &j->job;
    return TG_OK;
}
