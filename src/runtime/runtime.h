/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what a tg_context is inside: allocator and error, ISA, levers, pool, backend.
 *
 * Whatever computes gets a tg_context; its errors go to ctx->err, which api/ hands out.
 */
#ifndef TG_RUNTIME_RUNTIME_H
#define TG_RUNTIME_RUNTIME_H

#include "backend/backend.h"
#include "backend/cpu/check.h"
#include "base/err.h"
#include "base/os/os.h"
#include "base/thread.h"
#include "tinygpt.h"

struct tg_context {
    tg_ctx err;
    tg_pool *pool;
    tg_backend *backend;        /* what runs plans */
    tg_backend *cpu;            /* the same, or what a GPU falls back to */
    struct tg_gpu_bench *bench; /* of the op test on a GPU; NULL: on the CPU, or not asked for */
    tg_check_executor executor;
    size_t isa;         /* row of simd/isa.def */
    uint32_t levers;    /* TG_LEVER_BITs */
    unsigned threads;   /* workers of the pool: 1 when the lever threads is off */
    double peak_gflops; /* 0 until measured */
    double read_bytes_per_s;
    char banner[2048];
    int date[3];           /* year, month, day that chat templates write; zeros: today's, in UTC */
    tg_os_seen inputs;     /* what was read since tg_context_force */
    char pack_cache[1024]; /* a folder for packed weights; "": none is kept (pack_cache.h) */
    /* A GPU that was lost is replaced, until it has happened too often. */
    unsigned losses, generation; /* generation counts the devices */
    bool replacing;
    int64_t copy_every; /* steps between two copies of a run that is trained on a GPU */
};

enum { TG_LOSSES_MAX = 3, TG_COPY_EVERY = 50 };

/* Another device in place of a lost one; the CPU if there is none, or after TG_LOSSES_MAX losses.
 * TG_PENDING: it is on its way. Whoever keeps something on a device compares ctx->generation. */
tg_status tg_runtime_recover(tg_context *ctx);

/* Runs a plan where the context computes. If the device is lost meanwhile, there is another one in
 * its place when this answers E_DEVICE, with `what` in front: ctx->generation has changed, and the
 * caller knows what it has to compute again. */
tg_status tg_runtime_run(tg_context *ctx, const char *what, tg_plan *plan, const tg_scalars *rt,
                         tg_run *run);

/* A context that can carry a message, and nothing else, until it is opened. The caller frees it,
 * whatever comes of that. */
tg_status tg_runtime_new(const tg_context_options *o, tg_context **out);
tg_status tg_runtime_open(tg_context *ctx, const tg_context_options *o);
void tg_runtime_free(tg_context *ctx);

/* Adds "-name" and "+name" items to a set of levers. E_ARG names an unknown one and lists all. */
tg_status tg_levers_parse(tg_ctx *err, const char *text, uint32_t *levers);
uint32_t tg_levers_default(void);

/* See tg_measure_peak: in slices, a round at a time; zero-initialised: not begun. */
typedef struct tg_peak_measuring {
    int rounds;
    double n_flop; /* of the next round, a worker */
    double best;   /* operations a millisecond */
} tg_peak_measuring;
tg_status tg_peak_measuring_go_on(tg_peak_measuring *p, tg_context *ctx, double deadline_ms,
                                  double *gflops);
tg_status tg_runtime_measure_read(tg_context *ctx, size_t n_bytes, double *bytes_per_s);
/* E_UNSUPPORTED where the CPU computes. */
tg_status tg_runtime_gpu(tg_context *ctx, tg_gpu_facts *out);
tg_status tg_runtime_machine(tg_context *ctx, tg_machine_info *out);

/* A block for weights or workspace: in huge pages unless that lever is off. The backend may keep a
 * copy of it, which goes with the block. */
tg_status tg_runtime_block(tg_context *ctx, size_t bytes, tg_block *out);
/* The same, to be cleared by tg_block_clear in slices. */
tg_status tg_runtime_block_take(tg_context *ctx, size_t bytes, tg_block *out);
void tg_runtime_block_free(tg_context *ctx, tg_block *block);

/* For plans that the context's backend is to run. */
tg_plan_options tg_runtime_plan_options(const tg_context *ctx, const char *name);

/* For checks of the ops where the context computes. */
tg_status tg_runtime_check_options(tg_context *ctx, const char *filter, tg_check_fn report,
                                   void *user, tg_check_options *out);
/* Behind a check: gives back the memory of its operands. */
void tg_runtime_check_end(tg_context *ctx);

#endif
