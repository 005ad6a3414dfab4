/* SPDX-License-Identifier: Apache-2.0 */
/*
 * non_finite.c - which tensor was the first that was not finite.
 *
 * The step that was refused is replayed one plan step at a time, and every output is scanned before
 * the next one runs. Slow, and only ever done once a run goes wrong.
 */
#include "base/math.h"
#include "base/time.h"
#include "training/train.h"

static bool all_finite(const float *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!tg_isfinite((double)p[i])) return false;
    return true;
}

/* The parameter that element i of a flat array belongs to. */
static const char *param_of(const tg_layout *l, size_t i) {
    for (size_t k = 0; k < l->n_params; k++) {
        const tg_param *p = &l->params[k];
        if (i >= p->offset_elems && i < p->offset_elems + tg_type_elems(&p->type)) return p->name;
    }
    return "?";
}

/* Elements that are looked at between two looks at the clock. */
#define SCAN_ELEMS ((size_t)1 << 20)

/* States are scanned by element and named by parameter, since a flat array of all parameters would
 * be no help. name is left alone unless something was found. */
static tg_status find_in_flat(tg_trainer *t, double deadline_ms, const float *flat,
                              const char *what, char *name, size_t name_bytes, bool *found) {
    const tg_layout *l = &t->model->layout;
    for (size_t *i = &t->finding.at; *i < l->n_elems; ++*i) {
        if (!tg_isfinite((double)flat[*i])) {
            snprintf(name, name_bytes, "%s %s", what, param_of(l, *i));
            *found = true;
            return TG_OK;
        }
        if (*i % SCAN_ELEMS == SCAN_ELEMS - 1 && tg_time_over(deadline_ms)) {
            ++*i;
            return TG_PENDING;
        }
    }
    return TG_OK;
}

/* One step of the plan, and a look at its outputs. */
static tg_status find_in_step(tg_trainer *t, double deadline_ms, size_t i, char *name,
                              size_t name_bytes, bool *found) {
    tg_plan *plan = &t->plans.grad;
    tg_run *run = &t->finding.run;
    if (!tg_run_begun(run)) *run = (tg_run) { .next = i, .end = i + 1, .unbroken = true };
    run->deadline_ms = deadline_ms;
    TG_TRY(tg_backend_run(t->ctx->backend, plan, &t->rt, run));
    tg_run_restart(run);
    const tg_node *n = plan->steps[i].node;
    for (int k = 0; k < n->n_out && !*found; k++) {
        if (n->out[k].type.dtype != TG_F32) continue;
        void *data = tg_plan_data(plan, &n->out[k]);
        TG_TRY(tg_backend_fetch(t->ctx->backend, data, tg_type_bytes(&n->out[k].type)));
        if (all_finite(data, tg_type_elems(&n->out[k].type))) continue;
        snprintf(name, name_bytes, "%s", n->out[k].name);
        *found = true;
    }
    return TG_OK;
}

/* Runs micro-step by micro-step, plan step by plan step. */
static tg_status find_in_steps(tg_trainer *t, double deadline_ms, char *name, size_t name_bytes,
                               bool *found) {
    tg_finding *f = &t->finding;
    for (; f->micro < t->o.accum; f->micro++, f->at = 0) {
        if (f->at == 0 && !tg_run_begun(&f->run))
            TG_TRY(tg_train_fill(t, t->step, f->micro, &t->rt));
        t->rt.accumulate = f->micro > 0;
        while (f->at < t->plans.grad.n_steps) {
            TG_TRY(find_in_step(t, deadline_ms, f->at, name, name_bytes, found));
            if (*found) return TG_OK;
            f->at++;
            if (tg_time_over(deadline_ms)) return TG_PENDING;
        }
    }
    return TG_OK;
}

static tg_status find(tg_trainer *t, double deadline_ms, char *name, size_t name_bytes,
                      bool *found) {
    tg_finding *f = &t->finding;
    if (f->stage == TG_FINDING_WEIGHTS) {
        float *weights = tg_train_weights(t);
        const size_t bytes = t->model->layout.n_elems * sizeof *weights;
        if (f->at == 0) TG_TRY(tg_backend_fetch(t->ctx->backend, weights, bytes));
        TG_TRY(find_in_flat(t, deadline_ms, weights, "weights", name, name_bytes, found));
        if (*found) return TG_OK;
        f->stage = TG_FINDING_STEPS;
        f->at = 0;
    }
    if (f->stage == TG_FINDING_STEPS) {
        TG_TRY(find_in_steps(t, deadline_ms, name, name_bytes, found));
        if (*found || !tg_train_fault) return TG_OK;
        TG_TRY(tg_train_fault(t, TG_FAULT_GRADIENT));
        TG_TRY(tg_backend_fetch(t->ctx->backend, t->grads.data, t->grads.bytes));
        f->stage = TG_FINDING_GRADIENTS;
        f->at = 0;
    }
    return find_in_flat(t, deadline_ms, t->grads.data, "gradients of", name, name_bytes, found);
}

/* From cause to effect: a bad weight spoils all that follows, so it is looked for first. A loss or
 * norm that overflows although every tensor is finite is possible, and gets a sentence of its own.
 */
tg_status tg_train_find_bad(tg_trainer *t, double deadline_ms, char *name, size_t name_bytes) {
    bool found = false;
    TG_TRY(find(t, deadline_ms, name, name_bytes, &found));
    if (!found) snprintf(name, name_bytes, "the gradient norm (every tensor alone is finite)");
    return tg_train_fault ? tg_train_fault(t, TG_FAULT_FOUND) : TG_OK;
}
