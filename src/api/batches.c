/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.c - the public calls about sessions that compute together, and their jobs. While one is
 * pending, the decoder has a pointer to it, so that it is pending on all sessions of the batch.
 *
 *     batch --> decoder    plans, cache, the pending job: one of each        engine/session.h
 *           --> session 0 .. n-1    tokens, logits, settings; sequence i of the cache
 *
 * Invariant: a call is refused as a whole or not at all. All entries are checked before the first
 * one computes, and what begins a feeding leaves what a session gives as it was. Once it computes,
 * each entry ends with a status of its own: one whose logits are not finite does not stop the
 * others.
 *
 * The engine's part is in engine/batch.c (feeding) and engine/generate.c.
 */
#include "api/jobs.h"
#include "api/want.h"

/* n counts the sessions that are open, also while the batch is made: so tg_batch_free takes one
 * that failed half-way. */
struct tg_batch {
    tg_context *ctx;
    tg_decoder *d;
    size_t n;
    tg_session *session[TG_BATCH_MAX];
};

/* tg_alloc gives zeros, and tg_decoder_close takes NULL. The model is borrowed. */
tg_status tg_batch_new(tg_context *ctx, tg_model *model, size_t n_sessions, int32_t ctx_tokens,
                       tg_kv_type kv, tg_batch **out) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, out);
    *out = NULL;
    if (n_sessions < 1 || n_sessions > TG_BATCH_MAX)
        return tg_fail(&ctx->err, TG_E_ARG, "batch: want 1..%d sessions, have %zu", TG_BATCH_MAX,
                       n_sessions);
    tg_batch *b = tg_alloc(&ctx->err.mem, sizeof *b);
    if (!b) return tg_fail_memory(&ctx->err, "batch", sizeof *b);
    b->ctx = ctx;
    tg_status s = tg_decoder_open(ctx, model, ctx_tokens, kv, (int32_t)n_sessions, &b->d);
    while (s == TG_OK && b->n < n_sessions) {
        s = tg_session_open_in(b->d, (int32_t)b->n, &b->session[b->n]);
        b->n += s == TG_OK;
    }
    if (s == TG_OK)
        *out = b;
    else
        tg_batch_free(b);
    return s;
}

/* Sessions go before the decoder that they point into. A job must be freed before: see tg_job_free.
 */
void tg_batch_free(tg_batch *batch) {
    if (!batch) return;
    const tg_mem mem = batch->ctx->err.mem;
    for (size_t i = 0; i < batch->n; i++) tg_session_close(batch->session[i]);
    tg_decoder_close(batch->d);
    tg_free(&mem, batch, sizeof *batch);
}

tg_session *tg_batch_session(tg_batch *batch, size_t i) {
    return batch && i < batch->n ? batch->session[i] : NULL;
}

/* Asked of one session for all, as the pointer to a job is the decoder's. There is always a first.
 */
static tg_status want_batch(const tg_batch *b) {
    TG_TRY(tg_session_want_idle(b->session[0]));
    return tg_weights_want_steady(b->d->model);
}

/* Says which entry it is about. The message is copied before it is cleared, as tg_fail keeps the
 * first one and writes to the same place. */
static tg_status fail_entry(tg_batch *b, size_t i, tg_status status) {
    char why[TG_MESSAGE_BYTES];
    snprintf(why, sizeof why, "%s", b->ctx->err.message);
    tg_ctx_clear(&b->ctx->err);
    return tg_fail(&b->ctx->err, status, "batch: entry %zu: %s", i, why);
}

/* Everything is checked before the first is fed. Feedings that have begun and not gone on leave
 * sessions as they were. Both loops are over at most TG_BATCH_MAX sessions. */
static tg_status begin_feeding(tg_batch *b, const tg_batch_entry *e, size_t i, tg_feeding *f) {
    tg_context *const ctx = b->ctx;
    bool is_here = false;
    for (size_t k = 0; k < b->n; k++) is_here = is_here || b->session[k] == e[i].session;
    for (size_t k = 0; k < i; k++) is_here = is_here && e[k].session != e[i].session;
    if (!is_here)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "batch: entry %zu: want a session of the batch that no entry before has", i);
    if (e[i].n) WANT(ctx, e[i].tokens);
    const tg_status status = tg_feeding_begin(e[i].session, e[i].tokens, e[i].n, f);
    return status == TG_OK ? TG_OK : fail_entry(b, i, status);
}

typedef struct eval_job {
    tg_job job; /* copy: the tokens of all entries, one behind the other */
    tg_batch *batch;
    tg_batch_entry *entries; /* [together.n] the caller's */
    tg_feeding feed[TG_BATCH_MAX];
    tg_together together;
} eval_job;

static tg_status ready_eval(tg_job *job) {
    return tg_weights_want_steady(((eval_job *)job)->batch->d->model);
}

/* The message is about the first entry of which there is something to say. Statuses reach the
 * caller's entries in the last slice alone; before that they would be of feedings that still go on.
 */
static tg_status work_eval(tg_job *job, double deadline_ms) {
    eval_job *j = (eval_job *)job;
    const tg_together *w = &j->together;
    const tg_status status = tg_together_go_on(&j->together, deadline_ms);
    if (status == TG_PENDING) return status;
    size_t bad = w->n;
    for (size_t i = w->n; i-- > 0;) {
        j->entries[i].status = w->entry[i].status;
        if (w->entry[i].status != TG_OK) bad = i;
    }
    return bad < w->n ? fail_entry(j->batch, bad, status) : status;
}

/* Only an abandoned job is pending here. Sessions that were fed whole by then stay so
 * (tg_together_abandon). */
static void end_eval(tg_job *job) {
    eval_job *j = (eval_job *)job;
    if (job->status == TG_PENDING) tg_together_abandon(&j->together);
    j->batch->d->job = NULL;
}

/* feed is on the stack until there is a job that nothing can refuse any more; then tokens are those
 * of the job's copy. That the sum of tokens cannot overflow follows from the checks: each entry
 * fits into its session's window. */
tg_status tg_batch_eval_job(tg_batch *batch, tg_batch_entry *entries, size_t n, tg_job **job) {
    static const tg_job_kind kind = { "feed of a batch", sizeof(eval_job), ready_eval, work_eval,
                                      end_eval };
    if (!batch) return TG_E_ARG;
    tg_context *const ctx = batch->ctx;
    tg_feeding feed[TG_BATCH_MAX];
    ENTER(ctx);
    if (n) WANT(ctx, entries);
    WANT(ctx, job);
    *job = NULL;
    TG_TRY(want_batch(batch));
    if (n > batch->n)
        return tg_fail(&ctx->err, TG_E_ARG, "batch: want at most %zu entries, have %zu", batch->n,
                       n);
    size_t n_tokens = 0;
    for (size_t i = 0; i < n; i++) {
        TG_TRY(begin_feeding(batch, entries, i, &feed[i]));
        n_tokens += entries[i].n;
    }
    eval_job *j = tg_job_make(ctx, &kind, NULL, n_tokens * sizeof(int32_t));
    if (!j) return TG_E_MEMORY;
    j->batch = batch;
    j->entries = entries;
    j->together.d = batch->d;
    int32_t *tokens = j->job.copy; /* NULL: nobody feeds any */
    for (size_t i = 0; i < n; i++) {
        j->feed[i] = feed[i];
        j->feed[i].tokens = tokens;
        if (entries[i].n) {
            memcpy(tokens, entries[i].tokens, entries[i].n * sizeof *tokens);
            tokens += entries[i].n;
        }
        j->together.entry[j->together.n++] =
            (tg_together_entry) { .s = entries[i].session, .f = &j->feed[i] };
    }
    batch->d->job = *job = &j->job;
    return TG_OK;
}

tg_status tg_batch_eval(tg_batch *batch, tg_batch_entry *entries, size_t n) {
    tg_job *job;
    TG_TRY(tg_batch_eval_job(batch, entries, n, &job));
    return tg_job_finish(job);
}

/* A copy of itself is one already, and must not come to engine/batch.c, which empties `to` first.
 */
tg_status tg_batch_copy(tg_batch *batch, size_t to, size_t from) {
    if (!batch) return TG_E_ARG;
    ENTER(batch->ctx);
    TG_TRY(want_batch(batch));
    if (to >= batch->n || from >= batch->n)
        return tg_fail(&batch->ctx->err, TG_E_RANGE,
                       "batch: want sessions 0..%zu, have %zu and %zu", batch->n - 1, to, from);
    return to == from ? TG_OK : tg_session_copy_from(batch->session[to], batch->session[from]);
}

typedef struct continue_job {
    tg_job job; /* copy: the generations */
    tg_batch *batch;
    tg_generating_all all;
    tg_status status[TG_BATCH_MAX];
    tg_generate_stats *stats; /* or NULL */
    tg_status *statuses;      /* or NULL */
} continue_job;

static tg_status ready_continue(tg_job *job) {
    return tg_weights_want_steady(((continue_job *)job)->batch->d->model);
}

/* Figures are the caller's after every slice; a status is OK until its text has ended. The answer
 * is the first one that is not OK, and TG_PENDING before all have ended. */
static tg_status work_continue(tg_job *job, double deadline_ms) {
    continue_job *j = (continue_job *)job;
    const tg_generating_all *all = &j->all;
    tg_status status = tg_generating_all_go_on(&j->all, deadline_ms);
    for (size_t i = 0; i < all->n; i++) {
        if (status == TG_OK) status = all->status[i];
        if (j->stats) j->stats[i] = all->g[i].stats;
        if (j->statuses) j->statuses[i] = all->status[i];
    }
    return status;
}

/* All are abandoned, those that have ended as well: that is what frees their memory. */
static void end_continue(tg_job *job) {
    continue_job *j = (continue_job *)job;
    for (size_t i = 0; i < j->all.n; i++) tg_generating_abandon(&j->all.g[i]);
    j->batch->d->job = NULL;
}

/* j->all.n counts those that have begun, or tried to: their memory is end_continue's to free. One
 * that was refused before has none. */
static tg_status begin_continuing(continue_job *j, const tg_generation *const *what, size_t n) {
    for (size_t i = 0; i < n; i++) {
        TG_TRY(tg_job_generating(j->batch->session[i], what[i], &j->all.g[i]));
        j->all.n++;
        TG_TRY(tg_generating_begin(&j->all.g[i]));
    }
    return TG_OK;
}

/* One that is refused refuses all of them. tg_job_end frees the memory of those that had begun. */
static void refuse_all(continue_job *j, size_t n, tg_status status) {
    for (size_t i = 0; i < n; i++) {
        if (j->stats) j->stats[i] = (tg_generate_stats) { 0 };
        if (j->statuses) j->statuses[i] = status;
    }
    tg_job_end(&j->job);
}

/* Generations are large and there are up to 64, so they lie in the job's copy, [n] of zeros, and
 * not in its struct. The decoder gets its pointer after all have begun: tg_job_generating wants the
 * session of a draft to be idle, which may be another one of this batch. end takes the pointer away
 * in any case. */
tg_status tg_batch_continue_job(tg_batch *batch, const tg_generation *const *what, size_t n,
                                tg_generate_stats *stats, tg_status *statuses, tg_job **job) {
    static const tg_job_kind kind = { "generations of a batch", sizeof(continue_job),
                                      ready_continue, work_continue, end_continue };
    if (!batch) return TG_E_ARG;
    tg_context *const ctx = batch->ctx;
    ENTER(ctx);
    if (n) WANT(ctx, what);
    WANT(ctx, job);
    *job = NULL;
    TG_TRY(want_batch(batch));
    if (n < 1 || n > batch->n)
        return tg_fail(&ctx->err, TG_E_ARG, "batch: want 1..%zu generations, have %zu", batch->n,
                       n);
    continue_job *j = tg_job_make(ctx, &kind, NULL, n * sizeof(tg_generating));
    if (!j) return TG_E_MEMORY;
    j->batch = batch;
    j->stats = stats;
    j->statuses = statuses;
    j->all.g = j->job.copy;
    j->all.status = j->status;
    const tg_status status = begin_continuing(j, what, n);
    batch->d->job = &j->job;
    if (status == TG_OK)
        *job = &j->job;
    else
        refuse_all(j, n, status);
    return status;
}

tg_status tg_batch_continue(tg_batch *batch, const tg_generation *const *what, size_t n,
                            tg_generate_stats *stats, tg_status *statuses) {
    tg_job *job;
    TG_TRY(tg_batch_continue_job(batch, what, n, stats, statuses, &job));
    return tg_job_finish(job);
}
