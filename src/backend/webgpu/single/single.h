/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single.h - a plan of one row as one dispatch over the whole card (lever single_dispatch).
 *
 * A dispatch costs some microseconds and a token has hundreds of them; to wait for other workgroups
 * inside of one costs less than one. So one kernel has the phases that ops bring (tg_grid of
 * ir/op.h), and walks a list that is made of the plan's steps:
 *
 *     step     norm    product    rope    append    attention        product
 *     phase    n       p          r       k         a        w       p
 *     row      n ----> p          r ----> k ------> a        w ----> p
 *     flow             p -------> r                 a -----> w
 *
 * flow: a value that workgroups hand on to each other has a place of its own there, and each of its
 * numbers says by itself whether it has been written: who reads it looks until it is there, and
 * nobody waits for those that he wants nothing of. row: a value that one or a few phases read which
 * follow at once, and which take it so, is computed by every workgroup for itself in its own
 * memory: what a norm of a row costs is less than to wait for others. So phases that give rows are
 * done by all. What lies in the workspace, since the host reads it, says nothing by itself: before
 * a phase that reads or overwrites such a value, all workgroups meet.
 *
 * WGSL promises no progress of one workgroup while another waits. So a kernel is tried before it is
 * used, with barriers alone; whoever waits looks so often and no longer; and the host counts who
 * came through the list, and who gave up. Where one is missing the plan runs as many dispatches,
 * from then on, and the token is computed again: what a run writes, the next one of the same row
 * writes again.
 */
#ifndef TG_BACKEND_WEBGPU_SINGLE_H
#define TG_BACKEND_WEBGPU_SINGLE_H

#include "backend/webgpu/shaders.h"
#include "plan/plan.h"

/* Of a backend: how many workgroups of how many threads; groups 0: never. */
typedef struct tg_single_rules {
    uint32_t groups, threads, looks;
    bool software;    /* the adapter */
    bool subgroups;   /* the lever */
    bool int8;        /* the lever int8_activations */
    bool of_shapes;   /* the kernel knows the shapes of its plan; else the list has them */
    bool given;       /* by TG_SINGLE_GROUPS: other numbers are not tried */
    uint32_t missing; /* of the groups, how many are not run: a test's adapter without progress */
    struct {
        uint64_t text; /* its hash */
        uint32_t pipeline;
    } kernels[4];
    size_t n_kernels;
} tg_single_rules;

/* Of a compiled plan. */
typedef struct tg_single {
    bool on, tried;
    bool too_many;             /* buffers of states, for the bindings of a kernel */
    uint32_t list, sync, flow; /* buffers */
    uint32_t half;             /* of flow, that the last dispatch had */
    uint32_t groups, threads;  /* for which the list was made, by so many groups ... */
    uint32_t of_rules;         /* ... of the rules, which may have others since */
    size_t n_steps;            /* of the plan; the last one may have dispatches of its own */
    size_t row_floats, row_rounded, flow_words;
    /* Of the last run: workgroups that arrived at the last barrier, and through the list; the half;
     * threads that gave up. */
    uint32_t come[4];
} tg_single;

/* Where the bytes of a value are; false: it has none. */
typedef bool (*tg_single_locate)(void *user, const tg_value *v, tg_gpu_range *out);

/* By the adapter; TG_SINGLE_GROUPS and TG_SINGLE_THREADS in the environment say it for tests and
 * measurements, also on adapters that compute on the CPU, where it pays never. */
tg_single_rules tg_single_rules_of(const tg_gpu_info *info, bool lever, bool subgroups, bool int8);

/* Sets s->on, and its sizes. False: ctx is told why not, with the step's name. */
bool tg_single_fits(tg_single *s, const tg_single_rules *rules, tg_ctx *ctx,
                    const tg_gpu_info *info, const tg_plan *plan);

typedef struct tg_single_buffers {
    uint32_t call, work, dummies; /* dummies has 256 bytes for each binding */
    size_t work_bytes;
    tg_single_locate locate;
    void *user;
} tg_single_buffers;

/* The list, the kernel and the bind group of the dispatch; again when buffers have changed.
 * TG_E_UNSUPPORTED, without a message: the states are in more buffers than a kernel binds. */
tg_status tg_single_bind(tg_single *s, tg_single_rules *rules, tg_ctx *ctx, tg_gpu *gpu,
                         const tg_plan *plan, const tg_single_buffers *b, tg_gpu_dispatch *d);

/* Before each submit. */
tg_status tg_single_begin(tg_single *s, const tg_single_rules *rules, tg_gpu *gpu,
                          tg_gpu_dispatch *d);
/* What to read back into s->come. */
tg_gpu_piece tg_single_piece(tg_single *s);
/* Whether all workgroups came through, of the last run. */
bool tg_single_came(const tg_single *s);

/* Meetings alone, of as many workgroups as come through, if any do: tg_single_came says so. */
tg_status tg_single_try(tg_single *s, tg_single_rules *rules, tg_gpu *gpu, tg_gpu_dispatch *d);
/* From now on no plan is one dispatch: rules->groups is 0, and ctx is told why: too few came
 * through, or the states of the plan are in more buffers than a kernel binds. */
void tg_single_give_up(const tg_single *s, tg_single_rules *rules, tg_ctx *ctx,
                       const tg_plan *plan);

void tg_single_free(tg_single *s, tg_gpu *gpu);

#endif
