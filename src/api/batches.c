/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.c - the public calls about sessions that compute together. They check, and pass on.
 */
#include "api/jobs.h"
#include "api/want.h"

struct tg_batch {
    tg_context *ctx;
    tg_decoder *d;
    size_t n;
    tg_session *session[TG_BATCH_MAX];
};

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

static tg_status want_batch(const tg_batch *b) {
    TG_TRY(tg_session_want_idle(b->session[0]));
    return tg_weights_want_steady(b->d->model);
}

/* Says which entry it is about. */
static tg_status fail_entry(tg_batch *b, size_t i, tg_status status) {
    char why[TG_MESSAGE_BYTES];
    snprintf(why, sizeof why, "%s", b->ctx->err.message);
    tg_ctx_clear(&b->ctx->err);
    return tg_fail(&b->ctx->err, status, "batch: entry %zu: %s", i, why);
}

/* Everything is checked before the first is fed. Feedings that have begun and not gone on leave
 * sessions as they were. */
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

tg_status tg_batch_eval(tg_batch *batch, tg_batch_entry *entries, size_t n) {
    if (!batch) return TG_E_ARG;
    tg_together t[TG_BATCH_MAX];
    tg_feeding f[TG_BATCH_MAX];
    ENTER(batch->ctx);
    if (n) WANT(batch->ctx, entries);
    TG_TRY(want_batch(batch));
    if (n > batch->n)
        return tg_fail(&batch->ctx->err, TG_E_ARG, "batch: want at most %zu entries, have %zu",
                       batch->n, n);
    for (size_t i = 0; i < n; i++) {
        TG_TRY(begin_feeding(batch, entries, i, &f[i]));
        t[i] = (tg_together) { .s = entries[i].session, .f = &f[i] };
    }
    const tg_status status = tg_together_feed(batch->d, t, n, NULL, NULL);
    size_t bad = n;
    for (size_t i = n; i-- > 0;) {
        entries[i].status = t[i].status;
        if (t[i].status != TG_OK) bad = i;
    }
    return bad < n ? fail_entry(batch, bad, status) : status;
}

tg_status tg_batch_copy(tg_batch *batch, size_t to, size_t from) {
    if (!batch) return TG_E_ARG;
    ENTER(batch->ctx);
    TG_TRY(want_batch(batch));
    if (to >= batch->n || from >= batch->n)
        return tg_fail(&batch->ctx->err, TG_E_RANGE,
                       "batch: want sessions 0..%zu, have %zu and %zu", batch->n - 1, to, from);
    return to == from ? TG_OK : tg_session_copy_from(batch->session[to], batch->session[from]);
}

tg_status tg_batch_continue(tg_batch *batch, const tg_generation *const *what, size_t n,
                            tg_generate_stats *stats, tg_status *statuses) {
    if (!batch) return TG_E_ARG;
    tg_status status[TG_BATCH_MAX] = { TG_OK }, all = TG_OK;
    tg_context *const ctx = batch->ctx;
    ENTER(ctx);
    if (n) WANT(ctx, what);
    TG_TRY(want_batch(batch));
    if (n < 1 || n > batch->n)
        return tg_fail(&ctx->err, TG_E_ARG, "batch: want 1..%zu generations, have %zu", batch->n,
                       n);
    tg_generating *g = tg_alloc(&ctx->err.mem, n * sizeof *g);
    if (!g) return tg_fail_memory(&ctx->err, "generations", n * sizeof *g);
    size_t begun = 0;
    for (size_t i = 0; all == TG_OK && i < n; i++) {
        all = tg_job_generating(batch->session[i], what[i], &g[i]);
        if (all != TG_OK) break;
        begun = i + 1;
        all = tg_generating_begin(&g[i]);
    }
    if (all == TG_OK) tg_generating_together(g, status, n);
    for (size_t i = 0; i < n; i++) {
        if (all == TG_OK) all = status[i];
        if (stats) stats[i] = g[i].stats;
        if (statuses) statuses[i] = status[i];
    }
    for (size_t i = 0; i < begun; i++) tg_generating_abandon(&g[i]);
    tg_free(&ctx->err.mem, g, n * sizeof *g);
    return all;
}
