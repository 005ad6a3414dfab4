/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.c - the life of a job, whatever it does. See job.h.
 */
#include "runtime/job.h"

#include "base/os/os_fp.h"
#include "base/time.h"

void *tg_job_make(tg_context *ctx, const tg_job_kind *kind, const void *bytes, size_t n_bytes) {
    const tg_mem *mem = &ctx->err.mem;
    tg_job *job = tg_alloc(mem, kind->bytes);
    void *copy = n_bytes ? tg_alloc(mem, n_bytes) : NULL;
    if (!job || (n_bytes && !copy)) {
        tg_free(mem, job, kind->bytes);
        tg_free(mem, copy, n_bytes);
        tg_fail_memory(&ctx->err, kind->name, kind->bytes + n_bytes);
        return NULL;
    }
    if (bytes && n_bytes) memcpy(copy, bytes, n_bytes);
    *job = (tg_job) { ctx, kind, TG_PENDING, copy, n_bytes };
    return job;
}

/* Blocking calls come through here as well, so this is where most of the library's arithmetic gets
 * its environment. */
tg_status tg_job_slice(tg_job *job, double budget_ms) {
    if (job->status != TG_PENDING) return job->status;
    TG_OS_FP_SCOPE;
    if (job->kind->ready) TG_TRY(job->kind->ready(job));
    job->status = job->kind->work(job, budget_ms > 0 ? tg_time_ms() + budget_ms : 0);
    if (job->status != TG_PENDING) job->kind->end(job);
    return job->status;
}

void tg_job_end(tg_job *job) {
    if (!job) return;
    const tg_mem mem = job->ctx->err.mem;
    if (job->status == TG_PENDING) job->kind->end(job);
    tg_free(&mem, job->copy, job->copy_bytes);
    tg_free(&mem, job, job->kind->bytes);
}

tg_status tg_job_finish(tg_job *job) {
    tg_context *const ctx = job->ctx;
    const tg_status status = tg_job_slice(job, 0);
    tg_job_end(job);
    if (status == TG_PENDING)
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "a device is awaited, which a call cannot do here: make a job and poll it");
    return status;
}
