/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_lost.c - a run on a device that may be lost.
 *
 * A GPU keeps weights and moments to itself. So every ctx->copy_every steps they are brought down,
 * between two steps, and kept with the numbers that belong to them:
 *
 *     step   0 ....... 50 ....... 100 ... 117
 *            copy      copy       copy     the device is lost: back to 100, on a new device
 *
 * The host's arrays that the GPU mirrors cannot be that copy: whoever fetches one of them would
 * make it newer than the others, and a device may be lost in the middle of a fetch. A run is a
 * function of its step, so what is repeated gives the losses that it gave; a validation that lies
 * between is repeated, too. Other runs of the same context are set back when they go on.
 */
#include "base/math.h"
#include "training/train.h"

enum { PARTS_MAX = 4 };

/* weights | adam_m | adam_v, and with an average raw */
static void *part(tg_trainer *t, int i) {
    void *const parts[PARTS_MAX] = { t->model->weights, t->adam_m.data, t->adam_v.data,
                                     t->raw.data };
    return parts[i];
}
static int parts_of(const tg_trainer *t) { return t->raw.data ? PARTS_MAX : PARTS_MAX - 1; }

static tg_train_mark mark_of(const tg_trainer *t) {
    return (tg_train_mark) { .scaling = { t->scaling[0], t->scaling[1], t->scaling[2] },
                             .step = t->step,
                             .updates = t->updates,
                             .last_loss = t->last_loss,
                             .last_val = t->last_val,
                             .best_val = t->best_val,
                             .best_step = t->best_step,
                             .last_val_step = t->last_val_step,
                             .stale = t->stale,
                             .loss_hash = t->loss_hash };
}

/* Without memory for it the run goes on, and a lost device ends it. */
static tg_status reserve(tg_trainer *t) {
    if (t->copy.block.data || t->copy.refused) return TG_OK;
    const size_t bytes = (size_t)parts_of(t) * t->model->layout.n_elems * sizeof(float);
    const tg_status s = tg_block_new(&t->ctx->err, bytes, &t->copy.block);
    t->copy.refused = s != TG_OK;
    if (s != TG_E_MEMORY) return s;
    tg_say(&t->ctx->err, TG_LOG_WARNING,
           "no memory for a copy of the run (%zu bytes): if the GPU is lost, the last save is what "
           "is left",
           bytes);
    tg_ctx_clear(&t->ctx->err);
    return TG_OK;
}

/* Called between two steps. */
tg_status tg_train_copy(tg_trainer *t) {
    tg_backend *b = t->ctx->backend;
    if (!b->fetch || (t->copy.held && t->step < t->copy.mark.step + t->ctx->copy_every))
        return TG_OK;
    TG_TRY(reserve(t));
    if (!t->copy.block.data) return TG_OK;
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    const int n = parts_of(t);
    for (int i = 0; i < n; i++) TG_TRY(tg_backend_fetch(b, part(t, i), bytes));
    for (int i = 0; i < n; i++)
        memcpy((char *)t->copy.block.data + (size_t)i * bytes, part(t, i), bytes);
    t->copy.mark = mark_of(t);
    t->copy.held = true;
    return TG_OK;
}

/* Points that are younger than the copy come again. */
static void set_back(tg_trainer *t, const tg_train_mark *m) {
    if (m->best_step != t->best_step) t->best_held = false;
    t->step = m->step;
    t->updates = m->updates;
    t->last_loss = m->last_loss;
    t->last_val = m->last_val;
    t->best_val = m->best_val;
    t->best_step = m->best_step;
    t->last_val_step = m->last_val_step;
    t->stale = m->stale;
    t->loss_hash = m->loss_hash;
    memcpy(t->scaling, m->scaling, sizeof t->scaling);
    while (t->n_history && t->history[t->n_history - 1].step > m->step) t->n_history--;
    t->phase = TG_PHASE_IDLE;
    t->micro = 0;
    tg_run_restart(&t->run);
    t->report_due = t->eval_pending = false;
    t->model->changing = false;
    t->model->version++;
    t->model->step = m->step;
}

/* A trainer that has not stepped on the device yet has all it needs on the host. */
static tg_status restore(tg_trainer *t) {
    const size_t bytes = t->model->layout.n_elems * sizeof(float);
    const int64_t step = t->step;
    t->generation = t->ctx->generation;
    if (!t->copy.held && t->copy.refused)
        return tg_fail(&t->ctx->err, TG_E_DEVICE,
                       "the GPU was lost at step %" PRId64 ", and there was no memory for a copy: "
                       "resume from the last save",
                       step);
    if (!t->copy.held) return TG_OK;
    set_back(t, &t->copy.mark);
    for (int i = 0; i < parts_of(t); i++) {
        memcpy(part(t, i), (char *)t->copy.block.data + (size_t)i * bytes, bytes);
        TG_TRY(tg_backend_touched(t->ctx->backend, part(t, i), bytes));
    }
    TG_TRY(tg_backend_touched(t->ctx->backend, t->scaling, sizeof t->scaling));
    tg_say(&t->ctx->err, TG_LOG_WARNING,
           "the run goes back from step %" PRId64 " to its copy of step %" PRId64, step, t->step);
    return TG_OK;
}

tg_status tg_train_follow(tg_trainer *t) {
    return t->generation == t->ctx->generation ? TG_OK : restore(t);
}

bool tg_train_recovered(tg_trainer *t, tg_status *status) {
    if (*status != TG_E_DEVICE || !tg_backend_lost(t->ctx->backend)) return false;
    *status = tg_runtime_recover(t->ctx);
    if (*status == TG_OK) *status = tg_train_follow(t);
    return *status == TG_OK;
}
