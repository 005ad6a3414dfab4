/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - a decoder's own copy of its weights, where that makes writing faster.
 *
 * Some kernels read weights faster in another order than that of files and training
 * (tg_variant.copy). To copy them costs about what three tokens win, so it is done for the second
 * token that comes with the same weights: a model in training, of which a step lies between any two
 * tokens, is read as it is.
 *
 *     token      1      2      3      4      5      6
 *     weights    v      v      v      v + 1  v + 1  v + 1
 *     read       model  copy   copy   model  copy   copy
 *
 * No number depends on it, so a step may have its copy while the next one has none yet: where there
 * is a deadline, as many are made as there is time for. Who gets no memory goes on without.
 */
#include "engine/session.h"

#include "base/time.h"

/* A model that is larger than this leaves a module of 4 GB too little for anything else. */
#define COPIES_MAX_BYTES ((size_t)256 << 20)

static size_t copy_bytes(const tg_step *step) {
    const tg_variant *v = step->variant;
    return v->copy_bytes ? tg_plan_round(v->copy_bytes(&step->args)) : 0;
}

static bool reserve(tg_decoder *d, const tg_plan *plan) {
    if (d->copies.block.data) return true;
    size_t bytes = 0;
    for (size_t i = 0; i < plan->n_steps; i++) bytes += copy_bytes(&plan->steps[i]);
    if (bytes == 0 || bytes > COPIES_MAX_BYTES) return false;
    if (tg_runtime_block(d->ctx, bytes, &d->copies.block) == TG_OK) return true;
    tg_ctx_clear(&d->ctx->err);
    return false;
}

static void forget(tg_copies *c, tg_plan *plan) {
    for (size_t i = 0; i < c->n_steps; i++) plan->steps[i].args.copy = NULL;
    c->n_steps = c->n_bytes = 0;
}

static void make(tg_copies *c, tg_plan *plan, double deadline_ms) {
    for (; c->n_steps < plan->n_steps && !tg_time_over(deadline_ms); c->n_steps++) {
        tg_step *step = &plan->steps[c->n_steps];
        const size_t bytes = copy_bytes(step);
        if (bytes == 0) continue;
        char *to = (char *)c->block.data + c->n_bytes;
        step->variant->copy(&step->args, to);
        step->args.copy = to;
        c->n_bytes += bytes;
    }
}

/* Who shares a step's work depends on whether it has a copy, so that is decided anew. */
void tg_copies_use(tg_decoder *d, double deadline_ms) {
    tg_copies *c = &d->copies;
    tg_plan *plan = &d->by_rows[0].plan;
    if (c->refused || d->ctx->backend != d->ctx->cpu) return;
    if (c->version != d->model->version + 1) {
        c->version = d->model->version + 1;
        forget(c, plan);
        plan->shared_rows = 0;
    } else if (c->n_steps < plan->n_steps) {
        c->refused = !reserve(d, plan);
        if (c->refused) return;
        make(c, plan, deadline_ms);
        plan->shared_rows = 0;
    }
}
