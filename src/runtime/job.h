/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - what a tg_job is inside: a call that is made in slices.
 *
 * The work itself is written as places and go_on functions, each beside what it works on
 * (tg_feeding in session.h, tg_saving in io/run/saving.h, ..): a struct that says how far it is,
 * and a function that goes on until a deadline. A job puts such a struct on the heap, says what
 * must not happen meanwhile, and answers to tg_job_poll. Blocking calls run the same functions to
 * their end.
 *
 *     new --poll--> PENDING --poll--> .. --poll--> OK, STOPPED or an error --poll--> the same
 *                      |                               |
 *                      +--free--> end                 end
 */
#ifndef TG_RUNTIME_JOB_H
#define TG_RUNTIME_JOB_H

#include "runtime/runtime.h"

typedef struct tg_job_kind {
    const char *name;
    size_t bytes; /* of the struct that begins with the tg_job */
    /* Not TG_OK: not now; nothing was done, and the job stays as it is. NULL: always. */
    tg_status (*ready)(tg_job *job);
    /* TG_PENDING: there is more to do; never, if deadline_ms (on tg_time_ms's clock) is 0. */
    tg_status (*work)(tg_job *job, double deadline_ms);
    /* Once: when the job is done or has failed, or when it is abandoned, with status PENDING. Gives
     * everything back. */
    void (*end)(tg_job *job);
} tg_job_kind;

struct tg_job {
    tg_context *ctx;
    const tg_job_kind *kind;
    tg_status status;
    void *copy; /* of an argument: a path, a prompt, tokens; lives as long as the job */
    size_t copy_bytes;
};

/* A struct of this kind, zeroed but for its head, with a copy of n_bytes (0: none), which are zeros
 * if bytes is NULL. NULL, with the error recorded, if there is no memory. */
void *tg_job_make(tg_context *ctx, const tg_job_kind *kind, const void *bytes, size_t n_bytes);
tg_status tg_job_slice(tg_job *job, double budget_ms);
void tg_job_end(tg_job *job); /* NULL is fine */

/* For blocking calls: runs it to its end and frees it. */
tg_status tg_job_finish(tg_job *job);

#endif
